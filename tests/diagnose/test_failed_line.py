"""Which newer release has another line in place of the one that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.diagnose import failed_line as module
from patcher.diagnose.diagnosis import FailedLine
from patcher.errors import ReleaseError
from tests.diagnose.test_explaining import HEAD, OWN, explained

RELEASES = ["1.0", "1.1", "1.2", "2.0"]
FAILED = 'value = self.table["rows"] + count'
ERROR = "KeyError: 'rows'"
FRAME = '  File "/opt/venv/lib/python3.12/site-packages/shelf/core.py", line 7, in load\n    {code}\n'


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Releases of the package shelf, all with the line that fails."""

    def folder(name: str, release: str) -> Path:
        if name not in ("shelf", "sglang") or release not in RELEASES:
            raise ReleaseError("there is none")
        return tmp_path / release

    monkeypatch.setattr(module, "versions", lambda _: RELEASES)
    monkeypatch.setattr(module, "release_folder", folder)
    for release in RELEASES:
        write(tmp_path, release, FAILED)
    return tmp_path


def write(folder: Path, release: str, code: str, file: str = "core.py", package: str = "shelf") -> None:
    place = folder / release / package
    place.mkdir(parents=True, exist_ok=True)
    (place / "__init__.py").touch()
    (place / file).write_text(f"class Shelf:\n    def load(self, count):\n        {code}\n")


def found(code: str = FAILED, message: str = ERROR, **versions: str) -> FailedLine | None:
    return module.failed_line(explained(message, OWN + FRAME.format(code=code)), versions)


def test_the_first_release_without_the_line_is_named(released: Path) -> None:
    for release in ("1.2", "2.0"):
        write(released, release, 'value = self.table.get("rows", 0) + count')
    assert found(shelf="1.0") == FailedLine("shelf", "1.0", "1.2")
    assert found() == FailedLine("shelf", "", "1.2")


def test_a_line_that_the_newest_release_still_has_is_not_spoken_of(released: Path) -> None:
    write(released, "1.2", "pass")
    assert found(shelf="1.0") is None


def test_a_line_that_a_formatter_wrapped_or_that_moved_to_another_file_is_the_same(released: Path) -> None:
    write(released, "2.0", "value = (\n            self.table['rows']\n            + count\n        )")
    assert found(shelf="1.0") is None
    write(released, "2.0", "value = self.table['rows'] \\\n            + count")
    assert found(shelf="1.0") is None
    write(released, "2.0", "pass")
    write(released, "2.0", FAILED, "moved.py")
    assert found(shelf="1.0") is None


def test_nothing_is_said_of_a_changed_tree_or_of_a_release_that_nobody_has(released: Path) -> None:
    write(released, "2.0", "pass")
    assert found('value = self.my_table["rows"] + count') is None
    assert found(shelf="1.0.dev3") is None


def test_a_package_that_runs_from_a_checkout_is_known_too(released: Path) -> None:
    for release in RELEASES:
        write(released, release, FAILED if release != "2.0" else "pass", package="sglang/srt")
        (released / release / "sglang" / "__init__.py").touch()
    frame = f'  File "/src/sglang/python/sglang/srt/core.py", line 7, in load\n    {FAILED}\n'
    found = module.failed_line(explained(ERROR, frame), {"sglang": "1.1"})
    assert found == FailedLine("sglang", "1.1", "2.0")


def test_a_refusal_in_words_is_no_line_that_failed(released: Path) -> None:
    write(released, "1.0", 'raise ValueError("rows are missing")')
    write(released, "2.0", "pass")
    assert found('raise ValueError("rows are missing")', "ValueError: rows are missing", shelf="1.0") is None


def test_a_line_that_hands_everything_on_and_one_that_refuses_a_setting_are_not_at_fault(released: Path) -> None:
    for code, message in (
        (
            "return self.model.forward(*args, **kwargs)",
            "TypeError: Shelf.forward() got an unexpected keyword argument 'x'",
        ),
        ("assert self.args.scheduler in self.schedulers", "AssertionError"),
    ):
        for release in RELEASES:
            write(released, release, code if release != "2.0" else "pass")
        assert found(code, message, shelf="1.0") is None
    write(released, "1.2", "return self.model.forward(x, **kwargs)")
    write(released, "2.0", "pass")
    told = found("return self.model.forward(x, **kwargs)", "TypeError: f() got an unexpected keyword argument 'y'")
    assert told == FailedLine("shelf", "", "2.0")


def test_the_frame_that_called_what_failed_is_not_the_one(released: Path) -> None:
    """The innermost frame of the package counts, where it asks for something itself."""
    write(released, "2.0", "pass")
    inner = (
        '  File "/opt/venv/lib/python3.12/site-packages/shelf/table.py", line 3, in get\n    return self.kept[name]\n'
    )
    told = explained(ERROR, OWN + FRAME.format(code=FAILED) + inner)
    assert told.line == "return self.kept[name]"


@pytest.mark.network
def test_the_command_says_which_release_of_verl_has_another_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    code = 'timing_raw.update(gen_batch_output.meta_info["timing"])'
    frame = f'  File "/app/verl/trainer/ppo/ray_trainer.py", line 1043, in fit\n    {code}\n'
    log.write_text(f"{HEAD}{frame}KeyError: 'timing'\n")
    assert run(["--assume", "verl==0.5.0", "--format", "json", "diagnose", str(log)]) == 1
    (root,) = [one for one in json.loads(capsys.readouterr().out)["symptoms"] if one["role"] == "root"]
    assert root["explanation"]["failed_line"] == {"package": "verl", "release": "0.5.0", "changed_in": "0.8.0"}
    assert run(["--assume", "verl==0.5.0", "diagnose", str(log)]) == 1
    assert "verl 0.5.0 has the line that failed, 0.8.0 has another in its place" in capsys.readouterr().out
