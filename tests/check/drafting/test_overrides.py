"""An override whose base got a flag for answers that come later: what is drafted is run here."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from pathlib import Path
from textwrap import dedent

import pytest

from patcher.check.drafts.inputs import Draft
from tests.check.drafting.test_drafts import applied, drafts, write

OLD = {
    "vllm/base.py": """
        class Executor:
            def rpc(self, method, args=()):
                raise NotImplementedError

            def run(self, step):
                return self.rpc("run", (step,))[0]
    """
}
NEW = {
    "vllm/base.py": """
        from concurrent.futures import Future
        from typing import Literal, overload

        class Executor:
            @overload
            def rpc(self, method, args=(), non_block: Literal[False] = False) -> list[int]: ...
            @overload
            def rpc(self, method, args=(), non_block: Literal[True] = True) -> Future[list[int]]: ...
            def rpc(self, method, args=(), non_block: bool = False):
                raise NotImplementedError

            def run(self, step, non_block: bool = False):
                output = self.rpc("run", args=(step,), non_block=non_block)
                return output[0]

        class Core:
            def __init__(self, executor: Executor):
                self.executor = executor

            def step(self):
                return self.executor.run(3, non_block=True).result()
    """
}
OWN = """
    from vllm.base import Executor

    class Own(Executor):
        def rpc(self, method, args=()):
            outputs = [args[0] + 1, args[0] + 2]
            return outputs
"""


def drafted(tmp_path: Path, new: str = NEW["vllm/base.py"], own: str = OWN) -> tuple[Draft, ...]:
    return drafts(tmp_path, OLD, {"vllm/base.py": new}, {"a.py": own})


def test_the_override_hands_out_finished_futures_where_the_flag_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (draft,) = drafted(tmp_path)
    assert draft.id == "draft-vllm-executor-rpc-non-block-taken"
    made = applied(draft, {"a.py": OWN}, "a.py")
    place = write(tmp_path / "run", NEW)
    monkeypatch.syspath_prepend(str(place))
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    space: dict[str, object] = {}
    exec(compile(dedent(made), "a.py", "exec"), space)  # What is drafted is to work, not only to look right.
    own = space["Own"]()  # type: ignore[operator]
    assert own.rpc("run", (3,)) == [4, 5]
    later = own.run(3, non_block=True)
    assert isinstance(later, Future)
    assert later.result(timeout=1) == 4
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("-> Future[list[int]]", "-> list[int]"),
        ("return output[0]", "return output"),
        ("Literal[True] = True", "bool = True"),
    ],
    ids=["no futures", "the base hands out all", "no overloads"],
)
def test_nothing_is_drafted_where_the_base_does_not_say_what_the_flag_means(tmp_path: Path, was: str, now: str) -> None:
    assert was in NEW["vllm/base.py"]
    assert drafted(tmp_path, new=NEW["vllm/base.py"].replace(was, now)) == ()


@pytest.mark.parametrize("answer", ["return [args[0] + 1]", "return", "yield args[0]"])
def test_nothing_is_drafted_for_what_returns_no_name(tmp_path: Path, answer: str) -> None:
    assert drafted(tmp_path, own=OWN.replace("return outputs", answer)) == ()
