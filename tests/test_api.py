"""The calls for scripts: what they return, that they print nothing, that the examples of docs/api.md run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from patcher import api
from patcher.errors import UsageError
from patcher.packages.releases import wheel
from patcher.plan.outcome import FAILED, SETTLED
from patcher.session.session import Session
from tests.matrix.pairs import contents, surroundings
from tests.transcripts.documents import ROOT

ASSUME = surroundings("0.20.2")
PARSER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of verl 0.6.1, the files that records name, and the module that one of them imports."""
    tree = tmp_path_factory.mktemp("api") / "fork"
    release = wheel("verl", "0.6.1")
    named = {file for record in api.load_records() for file in record.files}
    for file in (*named, "verl/__init__.py", "verl/utils/npu_utils.py", "verl/version/version"):
        if (release / file).is_file():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(release / file, tree / file)
    return tree


@pytest.fixture
def copy(fork: Path, tmp_path: Path) -> Path:
    shutil.copytree(fork, tmp_path / "fork")
    return tmp_path / "fork"


def test_a_plan_writes_and_prints_nothing(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(copy)
    planned = api.plan(copy, assume=ASSUME)
    assert contents(copy) == before
    assert planned.files
    assert not planned.failed
    assert not planned.written
    assert planned.root == copy
    assert planned.versions["vllm"] == "0.20.2"
    assert all(file.before != file.after and file.diff.startswith(f"--- a/{file.path}\n") for file in planned.files)
    pending = [record for record in planned.records if record.kind == "pending"]
    assert all(record.places and record.detail and record.title for record in pending)
    assert capfd.readouterr() == ("", "")


def test_apply_writes_what_was_planned_and_revert_takes_it_back(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(copy)
    planned = api.plan(copy, assume=ASSUME)
    done = api.apply(copy, assume=ASSUME)
    assert set(done.written) == {file.path for file in planned.files}
    assert all((copy / file.path).read_text(encoding="utf-8") == file.after for file in planned.files)
    again = api.apply(copy, assume=ASSUME)
    assert not again.written
    assert not again.files
    assert capfd.readouterr() == ("", "")
    from patcher.patching.reverting import revert

    revert(Session(copy), frozenset(), dry_run=False)
    assert {path: text for path, text in contents(copy).items() if path in before} == before


def test_one_record_that_fails_keeps_all_from_being_written(copy: Path) -> None:
    file = next(file for file in api.plan(copy, assume=ASSUME).files)
    (copy / file.path).write_text("def broken(:\n", encoding="utf-8")
    before = contents(copy)
    done = api.apply(copy, assume=ASSUME)
    assert {record.kind for record in done.failed} == {"unparseable"}
    assert not done.written
    assert contents(copy) == before


def test_records_are_chosen_by_id_tag_and_skip(copy: Path) -> None:
    every = {record.id for record in api.plan(copy, assume=ASSUME).records if record.kind == "pending"}
    one = min(every)
    chosen = api.plan(copy, assume=ASSUME, ids=[one])
    assert {record.id for record in chosen.records if record.kind == "pending"} == {one}
    left = api.plan(copy, assume=ASSUME, skip=[one])
    assert one not in {record.id for record in left.records if record.kind == "pending"}


def test_values_are_frozen(copy: Path) -> None:
    planned = api.plan(copy, assume=ASSUME)
    for value in (planned, planned.records[0], planned.files[0], planned.records[0]):
        assert is_dataclass(value)
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            value.written = ()  # type: ignore[misc,union-attr]
    with pytest.raises(TypeError):
        planned.versions["vllm"] = "1"  # type: ignore[index]


def test_check_tells_findings_and_what_records_leave(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "verl/version").mkdir(parents=True)
    (tmp_path / "verl/version/version").write_text("0.6.1\n")
    (tmp_path / "verl/__init__.py").write_text("from vllm.utils import FlexibleArgumentParser\n")
    found = api.check(tmp_path, against=["vllm==0.20.2"], assume=ASSUME)
    (finding,) = found.findings
    assert (finding.file, finding.line, finding.kind) == ("verl/__init__.py", 1, "symbol-moved")
    assert finding.symbol == "vllm.utils.FlexibleArgumentParser"
    assert found.after == found.findings
    assert found.against["vllm"] == "0.20.2"
    assert not found.clean
    assert capfd.readouterr() == ("", "")


def test_what_is_wrong_is_raised_with_cause_and_advice(tmp_path: Path, copy: Path) -> None:
    with pytest.raises(api.UkyError, match="nowhere"):
        api.plan(tmp_path / "nowhere")
    with pytest.raises(api.UkyError, match="no-such-record"):
        api.plan(copy, assume=ASSUME, ids=["no-such-record"])
    with pytest.raises(api.UkyError):
        api.load_records([tmp_path / "nowhere"])
    with pytest.raises(api.UkyError):
        api.check(copy, against=["vllm==="])


def test_every_kind_of_outcome_is_in_the_documentation() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert {kind for kind in SETTLED | FAILED if f"`{kind}`" not in text} == set()


def test_the_documented_examples_run(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    space: dict[str, object] = {}
    for block in blocks:
        code = block.replace('"~/verl_fork"', repr(str(copy))).replace('{"vllm": "0.20.2"}', repr(ASSUME))
        exec(code.replace("api.check(", f"api.check(assume={ASSUME!r}, tree="), space)
    shown = capsys.readouterr().out
    assert "vllm-utils-split" in shown
    assert "# Uky[" in shown
    assert "/nowhere" in shown


def test_a_record_is_an_ordinary_codemod(copy: Path) -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    words = next(line for line in text.splitlines() if line.startswith("python -m libcst.tool")).split()[1:-1]
    before = contents(copy)
    planned = api.plan(copy, assume=ASSUME, ids=["vllm-utils-split"])
    done = subprocess.run(
        [sys.executable, *words, "--jobs", "1", "verl"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    after = contents(copy)
    wanted = {file.path: file.after for file in planned.files}
    assert {path for path in after if after[path] != before.get(path)} == set(wanted)
    assert all(after[path].decode() == text for path, text in wanted.items())
    again = subprocess.run(
        [sys.executable, *words, "--jobs", "1", "verl"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert contents(copy) == after


def test_a_codemod_leaves_a_file_alone_in_which_the_record_has_no_place(copy: Path) -> None:
    file = next(iter(api.plan(copy, assume=ASSUME, ids=["vllm-utils-split"]).files)).path
    (copy / file).write_text("import os\n", encoding="utf-8")
    command = ["-m", "libcst.tool", "codemod", "--no-format", "-x", "patcher.codemod.RecordCommand", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, *command, "--record", "vllm-utils-split", file],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (copy / file).read_text(encoding="utf-8") == "import os\n"
    assert "Traceback" not in done.stdout
    unknown = subprocess.run(
        [sys.executable, *command, "--record", "no-such-record", file],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert unknown.returncode == 2
    assert unknown.stderr == (
        f"{unknown.stderr.partition(':')[0]}: error: there is no record no-such-record; "
        "uky-patch list tells which there are\n"
    )


def test_a_codemod_that_cannot_begin_says_so_in_one_line(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/settings.toml").write_text(
        'id = "settings"\ntitle = "t"\nreason = "r"\nlifetime = "fork-only"\n[when]\n[[edit]]\n'
        'file = "verl/a.yaml"\nkind = "set-value"\nkey = "a"\nnew = "1"\n'
    )
    for words, why in (
        (["--record", "vllm-utils-split", "--patches", str(tmp_path / "none")], "the record folder cannot be read"),
        (["--record", "settings", "--patches", str(tmp_path / "own")], "settings edits no Python: verl/a.yaml"),
    ):
        command = ["-m", "libcst.tool", "codemod", "--no-format", "-x", "patcher.codemod.RecordCommand", *words, "verl"]
        done = subprocess.run([sys.executable, *command], cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert why in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"tree": None},
        {"tree": "a\0b"},
        {"assume": {"vllm": None}},
        {"assume": ["vllm==0.20.2"]},
        {"ids": "vllm-log-requests"},
        {"skip": [1]},
        {"tags": None},
        {"patches": "patches"},
        {"patches": [None]},
        {"python": 3},
    ],
)
def test_an_argument_of_the_wrong_type_is_named(arguments: dict[str, Any], copy: Path) -> None:
    with pytest.raises(api.UkyError) as raised:
        api.plan(**{"tree": copy, "assume": ASSUME, **arguments})
    assert isinstance(raised.value, UsageError)
    assert str(raised.value.title).startswith(f"{next(iter(arguments))}: ")
    assert raised.value.advice


def test_a_string_is_no_list_of_releases(copy: Path) -> None:
    with pytest.raises(UsageError, match=r"against: 'vllm==0\.20\.2' cannot be read"):
        api.check(copy, against="vllm==0.20.2")


def test_errors_name_arguments_and_no_options_of_the_command_line(copy: Path) -> None:
    with pytest.raises(api.UkyError) as unknown:
        api.apply(copy, python="/nowhere")
    assert "Give python= an interpreter" in str(unknown.value)
    subprocess.run(
        "git init -q && git add . && git -c user.name=A -c user.email=a@e commit -qm a", shell=True, cwd=copy
    )
    changed = next(iter(api.plan(copy, assume=ASSUME).files)).path
    with (copy / changed).open("a") as file:
        file.write("# more\n")
    with pytest.raises(api.UkyError) as dirty:
        api.apply(copy, assume=ASSUME)
    assert "allow_dirty=True" in str(dirty.value)
    assert "--" not in f"{unknown.value}{dirty.value}"
    with pytest.raises(api.UkyError) as nowhere:
        api.check("/nowhere", against=["vllm==0.20.2"])
    assert "with tree" in str(nowhere.value)


START = """
import sys
from patcher.__main__ import main
sys.argv = ["uky-patch", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sys.modules)
"""


def modules_of(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", START, *words], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


def test_libcst_is_imported_only_where_something_is_rewritten_or_planned(copy: Path) -> None:
    assumed = [word for name, version in ASSUME.items() for word in ("--assume", f"{name}=={version}")]
    on_tree = ["--root", str(copy), *assumed]
    assert "libcst" in modules_of("apply", *on_tree)
    for words in (["--version"], ["--help"], ["list"], ["status", *on_tree]):
        assert "libcst" not in modules_of(*words), words
