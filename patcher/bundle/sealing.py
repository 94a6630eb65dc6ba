"""Take secrets out of the collected texts, rename people and machines, and prove it before anything is written.

The proof reads every file once more: a known secret, or anything that the redactor would still hide, is a SealError.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path

from ahocorasick_rs import AhoCorasick, MatchKind

from patcher.bundle.bug_report import reports
from patcher.bundle.contents import BLOCK, POINTS, Bundle, BundleOptions, Missing, Run, Sealed, Section
from patcher.bundle.pseudonyms import Pseudonyms
from patcher.diagnose.log_stream import open_log
from patcher.errors import TreeError, UkyError
from patcher.i18n import phrase
from patcher.secrets.prefilter import SIGNS
from patcher.secrets.redacting import Redactor
from patcher.secrets.values import Span

_MOST_LEARNT = 200
"""Values that were recognised and are hidden everywhere. Set by hand: each makes the search a little slower."""
_BEGINNING = 16
"""Blocks of BLOCK characters of a log that are searched for them: some three seconds. Set by hand."""
_BEGIN, _END = b"-----BEGIN", b"-----END"


class SealError(UkyError):
    """Something in the archive still looks like a secret."""


@contextmanager
def sealed(
    run: Run, options: BundleOptions, sections: Sequence[Section], missing: Sequence[Missing]
) -> Iterator[Bundle]:
    """The archive as it would be written, proved to hold no secret: the run's sections, those given, and the reports.

    `missing` counts beside what the run lacks. Lasts as long as its large files are needed. Raises SealError where it
    would hold a secret, OSError where there is no room for what is too large to hold in memory.
    """
    lacking = tuple(sorted((*run.missing, *missing), key=lambda one: POINTS.index(one.point)))
    with ExitStack() as stack:
        pseudonyms = None if options.keep_names else Pseudonyms(run.users, run.homes, run.hosts)
        sealer = Sealer(run.secrets, pseudonyms, stack)
        every = [*run.sections, *sections, *reports(run, lacking, renamed=not options.keep_names)]
        sealer.learn(run.log.path if run.log is not None else None, every)
        files = sorted(map(sealer.seal, every), key=lambda file: (file.name.count("/"), file.name))
        sealer.prove(files)
        replaced = Counter({"secrets": run.hidden})
        for file in files:
            replaced.update(file.replaced)
        environments = run.facts["environments"]
        yield Bundle(
            files=files,
            diagnosis=run.diagnosis,
            missing=lacking,
            shown=len({name for one in environments for name in one["variables"]}),
            left=max((one["others"] for one in environments), default=0),
            replaced=replaced,
        )


@contextmanager
def cannot_be_put_together(path: Path) -> Iterator[None]:
    """Turn an OSError, such as a full disk, into a TreeError; `path` is named where the error names no file."""
    try:
        yield
    except OSError as error:
        cause = phrase("{file}: {reason}", file=error.filename or path.parent, reason=error.strerror or str(error))
        raise TreeError("the bundle cannot be put together", cause=cause) from error


class Sealer:
    """Seals one file after another. `pseudonyms` is None where people and machines keep their names."""

    def __init__(self, secrets: Iterable[str], pseudonyms: Pseudonyms | None, stack: ExitStack) -> None:
        """`stack` closes what is put aside."""
        self._stack = stack
        self._secrets = sorted({secret for secret in secrets if secret.strip()}, key=len, reverse=True)
        self._redactor = Redactor(self._secrets, find_signs_fast)
        self._pseudonyms = pseudonyms

    def learn(self, log: Path | None, sections: Sequence[Section]) -> None:
        """Know everywhere what is recognised anywhere: a value by the name before it, a person by a home folder.

        `log`: its beginning may show what the archive lacks, as not all of a log is in it.
        """

        def texts() -> Iterator[str]:
            for section in sections:
                if isinstance(section.content, str):
                    yield section.content
            if log is not None:
                yield from _beginning(log)

        found = recognised_in(texts(), self._redactor) - set(self._secrets)
        if found:
            self._secrets = sorted((*self._secrets, *found), key=len, reverse=True)
            self._redactor = Redactor(self._secrets, find_signs_fast)
        if self._pseudonyms is not None:
            self._pseudonyms.learn(texts())

    def seal(self, section: Section) -> Sealed:
        """One file without secrets. Raises OSError where what is too large to hold cannot be put aside."""
        replaced: Counter[str] = Counter()
        name = self._text(section.name, Counter())
        if isinstance(section.content, str):
            content = self._text(section.content, replaced).encode("utf-8", "replace")
            return Sealed(name, section.holds, len(content), content, replaced)
        aside = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        for text in _blocks(section.content):
            aside.write(self._text(text, replaced).encode("utf-8", "replace"))
        aside.flush()
        return Sealed(name, section.holds, aside.tell(), aside, replaced)

    def prove(self, files: Sequence[Sealed]) -> None:
        """Look through all that is to be written once more. Raises SealError where a secret is left."""
        for file in files:
            held = b""
            for piece in file.pieces():
                held += piece
                cut = held.rfind(b"\n") + 1 if len(piece) == BLOCK else len(held)
                self._prove(file.name, held[:cut].decode("utf-8", "replace"))
                held = held[cut:]
            self._prove(file.name, held.decode("utf-8", "replace"))

    def _prove(self, name: str, text: str) -> None:
        # Known values are looked for once more without any rule of the redactor's: a mistake there must not leak one.
        if self._redactor.text(text) != text or any(one in text for one in self._secrets if len(one) > 5):
            raise SealError(
                phrase("{name}: still looks as if it held a secret", name=name),
                advice="Nothing was written. Leave the file out that brings it in, or report this.",
            )

    def _text(self, text: str, replaced: Counter[str]) -> str:
        before = self._redactor.count
        text = self._redactor.document(text)
        replaced["secrets"] += self._redactor.count - before
        if self._pseudonyms is None:
            return text
        counted = self._pseudonyms.count.copy()
        text = self._pseudonyms.text(text)
        replaced.update(self._pseudonyms.count - counted)
        return text


def recognised_in(texts: Iterable[str], redactor: Redactor | None = None) -> set[str]:
    """The values in these texts that a name before them shows to be secrets, at most `_MOST_LEARNT` of them."""
    redactor = redactor or Redactor((), find_signs_fast)
    for text in texts:
        redactor.text(text)
    return set(sorted(redactor.recognised, key=lambda value: (-len(value), value))[:_MOST_LEARNT])


def recognised_in_log(path: Path) -> set[str]:
    """The same for the beginning of a log. Raises UsageError where it cannot be read."""
    return recognised_in(_beginning(path))


def find_signs_fast(small: str) -> Iterator[Span]:
    """Where what gives secrets away stands in a text of small letters; five times as fast as with patterns.

    Hosts have the standard library alone, so `patcher.secrets` cannot have it.
    """
    # A name that is no UTF-8 has lone surrogates, which it refuses: `?` stands for each, so that positions hold.
    plain = small.encode("utf-8", "replace").decode()
    return ((start, end) for _, start, end in _automaton().find_matches_as_indexes(plain))


@lru_cache(maxsize=1)
def _automaton() -> AhoCorasick:
    return AhoCorasick(SIGNS, matchkind=MatchKind.LeftmostLongest)


def _beginning(log: Path) -> Iterator[str]:
    """The blocks of a log's beginning, where the command and the variables of a run stand."""
    return islice(_blocks(log), _BEGINNING)


def _blocks(path: Path) -> Iterator[str]:
    """A file in blocks of whole lines; a private key is not cut in two."""
    with open_log(str(path)) as stream:
        held = b""
        while piece := stream.read(BLOCK):
            held += piece
            cut = held.rfind(b"\n") + 1
            begun = held.rfind(_BEGIN, 0, cut)
            if begun >= 0 and held.find(_END, begun, cut) < 0 and len(held) < 4 * BLOCK:
                cut = begun
            if not cut and len(held) >= 4 * BLOCK:
                cut = len(held)
            if cut:
                yield held[:cut].decode("utf-8", "replace")
                held = held[cut:]
        if held:
            yield held.decode("utf-8", "replace")
