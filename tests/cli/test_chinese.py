"""In Chinese, whatever goes wrong is told in Chinese: English words stand in names, paths and commands alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.errors import TreeError
from patcher.i18n import show
from patcher.packages import probe
from patcher.tree import Tree
from tests.cli.conftest import Uky

WORD = r"(?<![\w./~$'-])[A-Za-z']+(?![\w./='(-])"
ENGLISH = re.compile(rf"{WORD}(?: {WORD})+|\b(?:the|is|be|must|not|cannot|no|to|of|or|and|in|was|mistakes?|missing)\b")
"""Two words in a row, or one that holds sentences together. A name, path, option or command is neither."""


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")


def english_in(text: str, *known: str) -> list[str]:
    """What of a text is English; `known` parts, such as paths, do not count."""
    for part in sorted(known, key=len, reverse=True):
        text = text.replace(part, "")
    return ENGLISH.findall(text)


def test_english_is_found() -> None:
    for text in ("无法 cannot be read", "vllm: is missing", "第 3 行 must", "/a/b.py: damaged by hand"):
        assert english_in(text)
    assert not english_in("请写明 uky-patch list --format json，verl/server.py 和 docs/records.md，vllm==0.20.2")


def settle(tree: Path, records: Path, case: str) -> list[str]:
    """Bring about a mistake; return the command that meets it."""
    match case:
        case "bad assume":
            return ["--assume", "vllm==newest", "status"]
        case "assume without a version":
            return ["--assume", "vllm", "status"]
        case "assume something else":
            return ["--assume", "requests==2.0", "status"]
        case "unknown record":
            return ["explain", "log-flg"]
        case "unknown tag":
            return ["apply", "--tag", "nosuch"]
        case "not applied":
            return ["revert", "log-flag"]
        case "bad record":
            text = (records / "log-flag.toml").read_text().replace("title =", "titel =", 1).replace('">=2"', '"two"')
            (records / "log-flag.toml").write_text(text + 'enabled = "no"\n')
            (records / "utils-moved.toml").write_text("id = \n")
            return ["status"]
        case "no such folder":
            return ["--patches", str(records / "nosuch"), "status"]
        case "records that wait for each other":
            text = (records / "log-flag.toml").read_text()
            (records / "log-flag.toml").write_text(text.replace("lifetime", 'after = ["log-flag"]\nlifetime', 1))
            return ["status"]
        case "bad setting of the fork":
            (tree / "uky-patch.toml").write_text('markr = "x"\nmarker = "a b"\nstyle = "loud"\n')
            return ["status"]
        case "setting of the fork in another encoding":
            (tree / "uky-patch.toml").write_bytes('marker = "改"\n'.encode("gbk"))
            return ["status"]
        case "no interpreter":
            return ["--python", str(tree / "nosuch"), "status"]
        case "damaged ledger":
            (tree / ".uky-patch").mkdir()
            (tree / ".uky-patch/ledger.json").write_text('{"format": 1, "files"')
            return ["status"]
        case "ledger of a newer version":
            (tree / ".uky-patch").mkdir()
            (tree / ".uky-patch/ledger.json").write_text('{"format": 9, "tool": "9.0"}')
            return ["status"]
        case "folder where a file should be":
            (tree / "verl/server.py").unlink()
            (tree / "verl/server.py").mkdir()
            return ["apply"]
    raise AssertionError(case)


CASES = {
    "bad assume": (2, "无法假定 vllm newest", ["newest"]),
    "assume without a version": (2, "包名==版本", []),
    "assume something else": (2, "不能为 requests 假定版本", ["requests"]),
    "unknown record": (2, "是否想写 log-flag", []),
    "unknown tag": (2, "没有记录带有标签 nosuch", ["nosuch"]),
    "not applied": (2, "没有应用 log-flag", []),
    "bad record": (4, "不是合法的 TOML：值无效", ["titel", "two", "true", "false"]),
    "no such folder": (4, "没有那个文件或目录", []),
    "records that wait for each other": (4, "记录不能排在自己之后", []),
    "bad setting of the fork": (4, "是否想写 marker", ["a b", "loud", "comment", "clean"]),
    "setting of the fork in another encoding": (4, "起始字节无效", []),
    "no interpreter": (5, "没有解释器", ["bin"]),
    "damaged ledger": (5, "此处应有分隔符“:”", ["ledger"]),
    "ledger of a newer version": (5, "由更新版本的 uky-patch（9.0）写入", ["ledger"]),
    "folder where a file should be": (5, "它不是普通文件", []),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake(uky: Uky, tree: Path, records: Path, case: str) -> None:
    code, told, names = CASES[case]
    answer = uky(*settle(tree, records, case), json=False)
    assert answer.code == code
    assert told in answer.err
    assert not english_in(answer.err, *names, str(tree), str(records))


def test_no_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(tmp_path), "status"]) == 2
    told = capsys.readouterr().err
    assert "不是 verl 代码树" in told
    assert not english_in(told, str(tmp_path), "__init__.py")


def test_a_revert_of_a_file_that_was_changed(uky: Uky, tree: Path) -> None:
    uky("apply")
    path = tree / "verl/server.py"
    path.write_text(path.read_text() + "x = 1\n")
    answer = uky("status", json=False)
    assert "verl/server.py 被改动或重新排版过；它所做的修改仍在" in answer.out
    assert not english_in(answer.out.partition("\n")[2], str(tree.parent), "Import Parser from its new home")
    path.write_text(path.read_text().replace("enable_log=", "enable="))
    answer = uky("revert", json=False)
    assert answer.code == 3
    assert "verl/server.py 又被改动过" in answer.out
    assert not english_in(answer.out.partition("\n")[2] + answer.err, str(tree.parent))


def test_a_tree_that_another_run_holds(uky: Uky, tree: Path) -> None:
    uky("apply")
    held = Tree.open(tree)
    with held.transaction("revert"), pytest.raises(TreeError) as caught, held.transaction("apply"):
        pass
    told = [show(part, "zh") for part in (caught.value.title, caught.value.cause, caught.value.advice)]
    assert "占用者：revert（" in told[1]
    host = told[1].partition("（")[2].partition(" ")[0]
    assert not english_in("\n".join(told), str(tree), host, "revert")


def test_what_is_odd_about_an_environment(
    uky: Uky, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "env/lib/python3.11/site-packages"
    (site / "vllm-0.20.2.dist-info").mkdir(parents=True)
    (site / "~orch").mkdir()
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/python").symlink_to(tmp_path / "gone")
    (tmp_path / "env/pyvenv.cfg").write_text("version = 3.11.9\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    answer = uky("status", json=False)
    notes = [line for line in answer.out.splitlines() if line.startswith("提示")]
    assert len(notes) == 3
    assert not english_in("\n".join(notes), str(tmp_path / "env"), "VIRTUAL_ENV", "~orch", "vllm-0.20.2.dist-info")
    assert all(str(problem).isascii() for problem in probe(None, tree).problems)


FAILURES: dict[str, Callable[[Path], object]] = {
    "a path out of the tree": lambda tree: Tree.open(tree).read("../x.py"),
    "a symlink out of the tree": lambda tree: Tree.open(tree).read("out/x.py"),
    "a lost pre-image": lambda tree: Tree.open(tree).pre_image("0" * 64),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_file_that_cannot_be_had(tree: Path, case: str) -> None:
    (tree / "out").symlink_to("/usr")
    with pytest.raises(TreeError) as caught:
        FAILURES[case](tree)
    error = caught.value
    for part in filter(None, (error.title, error.cause, error.advice)):
        assert not english_in(show(part, "zh"), "../x.py", "out/x.py", "/usr/x.py", ".uky-patch/originals/")
        assert str(part).isascii()


def test_programs_get_english(uky: Uky, tree: Path) -> None:
    uky("apply")
    (tree / "verl/server.py").write_text("x = 1\n")
    details = [record["detail"] for record in uky("revert").json["records"]]
    assert "verl/server.py was changed since the record was applied" in details
