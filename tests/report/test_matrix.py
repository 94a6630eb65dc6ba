"""The matrix as text, as JSON and as a page's text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from patcher.check.matrix import Matrix
from patcher.i18n import phrase
from patcher.records.load import load
from patcher.report.matrix import mark, mark_as_is, matrix_json, matrix_report, missing_lines, spans, totals
from patcher.report.matrix_page import matrix_page
from patcher.session.session import Session
from patcher.terminal.document import print_report
from tests.report.matrices import CONFIG, HELPER, HOSTILE, METHOD, cell, finding, sample

if TYPE_CHECKING:
    import pytest


def test_the_text_has_a_line_for_each_span_of_releases_that_come_to_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    print_report(matrix_report(sample(), Session()))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["vllm", "verl", "0.6.1", "verl", "0.7.0", "verl", "0.8.0"]
    assert lines[1:6] == [
        ["0.12.0", "ok", "ok", "ok"],
        ["0.14.0", "+1", "+1", "ok"],
        ["0.18.0", "x1", "+2", "ok"],
        ["0.19.0", "–", "–", "–"],
        ["0.20.2", "x1", "+2", "ok"],
    ]
    assert ["vllm", "0.19.0", "is", "left", "out:"] in [line[:5] for line in lines]
    assert str(totals(sample())) == "12 pairs: 6 work as they are, 4 with records, 2 break"


def test_neighbours_are_put_together_by_the_marks_that_are_shown() -> None:
    shown = {"1": (), "2": (HELPER,), "3": (CONFIG,), "4": (CONFIG, HELPER), "5": (METHOD, CONFIG)}
    cells = {("0.7.0", release): cell("0.7.0", release, *found) for release, found in shown.items()}
    matrix = Matrix("vllm", ("0.7.0",), ("1", "2", "3", "4", "5"), cells)
    assert [span.shown for span in spans(matrix, mark)] == ["1 – 2", "3 – 4", "5"]
    assert [mark_as_is(span.cells[0]) for span in spans(matrix, mark_as_is)] == ["ok", "x1", "x2"]


def test_each_pair_of_the_json_has_the_shape_of_a_check() -> None:
    found = json.loads(json.dumps(matrix_json(sample())))
    assert found["package"] == "vllm"
    assert found["missing"] == [{"name": "vllm", "version": "0.19.0", "reason": "no release of vllm was found"}]
    pairs = {(pair["verl"], pair["against"]["vllm"]): pair for pair in found["pairs"]}
    assert len(pairs) == 12
    pair = pairs["0.6.1", "0.18.0"]
    assert {"verl", "against", "uses", "unresolved", "findings"} <= set(pair)
    assert (pair["state"], pair["breaks"], pair["breaks_left"]) == ("breaks", 3, 1)
    assert [one["since"] for one in pair["findings"]] == ["0.14.0", "0.18.0", "0.18.0"]
    assert pairs["0.7.0", "0.20.2"]["records"] == ["vllm-run-method", "vllm-worker-wrapper-config"]
    assert pairs["0.8.0", "0.12.0"]["state"] == "works"


def test_releases_that_could_not_be_had_are_told_in_chinese_too() -> None:
    assert missing_lines(sample(), "zh") == ["未包括 vllm 0.19.0：没有找到 vllm 的任何发行版"]


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(matrix: Matrix) -> str:
    return matrix_page(matrix, load(), command="uky-patch check", date="2026-11-20", lang="en")


def test_names_cannot_become_markup() -> None:
    nasty = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    odd = Matrix(
        nasty,
        (nasty,),
        (nasty,),
        {
            (nasty, nasty): cell(
                nasty, nasty, finding(nasty, file=nasty, suggestion=phrase("since {release}", release=nasty))
            )
        },
    )
    for text in (page(sample()), page(odd)):
        elements = Elements(text).found
        assert [tag for tag, _ in elements].count("script") == 2
        assert not [tag for tag, _ in elements if tag in ("img", "iframe", "object", "base", "form")]
        assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
        assert text.count("</script>") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page(sample()), re.DOTALL)
    assert data is not None
    assert HOSTILE in json.loads(data[1])["strings"]


def test_the_page_names_no_other_file_and_forbids_to_fetch_any() -> None:
    text = page(sample())
    policy = next(a["content"] for tag, a in Elements(text).found if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.findall(r"https?://", text)
    links = [a.get("src") or a.get("href") for tag, a in Elements(text).found if tag in ("script", "link", "a")]
    assert set(links) <= {None, "data:,"}


def test_a_page_of_320_cells_stays_small() -> None:
    verl, releases = [f"0.{n}.0" for n in range(8)], [f"0.{n}.0" for n in range(40)]
    symbol, file = "vllm.some.longer.module.name.Class{}.method", "verl/a/b/file{}.py"
    findings = [
        finding(symbol.format(n), "optional" if n % 3 else "break", line=n, file=file.format(n % 20)) for n in range(60)
    ]
    cells = {(v, r): replace(cell(v, r, *findings), verl=v) for v in verl for r in releases}
    text = page(Matrix("vllm", tuple(verl), tuple(releases), cells))
    assert len(text.encode()) < 400_000
    assert text.count("Class59.method") <= 2 + len(verl)
