"""A record that finds no place, or only some of them, on a tree of which `check` knows more."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher import api
from patcher.packages.releases import sources

RECORD = """
id = "toy"
title = "Do not pass the old argument"
reason = "vLLM 0.32.0 removed it."
lifetime = "until-upstream"
repairs = ["vllm.v1.engine.async_llm.AsyncLLM.pause_generation(wait_for_inflight_requests)"]
[when]
verl = ">=0.7"
vllm = ">=0.32"
[[edit]]
file = "verl/workers/server.py"
kind = "remove-argument"
call = "engine.pause_generation"
old = "wait_for_inflight_requests"
[[example]]
name = "before"
before = "engine.pause_generation(wait_for_inflight_requests=False)"
after = '''
engine.pause_generation(
    # wait_for_inflight_requests=False,  # Uky[toy]
)
'''
"""
CLASS = "from vllm.v1.engine.async_llm import AsyncLLM\n\n\nclass Server:\n    engine: AsyncLLM\n\n"
OLD = (
    f"{CLASS}    async def pause(self):\n        await self.engine.pause_generation(wait_for_inflight_requests=False)\n"
)
NEW = f"{CLASS}    async def pause(self):\n        await self.engine.pause_generation(mode='abort')\n"
OTHER_CALL = f"""{CLASS}    async def pause(self):
        stop = self.engine.pause_generation
        await stop(wait_for_inflight_requests=False)
"""
CAUGHT = f"""{CLASS}    async def pause(self):
        stop = self.engine.pause_generation
        try:
            await stop(wait_for_inflight_requests=False)
        except TypeError:
            await stop(mode="abort")
"""
HALF = f"""{CLASS}    async def pause(self):
        await self.engine.pause_generation(mode="abort")
        stop = self.engine.pause_generation
        await stop(wait_for_inflight_requests=False)
"""
BY_NAME = f"""{CLASS}    async def pause(self, names):
        for name in names:
            await getattr(self.engine, name)(**{{"wait_for_inflight_requests": False}})
"""
NOT_AT_ALL = f"{CLASS}    async def stop(self):\n        await self.engine.abort('1')\n"


def outcome(root: Path, vllm: str = "0.33.0", **texts: str) -> tuple[str, str]:
    """Of the record on a tree with these files below verl/workers."""
    if vllm == "0.33.0":
        sources("vllm", vllm)
    files = {f"verl/{name}/__init__.py": "" for name in ("trainer", "utils", "workers")}
    files |= {
        "verl/__init__.py": "",
        "verl/protocol.py": "",
        "verl/version/version": "0.7.1",
        "records/toy.toml": RECORD,
    }
    files |= {f"verl/workers/{name}.py": text for name, text in texts.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assume = {"vllm": vllm, "torch": "2.11.0"}
    done = api.plan(root, assume=assume, patches=[root / "records"], ids=["toy"])
    return next((one.kind, one.detail) for one in done.records if one.id == "toy")


def test_it_is_made_where_it_finds_its_place(tmp_path: Path) -> None:
    assert outcome(tmp_path, server=OLD)[0] == "pending"


@pytest.mark.parametrize("text", [NOT_AT_ALL, CAUGHT, ""], ids=["no such call", "the error is caught", "an empty file"])
def test_it_is_not_needed_where_check_finds_nothing_of_what_it_repairs(tmp_path: Path, text: str) -> None:
    assert outcome(tmp_path, server=text) == (
        "resolved",
        "not needed here: check finds nothing of what the record repairs, this fork handles it itself",
    )


def test_a_file_that_the_fork_has_taken_out_is_not_missed(tmp_path: Path) -> None:
    assert outcome(tmp_path, engine=NOT_AT_ALL)[0] == "resolved"


@pytest.mark.parametrize(
    "texts",
    [{"server": OTHER_CALL}, {"server": NOT_AT_ALL, "moved": OLD}, {"server": BY_NAME}],
    ids=["called by another name", "in another file", "by a name that is computed"],
)
def test_it_is_missed_where_the_break_is_there_or_may_be(tmp_path: Path, texts: dict[str, str]) -> None:
    assert outcome(tmp_path, **texts)[0] in ("drifted", "missing-file")


def test_it_is_missed_where_nobody_can_look_into_the_release(tmp_path: Path) -> None:
    assert outcome(tmp_path, "0.99.0", server=NOT_AT_ALL)[0] == "drifted"


def test_what_was_edited_by_hand_in_part_is_not_called_adopted(tmp_path: Path) -> None:
    assert outcome(tmp_path, server=NEW) == ("adopted", "by hand, same effect")
    symbol = "vllm.v1.engine.async_llm.AsyncLLM.pause_generation(wait_for_inflight_requests)"
    assert outcome(tmp_path, server=HALF) == (
        "drifted",
        f"by hand in part: verl/workers/server.py:10 still has what the record repairs, {symbol}",
    )


def test_a_copy_elsewhere_that_the_plain_job_does_not_run_is_told_and_keeps_nothing_from_its_place(
    tmp_path: Path,
) -> None:
    kind, detail = outcome(tmp_path, server=NEW, copy=OLD)
    assert kind == "resolved"
    assert detail.startswith("this fork handles it in its own way; verl/workers/copy.py:8 still has ")
    assert detail.endswith(", which the plain job does not run")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import logging\n\nlogger = logging.getLogger(__file__)\n", "resolved"),
        ("from megatron.core.dist_checkpointing.strategies.base import async_calls\n", "drifted"),
    ],
    ids=["no queue of Megatron's", "the queue, and no logger to put another one behind"],
)
def test_megatron_is_looked_into_as_well(tmp_path: Path, text: str, expected: str) -> None:
    sources("megatron-core", "0.17.1")
    files = {f"verl/{name}/__init__.py": "" for name in ("trainer", "utils", "workers")}
    files |= {"verl/__init__.py": "", "verl/protocol.py": "", "verl/version/version": "0.7.1"}
    files |= {"verl/utils/checkpoint/megatron_checkpoint_manager.py": text, "verl/workers/megatron_workers.py": ""}
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    done = api.plan(tmp_path, assume={"megatron-core": "0.17.1", "torch": "2.11.0"}, ids=["megatron-async-calls"])
    assert next(one.kind for one in done.records if one.id == "megatron-async-calls") == expected
