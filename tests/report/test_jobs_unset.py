"""Secrets that a job would go without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patcher.report.jobs import unset_report
from patcher.session.config import Config
from patcher.session.hosts import find_host
from patcher.terminal.document import print_report

if TYPE_CHECKING:
    import pytest


def test_a_secret_that_is_named_and_not_set_here_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_value")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    config = Config(hosts={"box": {"secrets": ["HF_TOKEN", "WANDB_API_KEY"]}})
    print_report(unset_report(find_host(config, "box")))
    answer = capsys.readouterr().err
    assert "WANDB_API_KEY" in answer
    assert "HF_TOKEN" not in answer
