"""The manifest of a cargo: what will be on the host, as the agent is told it."""

from __future__ import annotations

from patcher import __version__
from patcher.migrate.model import Cargo
from patcher.tree.ledger import now
from patcher.worktree.manifest import Entry, Manifest


def manifest_of(cargo: Cargo) -> Manifest:
    """The cargo's files with their digests, and where they come from."""
    files = {path: Entry(item.sha256, item.mode & 0o777, item.size, item.link) for path, item in cargo.items.items()}
    return Manifest(files, cargo.listing.commit, cargo.listing.dirty, __version__, now())
