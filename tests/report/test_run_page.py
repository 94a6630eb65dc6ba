"""The page of one run: what a colleague sees who has nothing but the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patcher.cli.app import run

if TYPE_CHECKING:
    import pytest

STEP = (
    "(TaskRunner pid=9) step:{0} - actor/pg_loss:0.{0}5 - critic/rewards/mean:np.float64(1.{0}) - perf/mfu/actor:nan\n"
)
LOG = (
    "(TaskRunner pid=9) {'actor_rollout_ref': {'model': {'path': '/m'}}}\n"
    + STEP.format(1)
    + STEP.format(2)
    + "Traceback (most recent call last):\n"
    + '  File "/opt/env/lib/python3.12/site-packages/peft/peft_model.py", line 37, in <module>\n    x\n'
    + "ValueError: <b>odd</b> token hf_"
    + "Ab1" * 12
    + "\n"
)


def test_the_page_has_the_root_and_the_metrics_and_neither_secrets_nor_foreign_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, page = tmp_path / "train.log", tmp_path / "run.html"
    log.write_text(LOG)
    assert run(["diagnose", str(log), "--html", str(page)]) == 1
    capsys.readouterr()
    text = page.read_text()
    assert "peft_model.py&#34;, line 37" in text
    assert "&lt;b&gt;odd" in text
    assert "Ab1Ab1" not in text
    for name, values in {"actor/pg_loss": ("0.15", "0.25"), "critic/rewards/mean": ("1.1", "1.2")}.items():
        row = next(line for line in text.splitlines() if f"<code>{name}</code>" in line)
        assert [f'<td class="number">{value}</td>' in row for value in values] == [True, True]
    assert 'src="http' not in text
    assert '<link rel="stylesheet' not in text


def test_no_page_is_written_over_what_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, page = tmp_path / "train.log", tmp_path / "notes.html"
    log.write_text(LOG)
    page.write_text("mine")
    assert run(["diagnose", str(log), "--html", str(page)]) == 2
    assert page.read_text() == "mine"
    capsys.readouterr()
