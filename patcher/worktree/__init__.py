"""The engine that changes trees: files, locks, kept copies, journals and the ledger, where others can write too.

It serves the tree here, the tree on a host and the tree on a Ray node. Everything in this room is sent there together
with `patcher.agent`: it runs on the standard library of Python 3.8, imports nothing else of `patcher` than
`patcher.messages` and the version, and raises `patcher.messages.Refusal` for what cannot be done.
"""
