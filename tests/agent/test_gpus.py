"""What nvidia-smi prints, and what is made of it: an H200 idle and busy as captured, the others by its manual."""

from __future__ import annotations

import pytest

from patcher.messages import english
from patcher.remote.agent.facts import Output, UnknownFact
from patcher.remote.agent.gpus import parse_driver, parse_gpus, parse_kernel_module, parse_processes

MIB = 1 << 20
UUID = "GPU-1d6e1ab9-6923-b0fb-5480-9af45f057536"


def out(text: str, code: int = 0, err: str = "") -> Output:
    return Output(code, text, err)


def test_one_gpu_that_nobody_uses() -> None:
    (gpu,) = parse_gpus(out(f"0, {UUID}, NVIDIA H200, 143771, 0, 0, Disabled, 580.159.04\n"))
    assert gpu == {
        "index": 0,
        "uuid": UUID,
        "name": "NVIDIA H200",
        "memory": 143771 * MIB,
        "used": 0,
        "use": 0,
        "mig": False,
        "driver": "580.159.04",
        "odd": "",
    }


def test_a_process_on_it() -> None:
    (process,) = parse_processes(out(f"{UUID}, 450, python3, 2566\n"))
    assert process == {"uuid": UUID, "pid": 450, "name": "python3", "memory": 2566 * MIB}


def test_eight_gpus_with_processes() -> None:
    lines = "".join(
        f"{n}, GPU-0000000{n}, NVIDIA H100 80GB HBM3, 81559, {70000 + n}, 98, Disabled, 550.54.15\n" for n in range(8)
    )
    gpus = parse_gpus(out(lines))
    assert [gpu["index"] for gpu in gpus] == list(range(8))
    assert [gpu["used"] // MIB for gpu in gpus] == [70000 + n for n in range(8)]
    apps = "".join(f"GPU-0000000{n}, {4100 + n}, ray::WorkerDict.actor_rollout_update, 69990\n" for n in range(8))
    assert [process["pid"] for process in parse_processes(out(apps))] == [4100 + n for n in range(8)]


def test_a_process_name_with_commas_and_one_of_another_container() -> None:
    answer = parse_processes(
        out(f"{UUID}, 7, python -c print(1, 2), 10\n{UUID}, 8, [Not Found], 20\n{UUID}, 9, -, [N/A]\n")
    )
    assert [(process["pid"], process["name"], process["memory"] // MIB) for process in answer] == [
        (7, "python -c print(1, 2)", 10),
        (8, "", 20),
        (9, "", 0),
    ]


def test_nobody_is_on_them() -> None:
    assert parse_processes(out("")) == []


def test_figures_that_this_user_may_not_see() -> None:
    (gpu,) = parse_gpus(
        out("0, GPU-1, NVIDIA A100-SXM4-40GB, 40960, [Insufficient Permissions], [N/A], Enabled, 535.161.08\n")
    )
    assert (gpu["used"], gpu["use"], gpu["mig"], gpu["odd"]) == (None, None, True, "Insufficient Permissions")


def test_a_gpu_that_shares_the_memory_of_the_machine() -> None:
    (gpu,) = parse_gpus(out("0, GPU-1, NVIDIA GB10, [N/A], [N/A], 3, [N/A], 580.95.05\n"))
    assert (gpu["memory"], gpu["used"], gpu["use"], gpu["mig"]) == (None, None, 3, False)


def test_a_gpu_that_is_lost_does_not_hide_the_others() -> None:
    text = (
        "0, GPU-1, NVIDIA H100 80GB HBM3, 81559, 0, 0, Disabled, 550.54.15\n"
        "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n"
    )
    assert [gpu["index"] for gpu in parse_gpus(out(text, 15))] == [0]


@pytest.mark.parametrize(
    "output",
    [
        out("No devices were found\n", 6),
        out("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n", 18),
        out(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.\n\n",
            9,
        ),
        out("Failed to initialize NVML: Insufficient Permissions\n", 4),
        out("", 127, "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open\n"),
    ],
)
def test_why_there_is_none_is_told_in_its_own_words(output: Output) -> None:
    with pytest.raises(UnknownFact) as untold:
        parse_gpus(output)
    answer = english(untold.value.reason)
    assert answer.startswith(f"nvidia-smi: {(output.out + output.err).splitlines()[0].strip()}")
    with pytest.raises(UnknownFact):
        parse_driver(output)


def test_silence_is_told_too() -> None:
    with pytest.raises(UnknownFact) as untold:
        parse_gpus(out("", 255))
    assert "255" in english(untold.value.reason)


@pytest.mark.parametrize(
    ("head", "driver", "cuda"),
    [
        ("| NVIDIA-SMI 580.159.04   Driver Version: 580.159.04     CUDA Version: 13.0     |", "580.159.04", "13.0"),
        ("| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |", "470.82.01", "11.4"),
        ("| NVIDIA-SMI 595.45   Driver Version: 595.45   CUDA UMD Version: 13.2     |", "595.45", "13.2"),
        ("| NVIDIA-SMI 390.157                Driver Version: 390.157                   |", "390.157", None),
        ("DRIVER version      : 580.159.04\nCUDA Version        : 13.0\n", "580.159.04", "13.0"),
    ],
)
def test_driver_and_its_cuda(head: str, driver: str, cuda: str | None) -> None:
    assert parse_driver(out(f"Sat Nov 21 01:12:20 2026\n+---+\n{head}\n")) == {"driver": driver, "cuda": cuda}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@)\n"
            "GCC version:  gcc version 15.3.0 (GCC)\n",
            "580.159.04",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed Oct 27 21:21:55 UTC 2021\n", "470.82.01"),
        ("", None),
    ],
)
def test_driver_by_the_kernel_module(text: str, version: str | None) -> None:
    assert parse_kernel_module(text) == version
