"""Where the records have not been tried: other releases than the matrix has, and pairs of it that they leave broken.

There "nothing to do" says only that no record is about it, so `check` is asked as well. What the records were tried on
is docs/matrix.md, the table that `make docs-matrix` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patcher.check.tried import Tried, matrix_document, tried
from patcher.data import shipped
from patcher.errors import UkyError
from patcher.i18n import Phrase, Phrases, phrase
from patcher.packages.versions import No, Yes, satisfies
from patcher.terminal.printing import silent

if TYPE_CHECKING:
    from patcher.analysis.findings import Severity
    from patcher.packages import Installed
    from patcher.packages.versions import Kind
    from patcher.records.model import Record
    from patcher.session.session import Session

_COUNTED: Mapping[Severity, str] = {
    "break": "{count} that check calls breaks",
    "optional": "{count} within features",
    "inert": "{count} without effect",
}
DRAFTS = "drafts"
"""The folder that the next step names."""


@dataclass(frozen=True, slots=True)
class Untried:
    """Why nothing is known of the records here, and what `check` finds once they are applied."""

    why: Phrase
    vllm: str | None
    next: Phrase | Phrases | str
    """What goes on from here: a command, or what to do so that `check` can be made."""
    found: Mapping[Severity, int] | None = None
    """None where it is not known."""
    unreadable: int = 0
    """Files that are no Python, of which nothing is known."""
    unknown: Phrase | Phrases | str = ""
    """Why `found` is None."""

    @property
    def clean(self) -> bool:
        """What has no effect fails nothing, and no record or draft takes it away."""
        if self.found is None or self.unreadable:
            return False
        return not any(count for severity, count in self.found.items() if severity != "inert")

    @property
    def message(self) -> Phrase:
        """Why, and what `check` finds, in one sentence."""
        if self.found is None:
            text = "{why}; what breaks here is not known: {unknown}"
            return phrase(text, why=self.why, unknown=Phrases((self.unknown,)))
        counts = [phrase(_COUNTED[name], count=count) for name, count in self.found.items() if count]
        if self.unreadable:
            counts.append(phrase("{count} files that are no Python", count=self.unreadable))
        what: Phrase | Phrases = Phrases(tuple(counts), ", ") if counts else phrase("nothing")
        return phrase("{why}; on vllm {vllm} they leave: {what}", why=self.why, vllm=self.vllm, what=what)


def untried(session: Session) -> Untried | None:
    """None where the records are known to leave nothing broken, or where nobody knows which environment is meant.

    A fork whose own records speak of its release sees only breaks, and only of those that are found without
    fetching anything. Raises RecordError for records that cannot be read.
    """
    environment = session.environment
    if not environment.known or not matrix_document().is_file():  # A node of a cluster gets no documents.
        return None
    verl, vllm = environment.version("verl"), environment.version("vllm")
    if (why := _why(tried(), verl, vllm)) is None:
        return _known(session, vllm) if vllm is not None else None
    # A fork with records of its own for this release knows what it does; it hears of breaks alone, and waits for no
    # transfer.
    own = why.between or any(_is_for_release(record, verl) for record in session.records)
    if own and not _is_at_hand(environment.packages.get("vllm")):
        return None
    found = _checked(session, why.text, vllm)
    # Breaks are always shown. Without breaks the message would only repeat what the matrix says of the pair or of the
    # releases around it, or what a fork with records of its own knows.
    breaks = found.found is not None and found.found["break"] > 0
    worth_a_message = breaks or not (own or (why.is_pair and found.found is not None))
    return found if worth_a_message else None


def _known(session: Session, vllm: str) -> Untried | None:
    """What a check that was made before has left in these files, where the matrix knows of nothing.

    The matrix is of releases, and a fork of one may have edits of its own.
    """
    from patcher.check.known_breaks import known_breaks

    count = known_breaks(session)
    if not count:
        return None
    why = phrase("a check of these files has found more than records repair")
    return Untried(why, vllm, session.command("check", "--draft", DRAFTS), {"break": count})


def _checked(session: Session, why: Phrase, vllm: str | None) -> Untried:
    from patcher.check.checking import check
    from patcher.check.result import CheckRequest

    if vllm is None:
        newest = tried().spans[-1][1]
        following = session.command("check", "--against", f"vllm=={newest}", "--draft", DRAFTS)
        return Untried(why, vllm, following, unknown=phrase("vllm is not installed"))
    following = session.command("check", "--draft", DRAFTS)
    try:
        # A program that asks for JSON gets one line, also where its terminal is both of its streams.
        with silent() if session.output == "json" else nullcontext():
            done = check(session, CheckRequest((), since=False))
    except UkyError as error:
        return Untried(why, vllm, error.advice or following, unknown=error.title)
    counts = {severity: len(done.after.of(severity)) for severity in _COUNTED}
    return Untried(why, vllm, following, counts, len(done.unreadable))


@dataclass(frozen=True, slots=True)
class _Why:
    text: Phrase
    is_pair: bool = False
    """Both releases are in the matrix, and their pair is left broken there."""
    between: bool = False
    """The tree is no release, and on those around it nothing is left: its own edits may still break."""


def _why(known: Tried, verl: str | None, vllm: str | None) -> _Why | None:
    columns = _spans_around(verl or "", [(one, one) for one in known.verl], "tree")
    if not columns:
        return _Why(_outside("verl", verl, known.verl[0], known.verl[-1]))
    # There is nothing to check against; the newest release of the matrix is the one to propose.
    if vllm is None:
        return None
    spans = _spans_around(vllm, known.spans, "dependency")
    if not spans:
        return _Why(_outside("vllm", vllm, known.spans[0][0], known.spans[-1][1]))
    # A version between two releases works only if both neighbours do.
    for column, _ in columns:
        if not all(known.works.get((column, first)) for first, _ in spans):
            left = "records leave breaks in verl {verl} on vllm {vllm}"
            return _Why(phrase(left, verl=column, vllm=vllm), is_pair=True)
    if verl is not None and verl.partition("+")[0] not in known.verl:
        text = phrase("verl {verl} is none of the releases that records were tried on", verl=verl)
        return _Why(text, between=True)
    return None


def _outside(name: str, version: str | None, first: str, last: str) -> Phrase:
    if version is None:
        return phrase(
            "the release of {name} is not known; records were tried on {first} to {last}",
            name=name,
            first=first,
            last=last,
        )
    text = "{name} {version} is outside of the releases that records were tried on, {first} to {last}"
    return phrase(text, name=name, version=version, first=first, last=last)


def _spans_around(version: str, spans: Sequence[tuple[str, str]], kind: Kind) -> Sequence[tuple[str, str]]:
    """The span that a version is in, or the two that it lies between; none where there is none on one side of it.

    A fork's 0.7.0.dev lies between 0.6.1 and 0.8.0; its 0.4.0.dev has nothing on one side, as 0.4.0 is the first. The
    next release after the last one is not known yet, so that 0.9.0.dev ends with the last.
    """
    from_here = [
        at for at, (first, _) in enumerate(spans) if isinstance(satisfies(version, f">={first}", kind=kind), Yes)
    ]
    up_to = [at for at, (_, last) in enumerate(spans) if isinstance(satisfies(version, f"<={last}", kind=kind), Yes)]
    if not up_to and spans and _leads_to(version, spans[-1][1]):
        up_to = [len(spans) - 1]
    if not from_here or not up_to:
        return ()
    return spans[min(from_here[-1], up_to[0]) : max(from_here[-1], up_to[0]) + 1]


def _leads_to(version: str, last: str) -> bool:
    """Whether a development version leads to a release that is not beyond the last: 0.9.0.dev for 0.9.1."""
    from packaging.version import InvalidVersion, Version

    try:
        found = Version(version)
    except InvalidVersion:
        return False
    return found.is_devrelease and Version(found.base_version) <= Version(last)


def _is_for_release(record: Record, verl: str | None) -> bool:
    """Whether a fork's own record is for this release of verl, named from below and from above."""
    if verl is None or record.path is None or record.path.is_relative_to(shipped("patches")):
        return False
    spec = record.when.versions.get("verl", "")
    # `>=0.7` alone holds for every later release and says nothing of this one.
    bounded = "==" in spec or "~=" in spec or (">" in spec and "<" in spec)
    return bounded and not isinstance(satisfies(verl, spec, kind="tree"), No)


def _is_at_hand(vllm: Installed | None) -> bool:
    from patcher.packages.releases import is_cached

    return vllm is not None and (vllm.location is not None or is_cached("vllm", vllm.version))
