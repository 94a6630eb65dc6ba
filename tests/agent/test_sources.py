"""What is sent to a host runs there: Python 3.8, its standard library, and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import patcher
from patcher.agent import VERBS
from patcher.remote import agent_program
from tests import tools

FOLDER = Path(patcher.__file__).parent
PROGRAMS = FOLDER / "preflight" / "agent" / "programs"
"""These run in the Python that trains, and import what they check."""
SOURCES = [path for path in agent_program.files_of(agent_program.SENT) if PROGRAMS not in path.parents]
SENT = frozenset(agent_program.sources_of(agent_program.SENT))
LATER = {"tomllib", "zoneinfo", "graphlib"}
"""In the standard library since 3.9 or later."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_each_source_is_python_3_8_and_stays_among_its_own(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    assert not [node for node in ast.walk(tree) if type(node).__name__ in ("Match", "TryStar")]
    if len(tree.body) > 1:
        assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            own = name in SENT
            assert own or (name.split(".")[0] in sys.stdlib_module_names and name not in LATER), name


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_there(verb: str) -> None:
    module, _, name = VERBS[verb].partition(":")
    path = FOLDER.parent / Path(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_program_for_the_host_has_no_quotes_that_its_shell_would_take() -> None:
    assert agent_program.COMMAND.count("'") == 2
    assert "\n" not in agent_program.COMMAND
    assert "!" not in agent_program.COMMAND.replace("[ !", "[ ")
    for mark in ('"', "'", "$", "`", "\\", "!"):
        assert mark not in agent_program.BOOTSTRAP


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "zsh", "ksh", "tcsh", "csh", "fish", "busybox sh"])
def test_any_login_shell_starts_it(shell: str, tmp_path: Path) -> None:
    tools.require(shell.split()[0])
    nonce = "abc"
    done = subprocess.run(
        [*shell.split(), "-c", agent_program.COMMAND],
        input=b"\n" + agent_program.program(nonce),
        capture_output=True,
        cwd=tmp_path,
    )
    assert done.stdout == b"uky-patch agent 1 abc\n"
    assert done.returncode == 0
    assert done.stderr == b""


def test_it_reads_no_byte_more_than_its_program(tmp_path: Path) -> None:
    """What follows is for the agent, also where it has come at once."""
    content = (
        agent_program.program("abc") + b'{"id": 1, "verb": "begin", "args": {"path": null, "name": "x"}, "body": 0}\n'
    )
    command = [sys.executable, *agent_program.OPTIONS, agent_program.BOOTSTRAP]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(content)
        agent.stdin.flush()
        assert agent.stdout.readline() == b"uky-patch agent 1 abc\n"
        assert b'"result"' in agent.stdout.readline()
