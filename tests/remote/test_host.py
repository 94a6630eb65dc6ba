"""Names of hosts: what ssh is given, and what it is never given."""

from __future__ import annotations

import pytest

from patcher.errors import UsageError
from patcher.remote.host import SshTarget, parse_target
from tests.remote.hostile import TARGETS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("h200-3", SshTarget("h200-3")),
        ("me@h200-3.example.org", SshTarget("me@h200-3.example.org")),
        ("me@corp@login", SshTarget("me@corp@login")),
        ("me@10.0.0.5:2222", SshTarget("me@10.0.0.5", 2222)),
        ("::1", SshTarget("::1")),
        ("fe80::1%eth0", SshTarget("fe80::1%eth0")),
        ("me@[2001:db8::2]:2222", SshTarget("me@2001:db8::2", 2222)),
        ("[::1]", SshTarget("::1")),
        ("机器一", SshTarget("机器一")),
        ("gpu_box", SshTarget("gpu_box")),
    ],
)
def test_a_host_as_people_write_it(text: str, found: SshTarget) -> None:
    assert parse_target(text) == found


@pytest.mark.parametrize("text", TARGETS)
def test_a_hostile_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert caught.value.exit_code == 2
    assert caught.value.cause
    assert caught.value.advice
