"""A small tree, a record of its own, and a runner that gives exit code, output and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run

SERVER = '''\
"""A server."""

from vllm.utils import Parser, get_uri

from verl import x


class Server:
    def launch(self, args):
        parser = Parser()
        self.engine = Engine.start(
            config=args.config,
            disable_log=args.disable_log,
        )
        return parser, get_uri("h", 1)
'''

RECORD = """\
id = "log-flag"
title = "Pass enable_log"
reason = "vLLM 2.0 removed disable_log; the sense is inverted."
lifetime = "until-upstream"
[zh]
title = "改传 enable_log"
reason = "vLLM 2.0 去掉了 disable_log，含义相反。"
[when]
verl = ">=99,<100"
vllm = ">=2"
[[edit]]
file = "verl/server.py"
within = "Server.launch"
kind = "rename-argument"
call = "Engine.start"
old = "disable_log"
new = "enable_log"
value = "args.enable_log"
[resolved]
pattern = "enable_log=args.enable_log"
"""

MOVED = """\
id = "utils-moved"
title = "Import Parser from its new home"
reason = "vLLM 2.0 moved it."
lifetime = "until-upstream"
[when]
verl = ">=99,<100"
vllm = ">=2"
[[edit]]
file = "verl/server.py"
kind = "move-import"
old = "vllm.utils.Parser"
new = "vllm.utils.parsers.Parser"
"""


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcomes by record id, of the records made here."""
        return {r["id"]: r["outcome"] for r in self.json["records"] if r["id"] in ("log-flag", "utils-moved", "mine")}


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def write_records(folder: Path) -> Path:
    folder.mkdir()
    (folder / "log-flag.toml").write_text(RECORD)
    (folder / "utils-moved.toml").write_text(MOVED)
    return folder


def write_tree(root: Path, *servers: str) -> Path:
    """A small verl 99.1, with a module for each server."""
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/__init__.py").write_text("")
    (root / "verl/version/version").write_text("99.1\n")
    for name in servers:
        (root / f"verl/{name}.py").write_text(SERVER)
    return root


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write_records(tmp_path / "records")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "fork", "server")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources of a vLLM 2.1 that has moved Parser."""
    package = tmp_path / "sources/vllm"
    (package / "utils").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text('__version__ = "2.1"\n')
    (package / "utils/__init__.py").write_text("def get_uri(host, port): ...\n")
    (package / "utils/parsers.py").write_text("class Parser: ...\n")
    return package.parent


@pytest.fixture
def trainer(tree: Path) -> None:
    """The trainer's entry imports the server, so that what breaks there breaks every run."""
    (tree / "verl/trainer").mkdir()
    (tree / "verl/trainer/__init__.py").touch()
    (tree / "verl/trainer/main_ppo.py").write_text("import verl.server\n\ndef main(): ...\n")


Uky = Callable[..., Answer]


@pytest.fixture
def uky(tree: Path, records: Path, capsys: pytest.CaptureFixture[str]) -> Uky:
    """Run a command on the tree with vLLM 2.1 assumed; `vllm=` and `json=False` change that."""

    def call(*arguments: str, vllm: str = "2.1", json: bool = True) -> Answer:
        shared = ["--root", str(tree), "--patches", str(records), "--assume", f"vllm=={vllm}"]
        code = run([*shared, *(["--format", "json"] if json else []), *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call
