"""What commands send to a terminal, whatever a tree, a record, a log or git holds."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patcher.cli.app import run
from tests.lanes import one_in
from tests.terminal.hostile import ATTACKS, PARTS, Screen, steering

WORDS = st.lists(PARTS, min_size=1, max_size=5).map("".join)
RECORD = """
id = "own-record"
title = {text}
reason = {text}
upstream = "https://example.org/1"
lifetime = "fork-only"
tags = ["vllm"]
[when]
verl = ">=0.6"
[[edit]]
file = "verl/plain.py"
kind = "move-import"
old = "vllm.LLM"
new = "vllm.entrypoints.LLM"
[[example]]
name = {text}
before = "from vllm import LLM"
after = "from vllm.entrypoints import LLM"
"""
COMMANDS = (
    ["status", "--all"],
    ["list"],
    ["explain", "own-record"],
    ["apply", "--dry-run", "--diff"],
    ["verify"],
    ["check", "--against", "vllm=={vllm}", "--no-since", "--all"],
    ["diagnose", "{log}"],
    ["watch", "{log}", "--once"],
    ["symptoms"],
    ["trust", "--forget"],
    ["status", "--root", "{word}"],
    ["status", "--python", "{word}"],
    ["status", "--assume", "{word}"],
    ["explain", "{word}"],
    ["{word}"],
    ["status", "{word}"],
    ["migrate", "{word}"],
    ["render", "{word}"],
    ["diagnose", "{word}"],
)


def toml(word: str) -> str:
    """A string of TOML that means `word`, of which what TOML cannot hold is left out."""
    sound = [char for char in word if not "\ud800" <= char <= "\udfff"]
    inner = "".join(f"\\u{ord(char):04x}" if char < " " or char in '"\\\x7f' else char for char in sound)
    return f'"{inner}x"'


def tree(folder: Path, word: str) -> Path:
    """A fork in which everything that may hold text holds `word`."""
    root = folder / "fork"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/version/version").write_bytes(f"0.6.1{word}\n".encode("utf-8", "surrogatepass"))
    (root / "verl/__init__.py").write_bytes(b"")
    name = "".join(c for c in word if c not in "/\0" and not "\ud800" <= c <= "\udfff")[:60]
    code = f"import vllm\nfrom vllm import LLM, Nothing\nx = 1  # Uky[{name.splitlines()[:1]}]\n"
    (root / "verl/plain.py").write_text("from vllm import LLM\n")
    for prefix, content in (("a", code), ("b", code + "def f(:\n")):
        (root / "verl" / f"{prefix}{name}.py").write_text(content, encoding="utf-8", errors="replace")
    own = root / "own"
    own.mkdir()
    text = toml(word)
    (own / "own-record.toml").write_text(RECORD.format(text=text), encoding="utf-8")
    (root / "uky-patch.toml").write_text(
        f'patches = ["own"]\nmarker = "Uky"\n[[accept]]\nsymbol = {text}\nreason = {text}\n', encoding="utf-8"
    )
    log = f"step:1 - {word}\nTraceback (most recent call last):\n  File {word!r}, line 1\nValueError: {word}\n"
    (root / "train.log").write_bytes(log.encode("utf-8", "surrogatepass"))
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_bytes(f"ref: refs/heads/{word}\n".encode("utf-8", "surrogatepass"))
    return root


def shown(root: Path, words: list[str], word: str) -> str:
    """What arrives on the terminal."""
    screen = Screen()
    given = os.fsdecode(word.replace("\0", "0").encode("utf-8", "replace") + b"\xff")  # As arguments may come.
    fields = {"log": "train.log", "word": given, "vllm": "0.20.2"}
    before = Path.cwd()
    os.chdir(root)
    try:
        with patch.object(sys, "stdout", screen), patch.object(sys, "stderr", screen):
            run([part.format(**fields) for part in words])
    finally:
        os.chdir(before)
    return screen.getvalue()


@pytest.mark.network
@pytest.mark.parametrize("words", one_in(2, COMMANDS), ids=" ".join)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(word=WORDS)
def test_no_command_lets_text_steer_the_terminal(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], word: str
) -> None:
    root = tree(tmp_path_factory.mktemp("t"), word)
    text = shown(root, words, word)
    assert text
    assert steering(text) == []
    text.encode("utf-8")


@pytest.mark.network
@pytest.mark.parametrize("tongue", ["en_US.UTF-8", "zh_CN.UTF-8"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nor_any_of_the_known_attacks(
    tmp_path: Path, words: list[str], tongue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", tongue)
    word = "x".join(ATTACKS)
    root = tree(tmp_path, word)
    assert steering(shown(root, words, word)) == []


@pytest.mark.network
@pytest.mark.parametrize("words", COMMANDS[:9], ids=" ".join)
def test_json_is_one_object_in_utf_8(tmp_path: Path, words: list[str]) -> None:
    root = tree(tmp_path, "x".join(ATTACKS))
    fields = {"log": "train.log", "word": "x", "vllm": "0.20.2"}
    command = [str(Path(sys.executable).parent / "uky-patch"), *(part.format(**fields) for part in words)]
    if "--diff" in command:
        command.remove("--diff")
    if words[0] == "watch":
        pytest.skip("tells its progress besides")
    done = subprocess.run([*command, "--format", "json"], cwd=root, capture_output=True, timeout=120)
    text = done.stdout.decode("utf-8")
    assert steering(text, own=False) == []
    assert isinstance(json.loads(text), dict)


@pytest.mark.network
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_on_a_real_terminal(tmp_path: Path, words: list[str]) -> None:
    word = "x".join(attack for attack in ATTACKS if "\0" not in attack and "\ud800" not in attack)
    root = tree(tmp_path, word)
    fields = {"log": "train.log", "word": word, "vllm": "0.20.2"}
    command = [str(Path(sys.executable).parent / "uky-patch"), *(part.format(**fields) for part in words)]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = b""
    try:
        while piece := os.read(ours, 65536):
            told += piece
    except OSError:
        pass  # The other side is closed.
    process.wait()
    os.close(ours)
    text = told.decode("utf-8").replace("\r\n", "\n")
    assert text
    assert steering(text) == []
    assert "Traceback" not in text or words[0] in ("diagnose", "watch")
