"""Whatever goes wrong, a process ends with an exit code of the contract, without a traceback, and with one JSON object.

Real processes: each command under each fault of its surroundings. The slow lane has a fifth of the product, or all with
UKY_PATCH_ALL_CASES=1; in `make test` each command meets some of the faults, and each fault some of the commands.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from patcher.cli.app import COMMANDS
from tests import tools
from tests.cli.conftest import write_records, write_tree
from tests.lanes import ALL_CASES

ROOT = Path(__file__).parents[2]
CODES = {0, 1, 2, 3, 4, 5}
CASES: dict[str, tuple[str, ...]] = {
    "demo": ("demo", "--keep", "/etc"),
    "list": ("list",),
    "explain": ("explain", "log-flag"),
    "status": ("status",),
    "apply": ("apply", "--dry-run"),
    "revert": ("revert", "--dry-run"),
    "verify": ("verify",),
    "record": ("record", "--dry-run"),
    "new": ("new", "mine", "--at", "verl/server.py:3", "--dry-run"),
    "adopt": ("adopt", "--all", "--dry-run"),
    "backport": ("backport", "HEAD", "--dry-run"),
    "rebase": ("rebase", "HEAD", "--dry-run"),
    "docs": ("docs",),
    "check": ("check", "--against", "vllm==none"),
    "pins": ("pins",),
    "migrate": ("migrate", "-no-host"),
    "diff": ("diff", "-no-host"),
    "pull": ("pull", "-no-host"),
    "prune": ("prune", "--dry-run"),
    "render": ("render", "run_debug.sh"),
    "data": ("data", "report", "nothing.parquet"),
    "model": ("model", "newest", "nothing"),
    "run": ("run", "debug", "--script", "nothing.sh"),
    "job": ("job", "logs", "here"),
    "diagnose": ("diagnose", "run.log"),
    "watch": ("watch", "--pid", "4194303"),
    "probe": ("probe",),
    "bundle": ("bundle", "--dry-run"),
    "clean": ("clean", "--dry-run"),
    "symptoms": ("symptoms",),
    "trust": ("trust",),
    "completion": ("completion", "bash"),
}
"""Each command, as it is called here: nothing of it goes to another machine or changes anything."""


@dataclass(frozen=True)
class Fault:
    """What is odd about the surroundings, and the exit codes that it leaves."""

    env: dict[str, str | None] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    shell: str = '"$@"'
    codes: frozenset[int] = frozenset(CODES)
    told: bool = True
    """Whether standard output can be read."""


_NOBODY = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
_READING = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
_FAILED = frozenset({5})
FAULTS: dict[str, Fault] = {
    "stdout closed": Fault(shell='"$@" >&-', codes=_FAILED, told=False),
    "stdout full": Fault(shell='"$@" >/dev/full', codes=_FAILED, told=False),
    "stdout read-only": Fault(shell='"$@" 1</dev/null', codes=_FAILED, told=False),
    "stdout cut": Fault(shell='"$@" | true; exit ${PIPESTATUS[0]}', told=False),
    "stderr closed": Fault(shell='"$@" 2>&-'),
    "stderr full": Fault(shell='"$@" 2>/dev/full'),
    "stdin closed": Fault(shell='"$@" <&-'),
    "all closed": Fault(shell='"$@" <&- >&- 2>&-', codes=_FAILED, told=False),
    "folder gone": Fault(shell='mkdir gone && cd gone && rmdir ../gone && "$@"'),
    "nobody": Fault(env={"HOME": None, "USER": None, "LOGNAME": None}, before=(*_NOBODY, *_READING)),
    "empty environment": Fault(before=("env", "-i")),
    "home is a file": Fault(env={"HOME": "/etc/passwd"}),
    "home is relative": Fault(env={"HOME": "here"}),
    "no folder for temporary files": Fault(env={"TMPDIR": "/nowhere"}),
    "nothing on PATH": Fault(shell='export PATH=/nowhere; "$@"'),
    "odd terminal": Fault(env={"COLUMNS": "²", "LINES": "-1", "TERM": "", "TZ": "no/where"}),
    "no width": Fault(env={"COLUMNS": "0", "LINES": "0"}),
    "odd cache": Fault(env={"UKY_PATCH_CACHE": "~nobody-of-that-name/x"}),
    "cache is a device": Fault(env={"UKY_PATCH_CACHE": "/dev/null"}),
    "ascii": Fault(env={"LC_ALL": "zh_CN.UTF-8", "PYTHONIOENCODING": "ascii"}),
    "latin-1": Fault(env={"LC_ALL": "zh_CN.UTF-8", "PYTHONIOENCODING": "latin-1"}),
    "C locale": Fault(env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "warnings are errors": Fault(env={"PYTHONWARNINGS": "error"}),
    "few files": Fault(before=("prlimit", "--nofile=16")),
    "no processes": Fault(before=("prlimit", "--nproc=1", *_NOBODY, *_READING)),
    "small files": Fault(before=("prlimit", "--fsize=0")),
}


@dataclass(frozen=True)
class Place:
    folder: Path

    def run(self, *arguments: str, fault: Fault = Fault(), code: str = "") -> subprocess.CompletedProcess[bytes]:
        """The command as a process of its own; with `code`, what a child does before it is the command."""
        start = ["-c", f"{code}\nfrom patcher.__main__ import main\nmain()"] if code else ["-m", "patcher"]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "HOME": str(self.folder / "home")}
        env.pop("UKY_PATCH_TRACEBACK", None)
        env.pop("XDG_STATE_HOME", None)
        changed = {**env, **fault.env}
        keep = [f"PYTHONPATH={ROOT}"] if fault.before[:1] == ("env",) else []
        command = ["bash", "-c", fault.shell, "bash", *fault.before, *keep, sys.executable, *start, *arguments]
        return subprocess.run(
            command,
            cwd=self.folder / "fork",
            env={name: value for name, value in changed.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("contract")
    write_tree(folder / "fork", "server")
    write_records(folder / "records")
    (folder / "fork/run.log").write_text("Traceback (most recent call last):\nValueError: x\n")
    (folder / "home").mkdir()
    for each in (folder, folder / "fork", folder.parent):
        each.chmod(0o777)  # A user who is nobody may make a folder here too.
    yield Place(folder)
    shutil.rmtree(folder / "home")


def arguments(place: Place, name: str) -> list[str]:
    tree = ["--root", str(place.folder / "fork"), "--patches", str(place.folder / "records")]
    return [*tree, "--assume", "vllm==2.1", *CASES[name]]


def the_object(out: bytes) -> dict[str, Any]:
    found = json.loads(out.decode("utf-8"))
    assert isinstance(found, dict)
    return found


def holds(done: subprocess.CompletedProcess[bytes], fault: Fault, *, in_json: bool) -> None:
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode in fault.codes, (done.returncode, done.stdout, done.stderr)
    if in_json and fault.told:
        found = the_object(done.stdout)
        assert (done.returncode > 1) <= ("error" in found or "steps" in found)
        if "error" in found:
            assert found["error"].keys() == {"title", "cause", "advice", "code"}
            assert found["error"]["code"] == done.returncode


def require(fault: Fault) -> None:
    if fault.before and os.geteuid() != 0:
        pytest.skip("needs root")
    tools.require(*fault.before[:1])


def test_each_command_is_tried() -> None:
    assert CASES.keys() == COMMANDS.keys()


ALL = [(name, fault) for name in CASES for fault in FAULTS]
FEW = sorted({*ALL[::61], *(("list", fault) for fault in FAULTS)})


@pytest.mark.parametrize(("name", "fault"), FEW)
def test_a_command_in_odd_surroundings(place: Place, name: str, fault: str) -> None:
    require(FAULTS[fault])
    holds(place.run("--format", "json", *arguments(place, name), fault=FAULTS[fault]), FAULTS[fault], in_json=True)


FORMS = [
    (name, fault, "json" if (row + column) % 2 else "text")
    for row, name in enumerate(CASES)
    for column, fault in enumerate(FAULTS)
    if ALL_CASES or (2 * row + column) % 7 == 0
]
"""The forms by turns, so that each command and each fault meets both. A seventh of the cases, which leaves none of the
commands and faults out; all, ten minutes of processor time, with UKY_PATCH_ALL_CASES=1."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault", "form"), FORMS)
def test_every_command_in_all_odd_surroundings(place: Place, name: str, fault: str, form: str) -> None:
    odd = FAULTS[fault]
    require(odd)
    if form == "text" and not odd.told:
        odd = replace(odd, codes=odd.codes | {2})  # An error of usage goes to standard error alone.
    done = place.run(*arguments(place, name), "--format", form, fault=odd)
    holds(done, odd, in_json=form == "json")


@pytest.mark.parametrize("name", CASES)
def test_each_command_answers_with_one_object_of_its_own(place: Place, name: str) -> None:
    done = place.run(*arguments(place, name), "--format", "json")
    holds(done, Fault(), in_json=True)
    assert the_object(done.stdout)


MISTAKES = (
    (),
    ("no-such",),
    ("job",),
    ("data",),
    ("model", "no-such"),
    ("status", "--no-such"),
    ("explain",),
    ("run", "no-such"),
    ("verify", "--level", "no-such"),
    ("watch", "--pid", "x"),
    ("list", "too", "many"),
    ("--root",),
    ("--root", "", "status"),
    ("--python", "", "status"),
    ("check", "--scripts", "none/*.sh", "--against", "vllm==none"),
)


@pytest.mark.parametrize("given", MISTAKES, ids=" ".join)
@pytest.mark.parametrize("form", [("--format", "json"), ("--format=json",)])
def test_a_command_line_that_cannot_be_meant(place: Place, given: tuple[str, ...], form: tuple[str, ...]) -> None:
    done = place.run(*form, *given)
    assert done.returncode == 2
    assert the_object(done.stdout)["error"]["code"] == 2
    assert b"Traceback" not in done.stderr
    assert place.run(*given).returncode == 2


def test_help_stays_text(place: Place) -> None:
    done = place.run("--format", "json", "status", "--help")
    assert (done.returncode, done.stdout[:6]) == (0, b"Usage:")


def test_a_glob_that_matches_nothing_names_itself_and_the_folder(place: Place) -> None:
    done = place.run("check", "--scripts", "none/*.sh", "--against", "vllm==none")
    assert b"none/*.sh" in done.stderr
    assert str(place.folder / "fork").encode() in done.stderr


def test_a_folder_of_records_without_any_is_an_error(place: Place) -> None:
    (place.folder / "empty").mkdir()
    for command in ("list", "status"):
        done = place.run("--patches", str(place.folder / "empty"), command)
        assert (done.returncode, b"empty: there is no record" in done.stderr) == (4, True)


BUGS = {
    "ValueError": "ValueError('secret-4711')",
    "MemoryError": "MemoryError()",
    "RecursionError": "RecursionError()",
    "SystemExit": "SystemExit(1)",
    "EOFError": "EOFError()",
    "OSError of a library": "OSError('secret-4711')",
    "BaseException": "BaseException()",
}
RAISING = "import click\ndef bad(*_):\n    raise {}\nclick.Command.invoke = bad"


def one_line_of_a_bug(place: Place, done: subprocess.CompletedProcess[bytes]) -> Path:
    assert done.returncode == 70, done.stderr
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert "this is a bug of uky-patch" in lines[0]
    assert "uky-patch bundle " in lines[0]
    assert "secret-4711" not in lines[0]
    file = Path(lines[0].rpartition("uky-patch bundle ")[2])
    assert "Traceback" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return file


@pytest.mark.parametrize("name", CASES)
def test_a_bug_in_any_command_is_70(place: Place, name: str) -> None:
    code = RAISING.format(BUGS["ValueError"])
    file = one_line_of_a_bug(place, place.run(*arguments(place, name), code=code))
    assert file.is_relative_to(place.folder / "home/.local/state/uky-patch/bugs")
    done = place.run(*arguments(place, name), "--format", "json", code=code)
    one_line_of_a_bug(place, done)
    assert the_object(done.stdout)["error"]["code"] == 70


@pytest.mark.parametrize("kind", BUGS)
def test_whatever_is_raised_is_never_findings(place: Place, kind: str) -> None:
    one_line_of_a_bug(place, place.run("list", code=RAISING.format(BUGS[kind])))


LATER = {
    "in a thread": "import threading; thread = threading.Thread(target=bad); thread.start(); thread.join()",
    "at the end": "import atexit; atexit.register(bad)",
}


@pytest.mark.parametrize("when", LATER)
def test_a_bug_where_nothing_can_be_raised(place: Place, when: str) -> None:
    late = f"def late(self, ctx):\n    {LATER[when]}\n    return 0\nclick.Command.invoke = late"
    one_line_of_a_bug(place, place.run("list", code=f"{RAISING.format(BUGS['ValueError'])}\n{late}"))


@pytest.mark.parametrize("module", ["patcher.cli.list", "patcher.session.session", "click", "patcher.terminal.answers"])
def test_a_module_that_cannot_be_imported(place: Place, module: str) -> None:
    code = f"import sys\nsys.modules[{module!r}] = None"
    one_line_of_a_bug(place, place.run("list", code=code))


def test_a_warning_is_nothing_to_see(place: Place) -> None:
    late = "def late(self, ctx):\n    import warnings; warnings.warn('x', RuntimeWarning); return 0"
    done = place.run("list", code=f"import click\n{late}\nclick.Command.invoke = late")
    assert (done.returncode, done.stderr) == (0, b"")


def test_tracebacks_are_bounded_and_nobody_s_link_is_followed(place: Place) -> None:
    folder = place.folder / "home/.local/state/uky-patch/bugs"
    for _ in range(3):
        file = one_line_of_a_bug(place, place.run("list", code=RAISING.format(BUGS["ValueError"])))
    for number in range(40):
        (folder / f"traceback-20000101-000000-{number}-ab.txt").touch()
    newest = one_line_of_a_bug(place, place.run("list", code=RAISING.format(BUGS["ValueError"])))
    assert {file, newest} <= set(folder.iterdir())
    assert len(list(folder.iterdir())) == 20
    shutil.rmtree(folder)
    (place.folder / "elsewhere").mkdir(exist_ok=True)
    folder.symlink_to(place.folder / "elsewhere")
    file = one_line_of_a_bug(place, place.run("list", code=RAISING.format(BUGS["ValueError"])))
    assert not file.is_relative_to(place.folder)
    assert not list((place.folder / "elsewhere").iterdir())
    shutil.rmtree(file.parent)
    folder.unlink()


def test_no_traceback_is_written_into_a_tree(place: Place) -> None:
    fault = Fault(env={"HOME": str(place.folder / "fork"), "TMPDIR": str(place.folder / "fork")})
    before = sorted((place.folder / "fork").rglob("*"))
    done = place.run("list", code=RAISING.format(BUGS["ValueError"]), fault=fault)
    assert done.returncode == 70
    assert b"could not be written anywhere" in done.stderr
    assert sorted((place.folder / "fork").rglob("*")) == before


def test_what_was_found_before_an_error_stays_in_the_object(place: Place) -> None:
    late = "def late(self, ctx):\n    print('{\"found\": 1}')\n    raise ValueError('secret-4711')"
    done = place.run("list", "--format", "json", code=f"import click\n{late}\nclick.Command.invoke = late")
    found = the_object(done.stdout)
    assert (found["found"], found["error"]["code"]) == (1, 70)


AT_IMPORT = """
import os, signal, sys
import patcher.interrupt
left = [{number}]
def hook(event, _):
    if event == "import":
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.{signal})
patcher.interrupt.end_at_once()
sys.addaudithook(hook)
"""


@pytest.mark.parametrize("number", [1, 2, 5, 10, 20, 40, 60, 80, 100, 130, 160, 200])
@pytest.mark.parametrize(("form", "sent"), [("text", "SIGINT"), ("json", "SIGINT"), ("json", "SIGTERM")])
def test_an_interrupt_at_any_import(place: Place, number: int, form: str, sent: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done = place.run("--format", form, "status", code=AT_IMPORT.format(number=number, signal=sent))
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")
    assert done.stdout == b"" or the_object(done.stdout)["error"]["code"] == 130


def test_an_interrupt_that_was_wrapped_is_one(place: Place) -> None:
    raised = "def late(*_):\n    try:\n        raise KeyboardInterrupt\n    except BaseException:\n        raise {}"
    for kind in ("RuntimeError()", "OSError(5, 'x')"):
        done = place.run("list", code=f"import click\n{raised.format(kind)}\nclick.Command.invoke = late")
        assert (done.returncode, done.stderr) == (130, b"interrupted\n")


def test_names_that_are_no_utf_8(place: Place) -> None:
    odd = os.fsdecode(b"odd-\xff\xfe")
    tree = write_tree(place.folder / odd, "server")
    shared = (
        "--root",
        str(tree),
        "--patches",
        str(place.folder / "records"),
        "--assume",
        "vllm==2.1",
        "--format",
        "json",
    )
    for command, code in (("apply", 0), ("status", 0), ("verify", 0), ("revert", 0)):
        done = place.run(*shared, command)
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr
        the_object(done.stdout)
    shutil.rmtree(tree)


def test_the_reader_of_a_log_that_is_followed_may_go(place: Place) -> None:
    """`job logs -f | head -1` ends; without an end of its own it would go on as long as the job."""
    follow = (
        "import click, time\nfrom patcher.cli.job import show_log_text\n"
        "def follow(*_):\n    while True:\n        show_log_text('x' * 9000 + '\\n')\nclick.Command.invoke = follow"
    )
    done = place.run("list", code=follow, fault=Fault(shell='"$@" | head -c 10; exit ${PIPESTATUS[0]}'))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"x" * 10, b"")
