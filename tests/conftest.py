"""What tests of several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import machines, not_run, pythons, tools
from tests.machines import Machine
from tests.remote import namespaces

os.environ.setdefault("UKY_PATCH_TRACEBACK", "1")  # A bug that a test meets is shown by its traceback.
os.environ["PATH"] = tools.search_path(os.environ.get("PATH", os.defpath))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was not run, and why: a green end alone says nothing of it."""
    for line in not_run.lines(terminalreporter.stats.get("skipped", ()), config.getoption("markexpr")):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The host `loop`, for as long as the session lasts. Its user's home is not emptied between tests."""
    require(machines.why_not())
    with machines.machine(tmp_path_factory.mktemp("loop")) as found:
        yield found


@pytest.fixture
def reachable(loop: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The host `loop`, with this process's `ssh` knowing it."""
    monkeypatch.setenv("PATH", f"{loop.shims}:{os.environ['PATH']}")
    return loop


@pytest.fixture(scope="session")
def other_python() -> Iterator[Path | None]:
    """A Python of another version than this one, which any user may run; None where this machine has none."""
    with TemporaryDirectory(prefix="uky-python-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield pythons.another(Path(folder))


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory, other_python: Path | None) -> Iterator[tuple[Machine, ...]]:
    """Three hosts in network namespaces; the first has another Python."""
    require(namespaces.why_not())
    with namespaces.fleet(tmp_path_factory.mktemp("fleet"), [other_python, None, None]) as found:
        yield found


def require(reason: str) -> None:
    """Skip for `reason`, or fail where hosts are required."""
    if reason and os.environ.get(machines.REQUIRED):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
