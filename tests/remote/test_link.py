"""A link whose connection is begun ahead: `connect` waits for it, tells what failed, and leaves nothing open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from patcher.errors import HostError
from patcher.remote import link as module
from patcher.remote.host import Host
from patcher.remote.link import HostLink
from tests.cluster.processes import wait_for


@dataclass
class Logins:
    """Stands in for ssh: how often somebody logged in and left, and what holds a login up or refuses it."""

    opened: int = 0
    closed: int = 0
    may_go_on: threading.Event = field(default_factory=threading.Event)
    refused: HostError | None = None

    @contextmanager
    def connect(self, host: Host) -> Iterator[Host]:
        self.may_go_on.wait(10)
        if self.refused is not None:
            raise self.refused
        self.opened += 1
        yield host
        self.closed += 1


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> Logins:
    found = Logins()
    monkeypatch.setattr(module, "connect", found.connect)
    return found


@pytest.fixture
def link() -> HostLink:
    return HostLink(Host("far", target="far"), "fork")


def test_a_connection_that_was_begun_is_the_one_that_is_used(logins: Logins, link: HostLink) -> None:
    link.begin()
    logins.may_go_on.set()
    link.connect()
    assert link.connection is link.host
    assert (logins.opened, logins.closed) == (1, 0)
    link.close()
    assert (logins.opened, logins.closed) == (1, 1)


def test_after_a_cut_another_one_is_opened(logins: Logins, link: HostLink) -> None:
    logins.may_go_on.set()
    link.begin()
    link.connect()
    link.connect()
    assert (logins.opened, logins.closed) == (2, 1)
    link.close()
    assert logins.closed == 2


def test_what_fails_is_raised_where_it_is_waited_for(logins: Logins, link: HostLink) -> None:
    logins.refused = HostError("far: cannot be reached")
    logins.may_go_on.set()
    link.begin()
    with pytest.raises(HostError, match="cannot be reached"):
        link.connect()
    logins.refused = None
    link.connect()
    assert logins.opened == 1
    link.close()


def test_one_that_nobody_waits_for_is_closed(logins: Logins, link: HostLink) -> None:
    link.begin()
    logins.may_go_on.set()
    link.close()
    assert (logins.opened, logins.closed) == (1, 1)


def test_a_login_that_takes_long_holds_nobody_up(
    logins: Logins, link: HostLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    link.begin()
    link.close()
    assert logins.opened == 0
    logins.may_go_on.set()
    wait_for(lambda: logins.closed == 1, "the late connection is closed")


def test_a_connection_begun_before_the_link_is_taken_over(logins: Logins, link: HostLink) -> None:
    logins.may_go_on.set()
    module.begin_early(Host("far", target="far"))
    link.begin()
    link.connect()
    assert (logins.opened, logins.closed) == (1, 0)
    link.close()
    assert (logins.opened, logins.closed) == (1, 1)


def test_one_begun_to_another_host_is_closed(logins: Logins, link: HostLink) -> None:
    logins.may_go_on.set()
    module.begin_early(Host("far", target="elsewhere"))
    link.begin()
    link.connect()
    assert link.connection is link.host
    assert (logins.opened, logins.closed) == (2, 1)
    link.close()
