"""Programs that tests need and a machine may lack: one way to ask for them, so that each skip names what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

BESIDE = (str(Path(sys.executable).parent),)
"""Where the development group puts programs: py-spy, shellcheck."""
OF_ROOT = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where useradd, sshd and ip are; a login of Debian that came by `su` has them not in its PATH."""


def search_path(path: str) -> str:
    """A PATH with the folders of root behind its own, as far as they are missing."""
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return os.pathsep.join([*folders, *(folder for folder in OF_ROOT if folder not in folders)])


def find(program: str) -> str | None:
    """Where a program is; None where this machine has none of that name."""
    return shutil.which(program, path=os.pathsep.join((search_path(os.environ.get("PATH", "")), *BESIDE)))


def missing(*programs: str) -> str:
    """Why tests with these programs cannot run; empty where they can."""
    lacking = [program for program in programs if find(program) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark a test that is skipped where one of these programs is missing."""
    reason = missing(*programs)
    return pytest.mark.skipif(bool(reason), reason=reason or "all are there")


def require(*programs: str) -> None:
    """Skip the running test where one of these programs is missing."""
    if reason := missing(*programs):
        pytest.skip(reason)
