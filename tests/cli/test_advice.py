"""What the tool advises can be pasted: commands fit the command line, lines are shell, pip can read its part."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import patcher
from patcher.cli.app import COMMANDS, run
from patcher.diagnose.fixes import FixContext, fixes_for
from patcher.i18n import _catalogue
from patcher.records.symptom_parse import load_symptoms
from tests.cli.conftest import Uky
from tests.commands import commands, mistake_in

SHIPPED = load_symptoms()
PATHS = frozenset(path for path, _ in commands())
NAMES = {
    **dict.fromkeys(("PID", "WORKER_PID", "TRAINER_PID", "{pid}"), "4242"),
    **dict.fromkeys(("PORT",), "8080"),
    **dict.fromkeys(("VERSION",), "1.0"),
    "[VALUE]": "1",
    "{root}": "/tree",
    "{names}": "torch transformers",
    "{python}": "/env/bin/python",
}
"""What stands for a placeholder or a gap where a word alone does not fit."""
PLACEHOLDERS = re.compile(
    "ADAPTER|API_KEY|CHECKPOINT_DIR|CKPT|DATA|DIR|DRAFT|FILE|FOLDER|FULL_KEY|GOOD_LOG|HEAD_NODE|HOST|ID"
    "|IMAGE|INDEX_URL|IP_OF_RANK_0|KEY|LOCK_FILE|LOG|MERGED|MODEL|MODEL_PATH|MODULE|NAME|OTHER_NODE"
    "|PACKAGE|PATH|PID|POD|PORT|PROXY|SANDBOX_URL|SERVICE|SOURCE|TARGET|TRAINER_PID|TRAIN_FILE|TRAIN_SMALL"
    "|VALUE|VERSION|WHAT|WORKER_PID"
)
"""Words in capitals that the reader is to fill in, because the tool cannot know them."""
NO_PLACEHOLDERS = re.compile("ALIVE|DEFAULT|TRUE|EAGLE3|ECC|FINISHED|HEAD|INPUT|ROW_REMAPPER")
"""What git, nvidia-smi, iptables, Ray, SGLang and flash-attn know by names in capitals."""
UNKNOWN_THERE = {
    "Name it: uky-patch bundle LOG": "no log was found",
    "One of them in full: uky-patch symptoms ID. A log: uky-patch diagnose LOG.": "after the list of all symptoms",
    (
        "Of another run, ps -ef shows the processes, ray stop ends Ray, and uky-patch diagnose LOG reads the log. "
        "To start a job: uky-patch run debug, with --host for another machine."
    ): "where uky-patch has started no job, so that it knows no log",
    "Questions, which change nothing: uky-patch probe WHAT --pid PID": "after the list of all questions",
    "Changes to the process: uky-patch probe WHAT [VALUE] --write --pid PID": "after the list of all changes",
}
"""Sentences of the tool's own that name a command with a placeholder, and why its value is not known."""
_COMMAND = re.compile(rf"uky-patch (?=--|(?:{'|'.join(COMMANDS)})\b)")
_WORD = re.compile(r"--?[a-z][a-z-]*|[A-Z][A-Z_]*|\[VALUE\]|\{\w+\}|-|[\w~./{}-]*[./=_\d-][\w./={}-]*")
"""A word of a command rather than of the sentence around it: an option, a placeholder, a gap, a name of some form."""


def commands_in(text: str) -> Iterator[str]:
    """Each `uky-patch …` of a sentence, as far as it goes: `uky-patch apply` of `uky-patch apply begins anew`."""
    for found in _COMMAND.finditer(text):
        words: list[str] = []
        for word in re.split(r"[ ，。；、：）]", text[found.end() :]):
            bare = word.rstrip(".,;:)`。")
            inner = len(words) == 1 and f"{words[0]} {bare}" in PATHS
            value = bool(words) and words[-1] in ("--level", "--from", "run")
            if words and not (inner or value or _WORD.fullmatch(bare)):
                break
            words.append(bare)
            if bare != word:
                break
        yield " ".join(["uky-patch", *words])


def filled(line: str) -> str:
    """A line with something in the place of each gap and placeholder."""
    for name, value in NAMES.items():
        line = re.sub(rf"(?<![\w$]){re.escape(name)}(?!\w)", value, line)
    return re.sub(r"\{\w+\}", "name", line)


def sentences() -> dict[str, str]:
    """Every text in the code that names one of the tool's commands, with `{…}` for what is put into it."""
    found = {}
    for path in sorted(Path(patcher.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                text = node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)
            if _COMMAND.search(text) and path.name != "examples.py":  # Those are parsed whole, with their words.
                found[text] = f"{path.name}:{node.lineno}"
    return found


def test_commands_are_found_in_sentences() -> None:
    text = "Wait for it: uky-patch job attach {host}. Stop it: uky-patch job stop {host}. Or go on with --yes."
    assert list(commands_in(text)) == ["uky-patch job attach {host}", "uky-patch job stop {host}"]
    text = "{files}: uky-patch apply --merge takes that out, and uky-patch check what else has changed"
    assert list(commands_in(text)) == ["uky-patch apply --merge", "uky-patch check"]
    assert mistake_in(["job", "stop"])
    assert mistake_in(["check", ".", "--vllm", "1.0"])


def test_each_command_in_a_sentence_fits_the_command_line() -> None:
    """But for those that sentences name as a thing, "Run uky-patch watch as root.", or that a target is put to."""
    wrong = {
        f"{place}: {command}": problem
        for text, place in sentences().items()
        for command in commands_in(text)
        if command not in ("uky-patch watch", "uky-patch diagnose", "uky-patch job attach")
        and (problem := mistake_in(shlex.split(filled(command))[1:]))
    }
    assert not wrong


def test_a_placeholder_stays_only_where_its_value_is_not_known() -> None:
    held = {
        text
        for text in sentences()
        for command in commands_in(text)
        if re.search(r"(?<![\w-])[A-Z]{2,}\b", re.sub(r"^uky-patch", "", command))
    }
    assert held == set(UNKNOWN_THERE)


def test_the_chinese_names_the_same_commands() -> None:
    different = {
        text: zh
        for text, zh in _catalogue().items()
        if sorted(commands_in(text)) != sorted(commands_in(zh)) and "{command}" not in text
    }
    assert not different


def lines() -> Iterator[tuple[str, str]]:
    """The commands that each shipped symptom recommends, with its id."""
    for symptom in SHIPPED:
        for fix in symptom.fixes:
            if fix.run:
                yield symptom.id, fix.run


def is_python(text: str) -> bool:
    """Whether it is code for the training program: `state = torch.load(path, weights_only=False)`."""
    try:
        ast.parse(text.replace("…", "..."))
    except SyntaxError:
        return False
    return "(" in text or " = " in text


def test_each_line_is_shell_or_code_of_the_training_program() -> None:
    shell = [(name, run) for name, run in lines() if not is_python(run)]
    script = "".join(f"f{number}() {{\n{run}\n}}\n" for number, (_, run) in enumerate(shell))
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(shell) > 500


def requirements(line: str) -> Iterator[str]:
    """What `pip install` is given, without its options; nothing where the shell works it out, `"$(…)"`."""
    line = "" if "$(" in line else re.sub(r"\$\w+", "1.0", line)
    for found in re.finditer(r"pip install (.*)", line):
        takes_value = False
        for word in shlex.split(found[1], comments=True):
            if word in ("|", "||", "&&", ";"):
                break
            if not takes_value and not word.startswith("-"):
                yield word.rstrip(";")
            takes_value = word in ("-r", "--requirement", "-e", "--find-links", "--no-binary", "--only-binary")


def test_each_pip_install_can_be_read_by_pip() -> None:
    told = [line for _, run in lines() if not is_python(run) for line in run.splitlines()]
    told += [text for text in _catalogue() if "-m pip install" in text]
    named = [item for line in told for item in requirements(filled(line))]
    for item in named:
        Requirement(item)
    assert len(named) > 60
    with pytest.raises(ValueError, match="torch,"):
        Requirement("torch,")


def test_each_uky_patch_line_of_a_symptom_fits_the_command_line() -> None:
    count = 0
    for name, told in lines():
        for line in told.splitlines():
            for found in re.finditer(r"uky-patch ([^|;&]*)", filled(line)):
                assert mistake_in(shlex.split(found[1], comments=True)) == "", (name, line)
                count += 1
    assert count > 20


def test_placeholders_are_words_in_capitals_from_a_closed_list() -> None:
    for name, told in lines():
        if is_python(told):
            continue
        assert not re.search(r"<\w[\w ]*>", told), name
        bare = re.sub(r"'[^']*'|\"[^\"]*\"|\$\w+|\b(?:unset|export) .*|\w+=|\bgrep .*|from .* import .*", "", told)
        for word in re.findall(r"(?<![\w.:/-])[A-Z][A-Z_0-9]{2,}(?![\w.:=-])", bare):
            assert PLACEHOLDERS.fullmatch(word) or NO_PLACEHOLDERS.fullmatch(word), (name, told)


def test_what_verify_advises_installs_what_lacks(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venv.create(tmp_path / "an env", with_pip=False)
    python = tmp_path / "an env/bin/python"
    assert run(["--root", str(tree), "--python", str(python), "--format", "json", "verify", "--level", "env"]) == 1
    fixes = {check["name"]: check["fix"] for check in json.loads(capsys.readouterr().out)["checks"]}
    words = shlex.split(fixes["packages"])
    assert words[:4] == [str(python), "-m", "pip", "install"]
    assert [Requirement(word).name for word in words[4:]] == ["torch", "transformers", "tensordict", "ray"]
    assert shlex.split(fixes["ray"]) == [str(python), "-m", "pip", "install", "ray"]


def test_a_record_that_fails_is_named(uky: Uky, tree: Path) -> None:
    (tree / "verl/server.py").write_text("x = 1\n")
    answer = uky("apply", json=False)
    assert answer.code == 3
    assert "uky-patch explain log-flag" in answer.err


def test_a_log_that_is_known_is_named() -> None:
    symptom = next(symptom for symptom in SHIPPED if symptom.id == "nccl-timeout")
    told = [line for offer in fixes_for(symptom, FixContext(log="my logs/train.log")) for line in offer.commands]
    assert "uky-patch watch 'my logs/train.log'" in told
    assert not any("LOG" in line.split() for line in told)
