"""Several places are watched as one: what is done on any of them counts."""

from __future__ import annotations

from typing import Any

from patcher.watch.run_state import UsageHistory
from patcher.watch.watcher import combine_usage


def look(pid: int, cpu: float) -> dict[str, Any]:
    used = {"cpu": cpu, "memory": 1 << 20, "disk": 0, "called": 0}
    return {"at": 5.0, "processes": [{"pid": pid, "start": 1, "name": "python", "system": False, **used}], "gpus": None}


def test_processes_of_the_same_number_are_told_apart_by_their_host() -> None:
    pulses = UsageHistory()
    pulses.take(combine_usage([look(7, 0), look(7, 0)], ["a", "b"]) | {"at": 0.0})
    found = pulses.take(combine_usage([look(7, 0), look(7, 9)], ["a", "b"]) | {"at": 10.0})
    assert found.busy == (("b", 7),)
    assert not found.still
    assert found.processes == 2
