"""A verl tree on the disk: the only package that writes one."""

from patcher.tree.change import Change
from patcher.tree.ledger import Ledger
from patcher.tree.source import Source
from patcher.tree.tree import Tree

__all__ = ["Change", "Ledger", "Source", "Tree"]
