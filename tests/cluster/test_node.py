"""What runs on a node: all that it needs is sent, a commit is whole or not made, and nothing is left behind."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from patcher.cluster import worker
from patcher.cluster.joining import SENT_TO_NODES, START, program
from patcher.cluster.model import replies_of
from patcher.i18n.codec import decode
from patcher.remote.agent import frames
from patcher.remote.agent_program import BOOTSTRAP, program_of, sources_of
from patcher.tree import Ledger, Tree
from patcher.worktree.hashing import ABSENT, digest_of
from patcher.worktree.ledger import AppliedRecord, PatchedFile, dump
from tests.cluster import made
from tests.cluster.conftest import bytes_of, plain_tree
from tests.cluster.processes import marked, wait_for

SERVER = b"# as planned  # Uky[one]\n"
LOG = "verl/flags/log.py"
FLAGS = b"# Uky[one]\nx = 1\n"
PROGRAMS = {name for name in sources_of(SENT_TO_NODES) if ".preflight.agent.programs." in name}
"""These run in the Python that trains, and import what they check."""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return plain_tree(tmp_path / "there")


def requests(*calls: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        frames.head({"id": number, "verb": verb, "args": args}, 0) for number, (verb, args) in enumerate(calls)
    )


def replies(*calls: tuple[str, dict[str, Any]], python: Path = Path(sys.executable)) -> list[dict[str, Any]]:
    """What a bare interpreter, without any package of its own, answers with nothing but the program."""
    given = program() + requests(*calls)
    command = [str(python), "-I", "-S", "-c", BOOTSTRAP, "", "1"]
    done = subprocess.run(command, input=given, capture_output=True, check=True, cwd="/")
    return [message for message, _ in frames.read_all(done.stdout)]


def look(root: Path | None, *files: str) -> tuple[str, dict[str, Any]]:
    named = str(root) if root is not None else None
    return "node_look", {"root": named, "files": files, "folders": [], "wait": 1.0}


def commit(root: Path, planned_on: bytes, wait: float = 1.0) -> tuple[str, dict[str, Any]]:
    """Write SERVER into a tree, as planned on these bytes, and make LOG."""
    path, before = "verl/server.py", digest_of(planned_on)
    files = {
        path: PatchedFile(before, digest_of(SERVER), ("one",)),
        LOG: PatchedFile(ABSENT, digest_of(FLAGS), ("one",)),
    }
    ledger = Ledger(files, {"one": AppliedRecord("text", {}, "now")})
    args = {
        "changes": [
            (path, before, base64.b64encode(SERVER).decode()),
            (LOG, ABSENT, base64.b64encode(FLAGS).decode()),
        ],
        "planned_on": {path: before, LOG: ABSENT, "verl/none.py": ABSENT},
        "ledger_before": digest_of(dump(Ledger())),
        "ledger": dump(ledger).decode(),
        "originals": {},
        "release": None,
        "allow_dirty": False,
    }
    return "node_commit", {**args, "root": str(root), "wait": wait}


def test_the_same_tool_is_the_same_bytes() -> None:
    again = program_of(sources_of(SENT_TO_NODES), START)
    assert program() == again


def test_what_is_sent_needs_the_standard_library_alone() -> None:
    """Above all not libcst, which is a native library: a plan is made on the asking side."""
    catalogue = {"tomli"}  # Before Python 3.11 it reads the catalogue, which is for readers and is not sent.
    own = sources_of(SENT_TO_NODES)
    for name, source in own.items():
        for node in ast.walk(ast.parse(source)):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            missing = {one for one in names if one not in own and one.split(".")[0] not in sys.stdlib_module_names}
            assert name in PROGRAMS or missing <= catalogue, f"{name}: {missing}"


def test_it_tells_of_the_tree_and_of_the_files_that_a_plan_reads(there: Path) -> None:
    (there / "uky-patch.toml").write_text('marker = "Us"\n')
    (there / "verl/link.py").symlink_to("server.py")
    (message,) = replies(look(there, "verl/link.py", "verl/none.py"))
    tree = message["result"]["tree"]
    content = (there / "verl/server.py").read_bytes()
    assert tree["plan"]["verl/server.py"] == tree["plan"]["verl/link.py"] == [digest_of(content), 0o644]
    assert {"uky-patch.toml", "verl/version/version"} <= set(tree["plan"])
    assert "verl/none.py" not in tree["plan"]
    assert tree["contents"]["verl/server.py"] == digest_of(content)[:16]


def test_without_a_tree_it_says_so_and_tells_of_the_machine() -> None:
    (message,) = replies(look(None))
    told = message["result"]
    assert told["error"]["title"]["template"] == "no tree was named, and a worker finds no verl"
    assert told["hostname"]
    assert "tree" not in told


def test_the_texts_of_files_come_in_their_order_and_one_that_is_gone_is_told(there: Path) -> None:
    names = ["verl/worker.py", "verl/none.py", "verl/server.py"]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BOOTSTRAP, "", "1"],
        input=program() + requests(("node_texts", {"root": str(there), "paths": names})),
        capture_output=True,
        check=True,
    )
    ((message, body),) = frames.read_all(done.stdout)
    worker_py, server_py = ((there / name).read_bytes() for name in (names[0], names[2]))
    assert message["result"]["sizes"] == [len(worker_py), -1, len(server_py)]
    assert zlib.decompress(body) == worker_py + server_py


def test_a_commit_writes_the_files_the_ledger_and_the_pre_images(there: Path) -> None:
    before = (there / "verl/server.py").read_bytes()
    (message,) = replies(commit(there, before))
    assert message["result"] == {"written": ["verl/server.py", LOG]}
    assert (there / "verl/server.py").read_bytes() == SERVER
    assert (there / LOG).read_bytes() == FLAGS
    assert Tree.open(there).ledger().files[LOG].folders == ("verl/flags",)
    assert (there / ".uky-patch/originals" / digest_of(before)).read_bytes() == before
    assert set(Tree.open(there).ledger().records) == {"one"}


def test_a_tree_that_has_changed_since_it_was_planned_for_is_left_alone(there: Path) -> None:
    before = bytes_of(there)
    first, second = replies(commit(there, b"as it was"), commit(there, b"as it was"))
    assert first["result"] == second["result"] == {"changed": ["verl/server.py"]}
    (there / "verl/none.py").write_text("came meanwhile\n")
    (message,) = replies(commit(there, before["verl/server.py"]))
    assert message["result"] == {"changed": ["verl/none.py"]}
    (there / "verl/none.py").unlink()
    assert bytes_of(there) == before
    assert not (there / ".uky-patch").exists()


def test_a_second_commit_of_one_plan_finds_another_ledger(there: Path) -> None:
    """Two nodes that were not known to share their tree."""
    planned = commit(there, (there / "verl/server.py").read_bytes())
    _, second = replies(planned, planned)
    assert second["result"] == {"changed": ["verl/server.py", LOG, ".uky-patch/ledger.json"]}


def test_a_commit_takes_a_file_out_that_a_record_has_made(there: Path) -> None:
    before = (there / "verl/server.py").read_bytes()
    replies(commit(there, before))
    known = dump(Tree.open(there).ledger())
    args = {
        "changes": [
            ("verl/server.py", digest_of(SERVER), base64.b64encode(before).decode()),
            (LOG, digest_of(FLAGS), None),
        ],
        "planned_on": {LOG: digest_of(FLAGS)},
        "ledger_before": digest_of(known),
        "ledger": dump(Ledger()).decode(),
    }
    verb, others = commit(there, before)
    (message,) = replies((verb, {**others, **args}))
    assert message["result"] == {"written": ["verl/server.py", LOG]}
    assert not (there / "verl/flags").exists()
    assert (there / "verl/server.py").read_bytes() == before


def test_a_tree_that_another_run_holds_or_somebody_works_on_is_refused(there: Path) -> None:
    before = (there / "verl/server.py").read_bytes()
    with Tree.open(there).transaction("apply"):
        (message,) = replies(commit(there, before, wait=0.1))
    assert "in use by another run of uky-patch" in str(decode(message["refusal"]["title"]))
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=there, check=True)
    (message,) = replies(commit(there, before))
    assert "uncommitted changes in verl/server.py" in str(decode(message["refusal"]["title"]))
    assert (there / "verl/server.py").read_bytes() == before


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


ASK = requests(look(None))


def work(limit: float = 60.0) -> dict[str, Any]:
    return worker.work(BOOTSTRAP, program(), ASK, limit)


def test_what_a_worker_runs_leaves_nothing(scratch: Path) -> None:
    ((message, _),) = frames.read_all(work()["answers"])
    assert message["result"]["python"]["executable"] == sys.executable
    assert not list(scratch.iterdir())


def test_a_program_that_does_not_end_is_ended(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something at the start of every Python there, as a site's own start-up file may be, hangs."""
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = work(1.0)
    assert (told["answers"], told["failed"]) == (b"", "ended by signal 9")
    assert not list(scratch.iterdir())


def test_a_sites_prints_at_start_are_no_part_of_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the program starts, from a child that is still there meanwhile, and at the end."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, subprocess\nprint('welcome')\nos.write(1, b'to the {cluster}')\n"
        "subprocess.Popen(['sh', '-c', 'for i in 1 2 3 4 5 6 7 8 9; do echo again; sleep 0.1; done'])\n"
        "atexit.register(print, 'goodbye')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    told = work()
    ((message, _),) = frames.read_all(told["answers"])
    assert message["result"]["hostname"]
    assert {"welcome", "to the {cluster}again", "goodbye"} <= set(told["failed"].splitlines())


def test_what_a_program_prints_is_no_part_of_the_answer() -> None:
    noisy = program_of(sources_of(SENT_TO_NODES), f"import os; os.write(1, b'welcome'); {START}")
    assert len(frames.read_all(worker.work(BOOTSTRAP, noisy, ASK, 60.0)["answers"])) == 1


def test_an_old_python_cannot_look_and_says_which_it_is(other_python: Path | None, tmp_path: Path) -> None:
    if other_python is None:
        pytest.skip("no other Python here")
    (tmp_path / "program").write_bytes(program())
    text = (
        f"import json, runpy; found = runpy.run_path({worker.__file__!r}); "
        f"program = open({str(tmp_path / 'program')!r}, 'rb').read(); "
        f"told = found['work']({BOOTSTRAP!r}, program, {ASK!r}, 60.0); "
        "import base64; told['answers'] = base64.b64encode(told['answers']).decode(); print(json.dumps(told))"
    )
    done = subprocess.run([other_python, "-c", text], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    node, answers = replies_of(made.node("old"), told, ["node_look"])
    if tuple(map(int, told["python"].split(".")[:2])) >= (3, 10):
        assert answers
    else:
        assert not answers
        assert str(node.detail) == f"its workers run Python {told['python']}; 3.10 or later is needed"


def test_gpus_are_as_the_worker_was_started_with_and_not_as_ray_hides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        f"import os, runpy; found = runpy.run_path({worker.__file__!r}); "
        "os.environ['CUDA_VISIBLE_DEVICES'] = ''; os.environ['HIP_VISIBLE_DEVICES'] = ''; os.environ['MORE'] = '1'; "
        "now = found['environment'](); "
        "print(now.get('CUDA_VISIBLE_DEVICES'), now.get('HIP_VISIBLE_DEVICES'), now['MORE'])"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2,3", "None", "1"]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_a_worker_that_is_killed_leaves_nothing(scratch: Path, tmp_path: Path, seconds: float) -> None:
    """Whether it is asked to end early, while the program is sent, or while it runs."""
    (tmp_path / "program").write_bytes(program())
    text = (
        f"from patcher.cluster import worker; program = open({str(tmp_path / 'program')!r}, 'rb').read(); "
        f"print('ready', flush=True); worker.work({BOOTSTRAP!r}, program, {ASK!r}, 60.0)"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.kill()
    wait_for(lambda: not marked(TMPDIR=str(scratch)), "the end of what it has begun")
    assert not list(scratch.iterdir())


def test_a_guard_whose_worker_ended_before_it_sent_everything_starts_nothing() -> None:
    done = guarded("print('not to be seen')", b"half", size=8)
    assert (done.stdout, done.stderr) == (b"", b"the worker has ended\n")


def test_the_guard_ends_a_program_in_time_without_a_worker() -> None:
    assert guarded("import time; time.sleep(600)", program()).stderr == b"ended by signal 9\n"


def guarded(start: str, given: bytes, size: int | None = None) -> subprocess.CompletedProcess[bytes]:
    options = [start, "", str(len(given) if size is None else size), "0.5"]
    command = [sys.executable, "-I", "-S", "-c", worker.GUARD, *options]
    return subprocess.run(command, input=given, capture_output=True, check=True)
