"""Errors that libraries and installers tell on a line of their own: the root where only an end follows."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnosed import TRACEBACK, symptom
from tests.diagnose.test_other_programs import SHIPPED, diagnosed, root, sentence

NCCL = "node7:81:93 [0] misc/socket.cc:483 NCCL WARN "
NOISE = "".join(f"node7:81:93 [0] NCCL INFO Channel {at:02}/32 : 0 1 2 3\n" for at in range(60))
ABORTED = "bash: line 1:    81 Aborted                 python train.py\n"
SIGNAL = (
    "[node7:00081] *** Process received signal ***\n[node7:00081] Signal: Aborted (6)\n"
    "[node7:00081] Signal code:  (-6)\n"
    "[node7:00081] *** End of error message ***\n"
)
ENDS = tuple(one for one in SHIPPED if one.id in ("native-abort", "child-failed", "gloo-peer-closed"))
INSTALL = tuple(one for one in SHIPPED if one.id in ("module-missing", "build-without-its-needs", "wheel-build-failed"))


def lacks(module: str) -> str:
    return f"{TRACEBACK}ModuleNotFoundError: No module named '{module}'\n"


@pytest.mark.parametrize("end", [ABORTED, SIGNAL, "srun: error: node7: task 0: Exited with exit code 1\n"])
@pytest.mark.parametrize(
    ("told", "words"),
    [
        (f"{NCCL}the kettle refused to boil", "NCCL WARN the kettle refused to boil"),
        ("[1,0]<stderr>:node7:81:93 [0] NCCL WARN no kettle is here", "NCCL WARN no kettle is here"),
        ("[gloo] connect to [10.0.0.2]:3123: Connection reset by peer", "connect to [10.0.0.2]:3123: Connection reset"),
        (
            "  what():  [enforce fail at /src/gloo/gloo/transport/tcp/pair.cc:12] ready. The kettle is cold",
            "ready. The kettle is cold",
        ),
        (
            "[node7][[312,1],0][btl_tcp_endpoint.c:803:complete] connect() to 10.0.0.2 failed: Connection timed out",
            "connect() to 10.0.0.2 failed: Connection timed out",
        ),
        ("[17000.12] [node7:81   :0]   ib_mlx5.h:600  UCX  ERROR the kettle leaks", "UCX ERROR the kettle leaks"),
    ],
)
def test_what_a_library_of_transport_told_comes_before_the_end(told: str, words: str, end: str) -> None:
    found = root(f"starting\n{told}\n{NOISE}{end}", ENDS)
    assert found.place.number == 2
    assert sentence(found).startswith(f"the program says: {words}")


def test_of_several_the_first_counts() -> None:
    assert root(f"starting\n{NCCL}one\n{NCCL}two\n{NOISE}{ABORTED}").place.number == 2


@pytest.mark.parametrize(
    "told", [f"{NCCL}connect was refused, retrying (1/34)", f'{NCCL}Missing "iommu=pt" from kernel command line']
)
def test_what_nccl_does_without_is_no_root(told: str) -> None:
    assert root(f"{told}\n{NOISE}{ABORTED}").place.number == 62


def test_an_exception_says_more_than_what_was_told() -> None:
    log = f"starting\n{NCCL}the kettle refused to boil\n{NOISE}{TRACEBACK}ValueError: no tea\n"
    assert root(log).place.text == "ValueError: no tea"


@pytest.mark.parametrize(
    ("behind", "verdict"), [("serving tea\n", "running"), ("INFO: Application shutdown complete.\n", "ok")]
)
def test_what_is_only_told_ends_no_run(behind: str, verdict: str) -> None:
    assert diagnosed(f"{NCCL}the kettle refused to boil\n{NOISE}{behind}", ENDS).verdict == verdict


def test_what_the_run_made_steps_after_is_not_the_root() -> None:
    steps = "".join(f"step {at}: {{'train/loss': 0.25}}\n" for at in range(1, 4))
    assert root(f"{NCCL}the kettle refused to boil\n{steps}{ABORTED}").place.number == 5


def test_a_stall_stays_one() -> None:
    stall = symptom("waits", "waiting for the kettle", kind="stall")
    assert diagnosed(f"{NCCL}the kettle refused to boil\nwaiting for the kettle\n", (stall,)).verdict != "failed"


def test_a_plugin_that_nccl_does_without_is_not_the_root() -> None:
    notice = "NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: No such file or directory"
    gave_up = "node7:81:92 [3] NCCL INFO bootstrap.cc:201 -> 2\n"
    assert root(f"node7:81:92 [3] {notice}\n{NCCL}the kettle refused to boil\n{gave_up}").place.number == 2


def test_the_error_of_nccl_is_told_with_the_warning_before_it_unless_it_repeats_that() -> None:
    error = f"{TRACEBACK}RuntimeError: NCCL error in: group.cpp:12, unhandled system error, NCCL version 2.20.5\n"
    warned = f"{NCCL}the kettle refused to boil\n{NOISE}"
    assert sentence(root(f"{warned}{error}")) == "before that, line 1 says: NCCL WARN the kettle refused to boil"
    assert "before that" not in sentence(root(f"{warned}{error}Last error:\nthe kettle refused to boil\n"))


def test_the_exception_of_c_plus_plus_that_aborted_a_process_is_told() -> None:
    log = f"starting\nterminate called after throwing an instance of 'tea::Cold'\n  what():  no kettle\n{ABORTED}"
    found = root(log, ENDS)
    assert found.id == "native-abort"
    assert sentence(found) == "the program says: tea::Cold: no kettle"


def test_a_rank_that_went_away_is_known_from_what_gloo_throws() -> None:
    log = (
        "terminate called after throwing an instance of 'gloo::IoException'\n"
        f"  what():  [/src/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:3123\n{SIGNAL}"
    )
    assert root(log, ENDS).id == "gloo-peer-closed"


def test_a_daemon_of_open_mpi_that_is_lost_ends_the_run() -> None:
    rule = "-" * 74
    lost = (
        f"{rule}\nORTE has lost communication with a remote daemon.\n\n  Remote daemon: [[312,0],1] on node node8\n\n"
    )
    assert (
        root(f"starting\n{lost}We will terminate the job.\nGood bye.\nOnce more.\nAnd again.\n{rule}\n").place.number
        == 3
    )


@pytest.mark.parametrize(
    "installer",
    [
        "CondaValueError: prefix already exists: /opt/envs/tea",
        "EnvironmentNameNotFound: Could not find conda environment: tea",
        "error: externally-managed-environment",
        "E: Unable to locate package python3-kettle-tools",
        "E: Package 'python3-kettle' has no installation candidate",
    ],
)
def test_what_an_installer_told_is_the_root_of_a_module_that_is_missing(installer: str) -> None:
    found = diagnosed(f"starting\n{installer}\n{lacks('kettle')}", INSTALL)
    assert found.root is not None
    assert found.root.place.number == 2
    assert "module-missing" in [one.id for one in found.findings]


def test_another_package_that_apt_lacks_or_an_installer_behind_it_is_not_the_root() -> None:
    assert root(f"E: Unable to locate package htop\n{lacks('kettle')}", INSTALL).id == "module-missing"
    assert root(f"{lacks('kettle')}error: externally-managed-environment\n", INSTALL).id == "module-missing"


def test_the_traceback_that_pip_quotes_tells_more_than_the_line_above_it() -> None:
    inner = "".join(f"      {line}\n" for line in lacks("torch").splitlines())
    log = f"  error: subprocess-exited-with-error\n  × python setup.py egg_info did not run successfully.\n{inner}"
    assert root(f"{log}      [end of output]\n{lacks('kettle')}", INSTALL).id == "build-without-its-needs"


def test_a_port_of_the_module_s_own_is_taken_where_the_reloader_starts_it_again() -> None:
    ports = tuple(one for one in SHIPPED if one.id in ("port-in-use", "reloader-runs-twice"))
    taken = f"{TRACEBACK}OSError: [Errno 98] Address already in use\n"
    assert root(f" * Debug mode: on\n * Restarting with stat\nloading\n{taken}", ports).id == "reloader-runs-twice"
    assert root(f"loading\n{taken}", ports).id == "port-in-use"


@pytest.mark.parametrize(
    ("kind", "message", "told"),
    [
        ("abort", "Brewing stopped, KettleError(room=3): no water from the tap", True),
        ("abort", "The kettle failed to boil in time", True),
        ("abort", "Brewing was cancelled by the guest", False),
        ("stop", "The kettle failed to boil in time", False),
    ],
)
def test_a_server_answers_that_it_has_aborted_a_request(kind: str, message: str, told: bool) -> None:
    answer = f'{{"text":"","meta_info":{{"id":"c5","finish_reason":{{"type":"{kind}","message":"{message}"'
    log = f'INFO: the server is ready\n{answer},"status_code":500}}}}}}\n'
    found = diagnosed(log, ())
    assert (found.verdict == "failed") == told
    assert [sentence(one) for one in found.findings] == ([f"the program says: {message}"] if told else [])
