"""Names of hosts: what ssh is given, and what it is never given."""

from __future__ import annotations

import pytest

from patcher.errors import UsageError
from patcher.remote.target import Target, target
from tests.remote.hostile import TARGETS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("h200-3", Target("h200-3")),
        ("me@h200-3.example.org", Target("me@h200-3.example.org")),
        ("me@corp@login", Target("me@corp@login")),
        ("me@10.0.0.5:2222", Target("me@10.0.0.5", 2222)),
        ("::1", Target("::1")),
        ("fe80::1%eth0", Target("fe80::1%eth0")),
        ("me@[2001:db8::2]:2222", Target("me@2001:db8::2", 2222)),
        ("[::1]", Target("::1")),
        ("机器一", Target("机器一")),
        ("gpu_box", Target("gpu_box")),
    ],
)
def test_a_host_as_people_write_it(text: str, found: Target) -> None:
    assert target(text) == found


@pytest.mark.parametrize("text", TARGETS)
def test_a_hostile_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        target(text)
    assert caught.value.exit_code == 2
    assert caught.value.cause
    assert caught.value.advice
