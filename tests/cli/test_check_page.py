"""`check --html`: the page of a fork, where it may be written, and that what it says to paste is right."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from patcher.cli.app import run
from tests.cli.conftest import MOVED, Answer, Uky
from tests.report.matrices import sample

TOKEN = "ghp_" + "q7Rk2mXw9LtB4vNz8CyD1sFh6JgP3aEu5oTi"
UPSTREAM = 'upstream = "https://github.com/volcengine/verl/pull/1"\n'


@pytest.fixture
def page_of(uky: Uky, sources: Path, trainer: None, tmp_path: Path) -> Callable[..., tuple[Answer, str]]:
    """Check the tree, and give the answer with the page's text."""

    def call(*arguments: str, json: bool = True) -> tuple[Answer, str]:
        file = tmp_path / "page.html"
        given = ("--against", f"vllm={sources}", "--no-since", "--html", str(file))
        answer = uky("check", *given, *arguments, json=json)
        return answer, file.read_text(encoding="utf-8") if file.is_file() else ""

    return call


class Page(HTMLParser):
    """A page's commands, its links, and its text without scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.links, self.ids, self.commands = "", [], set(), []
        self._quiet = self._command = False
        self.feed(text)

    text: str
    links: list[str | None]
    ids: set[str | None]
    commands: list[str]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._quiet = tag in ("script", "style")
        self._command = tag == "pre" and "class" not in given
        self.commands += [""] if self._command else []
        self.ids.add(given.get("id"))
        if tag == "a":
            self.links.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self._quiet, self._command = False, self._command and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._command:
            self.commands[-1] += data
        if not self._quiet:
            self.text += data


def test_a_fork_has_a_page_of_its_own(
    page_of: Callable[..., tuple[Answer, str]], records: Path, tmp_path: Path
) -> None:
    (records / "utils-moved.toml").write_text(MOVED.replace("[when]", UPSTREAM + "[when]", 1))
    answer, text = page_of()
    assert answer.code == 1
    assert answer.json["html"] == str(tmp_path / "page.html")
    assert [one["symbol"] for one in answer.json["findings"]] == ["vllm.utils.Parser"]
    page = Page(text)
    assert "verl 99.1 against vllm 2.1" in page.text
    assert page.text.index("apply repairs every break that was found: 1") < page.text.index("vllm.utils.Parser")
    for part in (
        "server.py:3",
        "repaired by",
        "Import Parser from its new home",
        "-from vllm.utils import Parser, get_uri",
    ):
        assert part in page.text
    assert "+from vllm.utils.parsers import Parser" in page.text
    assert "https://github.com/volcengine/verl/pull/1" in page.links
    inner = [link[1:] for link in page.links if link and link.startswith("#")]
    assert "record-utils-moved" in inner
    assert set(inner) <= page.ids


def test_people_are_told_where_the_page_is(page_of: Callable[..., tuple[Answer, str]], tmp_path: Path) -> None:
    answer, _ = page_of(json=False)
    assert answer.out.splitlines()[-1] == f"The page is written: {tmp_path / 'page.html'}"


def test_what_the_page_says_to_paste_leads_to_a_clean_check(
    page_of: Callable[..., tuple[Answer, str]],
    uky: Uky,
    sources: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("patcher.check.targets._released", lambda *_: sources / "vllm")
    monkeypatch.chdir(tmp_path)
    assert uky("check", "--against", "vllm==2.1", "--html", "page.html", "--no-since").code == 1
    (apply,) = Page((tmp_path / "page.html").read_text()).commands
    words = shlex.split(apply)
    assert words[0] == "uky-patch"
    assert words[-1] == "apply"
    assert run(words[1:]) == 0
    capsys.readouterr()
    assert page_of()[0].code == 0
    assert "No break was found" in Page((tmp_path / "page.html").read_text()).text


def test_sources_in_a_folder_are_no_release_to_assume(page_of: Callable[..., tuple[Answer, str]]) -> None:
    _, text = page_of()
    assert Page(text).commands == []


def test_drafts_are_on_the_page_with_what_they_repair(
    page_of: Callable[..., tuple[Answer, str]], records: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (records / "utils-moved.toml").unlink()
    _, text = page_of()
    (draft,) = Page(text).commands
    assert "--draft" in draft
    assert run(shlex.split(draft)[1:]) == 1
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    (file,) = (tmp_path / "drafts").glob("*.toml")
    assert file.read_text() in page.text
    assert f"draft-{file.stem}" in page.ids
    assert str(file) in page.text
    (proof,) = page.commands
    assert run(shlex.split(proof)[1:]) == 1
    capsys.readouterr()
    assert "apply repairs every break that was found: 1" in Page((tmp_path / "page.html").read_text()).text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere/page.html", "there is no folder"),
        ("folder", "directory"),
        ("link.html", "is a symlink"),
        ("notes.txt", "was not written by uky-patch"),
        ("pipe", "cannot be replaced"),
    ],
)
@pytest.mark.parametrize("matrix", [(), ("--matrix",)])
def test_nothing_but_an_earlier_page_is_replaced(
    uky: Uky, tmp_path: Path, name: str, told: str, matrix: tuple[str, ...]
) -> None:
    import os

    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "link.html").symlink_to(tmp_path / "notes.txt")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    answer = uky("check", *matrix, "--html", str(tmp_path / name))
    assert answer.code == 2
    assert answer.json.keys() == {"error"}
    assert told in answer.err
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


def test_an_earlier_page_is_replaced_without_asking(page_of: Callable[..., tuple[Answer, str]], tree: Path) -> None:
    _, before = page_of()
    (tree / "verl/server.py").write_text("x = 1\n")
    answer, after = page_of()
    assert answer.code == 0
    assert before != after
    assert "No break was found" in after


def test_no_secret_gets_into_the_page(page_of: Callable[..., tuple[Answer, str]], tree: Path) -> None:
    server = tree / "verl/server.py"
    server.write_text(server.read_text().replace("\nfrom verl", f'\nHUB = "{TOKEN}"\nfrom verl', 1))
    _, text = page_of()
    assert TOKEN not in text
    assert "HUB" in Page(text).text
    assert "***" in Page(text).text


def test_names_of_the_fork_are_text_and_control_characters_are_shown(
    page_of: Callable[..., tuple[Answer, str]], tree: Path
) -> None:
    name = "<script>alert(1)<\u202e.py"
    (tree / "verl" / name).write_text("from vllm.utils import Parser\n")
    answer, text = page_of()
    assert any(one["file"] == f"verl/{name}" for one in answer.json["findings"])
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "<script>alert(1)<\\u202e.py" in Page(text).text


def test_the_page_opens_in_the_language_of_the_reader(
    page_of: Callable[..., tuple[Answer, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    answer, text = page_of(json=False)
    assert '<html lang="zh-CN">' in text
    assert "<title>verl 99.1 对 vllm 2.1</title>" in text
    assert "网页已写入" in answer.out


def test_a_fork_with_400_findings_has_a_small_page(page_of: Callable[..., tuple[Answer, str]], tree: Path) -> None:
    names = [f"Name{number}" for number in range(10)]
    for number in range(40):
        lines = [f"from vllm.utils import {name}  # in the module number {number}\n" for name in names]
        (tree / f"verl/module{number:02}.py").write_text("".join(lines))
    answer, text = page_of()
    assert len(answer.json["findings"]) > 400
    assert len(text.encode()) < 1_000_000
    assert len(re.findall(r"<details[^>]* open>", text)) <= 10


def test_a_matrix_has_its_own_page(uky: Uky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patcher.check.matrix_run.survey_releases", lambda *_: sample())
    monkeypatch.chdir(tmp_path)
    answer = uky("check", "--matrix", "--html", "matrix.html")
    assert answer.code == 1
    assert answer.json["html"] == str(tmp_path / "matrix.html")
    assert len(answer.json["pairs"]) == 12
    assert 'role="grid"' in (tmp_path / "matrix.html").read_text()
