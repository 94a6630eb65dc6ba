"""Deep or odd Python costs its file a finding, never the command."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.packages.releases import wheel
from patcher.worktree.python import DEEPEST, UnreadableError, parse
from tests.bounds.conftest import Done
from tests.bounds.hostile_python import readable, unreadable
from tests.lanes import one_in

Uky = Callable[..., Done]
_SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"


@pytest.mark.parametrize("name", [name for name in unreadable() if name != "latin"])
def test_what_is_refused_says_why_and_where(name: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse(unreadable()[name])
    assert caught.value.line >= 1
    assert caught.value.msg


@pytest.mark.parametrize("name", ["sum", "attributes", "short_sum", "few_elifs", "calls_with_commas"])
def test_the_line_is_that_of_the_deep_statement(name: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse(b"x = 1\n" * 40 + unreadable()[name])
    assert caught.value.line > 40


@pytest.mark.parametrize("name", readable())
def test_what_is_odd_is_parsed(name: str) -> None:
    parse(readable()[name])


def test_depth_counts_statements_and_expressions_together() -> None:
    for levels in (DEEPEST // 2, DEEPEST + 10):
        text = "".join(" " * n + "if a:\n" for n in range(60)) + " " * 60 + "x = " + "-" * (levels - 60) + "1\n"
        if levels > DEEPEST:
            with pytest.raises(UnreadableError):
                parse(text)
        else:
            parse(text)


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_check_ends_on_a_tree_of_them(uky: Uky, tree: Path, vllm: Path, part: int) -> None:
    """On each of them, or on every sixth."""
    unread = dict(list(unreadable().items())[::part])
    files = {**dict(list(readable().items())[::part]), **unread}
    for name, content in files.items():
        (tree / f"verl/odd/{name}.py").write_bytes(content)
    began = time.monotonic()
    done = uky("check", "--against", f"vllm={vllm}", "--no-since")
    assert done.code == 1
    named = {Path(one["file"]).stem: one for one in done.told["unreadable"]}
    assert named.keys() >= unread.keys()
    assert not named.keys() & (readable().keys() - {"attributes_again", "called_again", "items_again"})
    assert all(one["line"] >= 1 for one in named.values())
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("size", [300, 600])
def test_long_chains_are_undecided_and_not_wrong(uky: Uky, tree: Path, vllm: Path, size: int) -> None:
    chain = "".join(f"class K{n + 1}(K{n}): pass\n" for n in range(size))
    last = f"K{size}(model='a').generate('b')\nK{size}(model='a').gone()\nK3(model='a').gone()\n"
    (tree / "verl/odd/chain.py").write_text(f"from vllm import LLM\nclass K0(LLM): pass\n{chain}{last}")
    done = uky("check", "--against", f"vllm={vllm}", "--no-since")
    lines = {one["line"] for one in done.told["findings"]}
    assert size + 5 in lines  # K3().gone() is broken, and found to be.
    assert size + 3 not in lines
    assert any("nests too deeply" in one["reason"] for one in done.told["undecided"])


ODD = ["sum", "ifs", "null", "elifs", "few_choices", "large", "encoding", "decorator"]
LOOKING = [["status"], ["apply", "--dry-run"], ["verify"]]


@pytest.mark.parametrize(("name", "command"), one_in(4, [(name, command) for name in ODD for command in LOOKING]))
@pytest.mark.network
def test_a_file_that_records_name(uky: Uky, tmp_path: Path, name: str, command: list[str]) -> None:
    import shutil

    root = tmp_path / "fork"
    shutil.copytree(wheel("verl", "0.6.1") / "verl", root / "verl")
    (root / _SERVER).write_bytes(unreadable()[name])
    assumed = ["--assume", "vllm==0.20.2", "--assume", "transformers==4.57.6", "--assume", "flash-attn==none"]
    done = uky(*assumed, *command, root=root)
    assert done.code in (1, 3)
    assert "Traceback" not in done.err
