"""The condition under which a package raises its message is read from the source of a release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.diagnose import failed_line, raise_condition
from patcher.diagnose.diagnosis import Explanation, RaiseCondition
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.frame import frame_of
from patcher.errors import ReleaseError
from patcher.i18n import phrase

MESSAGE = "The plough has no blade for a field of size 7. Sharpen it first."
RAISE = 'raise ValueError(f"The plough has no blade for a field of size {size}. {ADVICE}")'


def told(
    monkeypatch: pytest.MonkeyPatch, folder: Path, code: dict[str, str], known: str = "", said: str = MESSAGE
) -> RaiseCondition | None:
    """What is found where each release of `harrow` holds that code in one file."""

    def sources(_: str, release: str) -> Path:
        if release not in code:
            raise ReleaseError(phrase("{name}", name=release))
        (folder / release / "harrow").mkdir(parents=True, exist_ok=True)
        (folder / release / "harrow/field.py").write_text(code[release])
        return folder / release

    for module in (raise_condition, failed_line):
        monkeypatch.setattr(module, "versions", lambda _: list(code))
    monkeypatch.setattr(failed_line, "release_folder", sources)
    at = frame_of('  File "/env/lib/python3.12/site-packages/harrow/field.py", line 9, in plough')
    explanation = Explanation(phrase("{name}", name="x"), MessageParts("words", found=said), at)
    return raise_condition.raise_condition(explanation, {"harrow": known} if known else {})


@pytest.mark.parametrize(
    ("code", "test"),
    [
        (f"def plough(size):\n    if size > 5:\n        {RAISE}\n", "size > 5"),
        (f"def plough(size):\n    if size in KNOWN:\n        pass\n    else:\n        {RAISE}\n", "size not in KNOWN"),
        (
            f"def plough(size):\n    if not old:\n        go()\n    elif size > 5:\n        {RAISE}\n",
            "old and size > 5",
        ),
        (
            f"def plough(size):\n    if wet:\n        for one in fields:\n            if one.deep():\n"
            f"                {RAISE}\n",
            "wet and one.deep()",
        ),
        (f"if wet:\n    def plough(size):\n        if deep:\n            {RAISE}\n", "deep"),
    ],
)
def test_the_tests_around_the_raise_are_told(
    code: str, test: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert told(monkeypatch, tmp_path, {"1.0": code}, known="1.0") == RaiseCondition(test, "harrow", "1.0")


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(f"def plough(size):\n    {RAISE}\n", id="in any case"),
        pytest.param(
            f"def plough(size):\n    try:\n        go()\n    except KeyError:\n        if wet:\n            {RAISE}\n",
            id="for an exception that was caught",
        ),
        pytest.param(
            f"def plough(size):\n    if wet:\n        {RAISE}\n    if deep:\n        {RAISE}\n", id="two conditions"
        ),
        pytest.param("def plough(size):\n    if wet:\n        raise ValueError('The plough')\n", id="a short text"),
        pytest.param("def plough(size:\n", id="no Python"),
    ],
)
def test_where_the_code_leaves_it_open_nothing_is_said(
    code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert told(monkeypatch, tmp_path, {"1.0": code}, known="1.0") is None


def test_a_condition_that_is_too_long_is_told_by_its_innermost_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = " or ".join(f"field_number_{number}" for number in range(20))
    code = f"def plough(size):\n    if {long}:\n        if deep:\n            {RAISE}\n"
    found = told(monkeypatch, tmp_path, {"1.0": code}, known="1.0")
    assert found is not None
    assert found.test == "deep"
    alone = f"def plough(size):\n    if {long}:\n        {RAISE}\n"
    assert told(monkeypatch, tmp_path, {"1.1": alone}, known="1.1") is None


def test_the_release_that_ran_is_read_and_else_the_newest_that_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = {
        "1.0": f"def plough(size):\n    if old:\n        {RAISE}\n",
        "2.0": f"def plough(size):\n    if newer:\n        {RAISE}\n",
        "3.0": "def plough(size): ...\n",
    }
    assert told(monkeypatch, tmp_path, code, known="1.0") == RaiseCondition("old", "harrow", "1.0")
    assert told(monkeypatch, tmp_path, code) == RaiseCondition("newer", "harrow", "2.0")
    assert told(monkeypatch, tmp_path, code, known="3.0") is None
    assert told(monkeypatch, tmp_path, code, said="Something else was said by the plough.") is None


@pytest.mark.network
def test_the_command_says_under_which_condition_verl_raises_its_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    message = "max_prompt_len is required for AsyncRolloutRequest initialization"
    log.write_text(
        'Traceback (most recent call last):\n  File "/app/verl/workers/rollout/schemas.py", line 127, in initialize\n'
        f'    raise ValueError("{message}")\nValueError: {message}\n'
    )
    assert run(["--assume", "verl==0.5.0", "--format", "json", "diagnose", str(log)]) == 1
    (root,) = [one for one in json.loads(capsys.readouterr().out)["symptoms"] if one["role"] == "root"]
    assert root["explanation"]["raised_where"] == {
        "test": "not (max_prompt_len := values.get('max_prompt_len'))",
        "package": "verl",
        "release": "0.5.0",
    }
    assert run(["--assume", "verl==0.5.0", "diagnose", str(log)]) == 1
    assert "raised if   not (max_prompt_len := values.get('max_prompt_len')), in verl 0.5.0" in capsys.readouterr().out
