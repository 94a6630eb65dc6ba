"""What this tool keeps in a tree, as paths below the tree's root. Every machine that holds a tree has the same.

.uky-patch/ledger.json        which files are patched, by which records: `patcher.worktree.ledger`
.uky-patch/originals/         what these files were before (pre-images), with a note on each
.uky-patch/journal.json       a change under way, and .uky-patch/staged/ its files: `patcher.worktree.journal`
.uky-patch/lock               the tree's lock: `patcher.worktree.tree_lock`
.uky-patch/host/              on a host, what a migration and its jobs keep: `patcher.worktree.placement`
.uky-patch-kept/              copies of what was replaced, for the owner to remove: `patcher.worktree.backup`
"""

from __future__ import annotations

FOLDER = ".uky-patch"
LEDGER = FOLDER + "/ledger.json"
JOURNAL = FOLDER + "/journal.json"
LOCK = FOLDER + "/lock"
ORIGINALS = FOLDER + "/originals"
STAGED = FOLDER + "/staged"

HOST = FOLDER + "/host"
MANIFEST = HOST + "/manifest.json"
"""The files that the last migration brought, with their digests: `patcher.worktree.manifest`."""
INCOMING = HOST + "/incoming"
"""Files of a migration that have arrived and are not in the tree yet."""
PARTIAL = HOST + "/partial"
"""Files that rsync has not finished."""
ASIDE = HOST + "/aside"
"""Second names (hard links) of files that a migration is about to replace."""
DIGESTS = HOST + "/digests.json"
"""Digests of files by their size and times: `patcher.worktree.digest_cache`."""

KEPT = ".uky-patch-kept"
