"""Which record repairs which finding: by checking again, not by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from patcher.analysis.findings import Finding, Report, Severity
from patcher.check.repairs import Step, attribute
from patcher.i18n import phrase

FILE = "verl/server.py"


def report(texts: Mapping[str, str], files: Collection[str]) -> Report:
    """A check whose findings are the lines with `bad`; those with `try` are guarded."""
    found = []
    for file in files:
        for number, line in enumerate(texts[file].splitlines(), start=1):
            if "bad" in line and not line.startswith("#"):
                severity: Severity = "guarded" if "try" in line else "break"
                symbol = f"vllm.{line.split()[-1]}"
                found.append(Finding(file, number, symbol, "symbol-removed", severity, phrase("gone")))
    return Report("0.7.0", {"vllm": "1"}, len(found), (), tuple(found))


def attributed(before: str, *steps: tuple[str, str]) -> tuple[dict[str, str | None], list[str], list[tuple[str, str]]]:
    """`repaired_by` by symbol, what is left, and what each record brings in."""
    base = {FILE: before}
    made: list[Step] = [(name, {FILE: text}) for name, text in steps]
    done = attribute(report(base, base), base, base, made, made[-1][1] if made else {}, report, report)
    culprits = {one.symbol: one.repaired_by for one in done.before.findings}
    new = [(record, one.symbol) for record, one in done.introduced]
    return culprits, [one.symbol for one in done.after.findings], new


def test_the_record_that_changes_the_line_repairs_it() -> None:
    before = "top\nuse bad1\nmiddle\nuse bad2\n"
    one = "top\n# use bad1\nuse good\nmiddle\nuse bad2\n"
    both = "top\n# use bad1\nuse good\nmiddle\n# use bad2\nuse fine\n"
    culprits, left, new = attributed(before, ("first", one), ("second", both))
    assert culprits == {"vllm.bad1": "first", "vllm.bad2": "second"}
    assert (left, new) == ([], [])


def test_what_stays_has_no_repair() -> None:
    before = "use bad1\nuse bad2\n"
    culprits, left, _ = attributed(before, ("first", "use good\nuse bad2\n"))
    assert culprits == {"vllm.bad1": "first", "vllm.bad2": None}
    assert left == ["vllm.bad2"]


def test_a_line_that_two_records_change_is_laid_to_the_one_that_took_the_finding_away() -> None:
    before, moved, good = "use bad1\n", "use more of bad1\n", "use good\n"
    assert attributed(before, ("touches", moved), ("repairs", good))[0] == {"vllm.bad1": "repairs"}
    assert attributed(before, ("repairs", "use nice\n"), ("touches", good))[0] == {"vllm.bad1": "repairs"}


def test_a_repair_that_a_later_record_undoes_is_none() -> None:
    culprits, left, _ = attributed("use bad1\n", ("repairs", "use good\n"), ("undoes", "use bad1\n"))
    assert culprits == {"vllm.bad1": None}
    assert left == ["vllm.bad1"]


def test_a_guard_counts_as_a_repair() -> None:
    assert attributed("use bad1\n", ("guards", "try bad1\n"))[0] == {"vllm.bad1": "guards"}


def test_of_two_alike_only_the_one_that_is_gone_is_repaired() -> None:
    base = {FILE: "use bad1\nsame\nuse bad1\n"}
    after = {FILE: "use bad1\nsame\nuse good\n"}
    done = attribute(report(base, base), base, base, [("second", after)], after, report, report)
    assert [one.repaired_by for one in done.before.findings] == [None, "second"]


def test_a_record_that_breaks_something_is_named() -> None:
    _, left, new = attributed("use good\n", ("fine", "use nice\n"), ("clumsy", "use nice\nuse bad9\n"))
    assert left == ["vllm.bad9"]
    assert new == [("clumsy", "vllm.bad9")]
