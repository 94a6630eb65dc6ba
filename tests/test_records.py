"""Every shipped record against its own examples, and against those of all others."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from patcher.patching.reverting import revert
from patcher.plan.replay import Workspace
from patcher.records.load import load
from patcher.records.model import Example, Record
from patcher.rewrite import matches
from patcher.rewrite.outcome import AlreadyDone, AnchorAmbiguous, AnchorMissing, Unparseable
from patcher.session.session import Session
from patcher.tree import Change, Ledger, Tree
from patcher.worktree.hashing import digest_of
from patcher.worktree.ledger import AppliedRecord, PatchedFile

RECORDS = load()
EXAMPLES = [(record, example) for record in RECORDS for example in record.examples]
FAILURES = {"anchor-missing": AnchorMissing, "anchor-ambiguous": AnchorAmbiguous, "unparseable": Unparseable}


def name(value: object) -> str:
    return value.id if isinstance(value, Record) else value.name if isinstance(value, Example) else str(value)


def file_of(record: Record, example: Example) -> str:
    return example.file or record.files[0]


RELEASES = {
    "verl": ("0.4.0", "0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"),
    "vllm": tuple(f"0.{minor}.{micro}" for minor in range(10, 34) for micro in range(3)),
    "transformers": ("4.57.6", "5.0.0", "5.17.0"),
    "triton": ("3.4.0", "3.5.1", "3.6.0"),
}


def can_meet(one: Record, other: Record) -> bool:
    """Whether some releases need both records, and neither is said to come after the other."""
    if one.id in other.after or other.id in one.after:
        return False
    return all(
        any(specifier(one, name).contains(version) and specifier(other, name).contains(version) for version in versions)
        for name, versions in RELEASES.items()
    )


def specifier(record: Record, name: str) -> SpecifierSet:
    return SpecifierSet(record.when.versions.get(name, ""))


def make(record: Record, file: str, source: str) -> tuple[str, list[object]]:
    """The source after the record's edits of `file`, and their outcomes."""
    desk = Workspace({file: source}, "Uky", "comment")
    done = desk.replay(record, lambda edit: edit.file == file)
    return desk.texts[file], [result.outcome for result in done.results]


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_a_record_has_examples_of_success_refusal_and_failure(record: Record) -> None:
    assert any(example.after is not None for example in record.examples)
    assert any(example.untouched for example in record.examples)
    assert any(example.fails for example in record.examples)
    assert record.zh is not None


@pytest.mark.parametrize(("record", "example"), EXAMPLES, ids=name)
def test_an_example_shows_what_happens(record: Record, example: Example) -> None:
    if example.fails is not None:
        anchors_alone = replace(record, resolved=())
        made, outcomes = make(anchors_alone, file_of(record, example), example.before)
        assert any(isinstance(outcome, FAILURES[example.fails]) for outcome in outcomes), outcomes
        assert made == example.before
        return
    made, outcomes = make(record, file_of(record, example), example.before)
    if example.after is None:
        assert made == example.before
    else:
        assert made == example.after, outcomes
        ast.parse(made)


@pytest.mark.parametrize(("record", "example"), [pair for pair in EXAMPLES if pair[1].after is not None], ids=name)
def test_the_result_is_left_alone_and_marked(record: Record, example: Example) -> None:
    assert example.after is not None
    made, outcomes = make(record, file_of(record, example), example.after)
    assert made == example.after
    assert all(isinstance(outcome, AlreadyDone) for outcome in outcomes), outcomes
    new = set(example.after.splitlines()) - set(example.before.splitlines())
    assert any(f"# Uky[{record.id}]" in line for line in new)


@pytest.mark.parametrize("record", [record for record in RECORDS if record.resolved], ids=name)
def test_upstreams_own_fix_is_not_seen_in_what_needs_the_record(record: Record) -> None:
    for example in record.examples:
        if example.after is not None:
            assert not any(matches(example.before, pattern) for pattern in record.resolved), example.name


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_a_record_leaves_the_examples_of_others_alone(record: Record) -> None:
    for other, example in EXAMPLES:
        file = file_of(other, example)
        if other.id == record.id or file not in record.files or not can_meet(record, other):
            continue
        for source in filter(None, (example.before, example.after)):
            made, _ = make(record, file, source)
            assert made == source, f"{record.id} changes {example.name!r} of {other.id}"


@pytest.mark.parametrize(("record", "example"), [pair for pair in EXAMPLES if pair[1].after is not None], ids=name)
def test_a_revert_gives_the_example_back(record: Record, example: Example, tmp_path: Path) -> None:
    assert example.after is not None
    file = file_of(record, example)
    (tmp_path / "verl/version").mkdir(parents=True)
    (tmp_path / "verl/version/version").write_text("0.6.1\n")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(example.before)
    tree = Tree.open(tmp_path)
    before, after = digest_of(example.before.encode()), example.after.encode()
    ledger = Ledger(
        {file: PatchedFile(before, digest_of(after), (record.id,))}, {record.id: AppliedRecord(record.source)}
    )
    with tree.transaction("apply") as transaction:
        transaction.commit([Change(file, before, after)], ledger)
    assert (tmp_path / file).read_text() == example.after
    assert not revert(Session(root_option=tmp_path), frozenset(), dry_run=False).failed
    assert (tmp_path / file).read_text() == example.before
    assert not (tmp_path / ".uky-patch").exists()
