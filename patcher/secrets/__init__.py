"""What a secret is and how a text loses it: one policy for every text that leaves, here and on hosts.

The standard library of Python 3.8 alone: this room is sent to hosts together with `patcher.agent`.
"""
