"""What the commands print on fixed trees, in order: as JSON and in both languages; and every help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.golden import doors
from tests.golden.entries import Entry, as_text, hashed
from tests.golden.machine import REPOSITORY, settled, variables

_TO = "--assume vllm==0.20.2"
_FAILED = """\
(TaskRunner pid=4711) {'actor_rollout_ref': {'rollout': {'name': 'vllm'}}}
(WorkerDict pid=4712) Traceback (most recent call last):
(WorkerDict pid=4712)   File "/data/verl/workers/rollout/vllm_rollout/vllm_rollout.py", line 205, in init_worker
(WorkerDict pid=4712)     self.inference_engine = WorkerWrapperBase(vllm_config=self.vllm_config)
(WorkerDict pid=4712) TypeError: WorkerWrapperBase.__init__() got an unexpected keyword argument 'vllm_config'
"""
_SCENES = {
    "round": (
        f"status {_TO}",
        f"status --all {_TO}",
        f"explain vllm-log-requests {_TO}",
        f"apply --dry-run {_TO}",
        f"apply --diff {_TO}",
        f"apply vllm-log-requests --allow-dirty {_TO}",
        f"status {_TO}",
        f"apply --show-diff --allow-dirty {_TO}",
        f"apply {_TO}",
        f"status {_TO}",
        f"verify {_TO}",
        f"explain vllm-log-requests {_TO}",
        "revert --diff",
        "revert vllm-log-requests",
        "revert",
        "revert",
        f"apply --commit {_TO}",
    ),
    "upgrade": (
        "check --against vllm==0.20.2 --no-since",
        "check --against vllm==0.20.2 --no-since --all --by cause",
        "check --against vllm==0.20.2 --no-since --sarif {out}/found.sarif --html {out}/page.html",
        "check --against vllm==0.20.2 --no-since --draft {out}/drafts",
        "check --against vllm==0.12.0 --baseline vllm==0.11.0 --no-since",
        "pins --to vllm==0.20.2 requirements-fork.txt",
    ),
    "logs": (
        "diagnose {place}/failed.log",
        "diagnose {place}/ended.log",
        "diagnose {place}/failed.log --against {place}/ended.log",
        "watch {place}/ended.log --once",
        "symptoms",
        "symptoms --card",
        "symptoms engine-start-timed-out",
    ),
    "others": (
        "list",
        "explain vllm-log-requests --assume vllm==0.11.0",
        f"apply --dry-run --tag instrument {_TO}",
        "trust",
        "trust --forget",
        "completion bash",
        "completion zsh",
        "completion fish",
        "render no-such-file",
        "status --rooot",
        "stats",
        "explain vllm-log-request",
        f"apply no-such-record {_TO}",
        "status --root /nowhere",
        "status --assume vllm",
        "status --assume vllm==none",
        "verify --level none",
        "diagnose /nowhere/train.log",
        "check --verl 0.6",
        "check --against vllm==",
        "check --matrix --against vllm",
        "pins",
        "job status",
        "migrate",
        "migrate --profile nothing box",
        "probe backtrace",
        "bundle /nowhere/train.log",
        "--patches /nowhere list",
        "--format xml list",
        "--version",
    ),
}
_LANGUAGES = {"json": "C.UTF-8", "engl": "C.UTF-8", "chin": "zh_CN.UTF-8"}
"""The names are folders too, and of one length, so that lines break in the same places."""
_SAMPLES = {"status", "verify", "pins"}
_HELP = "help"

Task = tuple[str, str]


def tasks() -> Sequence[Task]:
    return [(scene, form) for scene in (*_SCENES, _HELP) for form in _LANGUAGES if (scene, form) != (_HELP, "json")]


def prepare(place: Path) -> None:
    doors.stale_fork(place / "forks/stale")
    (place / "failed.log").write_text(_FAILED)
    shutil.copyfile(REPOSITORY / "tests/data/train-0.8.0.log", place / "ended.log")


def entries(task: Task, place: Path) -> Iterator[Entry]:
    scene, form = task
    return _helps(form, place) if scene == _HELP else _scene(scene, form, place)


def _helps(form: str, place: Path) -> Iterator[Entry]:
    os.environ["LC_ALL"] = _LANGUAGES[form]
    os.chdir(place)
    for words in doors.words_of_commands():
        answer = doors.answer(*words.split(), "--help")
        yield Entry(
            " ".join(filter(None, ("help", words, f"[{form}]"))),
            {"out": settled(answer.out, place), "err": settled(answer.err, place)},
            f"exit:{answer.code}",
        )


def _scene(scene: str, form: str, place: Path) -> Iterator[Entry]:
    """The calls of a scene one after another, on a tree and with a home folder of their own."""
    folder = place / "forks" / f"{scene}-{form}"
    tree, home, out = folder / "fork", folder / "home", folder / "out"
    shutil.copytree(place / "forks/stale", tree, symlinks=True)
    home.mkdir()
    out.mkdir()
    given = variables(place, Path(os.environ["UKY_PATCH_CACHE"]), _LANGUAGES[form])
    given |= {"HOME": str(home), "PYTHONPATH": str(place), "VIRTUAL_ENV": str(place / "envs/train")}
    for number, line in enumerate(_SCENES[scene], 1):
        words = line.format(place=place, out=out).split()
        words += ["--format", "json"] if form == "json" and "--format" not in words and line != "--version" else []
        done = subprocess.run(
            [sys.executable, *doors.TOOL, *words],
            cwd=tree,
            env=given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        values = {"out": _settled(done.stdout, folder, place), "err": _settled(done.stderr, folder, place)}
        if form == "json":
            values["out"] = _in_one_form(values["out"])
        values["files"] = _settled(_files(tree, out).encode(), folder, place)
        full = number < 7 and line.split()[0] in _SAMPLES
        key = f"{scene} {number:02} {line.format(place='/PLACE', out='/OUT')} [{form}]"
        yield Entry(key, values, f"exit:{done.returncode}", frozenset({"out"} if full else ()))


def _settled(printed: bytes, folder: Path, place: Path) -> str:
    return settled(printed.decode("utf-8", "backslashreplace"), place, {str(folder): "/SCENE"})


def _in_one_form(text: str) -> str:
    try:
        return as_text(json.loads(text))
    except ValueError:
        return text


def _files(tree: Path, out: Path) -> str:
    """Every file of the tree with a hash, but those of git and of the tool; and the texts that were asked for."""
    lines = []
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree)
        if path.is_file() and not path.is_symlink() and name.parts[0] not in (".git", ".uky-patch"):
            lines.append(f"{hashed(path.read_bytes().decode('utf-8', 'surrogateescape'))} {name}\n")
    texts = [path for path in sorted(out.rglob("*")) if path.is_file()]
    return "".join(lines) + "".join(f"=== {path.relative_to(out)}\n{path.read_text('utf-8')}" for path in texts)
