"""`uky-patch migrate` as a user calls it: a process of its own, and what has become of both sides."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forks, machines
from tests.machines import Machine

REPOSITORY = Path(__file__).parents[2]
HASTY = "from patcher.migrate import migration as m; m.PAUSES = (0.05,) * 3; import patcher.__main__ as p; p.main()"
"""The command with short pauses between its tries."""
VERSIONS = {"vllm": "0.20.2", "torch": "2.11.0", "transformers": "4.57.6", "triton": "3.6.0", "ray": "2.49.0"}
OURS = (".uky-patch", ".uky-patch-kept")


@dataclass(frozen=True)
class Told:
    """What a run came to."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        return {step["name"]: step for step in self.json["steps"]}

    @property
    def statuses(self) -> dict[str, str]:
        return {name: step["status"] for name, step in self.steps.items()}

    @property
    def text(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


@dataclass
class Mover:
    """A tree on its way to hosts: `ssh` is found in `shims`, and what the tool keeps for itself lies in `state`."""

    tree: Path
    state: Path
    shims: Path
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str, fmt: str = "json", hasty: bool = True) -> list[str]:
        program = ["-c", HASTY] if hasty else ["-m", "patcher"]
        return [sys.executable, *program, "--root", str(self.tree), "--format", fmt, *words]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("UKY_PATCH_CACHE", "LANG", "TMPDIR") if name in os.environ}
        paths = {"PATH": f"{self.shims}:{os.environ['PATH']}", "HOME": str(self.state), "PYTHONPATH": str(REPOSITORY)}
        kept |= {"UKY_PATCH_CACHE": kept.get("UKY_PATCH_CACHE") or str(Path.home() / ".cache/uky-patch")}
        return {**kept, **paths, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **self.env}

    def start(self, *words: str, fmt: str = "json", hasty: bool = True) -> subprocess.Popen[str]:
        self.state.mkdir(exist_ok=True)
        return subprocess.Popen(
            self.command(*words, fmt=fmt, hasty=hasty),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.state,
            start_new_session=True,
            preexec_fn=_heeding,
        )

    def run(self, *words: str, fmt: str = "json", hasty: bool = True, within: float = 120) -> Told:
        """Run it to its end; one that hangs is killed with all that it started, and an error."""
        started = time.monotonic()
        process = self.start(*words, fmt=fmt, hasty=hasty)
        try:
            out, err = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"hangs: {shlex.join(words)}\n{out}\n{err}") from None
        told = Told(process.returncode, out, err, time.monotonic() - started)
        assert "Traceback" not in told.text, told.text
        return told

    def migrate(self, host: str, *words: str, **how: Any) -> Told:
        return self.run("migrate", host, *words, **how)


def _heeding() -> None:
    """Ctrl-C counts, also where the tests themselves run in the background of a shell that shuts it out."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Site:
    """A host with packages, and where a mover's tree is to be there."""

    machine: Machine
    mover: Mover

    @property
    def there(self) -> Path:
        return self.machine.home / self.mover.tree.name


def packages(host: Machine, name: str = "venv", versions: Mapping[str, str] = VERSIONS) -> Path:
    """A virtual environment in the host's home in which these are installed, as far as their metadata goes."""
    prefix = host.home / name
    host.do(
        "sh",
        "-c",
        'p=$(command -v "$HOME/bin/python3" || echo /usr/bin/python3); exec "$p" -m venv --without-pip "$0"',
        str(prefix),
    )
    site = host.do("sh", "-c", 'echo "$0"/lib/python*/site-packages', str(prefix)).strip()
    program = (
        "import pathlib, sys\n"
        "site = pathlib.Path(sys.argv[1])\n"
        "for name, version in (word.split('==') for word in sys.argv[2:]):\n"
        "    info = site / ('%s-%s.dist-info' % (name, version))\n"
        "    info.mkdir()\n"
        "    (info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n' % (name, version))\n"
        "    (info / 'RECORD').write_text('%s/__init__.py,,\\n' % name)\n"
        "    (site / name).mkdir()\n"
        "    (site / name / '__init__.py').write_text('__version__ = %r\\n' % version)\n"
    )
    host.do(f"{prefix}/bin/python", "-c", program, site, *(f"{name}=={version}" for name, version in versions.items()))
    return prefix


def shape(root: Path) -> dict[str, tuple[str, int, str]]:
    """All below a folder: kind, permission bits, and the content's digest or the link's target. Ours left out."""
    found = {}
    for path in walk(root):
        name = str(path.relative_to(root))
        if name.split("/")[0] in OURS or "__pycache__" in name:
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", 0, str(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            found[name] = ("file", stat.S_IMODE(status.st_mode), hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield Path(folder) / name


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def exact(root: Path, *, times: bool = True) -> dict[str, tuple[Any, ...]]:
    """All below a folder to the inode: for what must not be touched at all."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in (root, *walk(root)):
        status = path.lstat()
        held = ""
        if stat.S_ISREG(status.st_mode):
            held = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(status.st_mode):
            held = str(path.readlink())
        stamps = (status.st_mtime_ns, status.st_ino, status.st_ctime_ns) if times else ()
        found[str(path.relative_to(root))] = (status.st_mode, status.st_uid, held, *stamps)
    return found


def local(tree: Path) -> dict[str, tuple[Any, ...]]:
    """The tree here, to the byte and inode; git's own folder left out, whose index is refreshed by looking."""
    return {name: told for name, told in exact(tree).items() if name != "." and name.split("/")[0] != ".git"}


def arrived(tree: Path, there: Path) -> None:
    """All that git lists has come, unless records change it there; nothing that git ignores has."""
    missing = [name for name in forks.listed(tree) if not os.path.lexists(there / name)]
    assert missing in ([], ["sitecustomize.py"]), missing
    for ignored in (
        "outputs",
        "checkpoints",
        "wandb",
        "train.log",
        "data.parquet",
        "models",
        "dataset",
        ".env",
        ".git",
    ):
        assert not os.path.lexists(there / ignored), ignored


def failed(told: Told, *said: str, code: int = 5) -> None:
    """An error that says what and what to do: exit code, the failed step, and words of its message."""
    assert told.code == code, told.text
    assert told.json["steps"][-1]["status"] == "fail", told.text
    for word in said:
        assert word in told.text, told.text


@contextlib.contextmanager
def other_host(folder: Path, name: str, *mounts: str) -> Iterator[Machine]:
    with machines.machine(folder / name, name, mounts=mounts) as made:
        yield made


def sent_to(site: Site, host: Machine) -> Site:
    return Site(host, Mover(site.mover.tree, site.mover.state, host.shims))
