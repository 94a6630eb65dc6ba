"""Every command as a person calls it on a stale fork, in an order that makes sense."""

from __future__ import annotations

from dataclasses import dataclass

ASSUMED = ("--assume", "vllm==0.20.2")
_REFUSES = ("box", "--ssh", "127.0.0.1", "--port", "1")
"""A host at whose port 1 nothing listens."""


@dataclass(frozen=True)
class Call:
    """A command line. `{place}` in it is the folder of `tests.ux.place`."""

    arguments: tuple[str, ...]
    todo: bool = False
    """Whether there is something to do afterwards, which it then says."""
    exactly: bool = False
    """Whether it shows a text that is for a file, as it is."""
    once: bool = False
    """Whether it takes so long that one terminal of each language is enough."""

    @property
    def name(self) -> str:
        return " ".join(["uky-patch", *self.arguments])


CALLS = (
    Call(("--help",)),
    Call(("apply", "--help")),
    Call(("job", "--help")),
    Call(("list",)),
    Call(("explain", "vllm-log-requests", *ASSUMED), todo=True),
    Call(("status", *ASSUMED), todo=True),
    Call(("status", "--all", *ASSUMED), todo=True),
    Call(("check", "--against", "vllm==0.20.2", "--no-since"), todo=True),
    Call(("check", "--matrix", "--verl", "0.6.1", "--against", "vllm>=0.12,<0.14"), once=True),
    Call(("pins", "--to", "vllm==0.20.2", "requirements-fork.txt")),
    Call(("apply", "--diff", "--dry-run", *ASSUMED)),
    Call(("apply", *ASSUMED), todo=True),
    Call(("status", *ASSUMED)),
    Call(("verify", *ASSUMED)),
    Call(("revert",)),
    Call(("render", "run_debug.sh"), exactly=True),
    Call(("diagnose", "{place}/failed.log"), todo=True),
    Call(("diagnose", "{place}/ended.log")),
    Call(("watch", "{place}/ended.log", "--once")),
    Call(("symptoms",), todo=True),
    Call(("symptoms", "engine-start-timed-out")),
    Call(("bundle", "{place}/failed.log", "--dry-run"), todo=True),
    Call(("clean", "--dry-run"), todo=True),
    Call(("probe",), todo=True),
    Call(("migrate", *_REFUSES, "--dry-run"), todo=True),
    Call(("job", "status", *_REFUSES), todo=True),
    Call(("pull", "--help")),
    Call(("prune", "--dry-run")),
    Call(("record", "--help")),
    Call(("record",)),
    Call(("backport", "--help")),
    Call(("rebase", "--help")),
    Call(("docs", "--help")),
    Call(("new", "our-port", "--at", "verl/none.py:1"), todo=True),
    Call(("data", "report", "data.parquet"), todo=True),
    Call(("model", "newest", "models"), todo=True),
    Call(("run", "--help")),
    Call(("trust",)),
    Call(("completion", "bash"), exactly=True),
    Call(("status", "--rooot"), todo=True),
    Call(("stats",), todo=True),
    Call(("explain", "vllm-log-request"), todo=True),
    Call(("apply", "no-such-record", *ASSUMED), todo=True),
    Call(("status", "--root", "/nowhere"), todo=True),
    Call(("demo",), once=True),
)
