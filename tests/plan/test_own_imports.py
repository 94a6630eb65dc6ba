"""A record whose edit would import something that the fork does not have is not made."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher import api
from patcher.plan.own_imports import AbsentName, absent_name, bound, may_be_in

RECORD = """
id = "toy"
title = "Take the helper from where it is now"
reason = "It moved."
lifetime = "until-upstream"
[when]
verl = "{spec}"
[[edit]]
file = "verl/workers/a.py"
{edit}
kind = "replace"
pattern = "from flash_attn import pad"
with = "from verl.utils.helper import pad"
[[example]]
name = "before"
before = "from flash_attn import pad"
after = '''
# from flash_attn import pad  # Uky[toy]
from verl.utils.helper import pad  # Uky[toy]
'''
"""


def planned(root: Path, *, helper: str | None, verl: str = "0.7.0", spec: str = ">=0.7", edit: str = "") -> api.Changes:
    files = {
        "verl/__init__.py": "",
        "verl/protocol.py": "",
        "verl/version/version": verl,
        "verl/trainer/__init__.py": "",
        "verl/utils/__init__.py": "",
        "verl/workers/__init__.py": "",
        "verl/workers/a.py": "from flash_attn import pad\n",
        "records/toy.toml": RECORD.format(spec=spec, edit=edit),
    }
    files |= {"verl/utils/helper.py": helper} if helper is not None else {}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return api.plan(root, assume={"vllm": "0.20.2", "torch": "2.11.0"}, patches=[root / "records"], ids=["toy"])


def outcome(done: api.Changes) -> tuple[str, str]:
    return next((one.kind, one.detail) for one in done.records if one.id == "toy")


def test_it_is_made_where_the_fork_has_the_module_and_the_name(tmp_path: Path) -> None:
    assert outcome(planned(tmp_path, helper="def pad(x): ...\n"))[0] == "pending"


@pytest.mark.parametrize("helper", [None, "def other(x): ...\n"], ids=["no module", "no such name"])
def test_it_fails_and_says_what_is_missing(tmp_path: Path, helper: str | None) -> None:
    done = planned(tmp_path, helper=helper)
    kind, detail = outcome(done)
    assert kind == "drifted"
    assert detail == "verl/workers/a.py: it would import verl.utils.helper.pad, which this tree does not have"
    assert not done.files


def test_what_a_module_computes_is_not_called_missing(tmp_path: Path) -> None:
    assert outcome(planned(tmp_path, helper="globals().update(read())\n"))[0] == "pending"


def test_where_the_version_leaves_open_whether_the_edit_is_meant_it_is_left_out(tmp_path: Path) -> None:
    done = planned(tmp_path, helper=None, verl="0.7.0.dev", spec=">=0.6", edit='verl = "<0.7"')
    assert outcome(done)[0] == "not-needed"
    assert not done.files


GUARDED = "try:\n    from verl.new import f\nexcept ImportError:\n    from verl.old import f\n"


@pytest.mark.parametrize(("there", "absent"), [("verl.new.f", None), ("verl.old.f", None), ("", "verl.old.f")])
def test_of_two_imports_one_behind_the_other_one_must_be_there(there: str, absent: str | None) -> None:
    found = absent_name(GUARDED, range(1, 5), lambda name: name == there)
    assert found == (AbsentName(4, absent) if absent else None)


def test_only_the_lines_that_the_edit_writes_count() -> None:
    assert absent_name("from verl.gone import f\nx = 1\n", [2], lambda _name: False) is None


USE = "from verl.utils import (\n    helper as tu,\n    other,\n)\n\ndef f(x):\n    return tu.pad(x)\n"


def missing_in(text: str, line: int) -> str | None:
    there = {"verl.utils.helper", "verl.utils.helper.known"}
    found = absent_name(text, [line], lambda name: name in there)
    return found.name if found else None


def test_a_name_of_an_imported_module_must_be_there() -> None:
    assert missing_in(USE, 7) == "verl.utils.helper.pad"
    assert missing_in(USE.replace("tu.pad", "tu.known"), 7) is None
    assert missing_in(USE, 6) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(x):", "def f(x, tu):"),
        ("def f(x):", "tu = found()\ndef f(x):"),
        ("    return tu.pad(x)", "    return tu.pad(x) if hasattr(tu, 'pad') else x"),
        ("    return tu.pad(x)", "    try: return tu.pad(x)\n    except AttributeError: return x"),
        ("from verl.utils", "from other.utils"),
    ],
)
def test_a_use_of_what_may_be_something_else_or_is_asked_for_is_not_called_missing(old: str, new: str) -> None:
    text = USE.replace(old, new)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "tu.pad" in one)
    assert missing_in(text, line) is None


@pytest.mark.parametrize(
    "text",
    [
        "def pad(x): ...\n",
        "try:\n    from a import pad\nexcept ImportError:\n    pad = None\n",
        "pad, unpad = both()\n",
        "from .all import *\n",
        "def __getattr__(name): ...\n",
        "def pad(:\n",
    ],
)
def test_a_module_that_may_have_a_name(text: str) -> None:
    assert may_be_in(bound(text), "pad")


@pytest.mark.parametrize("text", ["", "def padded(x): ...\n", "x = pad\n", "class A:\n    def pad(self): ...\n"])
def test_a_module_that_cannot_have_it(text: str) -> None:
    assert not may_be_in(bound(text), "pad")
