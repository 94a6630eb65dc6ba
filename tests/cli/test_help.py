"""Help: groups, examples that run, whole sentences at every width; and usage errors, in both languages."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patcher import __version__
from patcher.cli.app import COMMANDS, HEADINGS, run
from patcher.cli.examples import EXAMPLES
from patcher.i18n import Language, language
from patcher.terminal.table import width
from tests.cli.test_chinese import english_in
from tests.commands import commands, mistake_in, parameters
from tests.packages.venvs import Venv

LOG = Path(__file__).parents[1] / "data/train-0.8.0.log"
PATHS = [path for path, _ in commands()]
LOCALES: dict[Language, str] = {"en": "en_US.UTF-8", "zh": "zh_CN.UTF-8"}
NEEDS_MORE = (
    "demo",
    "check",
    "pins",
    "migrate",
    "diff",
    "pull",
    "prune trainer",
    "run",
    "job",
    "model",
    "watch",
    "probe backtrace",
    "bundle trainer",
    "record",
    "adopt",
    "new",
    "backport",
    "rebase",
)
NEEDS_MORE_YET = ("clean", "data", "verify --level", "render")
"""Examples that need a host, a network, a process or data that a test has not; their command lines are parsed alone."""


def helped(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([*path.split(), "--help"]) == 0
    return capsys.readouterr().out


def test_the_headings_hold_every_command_once() -> None:
    assert [name for names in HEADINGS.values() for name in names] == list(COMMANDS)


def test_the_commands_stand_under_their_headings(capsys: pytest.CaptureFixture[str]) -> None:
    text = helped("", capsys)
    places = [text.index(f"\n{heading}:") for heading in HEADINGS]
    assert places == sorted(places)
    assert text.index("\n  apply ") < text.index("\nBefore an upgrade:") < text.index("\n  check ")


@pytest.mark.parametrize("path", PATHS)
def test_each_help_ends_in_two_examples_that_fit_the_command(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.findall(r"^  (uky-patch .*)\n      \S", helped(path, capsys).partition("\nExamples:\n")[2], re.MULTILINE)
    assert shown == [line for line, _ in EXAMPLES[path]]
    assert len(shown) == 2
    for line in shown:
        words = shlex.split(re.sub(r" >>? \S+$", "", line))[1:]
        assert mistake_in(words) == "", line
        assert words[: len(path.split())] == path.split()


def runnable() -> Iterator[str]:
    for examples in EXAMPLES.values():
        for line, _ in examples:
            if not line.removeprefix("uky-patch ").startswith((*NEEDS_MORE, *NEEDS_MORE_YET)) and "~" not in line:
                yield line


@pytest.mark.parametrize("line", dict.fromkeys(runnable()))
def test_an_example_runs(
    line: str, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a small fork, as it stands there, beside a vLLM."""
    monkeypatch.chdir(tree)
    venv = Venv(tree.parent / "env")
    venv.install("vllm", "0.20.2")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv.prefix))
    monkeypatch.setenv("XDG_STATE_HOME", str(tree.parent / "state"))
    for name in ("train.log", "good.log"):
        shutil.copy(LOG, tree / name)
    assert run(shlex.split(line)[1:]) in (0, 1)
    captured = capsys.readouterr()
    assert captured.out
    assert "error:" not in captured.err


@pytest.mark.parametrize("tongue", LOCALES)
@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_help_fits_the_terminal_and_nothing_is_cut(
    tongue: Language, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", LOCALES[tongue])
    monkeypatch.setenv("COLUMNS", str(columns))
    for path, _ in commands():
        text = helped(path, capsys)
        assert "\x1b" not in text
        for line in text.splitlines():
            alone = re.fullmatch(r" *(uky-patch .*|\S+|--[\w-]+ \[\S+\])", line)
            assert width(line) <= columns or alone, line
            assert not line.endswith("...") or line.endswith(("]...", "LOG|HOST...", "COMMIT...")), line


def test_every_word_of_the_texts_is_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for columns in ("60", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        for path, command in commands():
            shown = " ".join(helped(path, capsys).split())
            for option in parameters(command):
                assert " ".join((option.help or "").split()) in shown
    text = " ".join(helped("job", capsys).split())
    assert "What became of it: phases, steps, processor and GPUs, Ray's dashboard, and the other jobs there." in text


@pytest.mark.parametrize("path", PATHS)
def test_help_is_chinese(path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    lines = [line for line in helped(path, capsys).splitlines() if not line.startswith("  uky-patch ")]
    text = "\n".join(lines)
    assert lines[0].startswith("用法：uky-patch")
    for command in ("uky-patch job attach", "uky-patch completion bash", "pip freeze", "Hugging Face"):
        text = text.replace(command, "")
    for label in re.findall(r"^  (?:-.*?|[a-z]+)(?=  |$)", text, re.MULTILINE):
        text = text.replace(label, "", 1)
    assert not english_in(text, f"uky-patch {path}")


def wrong() -> Iterator[list[str]]:
    """Every kind of mistake that click finds, on every command and option where it can be made."""
    yield ["aply"]
    yield ["--rot", "x"]
    yield ["nothing-like-it"]
    for path, command in commands():
        words = path.split()
        if path:
            yield [*words, "--nosuch"]
        for option in parameters(command):
            name = max(option.opts, key=len)
            if option.is_flag:
                yield [*words, f"{name}=3"]
                yield [*words, name[:-1]] if len(name) > 5 else [*words, f"{name}x"]
            else:
                yield [*words, name]
            if isinstance(option.type, click.Choice | click.types.IntParamType | click.types.FloatParamType):
                yield [*words, name, "x"]
            if isinstance(option.type, click.IntRange | click.FloatRange):
                yield [*words, name, "-3"]
        places = [item for item in command.params if isinstance(item, click.Argument)]
        if any(item.required for item in places):
            yield words
        if path and not isinstance(command, click.Group) and all(item.nargs == 1 for item in places):
            yield [*words, *(["debug"] * len(places)), "one", "too many"]


def test_mistakes_are_told_in_chinese(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    count = 0
    for words in wrong():
        if mistake_in(words) == "":
            continue  # `--versio` is taken for `--version`, as click does.
        code = run(words)
        answer = capsys.readouterr().err
        assert code == 2, words
        assert re.match(r"用法：uky-patch.*\n(?:    .*\n)?错误: ", answer), answer
        sentence = re.sub("'[^']*'", "", answer.partition("\n错误")[2])
        assert not english_in(sentence, "uky-patch", *words, *PATHS, *COMMANDS), answer
        count += 1
    assert count > 300


def test_programs_are_told_mistakes_in_english(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert run(["apply", "--dif", "--format", "json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["title"].startswith("No such option")
    assert "没有选项 '--dif'" in captured.err


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": ""}, "zh"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh_CN:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "fr"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "fr:zh_CN"}, "zh"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"}, "en"),
        ({"LANGUAGE": "zh_CN"}, "en"),
    ],
)
def test_the_language_is_chosen_as_gettext_does(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language() == expected
    assert helped("", capsys).startswith("用法：" if expected == "zh" else "Usage: ")


@pytest.mark.parametrize("words", [["--format", "json", "--version"], ["--version", "--format=json"]])
def test_the_version_is_an_object_where_json_is_asked_for(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"uky-patch {__version__}\n"
