"""data and model: real parquet, real page cache, interpreters that hang, crash or lack what is needed."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import run
from tests.machines import Machine

pyarrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is in the group dev")
Uky = Callable[..., tuple[int, str, str]]


@pytest.fixture
def uky(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Uky:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    def call(*arguments: str, python: str = sys.executable) -> tuple[int, str, str]:
        code = run(["--python", python, *arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def told(answer: tuple[int, str, str]) -> Any:
    assert answer[0] == 0, answer[2]
    return json.loads(answer[1])


@pytest.fixture
def train(tmp_path: Path) -> Path:
    import pyarrow
    from pyarrow import parquet

    rows = 8
    table = pyarrow.table(
        {
            "prompt": [[{"role": "user", "content": f"hi\x1b[31m {index}"}] for index in range(rows)],
            "images": [[b"x" * 100]] * rows,
            "long": ["a" * 1000] * rows,
            "score": [float("nan")] * rows,
        }
    ).replace_schema_metadata({b"huggingface": b"{}"})
    path = tmp_path / "train.parquet"
    parquet.write_table(table, path, row_group_size=1)
    path.chmod(0o640)
    return path


def rows_of(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path)


@pyarrow
def test_report_tells_rows_columns_and_the_first_row(uky: Uky, train: Path) -> None:
    found = told(uky("--format", "json", "data", "report", "train.parquet"))
    assert (found["rows"], found["size"]) == (8, train.stat().st_size)
    assert [column["name"] for column in found["columns"]] == ["prompt", "images", "long", "score"]
    assert found["first"]["images"] == ["<100 bytes>"]
    assert "(1000 characters)" in found["first"]["long"]
    code, out, _ = uky("data", "report", str(train))
    assert code == 0
    assert f"{train}: 8 rows, 4 columns" in out
    assert "\x1b" not in out


@pyarrow
def test_tiny_keeps_schema_and_metadata(uky: Uky, train: Path) -> None:
    found = told(uky("--format", "json", "data", "tiny", "train.parquet"))
    tiny = train.with_name("train_tiny.parquet")
    assert (found["file"], found["rows"], found["how"]) == (str(tiny), 2, "written")
    assert rows_of(tiny).num_rows == 2
    assert rows_of(tiny).schema.equals(rows_of(train).schema)
    assert rows_of(tiny).schema.metadata[b"huggingface"] == b"{}"
    assert stat.S_IMODE(tiny.stat().st_mode) == 0o640
    before = tiny.stat().st_mtime_ns
    assert "there already" in uky("data", "tiny", "train.parquet")[1] or tiny.stat().st_mtime_ns > before
    assert told(uky("--format", "json", "data", "tiny", "train.parquet", "--rows", "3"))["how"] == "updated"
    assert rows_of(tiny).num_rows == 3
    assert sorted(path.name for path in train.parent.iterdir()) == ["train.parquet", "train_tiny.parquet"]


@pyarrow
def test_somebody_elses_file_is_not_replaced(uky: Uky, train: Path) -> None:
    mine = train.with_name("train_tiny.parquet")
    for content in (b"mine", train.read_bytes()):
        mine.write_bytes(content)
        code, _, err = uky("data", "tiny", "train.parquet")
        assert code == 5
        assert "--force" in err
        assert mine.read_bytes() == content
    assert uky("data", "tiny", "train.parquet", "--force")[0] == 0
    assert rows_of(mine).num_rows == 2


@pyarrow
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.parquet", None, "there is none"),
        ("bad.parquet", b"no parquet", "cannot be read as parquet"),
        ("empty.parquet", b"", "cannot be read as parquet"),
        ("x_tiny.parquet", b"", "tiny data set already"),
        ("../" * 30 + "etc", None, "is a folder"),
    ],
)
def test_a_file_that_will_not_do(uky: Uky, tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = uky("data", "tiny", name)
    assert (code, out) == (5, "")
    assert said in err
    assert not list(tmp_path.glob("*.uky-*"))


def python(folder: Path, text: str) -> str:
    path = folder / "venv/bin/python"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_without_pyarrow(tmp_path: Path) -> None:
    """What the program itself says where neither reader can be imported."""
    import subprocess

    import patcher.assets.agent.parquet_program as program

    source = Path(program.__file__).read_text()
    task = json.dumps({"do": "report", "file": "x"})
    done = subprocess.run([sys.executable, "-I", "-S", "-c", source, task], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["problem"] == "reader"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("#!/bin/sh\nexec sleep 60\n", "no answer within 1 s"),
        ("#!/bin/sh\nkill -SEGV $$\n", "died of signal 11"),
        ("#!/bin/sh\necho 'cannot import x' >&2; exit 3\n", "cannot import x"),
        ("#!/nowhere/python\n", "does not start"),
        ("#!/bin/sh\necho '[noise'\n", "ended with 0"),
    ],
)
def test_an_interpreter_that_hangs_or_dies(tmp_path: Path, program: str, said: str) -> None:
    from patcher.errors import HostError
    from patcher.remote.connection import connect
    from patcher.remote.host import HERE, Host

    (tmp_path / "x.parquet").touch()
    started = time.monotonic()
    with connect(Host(HERE, HERE)) as connection, pytest.raises(HostError) as caught:
        connection.channel.ask(
            "data-report", file="x.parquet", folder=str(tmp_path), python=python(tmp_path, program), seconds=1
        )
    assert said in str(caught.value)
    assert time.monotonic() - started < 5


def model(folder: Path, at: int, size: int = 0) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    if size:
        (folder / "a.safetensors").write_bytes(os.urandom(size))
    os.utime(folder, (at, at))
    return folder


def test_newest_follows_the_one_rule(uky: Uky, tmp_path: Path) -> None:
    model(tmp_path / "m/models--a--b/snapshots/zzz", 1)
    newer = model(tmp_path / "m/models--a--b/snapshots/aaa", 2)
    assert uky("model", "newest", "m") == (0, f"{newer}\n", "")
    (tmp_path / "m/models--a--b/refs").mkdir()
    (tmp_path / "m/models--a--b/refs/main").write_text("zzz")
    assert uky("model", "newest", "m/models--a--b")[1].endswith("zzz\n")
    code, _, err = uky("model", "newest", "nothing")
    assert code == 5
    assert "there is no such folder" in err


def test_warm_reads_what_is_not_in_memory(uky: Uky, tmp_path: Path) -> None:
    size = 40_000_000
    folder = model(tmp_path / "m", 1, size)
    (folder / "b.safetensors").symlink_to("a.safetensors")
    weights = folder / "a.safetensors"
    handle = os.open(weights, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)
    found = told(uky("--format", "json", "model", "warm", "m"))
    assert (found["files"], found["size"]) == (1, size)
    assert found["read"] + found["cached"] >= size
    for _ in range(5):  # under memory pressure the kernel may let go of pages in between
        again = told(uky("--format", "json", "model", "warm", "m"))
        if again["read"] == 0:
            break
    assert (again["cached"], again["read"]) == (size, 0)
    code, out, _ = uky("model", "warm", "m")
    assert code == 0
    assert "1 file, 40.0 MB\nin memory before: " in out


def test_what_does_not_fit_into_memory_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from patcher.assets.agent import models

    class Asked:
        def __init__(self, **args: object) -> None:
            self.args = args

        def emit(self, **event: object) -> None: ...

        def gone(self) -> bool:
            return False

    folder = model(tmp_path / "m", 1, 3_000_000)
    (folder / "small.safetensors").write_bytes(b"x" * 1000)
    monkeypatch.setattr(models.resources, "available", lambda: 1_000_000)
    monkeypatch.setattr(models, "resident", lambda *_: None)
    found = models.warm(Asked(bases=[str(folder)]))  # type: ignore[arg-type]
    assert [file["path"] for file in found["skipped"]] == [str(folder / "a.safetensors")]
    assert (found["read"], found["cached"]) == (1000, None)


def test_over_ssh(uky: Uky, reachable: Machine) -> None:
    import subprocess

    place = reachable.home / "mo dels/it's"
    reachable.do("mkdir", "-p", str(place))
    reachable.do("sh", "-c", 'echo "{}" > "$1/config.json"; head -c 100000 /dev/zero > "$1/w.bin"', "sh", str(place))
    shared = ["--format", "json", "model"]
    done = subprocess.run(
        [sys.executable, "-m", "patcher", *shared, "warm", "~/mo dels", "--host", "loop"],
        capture_output=True, text=True, cwd="/", env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"] == str(place)
    assert (found["size"], found["failed"]) == (100000, [])
