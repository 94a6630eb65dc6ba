"""A verl tree on the disk here: what is patched in it, and the transactions that change it through the engine."""

from patcher.tree.ledger import Ledger
from patcher.tree.source import Change, Source
from patcher.tree.tree import Tree

__all__ = ["Change", "Ledger", "Source", "Tree"]
