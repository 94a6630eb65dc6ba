"""The engine that changes trees: files, locks, kept copies and journals in a place that others can write to.

Everything in this room is sent to hosts together with `patcher.agent`: it runs on the standard library of Python 3.8
and imports nothing else of `patcher` than `patcher.messages`. It serves the tree here and the tree on a host.
"""
