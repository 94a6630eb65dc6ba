"""Parsers of what a Linux machine tells of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.remote.agent.environs import parse_environ
from patcher.remote.agent.facts import UnknownFact
from patcher.remote.agent.gpus import is_stub, libcuda, parse_ldconfig
from patcher.remote.agent.resources import (
    parse_cpu_quota,
    parse_disk_quota,
    parse_groups,
    parse_limit,
    parse_meminfo,
    parse_mounts,
)

LDCONFIG = """\
1203 libs found in cache `/etc/ld.so.cache'
\tlibcudart.so.13 (libc6,x86-64) => /usr/local/cuda/targets/x86_64-linux/lib/libcudart.so.13
\tlibcudadebugger.so.1 (libc6,x86-64) => /usr/local/nvidia/lib64/libcudadebugger.so.1
\tlibcuda.so.1 (libc6,x86-64) => /usr/local/nvidia/lib64/libcuda.so.1
\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1
\tlibcuda.so.1 (libc6,x86-64) => /lib/libcuda.so.1
\tlibcuda.so (libc6,x86-64) => /usr/local/nvidia/lib64/libcuda.so
"""


def test_libcuda_of_this_architecture_alone_in_the_order_of_the_cache() -> None:
    assert parse_ldconfig(LDCONFIG, "x86_64") == ["/usr/local/nvidia/lib64/libcuda.so.1", "/lib/libcuda.so.1"]
    assert parse_ldconfig("\tlibcuda.so.1 (libc6,AArch64) => /usr/lib/libcuda.so.1\n", "aarch64") == [
        "/usr/lib/libcuda.so.1"
    ]


def test_a_stub_is_known_by_its_folder() -> None:
    assert is_stub("/usr/local/cuda/lib64/stubs/libcuda.so")
    assert not is_stub("/usr/local/nvidia/lib64/libcuda.so.1")


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("max 100000", None), ("150000 100000\n", 2), ("50000 100000", 1), ("-1 100000", None), (" ", None)],
)
def test_cpu_quota(text: str, cpus: int | None) -> None:
    assert parse_cpu_quota(text) == cpus


@pytest.mark.parametrize(
    ("text", "limit"), [("max\n", None), ("137438953472\n", 1 << 37), ("9223372036854771712\n", None), ("", None)]
)
def test_memory_limit(text: str, limit: int | None) -> None:
    assert parse_limit(text) == limit


def test_groups_of_both_versions() -> None:
    assert parse_groups("0::/user.slice/user-1000.slice\n") == {"": "/user.slice/user-1000.slice"}
    legacy = parse_groups("12:cpu,cpuacct:/docker/1a2b\n3:memory:/docker/1a2b\n1:name=systemd:/docker/1a2b\n")
    assert (legacy["cpu"], legacy["memory"]) == ("/docker/1a2b", "/docker/1a2b")


def test_memory_of_the_machine() -> None:
    answer = parse_meminfo(
        "MemTotal:       24683108 kB\nMemFree:        20000 kB\nMemAvailable:   24057584 kB\nHugePages_Total: 0\n"
    )
    assert (answer["MemTotal"], answer["MemAvailable"]) == (24683108 << 10, 24057584 << 10)


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 22 0:31 / /data rw,relatime shared:18 - lustre 10.0.0.1@tcp:/scratch rw,flock
40 22 0:44 / /home rw,nosuid - nfs4 filer:/export/home rw,vers=4.2
"""


def test_file_system_by_device_number() -> None:
    assert parse_mounts(MOUNTS, "0:31") == ("lustre", "10.0.0.1@tcp:/scratch")
    assert parse_mounts(MOUNTS, "254:0") == ("ext4", "/dev/vda")
    assert parse_mounts(MOUNTS, "9:9") == ("", "")


def test_room_that_a_quota_leaves() -> None:
    table = (
        "Disk quotas for user ann (uid 1000): \n"
        "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
        "      /dev/sda1  900000  950000 1000000       0     120       0       0       0\n"
        "      /dev/sdb1  5000*    4000    6000   1766000     3       0       0       0\n"
    )
    assert parse_disk_quota(table, "/dev/sda1") == 100000 << 10
    assert parse_disk_quota(table, "/dev/sdb1") == 1000 << 10
    assert parse_disk_quota(table, "/dev/sdc1") is None
    lustre = " /data/ann  4096  0  1048576  -  12  0  0  -\n"
    assert parse_disk_quota(lustre, "") == (1048576 - 4096) << 10
    assert parse_disk_quota(" /data/ann  4096  0  0  -  12  0  0  -\n", "") is None
    assert parse_disk_quota("Disk quotas for user ann (uid 1000): none\n", "/dev/sda1") is None


def test_a_login_shell_that_greets_does_not_hide_its_variables() -> None:
    text = "Welcome to the cluster, A=B\nSecond line\nPATH=/usr/bin\0HF_TOKEN=hf_secret\0VIRTUAL_ENV=/venv/a=b\0X=\0"
    assert parse_environ(text) == {"PATH": "/usr/bin", "VIRTUAL_ENV": "/venv/a=b"}


def test_a_login_shell_that_says_nothing_of_use() -> None:
    with pytest.raises(UnknownFact):
        parse_environ("This account is currently not available.\n")


def test_libraries_in_the_order_of_a_program_s_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, head in {
        "own": b"\x7fELF\x02",
        "old": b"\x7fELF\x01",
        "cuda/compat": b"\x7fELF\x02",
        "cuda/lib64/stubs": b"\x7fELF\x02",
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        for name in ("libcuda.so", "libcuda.so.1"):
            (tmp_path / folder / name).write_bytes(head + bytes(11))
    (tmp_path / "again").symlink_to("own")
    monkeypatch.setattr("patcher.remote.agent.gpus._ldconfig", lambda: "")
    paths = ":".join(f"{tmp_path}/{name}" for name in ("old", "cuda/lib64/stubs", "own", "again", "gone"))
    answer = libcuda({"LD_LIBRARY_PATH": f":{paths}:relative", "CUDA_HOME": f"{tmp_path}/cuda"})
    assert [path for path in answer["places"] if path.startswith(str(tmp_path))] == [f"{tmp_path}/own/libcuda.so.1"]
    assert answer["compat"] == [f"{tmp_path}/cuda/compat/libcuda.so.1"]
    assert f"{tmp_path}/cuda/lib64/stubs/libcuda.so" in answer["stubs"]
