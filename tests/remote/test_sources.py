"""A package as a host sends it: laid out as it is there, asked for once, never outside its folder."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from patcher.errors import ReleaseError
from patcher.remote.channel import Answer
from patcher.remote.connection import Connection, connect
from patcher.remote.host import HERE, Host
from patcher.remote.sources import package_sources


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "site/vllm"
    for name, content in {
        "__init__.py": b"from .engine import Engine\n",
        "engine/__init__.py": b"class Engine: ...\n",
        "engine/odd.py": "# -*- coding: latin-1 -*-\n# é\n".encode("latin-1"),
        "_C.abi3.so": b"\x7fELF",
        "secrets.json": b"{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "outside.py").symlink_to("/etc/passwd")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_python_files_and_the_names_of_compiled_ones_and_nothing_else(cache: Path, package: Path) -> None:
    with connect(Host(HERE, HERE)) as connection:
        found = package_sources(connection, str(package))
    assert found is not None
    assert found.name == "vllm"
    assert names(found) == ["_C.abi3.so", "__init__.py", "engine/__init__.py", "engine/odd.py"]
    assert (found / "engine/odd.py").read_bytes() == (package / "engine/odd.py").read_bytes()


def test_the_same_files_are_sent_once_and_changed_ones_again(cache: Path, package: Path) -> None:
    with connect(Host(HERE, HERE)) as connection:
        first = package_sources(connection, str(package))
        again = connection.channel.ask("sources", package=str(package), known=first.parent.name if first else "")
        assert again.body == b""
        assert package_sources(connection, str(package)) == first
        (package / "engine/new.py").write_text("x = 1\n")
        changed = package_sources(connection, str(package))
    assert changed is not None
    assert (changed / "engine/new.py").exists()


@pytest.mark.parametrize("path", ["", "/", "/etc", "relative", "/no/such", "/etc/passwd"])
def test_what_is_no_package_is_not_read(path: str, cache: Path) -> None:
    with connect(Host(HERE, HERE)) as connection:
        assert package_sources(connection, path) is None
    assert not cache.exists()


def answering(stamp: str, body: bytes) -> Connection:
    def ask(verb: str, **args: Any) -> Answer:
        return Answer({"stamp": stamp}, body)

    return cast("Connection", SimpleNamespace(host=Host("a", "a"), channel=SimpleNamespace(ask=ask)))


@pytest.mark.parametrize(
    "name", ["../out.py", "/tmp/uky-out.py", "a/../../out.py", "a\0.py", "passwd", ".", "", "..", "a/./../../b.py"]
)
def test_a_host_cannot_write_outside_the_layout(name: str, cache: Path, tmp_path: Path) -> None:
    body = zlib.compress(json.dumps([[name, 2], ["__init__.py", 1]]).encode() + b"\nx\ny")
    found = package_sources(answering("a" * 64, body), "/site/vllm")
    assert found is not None
    assert names(found) == ["__init__.py"]
    assert (found / "__init__.py").read_bytes() == b"y"
    assert not list(tmp_path.rglob("*out.py"))


@pytest.mark.parametrize("stamp", ["../../x", "", "a" * 63 + "/", "A b"])
def test_a_stamp_that_is_none_is_not_made_a_folder(stamp: str, cache: Path) -> None:
    assert package_sources(answering(stamp, zlib.compress(b"[]\n")), "/site/vllm") is None


@pytest.mark.parametrize(
    "body", [b"", b"no zlib", zlib.compress(b"no JSON"), zlib.compress(b"[7]\n"), zlib.compress(b"{}")]
)
def test_a_body_that_makes_no_sense_is_no_package(body: bytes, cache: Path) -> None:
    found = package_sources(answering("a" * 64, body), "/site/vllm")
    assert found is None or names(found) == []


def test_a_body_that_grows_without_end_is_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.remote.sources.MOST_BYTES", 1000)
    with pytest.raises(ReleaseError):
        package_sources(answering("a" * 64, zlib.compress(b"[]\n" + bytes(100_000))), "/site/vllm")
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
