"""The verbs of a node that need git: which changes are somebody's work, and which files git or pip has put there.

git is asked on the node, because the checkout is there, and under the tree's lock. It is asked by the room `git`, which
protects against a checkout of somebody else: no hook, filter or monitor of the repository runs. So this module and
`git`, with the rooms that it imports (`tree`, `errors`, `i18n`), are sent to nodes beside the agent. Unlike the agent
they need Python 3.10.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from patcher.cluster.agent import node
from patcher.errors import UkyError
from patcher.git.checkout import refuse_foreign_changes
from patcher.git.delivered import delivered
from patcher.i18n.codec import encode
from patcher.messages import Refusal
from patcher.remote.agent.serving import Request
from patcher.tree import Tree
from patcher.tree.source import Source
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import Ledger


def look(request: Request) -> dict[str, Any]:
    """The verb `node_look`; see `patcher.cluster.agent.node.look`."""
    return node.look(request, _delivered)


def commit(request: Request) -> dict[str, Any]:
    """The verb `node_commit`; see `patcher.cluster.agent.node.commit`."""
    return node.commit(request, _refuse_foreign)


def _delivered(root: Path, odd: Mapping[str, node.Content]) -> frozenset[str]:
    """As `node.Delivered`."""
    sources = {
        path: Source(path, found[0], digest_of(found[0]), found[1]) if found is not None else None
        for path, found in odd.items()
    }
    with _refusals():
        return delivered(root, sources)


def _refuse_foreign(root: Path, ledger: Ledger, paths: set[str]) -> None:
    """As `node.RefuseForeign`."""
    with _refusals():
        refuse_foreign_changes(Tree(root), ledger, paths)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Raise a UkyError as a Refusal of kind `git`, which crosses the connection."""
    try:
        yield
    except UkyError as error:
        title, cause, advice = (encode(part) or None for part in (error.title, error.cause, error.advice))
        as_message = title if isinstance(title, dict) else {"template": "{title}", "fields": {"title": title}}
        raise Refusal("git", as_message, cause, advice) from error
