"""The reports of `diff HOST` and `pull HOST`: edits made on a host as diffs, and how each merged here (or its
conflict).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patcher.i18n import language, phrase, show
from patcher.terminal.document import Diff, Json, Lines, Part, unified
from patcher.visible import visible

if TYPE_CHECKING:
    from patcher.migrate.host_edits import HostEdit, HostEdits
    from patcher.migrate.pulling import Pulled
    from patcher.session.session import Session

_NOT_SHOWN = {
    "gone": phrase("removed there"),
    "link": phrase("a symlink, there or as it was sent"),
    "large": phrase("edited there, too large to be shown"),
}
_OUTCOMES = {
    "pulled": phrase("pulled"),
    "created": phrase("new, pulled"),
    "same": phrase("the edit is here already"),
    "conflict": phrase("not pulled: the same lines were changed here"),
    "unknown": phrase("not pulled: what was sent is not known any more, so there is nothing to merge with"),
    "missing": phrase("not pulled: there is no such file here"),
    "gone": phrase("removed there; left here"),
    "link": phrase("not pulled: a symlink, there or as it was sent"),
    "large": phrase("not pulled: larger than 8 MiB"),
}
_WRITTEN = ("pulled", "created")
_TAKEN = (*_WRITTEN, "same")


def edit_diff(edit: HostEdit) -> str:
    """From what was sent to what is there; from the file here where what was sent is not known any more."""
    if edit.there is None:
        return ""
    before = edit.sent if edit.sent is not None else edit.here or b""
    if b"\0" in before + edit.there:
        return ""
    return unified(edit.path, _text(before), _text(edit.there))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def edits_report(found: HostEdits, session: Session) -> Iterator[Part]:
    """What was edited there: diffs, and a line for each file that has none."""
    if session.output == "json":
        yield Json(
            {
                "host": found.host.name,
                "root": str(session.tree.root),
                "files": [_as_json(edit) for edit in found.edits],
                "folders": list(found.folders),
                "more": found.more,
            }
        )
        return
    tongue = language()
    for edit in found.edits:
        diff = edit_diff(edit)
        if diff:
            if edit.change == "edited" and edit.sent is None:
                text = phrase(
                    "{path}: what was sent is not known any more; compared with the file here", path=edit.path
                )
                yield Lines(text, err=True)
            yield Diff(diff)
        else:
            yield Lines(
                f"{visible(edit.path)}: {show(_NOT_SHOWN.get(edit.change, phrase('differs, and is no text')), tongue)}"
            )
    yield from _new_folders(found)
    if not found.edits:
        yield Lines(phrase("nothing was edited on {host} since the last migration", host=found.host.name))
        return
    if any(edit.change in ("edited", "new") for edit in found.edits):
        text = phrase("Next: {command}", command=f"uky-patch pull {found.host.words}")
        yield Lines("", text)


def _new_folders(found: HostEdits) -> Iterator[Part]:
    language()
    if found.folders:
        names = ", ".join(visible(path) for path in found.folders)
        text = phrase("new folders there, each pulled by its path: {names}", names=names)
        yield Lines(text)
    if found.more:
        yield Lines(phrase("new files there that are not listed: {count}", count=found.more))


def _as_json(edit: HostEdit) -> dict[str, Any]:
    known = edit.change != "edited" or edit.sent is not None
    return {"path": edit.path, "change": edit.change, "sent_known": known, "diff": edit_diff(edit)}


def pulled_report(found: HostEdits, done: tuple[Pulled, ...], session: Session, *, wrote: bool) -> Iterator[Part]:
    """What became of each edit, or with `--diff` what would."""
    if session.output == "json":
        written = [one.edit.path for one in done if wrote and one.outcome in _WRITTEN]
        files = [{**_as_json(one.edit), "outcome": one.outcome, "kept": one.kept} for one in done]
        report = {"host": found.host.name, "root": str(session.tree.root), "files": files, "written": written}
        yield Json({**report, "folders": list(found.folders)})
        return
    tongue = language()
    if not done:
        yield Lines(phrase("nothing was edited on {host} since the last migration", host=found.host.name))
    for one in done:
        if not wrote and one.outcome in _WRITTEN:
            yield Diff(unified(one.edit.path, _text(one.edit.here or b""), _text(one.content or b"")))
            continue
        yield Lines(f"{visible(one.edit.path)}: {show(_OUTCOMES[one.outcome], tongue)}")
        if one.kept:
            yield Lines(f"  {show('kept what was changed by hand', tongue)}: {one.kept}")
    yield from _new_folders(found)
    if any(one.outcome in ("conflict", "unknown", "missing") for one in done):
        command = f"uky-patch pull {found.host.words} --into edits-there"
        text = phrase(
            "Next: write the host's versions into a folder, and take them over by hand: {command}", command=command
        )
        yield Lines("", text)
    elif wrote and any(one.outcome in _TAKEN for one in done):
        yield Lines("", phrase("Next: {command}", command=f"uky-patch migrate {found.host.words}"))


def saved_report(found: HostEdits, folder: str, written: tuple[str, ...], session: Session) -> Iterator[Part]:
    """Which of the host's versions lie in the folder now."""
    if session.output == "json":
        yield Json(
            {"host": found.host.name, "root": str(session.tree.root), "folder": folder, "written": list(written)}
        )
        return
    text = phrase(
        "{count} {count:file|files} of {host} written into {folder}",
        count=len(written),
        host=found.host.name,
        folder=folder,
    )
    yield Lines(*(visible(path) for path in written), text)
