"""A package `demo-pkg` on an index of this machine, and pip configured for that index alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Server, release_files


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("patcher.packages.releases.transfer.time.sleep", lambda _seconds: None)
    made = Server("demo-pkg")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", made.url)
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    made.files = dict(release_files())
    yield made
    made.close()
