"""`uky-patch diagnose` as people and programs meet it."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.records.symptom_parse import load_symptoms, parse_symptom
from patcher.records.symptoms import Symptom
from tests.cli.conftest import Answer, Uky
from tests.diagnose.diagnosed import LOGS, SYMPTOMS, TRACEBACK, healthy, unfinished

FLAG = """\
id = "flag-gone"
title = "The engine does not know the flag"
cause = "vLLM 2.0 removed it."
kind = "failure"
topic = "engine"
phase = ["rollout"]
[zh]
title = "引擎不认识这个参数"
cause = "vLLM 2.0 移除了它。"
[[match]]
line = "unexpected keyword argument 'disable_log'"
[[fix]]
text = "Apply the record"
zh = "应用记录"
patch = "log-flag"
[[fix]]
text = "Or give the engine its own backend"
zh = "或指定后端"
run = '''
pip install engine
engine --check'''
set = { "+actor_rollout_ref.rollout.engine_kwargs.vllm.backend" = "a b" }
env = { VLLM_LOGGING_LEVEL = "DEBUG" }
[[fix]]
text = "Set the old variable"
zh = "设置旧变量"
env = { OLD = "1" }
[fix.when]
vllm = "<1.5"
[[example]]
name = "one"
log = "unexpected keyword argument 'disable_log'"
line = 1
"""
TROUBLE = "(EngineCore pid=7) TypeError: start() got an unexpected keyword argument 'disable_log'\n"
KEYS = ("phase", "verdict", "symptoms")


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    flag = parse_symptom(FLAG, Path("flag-gone.toml"))
    assert isinstance(flag, Symptom), flag
    monkeypatch.setattr("patcher.records.symptom_parse.load_symptoms", lambda _: (*SYMPTOMS, flag))


@pytest.fixture
def log(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "train.log"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Run a command in a folder that has no verl tree."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def call(*arguments: str) -> Answer:
        code = run(arguments)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def test_a_failed_run_for_people(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    begun = unfinished()
    number = begun.count("\n") + 2
    path = log(begun + "(EngineCore pid=7) about to start\n" + TROUBLE + "engine is gone\n")
    answer = ask("diagnose", path, "--assume", "vllm==2.1")
    lines = [line.strip() for line in answer.out.splitlines()]
    assert answer.code == 1
    assert lines[0].startswith("FAIL  in phase loop")
    assert lines[1].startswith("phases      config ▸ dataset ▸ resource pool 30 s ▸ actor 8 s ▸ rollout 54 s ▸ loop")
    assert "root        The engine does not know the flag  [flag-gone]" in lines
    assert f"{path}:{number}" in lines
    assert f"> {number}  TypeError: start() got an unexpected keyword argument 'disable_log'" in lines
    assert f"{number - 1}  about to start" in lines
    assert "cause       vLLM 2.0 removed it." in lines
    assert "uky-patch apply log-flag" in lines
    assert lines[lines.index("fix 2       Or give the engine its own backend") + 1 :][:4] == [
        "pip install engine",
        "engine --check",
        "export VLLM_LOGGING_LEVEL=DEBUG",
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.backend='a b'",
    ]
    assert lines[-1] == f"cascade     engine-dead (line {number + 1})"
    assert "OLD" not in answer.out


def test_a_failed_run_for_programs(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    path = log("ready\n" + TROUBLE + "engine is gone\n")
    answer = ask("--format", "json", "diagnose", path, "--assume", "vllm==1.4")
    told = answer.json
    assert (answer.code, answer.err) == (1, "")
    assert tuple(told)[:3] == KEYS
    assert (told["verdict"], told["phase"], told["versions"]["vllm"]) == ("failed", "rollout", "1.4")
    root, cascade = told["symptoms"]
    assert {name: root[name] for name in ("id", "line", "role", "file", "cause")} == {
        "id": "flag-gone",
        "line": 2,
        "role": "root",
        "file": path,
        "cause": "vLLM 2.0 removed it.",
    }
    assert root["text"] == "TypeError: start() got an unexpected keyword argument 'disable_log'"
    assert root["fix"][0] == "Apply the record\nuky-patch apply log-flag"
    assert root["fix"][2] == "Set the old variable\nexport OLD=1"
    assert root["records"] == ["log-flag"]
    assert (cascade["id"], cascade["role"]) == ("engine-dead", "cascade")


def test_the_log_s_own_version_decides_and_an_assumed_one_before_it(
    ask: Callable[..., Answer], log: Callable[[str], str]
) -> None:
    path = log("vLLM API server version 2.0.1\n" + TROUBLE)
    assert len(ask("--format", "json", "diagnose", path).json["symptoms"][0]["fix"]) == 2
    assert len(ask("--format", "json", "diagnose", path, "--assume", "vllm==1.4").json["symptoms"][0]["fix"]) == 3
    assert len(ask("--format", "json", "diagnose", path, "--assume", "vllm==none").json["symptoms"][0]["fix"]) == 3


def test_a_record_is_offered_where_it_would_do_something(uky: Uky, tree: Path, log: Callable[[str], str]) -> None:
    path = log(TROUBLE)
    pending = uky("diagnose", path, json=False).out
    assert f"uky-patch --root {tree} apply log-flag" in pending
    assert "log-flag on this tree: pending" in pending
    assert uky("apply").code == 0
    applied = uky("diagnose", path, json=False).out
    assert "log-flag on this tree: applied" in applied
    assert "apply log-flag" not in applied
    assert uky("revert").code == 0
    told = uky("diagnose", path, vllm="1.0").json["symptoms"][0]
    assert told["fix"][0] == "Apply the record"
    assert told["notes"][0].startswith("log-flag on this tree: not needed")


def test_an_unknown_failure_is_said_to_be_unknown(ask: Callable[..., Answer]) -> None:
    answer = ask("diagnose", str(LOGS / "verl-0.6.1-failed.log"))
    assert answer.code == 1
    assert "no record covers it" in answer.out
    assert "> 179  KeyError: 'raw_prompt'" in answer.out
    assert 'single_turn_agent_loop.py", line 38, in run' in answer.out


def test_what_is_written_behind_a_bar_is_shown(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    written = "(EngineCore pid=7) ERROR free_beds()=9.0 < wanted=30"
    bar = f"Adding requests:  88%|{chr(0x2588) * 240}| 453/512 [00:06<00:00, 79.11it/s]{written}\n"
    said = ask("diagnose", log(f"{bar}{TRACEBACK}ValueError: the beds are not enough for all\n"))
    assert f"88%|\u2026| 453/512 [00:06<00:00, 79.11it/s]{written}" in said.out


def test_a_run_that_ends_before_its_last_step_is_not_told_as_one_that_came_to_its_end(
    ask: Callable[..., Answer], tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    bar = "Training Progress:  50%|█████     | 60/120 [00:02<?, ?it/s]\n"
    log.write_text(f"(TaskRunner pid=9) step:60 - actor/pg_loss:0.1\n{bar}job finished with exit code 0\n")
    answer = ask("diagnose", str(log))
    assert answer.out.startswith("OK  the run has ended, at step 60 of 120, and no error is seen")


def test_a_healthy_run(ask: Callable[..., Answer]) -> None:
    answer = ask("diagnose", str(LOGS / "verl-0.8.0.log"))
    assert answer.code == 0
    assert answer.out.splitlines()[0].startswith("OK  the run has come to its end  (")
    assert len(answer.out.splitlines()) == 2


def test_a_run_that_has_no_end_shows_its_last_words(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    answer = ask("diagnose", log(unfinished()))
    assert answer.code == 0
    assert answer.out.startswith("RUNNING  in phase loop")
    assert "last words" in answer.out


def test_a_log_that_nobody_writes_any_more_and_one_that_is_held_open(
    ask: Callable[..., Answer], log: Callable[[str], str]
) -> None:
    path = Path(log("ready\nwaiting at the barrier\n"))
    assert ask("diagnose", str(path)).out.startswith("STALLED")
    with path.open("a"):
        assert ask("diagnose", str(path)).out.startswith("RUNNING")


def test_a_log_that_ends_anywhere_is_not_called_running_without_a_word(
    ask: Callable[..., Answer], log: Callable[[str], str], tmp_path: Path
) -> None:
    path = Path(log(unfinished()))
    assert "no process that is seen" not in ask("diagnose", str(path)).out
    os.utime(path, (time.time() - 90_000,) * 2)
    answer = ask("diagnose", str(path))
    assert (answer.code, answer.out[:11]) == (0, "NO END SEEN")
    assert "25 h 00 min, and no process that is seen here writes it" in " ".join(answer.out.split())
    packed = tmp_path / "half.gz"
    content = gzip.compress((unfinished() + os.urandom(30_000).hex()).encode())
    packed.write_bytes(content[: len(content) // 2])
    (note,) = json.loads(ask("diagnose", str(packed), "--format", "json").out)["notes"]
    assert "is cut off, its end is missing" in note


def test_an_error_behind_which_nothing_shows_how_it_went_on_is_told(ask: Callable[..., Answer], tmp_path: Path) -> None:
    log = tmp_path / "serve.log"
    served = "INFO 2026-08-21 19:35:25 server.py:175 Received observation\n"
    log.write_text(f"{served}ERROR 2026-08-21 19:35:25 server.py:245 Not implemented for this plough\n{served * 6}")
    told = json.loads(ask("diagnose", str(log), "--format", "json").out)
    assert told["verdict"] == "running"
    assert told["notes"] == [
        "line 2 tells an error, and no line below it shows whether the run went on: Not implemented for this plough"
    ]
    log.write_text(log.read_text() + "step 4: loss 0.31, lr 1e-05\n")
    assert json.loads(ask("diagnose", str(log), "--format", "json").out)["notes"] == []


def test_the_page_hides_a_value_that_the_log_shows_beside_its_name(
    ask: Callable[..., Answer], log: Callable[[str], str], tmp_path: Path
) -> None:
    page = tmp_path / "run.html"
    begin = "ready\nenv_vars: {'MY_SECRET': 'zzTopSecretValue1'}\n" + "more\n" * 40
    ask("diagnose", log(begin + TRACEBACK + "ValueError: refused for zzTopSecretValue1\n"), "--html", str(page))
    assert "refused for ***" in page.read_text()
    assert "zzTop" not in page.read_text()


def test_standard_input(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(("ready\n" + TROUBLE).encode())))
    answer = ask("diagnose", "-")
    assert answer.code == 1
    assert "> 2  TypeError" in answer.out


def test_beside_a_good_run_s_log(ask: Callable[..., Answer], log: Callable[[str], str], tmp_path: Path) -> None:
    good = tmp_path / "good.log"
    good.write_text(healthy(), encoding="utf-8")
    path = log(unfinished() + TRACEBACK + "ValueError: 3 rows, not 4\n")
    answer = ask("diagnose", path, "--against", str(good))
    told = ask("--format", "json", "diagnose", path, "--against", str(good)).json
    assert "never came" in answer.out
    assert "only here" in answer.out
    assert any("Final validation metrics" in line["text"] for line in told["missing"])
    assert told["added"][-1]["text"] == "ValueError: 3 rows, not 4"


def test_the_log_of_the_good_run_has_to_be_one(
    ask: Callable[..., Answer], log: Callable[[str], str], tmp_path: Path
) -> None:
    path, good = log(unfinished()), tmp_path / "good.log"
    for content, told in (("", "is empty"), ("root:x:0:0\n", "nothing of a training run is in")):
        good.write_text(content)
        answer = ask("diagnose", path, "--against", str(good))
        assert (answer.code, answer.out) == (2, "")
        assert told in answer.err
    for words in (("-", "--against", path), (path, "--against", "-")):
        answer = ask("diagnose", *words)
        assert (answer.code, answer.out) == (2, "")
        assert "standard input can be read only once" in answer.err


def test_a_packed_log_on_standard_input(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"ready\n" * 99))))
    answer = ask("diagnose", "-")
    assert answer.code == 2
    assert "zcat LOG.gz | uky-patch diagnose -" in answer.err


@pytest.mark.parametrize("name", ["none.log", "."])
def test_what_is_no_log(ask: Callable[..., Answer], name: str) -> None:
    answer = ask("diagnose", name)
    assert (answer.code, answer.out) == (2, "")
    assert "error: there " in answer.err
    assert ask("diagnose", sys.executable).code == 2


def test_a_piece_of_a_log_is_not_called_running(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    """Nothing shows that anybody still writes it: no process has it open, and it is no training."""
    at = "2025-08-21 19:35:25 server.py"
    error = f"ERROR {at}:245 Error in StreamActions: not implemented for PI0\n"
    path = Path(log(error + "".join(f"INFO {at}:{line} Received observation\n" for line in range(5))))
    assert ask("diagnose", str(path)).out.startswith("NO END SEEN")
    assert json.loads(ask("diagnose", str(path), "--format", "json").out)["live"] is False
    with path.open("a"):
        assert ask("diagnose", str(path)).out.startswith("RUNNING")
        assert json.loads(ask("diagnose", str(path), "--format", "json").out)["live"] is True


def test_an_empty_log_says_nothing(ask: Callable[..., Answer], log: Callable[[str], str]) -> None:
    path = Path(log(""))
    answer = ask("diagnose", str(path))
    assert (answer.code, answer.out, answer.err.splitlines()[0]) == (2, "", f"error: {path} is empty")
    with path.open("a"):
        answer = ask("diagnose", str(path))
    assert (answer.code, answer.out.splitlines()[0][:40]) == (0, "RUNNING  the log is empty, it says nothi")


def test_a_folder_names_the_file(ask: Callable[..., Answer], tmp_path: Path) -> None:
    logs = tmp_path / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "worker-1.out").write_text("ready\n")
    (logs / "worker-2.err").write_text("ready\n" + TROUBLE)
    answer = ask("diagnose", str(tmp_path))
    assert answer.code == 1
    assert f"{logs / 'worker-2.err'}:2" in answer.out


def test_in_chinese(ask: Callable[..., Answer], log: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    answer = ask("diagnose", log(unfinished() + TROUBLE + "engine is gone\n"), "--assume", "vllm==2.1")
    lines = [line.strip() for line in answer.out.splitlines()]
    assert lines[0].startswith("失败  处于阶段 训练循环")
    assert "根因        引擎不认识这个参数  [flag-gone]" in lines
    assert "原因        vLLM 2.0 移除了它。" in lines
    assert "处理 2      或指定后端" in lines
    assert "uky-patch apply log-flag" in lines
    assert lines[-1].startswith("连带        engine-dead 的标题")
    json_out = ask("--format", "json", "diagnose", log(TROUBLE)).json
    assert json_out["symptoms"][0]["cause"] == "vLLM 2.0 removed it."


def test_other_commands_do_without_the_automaton(tmp_path: Path) -> None:
    code = "import sys; sys.modules['ahocorasick_rs'] = None; from patcher.cli.app import run; sys.exit(run(['list']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shipped_symptoms_are_read(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.records.symptom_parse.load_symptoms", load_symptoms)
    answer = ask("--format", "json", "diagnose", str(LOGS / "verl-0.7.0.log"))
    assert answer.code == 0
    assert json.loads(answer.out)["symptoms"] == []


def test_a_fork_has_symptoms_of_its_own(
    ask: Callable[..., Answer], log: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patcher.records.symptom_parse.load_symptoms", load_symptoms)
    fork = tmp_path / "fork"
    (fork / "verl").mkdir(parents=True)
    (fork / "verl/__init__.py").touch()
    (fork / "uky-patch.toml").write_text('symptoms = ["symptoms"]\n')
    path = log("ready\n" + TROUBLE)

    answer = ask("--root", str(fork), "diagnose", path)
    assert answer.code == 4
    assert f"{fork}/symptoms: the record folder cannot be read" in answer.err
    assert "Check symptoms in uky-patch.toml." in answer.err

    (fork / "symptoms").mkdir()
    (fork / "symptoms/flag-gone.toml").write_text(FLAG)
    assert ask("--root", str(fork), "--format", "json", "diagnose", path).json["symptoms"][0]["id"] == "flag-gone"
    monkeypatch.chdir(fork)
    assert ask("symptoms", "flag-gone").out.startswith("flag-gone:")
    monkeypatch.chdir(tmp_path)
    assert ask("symptoms", "flag-gone").code == 2
