"""What loggers and launchers put before a line."""

from __future__ import annotations

import pytest

from patcher.logs.labels import strip_labels, time_of
from patcher.logs.lines import strip_prefix


@pytest.mark.parametrize(
    ("text", "bare", "level"),
    [
        ("ValueError: x", "ValueError: x", ""),
        ('  File "x.py", line 3', '  File "x.py", line 3', ""),
        ("ERROR 11-20 21:02:31 [core.py:1108] ValueError: x", "ValueError: x", "ERROR"),
        ("2026-01-11 10:00:00,123 ERROR run.py:12 -- x", "x", "ERROR"),
        ("[2026-01-11 10:00:10] root - INFO - step:3 - a:1", "step:3 - a:1", "INFO"),
        ("2026-01-11 10:00:10,5 - root - WARNING - x", "x", "WARNING"),
        ("2026-11-20 20:52:50,346\tINFO worker.py:2003 -- Started", "Started", "INFO"),
        ("[rank0]:[W1120 20:53:22.554555493 socket.cpp:207] x", "x", "WARNING"),
        ("W1120 20:53:35.078000 2462 torch/utils/cpp_extension.py:140] x", "x", "WARNING"),
        ("E0111 10:00:00.0 123 torch/distributed/elastic/api.py:874] failed", "failed", "ERROR"),
        ("[2026-11-20 20:59:11,123 E 1234 1234] (raylet) node_manager.cc:3064: x", "node_manager.cc:3064: x", "ERROR"),
        ("[2026-11-20 20:59:11,123 C 1234 1299] core_worker.cc:1020: x", "core_worker.cc:1020: x", "FATAL"),
        ("ERROR 12-26 16:20:28 multiproc_worker_utils.py:236] x went wrong", "x went wrong", "ERROR"),
        ("ERROR:root:x went wrong", "x went wrong", "ERROR"),
        ("2026-01-11 10:00:00.123 | ERROR    | verl.main:run:33 - x", "x", "ERROR"),
        ("[INFO|trainer.py:2405] 2026-01-11 10:00:00,123 >> ***** Running", "***** Running", "INFO"),
        ("[2026-01-11 10:00:10,000][verl][ERROR] - x", "x", "ERROR"),
        ("2026-01-11T10:00:00.123456789Z stderr F x", "x", ""),
        ("Jan 11 10:00:00 node1 python[123]: x", "x", ""),
        ("trainer-1  | x", "x", ""),
        ("3: x", "x", ""),
        ("[rank: 3] x", "x", ""),
        ("(Rank 3) x", "x", ""),
        ("Rank 3: x", "x", ""),
        ("[1,mpirank:3,algo-1]<stderr>:x", "x", ""),
        ("train-worker-3: x", "x", ""),
        ("192.0.2.2: [rank0]: x", "x", ""),
        ("stderr: x", "x", ""),
        ("2026-01-11 10:00:00.123 [7/train/3 (pid 81)] x", "x", ""),
        ("> ValueError: x", "ValueError: x", ""),
        (">       assert x", ">       assert x", ""),
        (">>> x", ">>> x", ""),
        ("2026-01-11 10:00:00,123::INFO: x", "x", "INFO"),
        ("2026-01-11 10:00:00,123::DEBUG: [stdout] ValueError: x", "ValueError: x", ""),
        ("2026-01-11 10:00:00,123::DEBUG: [stderr] ERROR:root:x went wrong", "x went wrong", "ERROR"),
        ("step-3 is done", "step-3 is done", ""),
        ("2026-01-11 10:00:00 错误 ValueError: 不行", "ValueError: 不行", "ERROR"),
        ("step:12 - actor/loss:1.0 - b:2", "step:12 - actor/loss:1.0 - b:2", ""),
        ("Error executing job with overrides: []", "Error executing job with overrides: []", ""),
        ("Loss: nan", "Loss: nan", ""),
    ],
)
def test_labels_come_off(text: str, bare: str, level: str) -> None:
    found = strip_labels(text)
    assert (found.text, found.level) == (bare, level)


def test_speakers_are_told_apart() -> None:
    told = strip_prefix(
        "\x1b[36m(vLLMHttpServer pid=9, ip=192.0.2.2)\x1b[0m (VllmWorker rank=0 pid=8) x [repeated 3x across cluster]"
    )
    assert (told.actors, told.text) == (("vLLMHttpServer", "VllmWorker rank=0"), "x")
    assert told.speaker == "(vLLMHttpServer pid=9, ip=192.0.2.2) (VllmWorker rank=0 pid=8)"
    assert strip_prefix("(raylet, ip=10.0.0.2) x").text == "x"
    assert strip_prefix("(autoscaler +1m2s) x").text == "x"
    assert strip_prefix("(see below) x").speaker == ""


@pytest.mark.parametrize(
    ("text", "actors", "bare"),
    [
        ("(head, rank=0, pid=81) x", ("head",), "x"),
        ("(worker1, rank=1, pid=82, ip=192.0.2.2) (Actor pid=9) x", ("worker1", "Actor"), "x"),
        ("(setup, pid=81)     y = 1", ("setup",), "    y = 1"),
        ("2026-01-11T10:00:00.123Z \x1b[36m(Worker pid=81)\x1b[0m x", ("Worker",), "2026-01-11T10:00:00.123Z x"),
        ("2026-01-11T10:00:00.123Z [36m(Worker pid=81)[0m x", ("Worker",), "2026-01-11T10:00:00.123Z x"),
        ("trainer-1  | 2026-01-11 10:00:00 (Worker pid=81) x", ("Worker",), "trainer-1  | 2026-01-11 10:00:00 x"),
        ("[1;36m(EngineCore pid=81)[0;0m x", ("EngineCore",), "x"),
        ("2026-01-11 10:00:00 the one (of pid=81) x", (), "2026-01-11 10:00:00 the one (of pid=81) x"),
    ],
)
def test_prefixes_of_other_launchers(text: str, actors: tuple[str, ...], bare: str) -> None:
    told = strip_prefix(text)
    assert (told.actors, told.text) == (actors, bare)
    assert "10:00" not in told.speaker


def test_times_in_any_form_are_in_order() -> None:
    lines = [
        "2026-11-20 20:52:50,346 INFO",
        "[2026-11-20 20:52:51] x",
        "INFO 11-20 20:52:52 [core.py:1]",
        "W1120 20:52:53.078000 2462 x",
        "[rank0]:[W1120 20:52:54.554555493 socket.cpp:207]",
        "2026-11-20T20:52:55.5Z x",
        "[2026/11/20 20:52:56] x",
    ]
    times = [time_of(line, 2026) for line in lines]
    assert None not in times
    assert times == sorted(times)  # type: ignore[type-var]
    assert [time_of("no time", 2026), time_of("11-40 20:52:52", 2026), time_of("v1.2026-11", 2026)] == [None] * 3


def test_a_container_before_a_process_is_no_part_of_the_line() -> None:
    found = strip_prefix("engine-1  | (APIServer pid=7)   File x")
    assert (found.text, found.actors) == ("  File x", ("APIServer",))


def test_what_kaggle_and_web_pages_put_around_a_line_is_no_part_of_it() -> None:
    assert strip_prefix("128.0s\t206\tRuntimeError: expected 55, got 38").text == "RuntimeError: expected 55, got 38"
    assert strip_prefix("1.5s to read 206 files").text == "1.5s to read 206 files"
    assert strip_prefix("[rank0]: **KeyError: 'layers.11'**").text == "[rank0]: KeyError: 'layers.11'"


def test_a_rank_that_pasting_has_moved_begins_its_line() -> None:
    assert strip_prefix("\t[rank1]: ValueError: odd").text == "[rank1]: ValueError: odd"


def test_a_line_that_a_logger_has_put_into_json_is_what_it_holds() -> None:
    held = '{"event": "KeyError: \'rows\' \\"quoted\\"", "timestamp": "2026-01-11T10:00:00Z", "service": "download"}'
    assert strip_prefix(held).text == "KeyError: 'rows' \"quoted\""
    assert strip_prefix(f"model-download  | {held}").text == "KeyError: 'rows' \"quoted\""
    assert strip_prefix('{"level": "error", "ts": 1.5, "msg": "it failed').text == "it failed"
    for text in ('{"error":{"message":"a bad request"}}', '{"name": "m", "rows": 3}'):
        assert strip_prefix(text).text == text


def test_a_prefix_of_ray_whose_actor_has_a_rank_in_its_name() -> None:
    told = strip_prefix("(EnvGroup(rank=1) pid=49603) RuntimeError: no device")
    assert (told.text, told.speaker) == ("RuntimeError: no device", "(EnvGroup(rank=1) pid=49603)")


def test_what_json_may_hold_does_not_get_out_of_its_line() -> None:
    assert (
        strip_prefix('{"message": "half \\ud83d of one\\nand \\u001b[31mred\\u001b[0m\\n"}').text
        == "half ? of one and red"
    )
    assert strip_prefix('{"message": "bad \\q escape"}').text == "bad \\q escape"
