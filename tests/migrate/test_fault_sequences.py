"""Edits on both sides and migrations that fail, in any order: nothing that somebody wrote is lost, there or here.

Each seed is a sequence of rounds. In a round files are edited, added and taken away here, somebody edits files on the
host, and a migration meets a fault: the line is cut or dead, the agent or the command is killed. Whatever comes of it,
all that was written on the host is there in its place or among the kept copies, and the tree here is as it was.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import forks
from tests.migrate import moving
from tests.migrate.cuts import WORDS, Course
from tests.migrate.moving import Told
from tests.migrate.test_faults import agents
from tests.remote.cutting import Fault

pytestmark = [pytest.mark.network, pytest.mark.hosts]

SEEDS = range(int(os.environ.get("UKY_PATCH_FAULT_SEEDS", "4")))
"""`UKY_PATCH_FAULT_SEEDS=300 python -m pytest tests/migrate/test_fault_sequences.py -m hosts` runs as many."""
ROUNDS = 3
EDITED = ("notes/", "scripts/")
"""Where people edit here; no record changes a file there."""
OWN = {"mine/notes.txt": b"not of the fork\n", "verl/utils/mine.py": b"x = 1\n", "outputs/step_1.pt": b"\0" * 5000}
"""What is on the host alone, and nobody edits."""


@pytest.fixture(scope="module")
def pristine(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree here as it was before any sequence."""
    kept = tmp_path_factory.mktemp("pristine") / "tree"
    shutil.copytree(course.site.mover.tree, kept, symlinks=True)
    return kept


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sequence_of_edits_and_faults_loses_nothing(seed: int, course: Course, pristine: Path) -> None:
    chance, site = random.Random(seed), course.site
    tree, there = site.mover.tree, site.there
    course.reset()
    for place in tree.iterdir():
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
    shutil.copytree(pristine, tree, symlinks=True, dirs_exist_ok=True)
    for path, content in OWN.items():
        written(there, path, content)
    theirs: dict[bytes, str] = {}
    told: list[str] = []
    for number in range(ROUNDS):
        edited_here(tree, chance, number)
        edited_there(there, chance, number, theirs)
        here = moving.local(tree)
        told.append(disturbed(course, chance).text)
        site.machine.quiet()
        assert moving.local(tree) == here, told
        kept(there, theirs, told)
    course.line.set()
    last = site.mover.migrate("line", *WORDS, "--yes")
    assert last.code == 0, (told, last.text)
    kept(there, theirs, told)
    assert not (there / ".uky-patch/host/journal.json").exists()
    sent = {path for path in forks.listed(tree) if path.startswith(EDITED)}
    assert [path for path in sent if os.path.lexists(tree / path) != os.path.lexists(there / path)] == [], told
    assert [path for path in sent if differs(tree / path, there / path)] == [], told


def differs(here: Path, there: Path) -> bool:
    return here.is_file() and here.read_bytes() != there.read_bytes()


def edited_here(tree: Path, chance: random.Random, number: int) -> None:
    """Some changes as people make them: lines added, files added, taken away, and given another name."""
    files = [path for path in forks.listed(tree) if path.startswith(EDITED)]
    for count in range(chance.randint(0, 3)):
        path = tree / chance.choice(files)
        match chance.randrange(4):
            case 0 if path.is_file():
                path.write_bytes(path.read_bytes() + f"# Here {number}.{count}\n".encode())
            case 1:
                path.unlink(missing_ok=True)
            case 2 if path.is_file():
                path.rename(path.with_name(f"moved {number}.{count} {path.name}"))
            case _:
                written(tree, f"notes/new {number}.{count}.txt", chance.randbytes(chance.choice((10, 3000, 200_000))))


def edited_there(there: Path, chance: random.Random, number: int, theirs: dict[bytes, str]) -> None:
    """Somebody writes on the host, into files that came with a migration and into new ones.

    `theirs` has the path by the content of all that they have not changed again themselves.
    """
    files = [path for path in moving.walk(there) if path.is_file() and not path.is_symlink()]
    ours = [path for path in files if path.relative_to(there).as_posix().startswith(EDITED)]
    for count in range(chance.randint(0, 2)):
        content = f"There {number}.{count}: {chance.random()}\n".encode()
        if ours and chance.random() < 0.7:
            place = chance.choice(ours)
            theirs.pop(place.read_bytes(), None)
            content = place.read_bytes() + content
            path = str(place.relative_to(there))
        else:
            path = f"notes/theirs {number}.{count}.txt"
        written(there, path, content)
        theirs[content] = path


def written(root: Path, path: str, content: bytes) -> None:
    """Write a file as the owner of the tree would."""
    place = root / path
    made = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    owner = root.stat()
    for one in (place, *made):
        os.chown(one, owner.st_uid, owner.st_gid)


def kept(there: Path, theirs: dict[bytes, str], told: list[str]) -> None:
    """All that was written there is there, somewhere; what is nobody's but the host's has not been moved."""
    for path, content in OWN.items():
        assert (there / path).read_bytes() == content, (path, told)
    found = set(contents(there))
    lost = [path for content, path in theirs.items() if content not in found]
    assert lost == [], told


def contents(root: Path) -> Iterator[bytes]:
    for path in moving.walk(root):
        if path.is_file() and not path.is_symlink():
            yield path.read_bytes()


def disturbed(course: Course, chance: random.Random) -> Told:
    """A migration to which something happens, or nothing."""
    line, site = course.line, course.site
    words = (*WORDS, "--yes") if chance.random() < 0.5 else WORDS
    end = course.whole["verify"][1]
    point = chance.randint(0, end)
    what = chance.choice(("well", "cut", "heals", "silent", "agent", "kill", "term", "slow"))
    match what:
        case "well":
            line.set()
        case "cut":
            line.set(Fault(after=point))
        case "heals":
            line.set(Fault(after=point, times=1))
        case "silent":
            line.set(Fault(after=point, how="silent", times=1, seconds=None))
        case _:
            line.set(Fault(rate=4_000_000))
    process = site.mover.start("migrate", "line", *words)
    if what in ("agent", "kill", "term"):
        deadline = time.monotonic() + 20
        while line.total < point and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        if what == "agent":
            for pid in agents(site.machine):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if what == "kill" else signal.SIGTERM)
    if what == "silent":
        time.sleep(2)
        line.set(Fault(after=0, times=1))
    out, err = process.communicate(timeout=90)
    result = Told(process.returncode, f"{what} at {point}\n{out}", err, 0)
    assert "Traceback" not in result.text, result.text
    return result
