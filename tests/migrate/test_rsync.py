"""What rsync says, read."""

from __future__ import annotations

import pytest

from patcher.migrate.rsync import RsyncEnd, version

MKSTEMP = 'rsync: [receiver] mkstemp "/home/u/.x.a1b2" failed: {}\nrsync error: some files (code 23) at main.c(1)'


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (MKSTEMP.format("Permission denied (13)"), "refused"),
        (MKSTEMP.format("Read-only file system (30)"), "refused"),
        (
            'rsync: write failed on "/x": No space left on device (28)\nrsync error: (code 11) at receiver.c(380)',
            "full",
        ),
        ('rsync: [receiver] close failed on "/x": Disk quota exceeded (122)', "quota"),
        ('rsync: [sender] link_stat "/a b" failed: No such file or directory (2)', "vanished"),
        ('rsync: send_files failed to open "/a": Permission denied (13)', "vanished"),
        ('file has vanished: "/a"', "vanished"),
        ("rsync: connection unexpectedly closed (30 bytes received so far) [sender]\nrsync error: at io.c(13)", ""),
        ("protocol version mismatch -- is your shell clean?\nrsync error: (code 2) at compat.c(28)", ""),
    ],
)
def test_ends_are_told_apart(said: str, found: str) -> None:
    end = RsyncEnd(23, said)
    names = ["vanished"] if end.vanished else [name for name in ("full", "quota", "refused") if getattr(end, name)]
    assert names == ([found] if found else [])


def test_versions_are_numbers() -> None:
    assert version("3.2.7") == (3, 2, 7)
    assert version("3.4.0pre1") > (3, 1)
    assert version("2.6.9") < (3, 1)
