"""A folder for the tree that cannot be written to: the reason is the one that the operating system would give."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from patcher.messages import Refusal, english
from patcher.worktree import places


@pytest.mark.parametrize(("flags", "reason"), [(0, "Permission denied"), (os.ST_RDONLY, "Read-only file system")])
def test_a_folder_that_is_not_writable_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, reason: str
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    with pytest.raises(Refusal) as caught:
        places.resolved(str(tmp_path), "fork")
    assert english(caught.value.cause).endswith(reason)
