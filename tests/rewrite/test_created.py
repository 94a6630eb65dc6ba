"""A file that a record makes: where its marker stands, and what counts as the same file."""

from __future__ import annotations

import json

import pytest
import yaml

from patcher.i18n import show
from patcher.plan.replay import Workspace
from patcher.records.model import Record, When
from patcher.rewrite import create_file, markers_of_edit, rewrite
from patcher.rewrite.edits import CreateFile, Mark, Style
from patcher.rewrite.in_words import in_words
from patcher.rewrite.outcome import AlreadyDone, OtherFile, Rewritten

MARK = Mark("rec")
LOG = '"""Flags."""\n\nimport os\n\nFLAGS = os.environ\n'


def made(file: str, content: str, style: Style = "comment") -> str:
    edit = CreateFile(file=file, content=content)
    outcome = create_file(edit, Mark("rec", style=style))
    again = rewrite(outcome.source, edit, MARK)
    assert isinstance(again, AlreadyDone), again
    assert isinstance(rewrite(content, edit, MARK), AlreadyDone)
    return outcome.source


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("verl/log.py", LOG, f"# Uky[rec]\n{LOG}"),
        ("verl/__init__.py", "", "# Uky[rec]\n"),
        ("verl/main.py", "#!/usr/bin/env python\nx = 1\n", "#!/usr/bin/env python\n# Uky[rec]\nx = 1\n"),
        ("verl/a.py", "# -*- coding: utf-8 -*-\nx = 1", "# -*- coding: utf-8 -*-\n# Uky[rec]\nx = 1"),
        ("verl/b.py", "#!/bin/python\n# coding: utf-8", "#!/bin/python\n# coding: utf-8\n# Uky[rec]\n"),
        ("run.sh", "#!/bin/bash\nset -e\n", "#!/bin/bash\n# Uky[rec]\nset -e\n"),
        ("a.yaml", "a: 1\n", "# Uky[rec]\na: 1\n"),
        ("a.toml", "a = 1\n", "# Uky[rec]\na = 1\n"),
        ("requirements-own.txt", "vllm>=0.12\n", "# Uky[rec]\nvllm>=0.12\n"),
        ("a.json", '{"a": 1}\n', '{"a": 1}\n'),
        ("prompt.txt", "# a heading\n", "# a heading\n"),
        ("broken.yaml", "a: [1\n", "a: [1\n"),
    ],
)
@pytest.mark.parametrize("style", ["comment", "clean"])
def test_the_marker_is_a_comment_at_the_top(file: str, content: str, expected: str, style: Style) -> None:
    assert made(file, content, style) == expected


def test_what_reads_the_file_reads_the_same() -> None:
    text = "%YAML 1.2\n---\na: 1\n"
    assert [*yaml.safe_load_all(made("a.yaml", text))] == [*yaml.safe_load_all(text)]
    assert json.loads(made("a.json", "[1]\n")) == [1]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (LOG, False),
        (LOG.replace("\n", "\r\n"), False),
        ("\ufeff" + LOG, False),
        (LOG.rstrip("\n"), False),
        (LOG.replace("import os\n", "import os  # uky\n# uky: why\n"), True),
    ],
)
def test_a_file_of_a_hand_counts_if_it_differs_in_markers_alone(text: str, marked: bool) -> None:
    edit = CreateFile(file="verl/log.py", content=LOG)
    outcome = rewrite(text, edit, MARK)
    assert isinstance(outcome, AlreadyDone)
    assert outcome.marked is marked
    assert markers_of_edit(text, edit, "Uky") == (frozenset({3, 4}) if marked else frozenset())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("x = 1\n", 1),
        (LOG.replace("FLAGS", "OTHER"), 5),
        (LOG + "more = 1\n", 6),
        (LOG.removesuffix("FLAGS = os.environ\n"), 4),
        ("# Uky[rec]\n" + LOG.replace("import os", "import sys"), 4),
    ],
)
def test_any_other_file_is_told_with_the_line(text: str, line: int) -> None:
    edit = CreateFile(file="verl/log.py", content=LOG)
    assert rewrite(text, edit, MARK) == OtherFile(line)
    assert markers_of_edit(text, edit, "Uky") == frozenset()


def record(*edits: CreateFile) -> Record:
    return Record("rec", "t", "r", "fork-only", When(), edits)


def test_a_record_that_cannot_make_all_of_its_files_makes_none() -> None:
    edits = (CreateFile(file="verl/one.py", content="x = 1\n"), CreateFile(file="verl/two.py", content="x = 2\n"))
    workspace = Workspace({"verl/two.py": "x = 3\n"}, "Uky", "comment")
    done = workspace.replay(record(*edits), lambda _: True)
    assert not done.made
    assert workspace.texts == {"verl/two.py": "x = 3\n"}
    assert [type(one.outcome) for one in done.results] == [Rewritten, OtherFile]


def test_a_file_may_import_what_comes_with_it_and_nothing_else_that_is_not_there() -> None:
    one = CreateFile(file="verl/flags/one.py", content="from verl.flags import two\nfrom verl.flags.two import x\n")
    two = CreateFile(file="verl/flags/two.py", content="x = 2\n")
    start = CreateFile(file="verl/flags/__init__.py", content="")
    for edits, fine in (((one, two, start), True), ((one, start), False)):
        workspace = Workspace({}, "Uky", "comment", tree_has=lambda _: False)
        assert workspace.replay(record(*edits), lambda _: True).made is fine


def test_it_is_told_in_words() -> None:
    edit = CreateFile(file="verl/log.py", content=LOG)
    assert (show(in_words(edit), "en"), show(in_words(edit), "zh")) == (
        "make this file, of 5 lines",
        "创建此文件，共 5 行",
    )
