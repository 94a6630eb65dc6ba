"""Symptoms as records: what a failure, a stall or a bad course looks like, its cause, and what is to be done.

Parsing is in `symptom_parse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from patcher.logs.milestones import Phase

Kind = Literal["failure", "stall", "course", "notice"]
"""`failure` ends a run; `stall` stops it without a word; `course`: it goes on, badly or slowly; `notice`: it may be
why something else fails, and is no failure by itself."""
Part = Literal["cause", "end", "effect", "wrapper"]
"""What a symptom is to others: `end` tells how a process ended, of which an exception before it is the cause, `effect`
follows from a cause where there is one, `wrapper` only tells that something else has failed."""
Test = Literal["nan", "constant", "rising", "falling", "below", "above"]


@dataclass(frozen=True, slots=True)
class Match:
    """A sign in a log. Patterns are searched without regard to case, in a line without colours and Ray's prefix."""

    line: str
    near: tuple[str, ...] = ()
    """Patterns of which each must be found, in any order, within `within` lines of the line, before or after."""
    within: int = 40
    after_steps: int = 0
    """How many training steps must have been made before."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The last thing that a log says before it stands still; progress bars and empty lines behind it do not count."""

    line: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A course of one metric over the last `steps` steps, as the console logger prints it."""

    metric: str
    """Pattern of its whole name, such as `actor/grad_norm`."""
    test: Test
    value: float = 0.0
    steps: int = 1
    also: tuple[str, ...] = ()
    """Patterns of metrics that must have changed meanwhile, for `constant`."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A process that stands still: patterns of frames as `path:function`, each of which must be found, in any order."""

    frames: tuple[str, ...] = ()
    main: bool = True
    """Whether only the main thread counts."""
    stopped: bool = False
    """Whether a signal must have stopped the process; then there need be no frames."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to do. What it offers counts only where the versions fit `when`."""

    text: str
    zh: str
    run: str = ""
    """Commands to copy, a line each."""
    set: Mapping[str, str] = field(default_factory=dict)
    """Hydra overrides to add to the command: key, with `+` where it is no key of the config, and value."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables."""
    patch: str | None = None
    """The patch record that applies it."""
    setting: str | None = None
    """The setting record that decides it for run scripts."""
    when: Mapping[str, str] = field(default_factory=dict)
    """PEP 440 specifiers by distribution; a version that is not known counts as fitting."""
    where: str = ""
    """A pattern of the case that this fix is for, which comes first where it is found: in the frames of the traceback,
    below a line `last frame: transformers transformers/x.py`, or `own` for the package; else in the lines around."""


@dataclass(frozen=True, slots=True)
class SymptomExample:
    """A piece of a log and the line, from 1, that is the sign; None where there must be none."""

    name: str
    log: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Title and cause in another language than English."""

    title: str
    cause: str


@dataclass(frozen=True, slots=True)
class Symptom:
    """One failure, stall or bad course."""

    id: str
    title: str
    cause: str
    kind: Kind
    zh: Words
    topic: str
    """Under which heading it is listed: one of `TOPICS`."""
    part: Part = "cause"
    phase: tuple[Phase, ...] = ()
    """Where it belongs; empty for anywhere."""
    generic: bool = False
    """Whether it covers many causes of one shape: a specific cause goes before it."""
    follows: tuple[str, ...] = ()
    """Symptoms that it is a consequence of, where both are seen, whatever their order."""
    times: int = 1
    """How often its matches must be found in all, for what is only worth a word when it comes again and again."""
    source: str = ""
    """Where the text was read: package, file, versions."""
    note: str = ""
    """For who maintains it: what older advice got wrong, and why it is not given here."""
    when: Mapping[str, str] = field(default_factory=dict)
    """Versions that can show it, PEP 440 by distribution; a version that is not known counts as fitting."""
    matches: tuple[Match, ...] = ()
    waits: tuple[Wait, ...] = ()
    trends: tuple[Trend, ...] = ()
    stacks: tuple[Stack, ...] = ()
    fixes: tuple[Fix, ...] = ()
    examples: tuple[SymptomExample, ...] = ()
    path: Path | None = None


TOPICS: tuple[str, ...] = (
    "install",
    "configuration",
    "data",
    "memory",
    "compile",
    "ray",
    "engine",
    "distributed",
    "training",
    "speed",
    "checkpoint",
    "system",
)
"""Headings of the decision tree, in the order in which a run meets them."""
