"""The values that pass between the steps of a migration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from patcher.i18n import Phrase
from patcher.profiles.model import Text

if TYPE_CHECKING:
    from patcher.packages.environment import Environment
    from patcher.patching.result import Round

StepName: TypeAlias = Literal["preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job"]
STEPS: tuple[StepName, ...] = ("preflight", "probe", "plan", "transfer", "render", "verify", "environment", "job")
StepStatus: TypeAlias = Literal["ok", "warn", "fail", "skip"]
OnBytes: TypeAlias = Callable[[int], None]
"""Told how many more bytes have come."""
Progress: TypeAlias = Callable[[Phrase | str, int, int | None], None]
"""Told what is being done, how many bytes of content are there, and how many it will be in all."""


@dataclass(frozen=True, slots=True)
class Step:
    """How one step ended. `detail` is one line; `notes` are further lines; `fix` says what to do about a failure."""

    name: StepName
    status: StepStatus
    seconds: float
    detail: Text
    fix: Text = ""
    notes: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in the tree's folder that is not sent, and why. `size` in bytes, None where it was not measured."""

    path: str
    reason: Text
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One file to be on the host. `source` is read from the disk; `content` is ours and in memory. One of the two.

    `link` is a symlink's target, relative and inside the tree; then there is neither source nor content.
    """

    path: str
    """Below the tree's root, forward slashes; names that are no UTF-8 hold surrogates, as `os.fsdecode` makes them."""
    size: int
    mode: int
    """Permission bits."""
    sha256: str = ""
    """Of the content, or of a link's target as bytes."""
    source: Path | None = None
    content: bytes | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What git would have in the tree: files with their digests, and what is left out."""

    items: Mapping[str, Item]
    left_out: tuple[LeftOut, ...] = ()
    """Largest first."""
    commit: str | None = None
    """The commit that is checked out."""
    dirty: bool = False
    """Whether files are not as they are in that commit, or in no commit at all."""


@dataclass(frozen=True, slots=True)
class Cargo:
    """The tree as it is to be on the host: the listing, with the files that records change *there* in their place.

    The ledger and the pre-images are among the items, so that `revert` works there.
    """

    listing: Listing
    items: Mapping[str, Item]
    round: Round
    """What the records come to with the host's versions."""
    environment: Environment
    """The host's, as `patcher.packages` would have told it there."""
    differs: tuple[str, ...] = ()
    """Records whose outcome there is another than here, by id."""
    notes: tuple[Text, ...] = ()
    """What deserves saying: nothing to plan for, uncommitted changes, what is odd about the host's packages."""
    here: Mapping[str, str] = field(default_factory=dict)
    """Each record's outcome on the tree here, by id."""
    marker: str = "Uky"
    """The fork's own word for marked lines."""

    @property
    def size(self) -> int:
        return sum(item.size for item in self.items.values())


@dataclass(frozen=True, slots=True)
class Difference:
    """The cargo against what is on the host now. Paths below the tree's root."""

    send: tuple[str, ...]
    same: int
    """How many files are there already, byte for byte."""
    retire: tuple[str, ...] = ()
    """In the last manifest and not in the cargo: they will be moved aside."""
    overwritten: tuple[str, ...] = ()
    """Among `send` and `retire`: changed on the host since the last migration, or there without one."""
    modes: tuple[str, ...] = ()
    """Same content, other permission bits."""
    number: int = 0
    """By which the host knows the cargo that it has compared, as long as the connection lasts."""

    @property
    def nothing(self) -> bool:
        return not (self.send or self.retire or self.modes)


Way: TypeAlias = Literal["rsync", "tar", "copy", "none"]
"""`tar`: over the connection itself; `copy`: on this machine; `none`: no content had to come."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a transfer did."""

    files: int
    bytes: int
    """Of content; what went over the line may be less."""
    seconds: float
    way: Way
    aside: str | None = None
    """The dated folder that replaced and retired files were moved to, below the tree's root."""
    moved: tuple[str, ...] = ()
    retries: int = 0
    notes: tuple[Text, ...] = ()
    """Why rsync was not used, where it was meant to be."""
