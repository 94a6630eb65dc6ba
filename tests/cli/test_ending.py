"""What is told of an error outside of any command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from patcher.cli import ending

if TYPE_CHECKING:
    import pytest


def test_it_holds_no_secret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "Zk4vQ8rT2mWx7Lp9")
    monkeypatch.setattr("patcher.secrets.redacting._here", [])
    monkeypatch.setattr("sys.argv", ["uky-patch", "--format", "json", "status"])
    code = ending.unexpected(OSError(2, "No such file", "/tmp/Zk4vQ8rT2mWx7Lp9"))
    captured = capsys.readouterr()
    assert "Zk4vQ8rT2mWx7Lp9" not in captured.out + captured.err
    assert json.loads(captured.out)["error"]["code"] == code
