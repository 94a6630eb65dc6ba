"""What a plan is made from besides the records: what is wanted, what is installed, and the tree's texts.

`Request.wants` decides from --tag, --skip, ids, `enable` and `disable`; `belongs` which edits are for this verl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from patcher.packages import Environment
from patcher.packages.versions import No, Undecided, satisfies
from patcher.plan.applicability import SymbolLookup
from patcher.plan.outcome import Applied, FileState, Remaining
from patcher.plan.own_imports import TreeLookup
from patcher.plan.replay import EditFilter, Unused, Workspace
from patcher.records.model import Record
from patcher.rewrite.edits import Edit, Style


@dataclass(frozen=True, slots=True)
class Request:
    """Which records are wanted. Those that the ledger has stay wanted, whatever is asked for."""

    ids: frozenset[str] = frozenset()
    """Only these, if any."""
    tags: frozenset[str] = frozenset()
    """Records with one of these tags are wanted though they are off by default."""
    enabled: frozenset[str] = frozenset()
    """So are these, by id."""
    disabled: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    """Left out this once; what is applied of these stays as it was applied."""

    def wants(self, record: Record) -> bool:
        if record.id in self.skipped:
            return False
        if self.ids:
            return record.id in self.ids
        asked = record.enabled or record.id in self.enabled or bool(self.tags & set(record.tags))
        return asked and record.id not in self.disabled


RemainingOf = Callable[[Record], "tuple[Remaining, ...] | None"]
"""Where the tree still has what a record repairs; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a plan is made from, besides the records."""

    environment: Environment
    lookup: SymbolLookup
    files: Mapping[str, FileState]
    applied: Mapping[str, Applied]
    word: str = "Uky"
    style: Style = "comment"
    unused: Unused | None = None
    """None: whether the tree still uses something is not known."""
    tree_has: TreeLookup | None = None
    remaining: RemainingOf | None = None
    newest: Mapping[str, str] = field(default_factory=dict)
    """The newest releases, by name, that the shipped records were tried on."""

    @property
    def verl(self) -> str:
        installed = self.environment.packages.get("verl")
        return installed.version if installed else ""


def belongs(verl: str) -> EditFilter:
    """Which edits are for this release of verl; an edit without a specifier is for all."""

    def decide(edit: Edit) -> bool | None:
        if edit.verl is None:
            return True
        match satisfies(verl, edit.verl, kind="tree"):
            case No():
                return False
            case Undecided():
                return None
            case _:
                return True

    return decide


def workspace_of(inputs: PlanInputs) -> Workspace:
    """The files' texts without any record, on which the records are replayed."""
    return Workspace(
        {path: state.base for path, state in inputs.files.items() if state.base is not None},
        inputs.word,
        inputs.style,
        problems={path: state.problem for path, state in inputs.files.items() if state.problem},
        shown={path: state.current for path, state in inputs.files.items() if state.current is not None},
        unused=inputs.unused,
        tree_has=inputs.tree_has,
    )
