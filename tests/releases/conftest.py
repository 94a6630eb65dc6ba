"""A package `demo-pkg` on an index of this machine, and pip configured for that index alone."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from serving import Server, sdist_of, wheel_of

SOURCES = {"demo_pkg/__init__.py": "x = 1\n", "demo_pkg/deep/a.py": "y = 2\n", "demo_pkg/conf/b.yaml": "z: 3\n"}


@lru_cache(maxsize=1)
def release_files() -> dict[str, bytes]:
    """A wheel, with ballast where compiled code would be, and a source archive of each of three versions."""
    files = {}
    ballast = random.Random(1).randbytes(3 << 20)
    for version in ("1.0", "1.1", "2.0"):
        info = f"demo_pkg-{version}.dist-info"
        metadata = {f"{info}/METADATA": f"Name: demo-pkg\nVersion: {version}\n", f"{info}/RECORD": "demo_pkg/_C.so,,\n"}
        files[f"demo_pkg-{version}-cp38-abi3-manylinux1_x86_64.whl"] = wheel_of(
            {"demo_pkg/_A.so": ballast, **SOURCES, "demo_pkg/_C.so": ballast, **metadata}
        )
        files[f"demo_pkg-{version}.tar.gz"] = sdist_of(
            f"demo_pkg-{version}", {"PKG-INFO": "Name: demo-pkg\n", "tests/t.py": "", "demo_pkg/c.cpp": "", **SOURCES}
        )
    return files


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("patcher.releases.transfer.time.sleep", lambda _seconds: None)
    made = Server("demo-pkg")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", made.url)
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    made.files = dict(release_files())
    yield made
    made.close()
