"""A verl tree on this machine: finding it, reading its files as text, and changing it through `patcher.worktree`."""

from patcher.tree.source import Source
from patcher.tree.tree import Tree
from patcher.worktree.ledger import Ledger
from patcher.worktree.transaction import Change

__all__ = ["Change", "Ledger", "Source", "Tree"]
