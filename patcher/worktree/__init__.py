"""Files and locks in a place that others can write to: the standard library of Python 3.8, here and on hosts.

Everything in this room is sent to hosts together with `patcher.agent`. It imports nothing else of `patcher`.
"""
