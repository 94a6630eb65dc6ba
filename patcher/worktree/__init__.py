"""The engine that changes trees: files, locks, kept copies, journals and the ledger.

It changes the tree on this machine, on a host and on a Ray node. All of this package is sent there with
`patcher.agent`. So it uses the standard library of Python 3.8 alone, imports of `patcher` only `patcher.messages` and
the version, and raises `patcher.messages.Refusal` for what cannot be done.
"""
