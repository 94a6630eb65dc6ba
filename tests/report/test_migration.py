"""MIGRATION.md is what the records and settings say, and says it rightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.i18n import show
from patcher.records.load import load
from patcher.records.model import Record, When
from patcher.records.settings import Reasons, Setting, load_settings
from patcher.report.documents import RECORD_DOCUMENTS, record_document
from patcher.rewrite.edits import AddArgument, Insert, MoveImport, RemoveArgument, RenameArgument, Replace
from patcher.rewrite.in_words import in_words

ROOT = Path(__file__).parents[2]
FILE = "verl/a.py"


@pytest.mark.parametrize("name", RECORD_DOCUMENTS)
def test_the_document_is_up_to_date(name: str) -> None:
    rendered = record_document(name, load(), load_settings())
    assert (ROOT / name).read_text(encoding="utf-8") == rendered, "run: make docs"


def setting(variable: str, **when: str) -> Setting:
    return Setting(variable.lower(), variable, "vllm", Reasons("why"), value="X", profiles=("debug",), when=when)


def test_the_table_has_a_column_for_each_span_of_vllm_versions() -> None:
    settings = [
        setting("VLLM_OLD", vllm="<0.11.1"),
        setting("VLLM_LATER", vllm=">=0.13,<0.15"),
        setting("VLLM_ALWAYS"),
        Setting("never", "VLLM_NEVER", "nothing", Reasons("nobody reads it")),
    ]
    text = record_document("MIGRATION.md", (), settings)
    assert "| Variable | vLLM <0.11.1 | vLLM >=0.11.1,<0.13 | vLLM >=0.13,<0.15 | vLLM >=0.15 |" in text
    assert "| `VLLM_OLD` | `X` | ignored | ignored | ignored |" in text
    assert "| `VLLM_LATER` | ignored | ignored | `X` | ignored |" in text
    assert "| `VLLM_ALWAYS` | `X` | `X` | `X` | `X` |" in text
    assert "| `VLLM_NEVER` | ignored | ignored | ignored | ignored |" in text


def test_a_record_is_told_with_its_conditions_files_and_whether_it_is_on() -> None:
    edits = (MoveImport(file=FILE, old="a.b.C", new="a.d.C"), RemoveArgument(file="verl/b.py", call="f", old="x"))
    when = When({"vllm": ">=0.12"}, absent=("flash-attn",))
    record = Record("one", "The title", "The reason.", "fork-only", when, edits, enabled=False, tags=("vllm",))
    text = record_document("MIGRATION.md", (record,), ())
    assert "#### The title\n\n`one` · off by default · for vllm >=0.12, without flash-attn\n\nThe reason.\n" in text
    assert (
        "- `verl/a.py`\n  - import `a.d.C` in place of `a.b.C`\n- `verl/b.py`\n  - no longer pass `x` to `f`\n" in text
    )


def test_subjects_have_an_order_and_what_is_off_comes_last() -> None:
    names = [
        ("b", "vllm", False),
        ("a", "instrument", False),
        ("c", "vllm", True),
        ("d", "numpy", True),
        ("e", "libcuda", True),
    ]
    records = [
        Record(name, name, "why", "fork-only", When(), (), tags=(tag,), enabled=enabled) for name, tag, enabled in names
    ]
    text = record_document("MIGRATION.md", records, ())
    headings = [line.lstrip("# ") for line in text.splitlines() if line.startswith(("### ", "#### "))]
    assert headings[:9] == [
        *("vLLM", "c", "b"),
        *("Triton and libcuda", "e"),
        *("numpy", "d"),
        *("Instruments for a hang (off by default)", "a"),
    ]


@pytest.mark.parametrize(
    ("edit", "english", "chinese"),
    [
        (
            RenameArgument(file=FILE, within="A.b", call="f.g", old="x", new="y", value="not z"),
            "pass `y=not z` in place of `x` to `f.g`, in `A.b`",
            "调用 `f.g` 时传 `y=not z`，不再传 `x`（`A.b` 内）",
        ),
        (
            AddArgument(file=FILE, verl="<0.7", call="f", new="y", value="1"),
            "pass `y=1` to `f` (verl `<0.7`)",
            "调用 `f` 时加传 `y=1`（verl `<0.7`）",
        ),
        (Replace(file=FILE, pattern="f($X)", replacement=""), "remove `f($X)`", "删除 `f($X)`"),
        (
            Insert(file=FILE, where="after", code="\nx = 1\n\ny = 2\n", anchor="z = $V"),
            "insert `x = 1` (+1) after `z = $V`",
            "在 `z = $V` 之后插入 `x = 1` (+1)",
        ),
        (Replace(file=FILE, pattern="'`'", replacement="x"), "put `x` in place of ``'`'``", "用 `x` 代替 ``'`'``"),
    ],
)
def test_an_edit_in_words(edit: Replace, english: str, chinese: str) -> None:
    assert show(in_words(edit), "en") == english
    assert show(in_words(edit), "zh") == chinese
