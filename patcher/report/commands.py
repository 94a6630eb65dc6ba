"""Command lines to paste: `uky-patch apply --root fork --assume vllm==0.20.2`, quoted for a shell.

They repeat the options that this call was given (tree, interpreter, assumed versions, record folders), so that the next
command is about the same tree.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.homes import expanded
from patcher.i18n import Language, phrase, show

if TYPE_CHECKING:
    from patcher.check.result import CheckRequest
    from patcher.check.targets import Against
    from patcher.patching.next_step import NextStep
    from patcher.session.session import Session

_shown_above: ContextVar[bool] = ContextVar("_shown_above", default=False)


def command_line(session: Session, *words: str) -> str:
    """`uky-patch` with these words and the shared options of this call: `uky-patch apply --root fork --assume …`."""
    return shlex.join(["uky-patch", *words]) if _shown_above.get() else session.command(*words)


@contextmanager
def options_shown_above() -> Iterator[None]:
    """Leave the shared options out of commands, where one line has shown them for all."""
    token = _shown_above.set(True)
    try:
        yield
    finally:
        _shown_above.reset(token)


def next_lines(step: NextStep | None, session: Session, language: Language) -> list[str]:
    """What the next command does, where that needs saying, and the command at the end of a line of its own."""
    if step is None:
        return []
    about = [show(step.about, language)] if step.about else []
    return [*about, phrase("Next: {command}", command=step.instead or step_command(step, session)).render(language)]


def step_command(step: NextStep | None, session: Session) -> str:
    """The next command; "" where there is none."""
    return command_line(session, *step.words) if step is not None and step.words else ""


def on_fork(
    session: Session,
    *words: str,
    assume: Mapping[str, str] | None = None,
    rooted: bool = True,
    patches: Sequence[Path] = (),
) -> str:
    """`uky-patch --root … --python … --assume … --patches … WORDS`; `rooted`: with the tree's own folder."""
    given = ["--root", str(session.tree.root)] if rooted else []
    if session.python is not None:
        given += ["--python", _absolute(session.python)]
    for name, version in (session.assume if assume is None else assume).items():
        given += ["--assume", f"{name}=={version}"]
    for folder in dict.fromkeys((*session.folders, *patches)):
        given += ["--patches", _absolute(folder)]
    return shlex.join(("uky-patch", *given, *words))


def check_command(
    session: Session, order: CheckRequest, place: Path, *, drafts: Path | None, with_drafts: bool = False
) -> str:
    """The check that was asked for, once more, writing its page to `place`. `with_drafts`: those count as records."""
    words = ["check"]
    words += ["--verl", order.verl] if order.verl else []
    for one in order.against:
        words += ["--against", written(one)]
    for one in order.baseline:
        words += ["--baseline", written(one)]
    for pattern in order.scripts:
        words += ["--scripts", pattern]
    words += [] if order.since else ["--no-since"]
    words += ["--draft", _absolute(drafts)] if drafts is not None and not with_drafts else []
    words += ["--html", str(place)]
    patches = (drafts,) if drafts is not None and with_drafts else ()
    return on_fork(session, *words, rooted=not order.verl, patches=patches)


def assumed(session: Session, order: CheckRequest) -> dict[str, str] | None:
    """What `apply` has to assume to be for what was checked against; None where that is no release."""
    from patcher.check.targets import AsInstalled, InFolder, NotInstalled, Released

    found = dict(session.assume)
    for one in order.against:
        match one.source:
            case Released(version=version):
                found[one.known_as] = version
            case NotInstalled():
                found[one.known_as] = "none"
            case InFolder():
                return None
            case AsInstalled():
                pass
    return found


def written(one: Against) -> str:
    """As it stands behind --against, with an absolute folder."""
    from patcher.check.targets import AsInstalled, InFolder, NotInstalled, Released

    match one.source:
        case Released(version=version):
            return f"{one.name}=={version}"
        case InFolder(path=path):
            return f"{one.name}={_absolute(path)}"
        case NotInstalled():
            return f"{one.name}==none"
        case AsInstalled():
            return one.name


def _absolute(path: Path) -> str:
    """Without following symlinks: an environment's `python` is one."""
    return os.path.abspath(expanded(str(path)))  # noqa: PTH100
