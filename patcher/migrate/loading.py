"""The files of a cargo: those of the tree, the planned ones in their place, the ledger and the pre-images."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from patcher.errors import TreeError
from patcher.i18n import phrase
from patcher.migrate.model import Item, Listing
from patcher.patching.applying import next_ledger, planned_bytes
from patcher.plan.outcome import FileState, Plan
from patcher.session.survey import Survey as TreeSurvey
from patcher.tree import notes
from patcher.tree.ledger import AppliedRecord, Ledger, dump, now
from patcher.tree.paths import FOLDER
from patcher.tree.source import digest

if TYPE_CHECKING:
    from patcher.packages.environment import Environment
    from patcher.session.session import Session

_LINKS = 16


def listed(found: TreeSurvey, listing: Listing) -> TreeSurvey:
    """What was read of the tree, without the files that are not sent: for the host they do not exist.

    Raises TreeError where a file is no longer as it was listed.
    """
    hidden = []
    for path, source in found.sources.items():
        item = listing.items.get(target(path, listing.items))
        if item is None:
            hidden.append(path)
        elif item.sha256 and item.sha256 != source.sha256:
            raise TreeError(
                phrase("{path}: changed while it was read", path=path),
                cause=phrase("its content is no longer the one that was listed; nothing was sent"),
                advice=phrase("Run the command again."),
            )
    states = dict(found.situation.files) | {path: FileState(path, None, None) for path in hidden}
    sources = {path: source for path, source in found.sources.items() if path not in hidden}
    situation = replace(found.situation, files=states)
    gone = (*found.gone, *(path for path in hidden if path in found.ledger.files))
    return replace(found, situation=situation, sources=sources, gone=gone)


def loaded(
    session: Session,
    listing: Listing,
    planned: Plan,
    found: TreeSurvey,
    there: Environment,
    applied: Mapping[str, Any],
) -> dict[str, Item]:
    """The items with `planned` written. `applied` are the entries of the ledger that is on the host already.

    Raises TreeError where a pre-image is missing or damaged.
    """
    items = dict(listing.items)
    for path in planned.files:
        content = planned_bytes(path, planned, found)
        place = target(path, items)
        if content != found.sources[path].content:
            items[place] = _own(place, content, items[place].mode)
    versions = {name: item.version for name, item in there.packages.items()}
    ledger = next_ledger(planned, found, {record.id: record for record in session.records}, versions)
    if not ledger:
        return items
    ledger = replace(ledger, records=_entries(ledger, versions, applied), basis={})
    own = {f"{FOLDER}/.gitignore": b"*\n", f"{FOLDER}/ledger.json": dump(ledger)}
    for path, file in ledger.files.items():
        source = found.sources[path]
        at_hand = source.sha256 == file.original
        own[f"{FOLDER}/originals/{file.original}"] = (
            source.content if at_hand else session.tree.pre_image(file.original)
        )
        own[f"{FOLDER}/originals/{file.original}{notes.SUFFIX}"] = notes.dump(file.original, ledger, Ledger())
    return items | {path: _own(path, content, 0o644) for path, content in own.items()}


def target(path: str, items: Mapping[str, Item]) -> str:
    """The path of the file that `path` means, through the symlinks among the items."""
    for _ in range(_LINKS):
        parts = path.split("/")
        prefixes = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        link = next((items[prefix] for prefix in prefixes if prefix in items and items[prefix].link), None)
        if link is None:
            break
        rest = path[len(link.path) :]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), str(link.link)) + rest)
    return path


def _own(path: str, content: bytes, mode: int) -> Item:
    return Item(path, len(content), mode, digest(content), content=content)


def _entries(ledger: Ledger, versions: Mapping[str, str], applied: Mapping[str, Any]) -> dict[str, AppliedRecord]:
    """Each record as applied for the host's versions; one that is there already keeps its time."""
    entries = {}
    for name, entry in ledger.records.items():
        known = applied.get(name)
        same = isinstance(known, list) and known[:2] == [entry.digest, versions] and isinstance(known[2], str)
        entries[name] = AppliedRecord(entry.source, dict(versions), known[2] if same and known else now())
    return entries
