"""What is particular about one node, and the start-up file by which a held one waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HELD = """
import os, sys, time
def hold():
    stem = os.path.join(os.path.dirname(os.path.dirname(__file__)), "signs", os.environ["UKY_NODE"])
    open(stem + ".seen", "a").close()
    while os.path.exists(stem + ".hold"):
        time.sleep(0.05)
def renaming(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith(os.environ["UKY_HELD_AT"]):
        hold()
if any("zlib.decompress" in word for word in sys.orig_argv):
    if "UKY_HELD_AT" in os.environ:
        sys.addaudithook(renaming)
    else:
        hold()
"""


@dataclass(frozen=True)
class Node:
    """What is particular about a node."""

    tree: str = "source"
    """The folder that its tree is copied from; empty: it has none."""
    shared: bool = False
    """It sees the head's own tree."""
    after: str = "true"
    """A shell command that is run in its tree, once that is there."""
    environment: Mapping[str, str] = field(default_factory=dict)
    far: bool = False
    """In a network namespace of its own."""
    pids: bool = False
    """Its processes have numbers of their own, as on a machine of its own."""
    held: bool = False
    """What runs there waits as long as it is told to by a sign."""
    at: str = ""
    """Held only where it replaces the file of that name."""

    @property
    def apart(self) -> list[str]:
        return ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--"] if self.pids else []

    def variables(self, folder: Path) -> dict[str, str]:
        held = {"PYTHONPATH": str(folder / "held")} if self.held else {}
        return {**held, **({"UKY_HELD_AT": self.at} if self.at else {}), **self.environment}

    def mounting(self, folder: Path) -> str:
        tree = folder / "fork"
        if self.shared:
            return f"mount --bind {tree} {tree}"
        filled = f"cp -a {folder / self.tree}/. {tree}" if self.tree else "true"
        return f"mount -t tmpfs none {tree} && {filled} && (cd {tree} && {self.after})"
