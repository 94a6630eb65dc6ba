"""Ask the host what it has of a cargo."""

from __future__ import annotations

from patcher.migrate.manifest import manifest_of
from patcher.migrate.model import Cargo, Difference
from patcher.remote.connection import Connection
from patcher.worktree.manifest import pack


def compare(connection: Connection, cargo: Cargo) -> Difference:
    """The cargo against the tree that `begin` has opened. A transfer that was interrupted there is finished first.

    Raises:
        CutError: the connection ended.
        RefusedError: a path leads out of the tree there, or something that is not ours is in the way.
    """
    answer = connection.channel.ask("compare", body=pack(manifest_of(cargo)))
    paths = sorted(cargo.items)
    return Difference(
        send=tuple(paths[number] for number in answer["send"]),
        same=answer["same"],
        retire=tuple(answer["retire"]),
        overwritten=tuple(answer["overwritten"]),
        modes=tuple(paths[number] for number in answer["modes"]),
        number=answer["cargo"],
    )
