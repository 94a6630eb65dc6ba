"""People, machines and addresses have other names, the same one each time; what only looks like one stays."""

from __future__ import annotations

import pytest

from patcher.bundle.pseudonyms import Pseudonyms, machine_of


def names() -> Pseudonyms:
    return Pseudonyms(
        ["mallory", "root"], ["/data/people/mallory", "/root"], ["trainbox-17.lab.internal", "gpu", "localhost"]
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mallory@trainbox-17:~$ ls", "user1@host1:~$ ls"),
        ("/home/mallory/verl/x.py and /home/carol/y", "/home/user1/verl/x.py and /home/user2/y"),
        ("/data/people/mallory/ckpt", "/home/user1/ckpt"),
        ("/tmp/torchinductor_mallory/ab", "/tmp/torchinductor_user1/ab"),
        ("TRAINBOX-17.lab.internal:29500", "host1:29500"),
        (
            "(WorkerDict pid=1, ip=10.1.2.3) at 10.1.2.4:6379 and 10.1.2.3",
            "(WorkerDict pid=1, ip=ip1) at ip2:6379 and ip1",
        ),
        ("tcp://172.16.0.9:5000", "tcp://ip1:5000"),
        ("fe80::1ff:fe23:4567:890a on eth0, 02:42:ac:11:00:02", "ip1 on eth0, mac1"),
        ("Author: Carol <carol@example.org>", "Author: Carol <mail1>"),
    ],
)
def test_who_and_where(text: str, shown: str) -> None:
    found = names()
    assert found.text(text) == shown
    assert found.text(shown) == shown


def test_a_name_that_is_seen_once_is_known_everywhere() -> None:
    text = (
        "/home/alice/verl/x.py\nalice@gpu-node-17:~$\nwandb: Currently logged in as: alice.liddell (team)\n"
        "on node gpu-node-17, owner alice; actions/checkout@v4 on node 3, on host cpu\n"
    )
    found = names()
    found.learn([text])
    assert found.text(text) == (
        "/home/user1/verl/x.py\nuser1@host1:~$\nwandb: Currently logged in as: user2 (team)\n"
        "on node host1, owner user1; actions/checkout@v4 on node 3, on host cpu\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-curand-cu12==10.3.9.90 nvidia-cublas-cu12 12.8.4.1 cuDNN 9.10.2.21 v1.2.3.4",
        "http://127.0.0.1:8265 0.0.0.0:8000 255.255.255.0 localhost",
        "root cause in /root/verl, user of the gpu node; hallmallory",
        "std::vector<int> a::b c10::Error 12:34:56 torch.2.1.0",
        "git@github.com:volcengine/verl.git",
        "transformers @ file:///x user1 /home/user1/x",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert names().text(text) == text


def test_one_name_through_all_texts() -> None:
    found = names()
    assert [found.text("ip=10.9.9.9"), found.text("ip=10.8.8.8"), found.text("10.9.9.9:1234")] == [
        "ip=ip1",
        "ip=ip2",
        "ip1:1234",
    ]
    assert found.count["addresses"] == 3


def test_machines_of_remotes() -> None:
    assert machine_of("https://github.com/a/b") is None
    assert machine_of("git@gitlab.corp.net:a/b.git") == "gitlab.corp.net"
    assert machine_of("ssh://git@code.corp.net/a/b.git") == "code.corp.net"
    assert machine_of("/srv/git/verl") is None
