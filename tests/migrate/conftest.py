"""A fork, the command, and a host that has what a probe looks for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests import forks, machines
from tests.conftest import require
from tests.machines import Machine
from tests.migrate import moving
from tests.migrate.cuts import Course, begun
from tests.migrate.moving import Mover, Site
from tests.remote import cutting
from tests.remote.cutting import Line

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory, other_python: Path | None) -> Iterator[Machine]:
    """The host `site`: another Python, and an environment whose metadata says vLLM, torch and the rest."""
    require(machines.why_not())
    with machines.machine(tmp_path_factory.mktemp("site"), "site", python=other_python) as found:
        moving.packages(found)
        yield found


@pytest.fixture(scope="session")
def line(host: Machine) -> Iterator[Line]:
    """A line to that host that fails as it is told to; ssh calls it `line`."""
    with cutting.line(host, "line") as made:
        yield made


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """A fork made once, small or whole, to be copied."""
    made: dict[bool, Path] = {}

    def get(small: bool) -> Path:
        if small not in made:
            made[small] = forks.fork(tmp_path_factory.mktemp("forks") / "fork", small=small)
        return made[small]

    return get


def copied(template: Path, folder: Path) -> Path:
    """A copy under a name of its own, so that it gets a folder of its own on every host."""
    tree = folder / f"fork{next(_NUMBERS)}"
    shutil.copytree(template, tree, symlinks=True)
    return tree


@pytest.fixture
def site(host: Machine, templates: Callable[[bool], Path], tmp_path: Path) -> Iterator[Site]:
    """A small fork on its way to the host."""
    yield Site(host, Mover(copied(templates(True), tmp_path), tmp_path / "state", host.shims))
    host.clear()


@pytest.fixture
def whole(host: Machine, templates: Callable[[bool], Path], tmp_path: Path) -> Iterator[Site]:
    """A whole fork on its way to the host."""
    yield Site(host, Mover(copied(templates(False), tmp_path), tmp_path / "state", host.shims))
    host.clear()


@pytest.fixture(scope="module")
def course(
    host: Machine, line: Line, templates: Callable[[bool], Path], tmp_path_factory: pytest.TempPathFactory
) -> Course:
    """An old tree on the host and a new one here, and what an undisturbed run makes of them."""
    folder = tmp_path_factory.mktemp("course")
    return begun(Site(host, Mover(copied(templates(True), folder), folder / "state", host.shims)), line)
