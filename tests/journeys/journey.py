"""A stranger at a shell: commands as they are typed, and each `Next:` followed to the letter."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patcher.demo import fingerprint

FOLLOWED = 8
"""Commands after which somebody who follows `Next:` has had enough."""
_NEXT = re.compile(r"\bNext: (?P<told>uky-patch\b.*)$", re.MULTILINE)
_OTHERWISE = re.compile(r", or uky-patch\b.*| +#.*|\.$")
"""What may stand behind the first command: another choice, or a remark."""


class JourneyError(AssertionError):
    """A step that a stranger would have stopped at, with all that was typed and shown before it."""


@dataclass(frozen=True)
class Ran:
    """A command line, its exit code and what it printed on both streams."""

    line: str
    code: int
    text: str

    @property
    def next(self) -> str | None:
        """The command that it tells to run next."""
        found = _NEXT.findall(self.text)
        return _OTHERWISE.sub("", found[-1]).strip() if found else None


@dataclass
class Stranger:
    """Somebody with a shell in `folder`; `tree` is what the commands work on."""

    folder: Path
    tree: Path
    variables: Mapping[str, str]
    typed: list[Ran] = field(default_factory=list)

    def runs(self, line: str) -> Ran:
        """Run a line in a shell, whatever comes of it."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=dict(self.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.typed.append(Ran(line, done.returncode, done.stdout))
        return self.typed[-1]

    def types(self, line: str, *codes: int) -> Ran:
        """Run a line. It must end with one of `codes`, with 0 if none is named, and show no traceback."""
        ran = self.runs(line)
        if ran.code not in (codes or (0,)):
            self.stops(f"`{line}` ended with {ran.code}, not with {' or '.join(map(str, codes or (0,)))}")
        if "Traceback (most recent call last)" in ran.text:
            self.stops(f"`{line}` shows a traceback")
        return ran

    def follows(self) -> Ran:
        """`status`, then what each command tells next, and `status` again where one tells nothing, until all is done.

        A command that fails, or one that is told again although it has changed nothing, is where a stranger stops.
        """
        ran = self.types("uky-patch status", 0, 1)
        seen: set[tuple[str, str]] = set()
        for _ in range(FOLLOWED):
            line = ran.next
            if line is None and ran.line == "uky-patch status":
                if ran.code:
                    self.stops("`uky-patch status` ended with 1 and tells nothing to do next")
                return ran
            line = line or "uky-patch status"
            before = (line, fingerprint(self.tree))
            if before in seen:
                self.stops(f"told to run `{line}` again, which has changed nothing before")
            seen.add(before)
            ran = self.types(line, 0, 1)
        self.stops(f"{FOLLOWED} commands were followed, and there is still a next one")
        raise AssertionError

    def stops(self, why: str) -> None:
        """Raise JourneyError."""
        told = "".join(f"\n$ {ran.line}\n{ran.text}[{ran.code}]\n" for ran in self.typed)
        raise JourneyError(f"{why}\n{told}")
