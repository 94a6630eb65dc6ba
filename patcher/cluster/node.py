"""What runs on a node of a Ray cluster: the agent, with three verbs more for the tree that is there.

The sources are sent with each call and run from memory: those of the agent, and of the rooms that read and write trees
(`patcher.cluster.payload`). All of it is standard library. Requests come on standard input as frames of the agent's
protocol, until its end; the answers go in the same order to a descriptor that an argument names, so that nothing that
is printed there gets among them.

- `node_look` tells what the machine and its tree are: versions, GPUs, disks, the digest of each file.
- `node_texts` sends the files that a plan needs and the asking side does not have.
- `node_commit` writes the bytes that were planned there, if the tree is still what they were planned for.
"""

from __future__ import annotations

import base64
import os
import platform
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from patcher.errors import UkyError, UsageError
from patcher.git.checkout import refuse_foreign_changes
from patcher.git.delivered import delivered
from patcher.i18n import phrase
from patcher.i18n.codec import encode
from patcher.messages import Refusal
from patcher.packages.agent.interpreter import running
from patcher.remote.agent import frames, gpus, resources
from patcher.remote.agent.facts import Fact, gather
from patcher.remote.agent.interpreters import described
from patcher.remote.agent.serving import Request, Server
from patcher.remote.agent.variables import shown
from patcher.tree import Change, Ledger, Tree
from patcher.worktree import disk
from patcher.worktree.files import lies_in
from patcher.worktree.hashing import digest_of, digests
from patcher.worktree.ledger import dump, parse
from patcher.worktree.path_guard import FOLDER

PACKAGES = ("verl", "recipe")
"""The packages of a fork that workers import: by their files two nodes' trees are compared."""
_STATED = ("verl/version/version", *(f"{FOLDER}/{name}" for name in ("ledger.json",)))
"""Files without a suffix of a text, or outside of the searched folders, that a plan reads all the same."""
_LENGTH = 16
"""Hexadecimal digits of a digest that is only compared: 64 bits tell the files of a cluster apart."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SHORT = 2.0
"""Seconds for a figure of a disk. A dead network mount takes longer, and then has none."""
_READS = 5
"""How often the tree is read while another command writes to it; as `patcher.session.tree_access`."""

Verb = Callable[[Request], "dict[str, Any]"]


def main(verbs: Mapping[str, str]) -> None:
    """Answer all requests of standard input, in order; `verbs` are those of the agent.

    The answers go to the descriptor that the program's second argument names, and all that is printed to standard
    error.
    """
    sink = os.dup(int(sys.argv[2]))
    os.dup2(2, 1)
    own = {f"node_{name}": f"{__name__}:{name}" for name in ("look", "texts", "commit")}
    server = Server(-1, sink, {**verbs, **own})
    server.answer_all(frames.read_all(sys.stdin.buffer.read()))


def _refusing(verb: Verb) -> Verb:
    """A mistake of the user or of the machine, as the agent's protocol tells it."""

    @wraps(verb)
    def answer(request: Request) -> dict[str, Any]:
        try:
            return verb(request)
        except UkyError as error:
            raise Refusal(type(error).__name__, *_message_parts(error)) from error

    return answer


def _message_parts(error: UkyError) -> tuple[Any, Any, Any]:
    title, cause, advice = (encode(part) or None for part in (error.title, error.cause, error.advice))
    as_message = title if isinstance(title, dict) else {"template": "{title}", "fields": {"title": title}}
    return as_message, cause, advice


def look(request: Request) -> dict[str, Any]:
    """The machine, and the tree at `root`, else the one whose verl a worker imports.

    `files` and `folders` are read for the plan besides the usual ones; `wait` are the seconds that another command may
    hold the tree. Where there is no usable tree, `error` says why.
    """
    started = time.monotonic()
    args = request.args
    imported = sys.argv[1] or None
    root = args["root"] or (str(Path(imported).parent) if imported else None)
    found: dict[str, Any] = {**_machine(root), "root": root, "imported": imported}
    try:
        # As the workers see it: with what PYTHONPATH adds, which an interpreter that is only read off would not have.
        found["interpreter"] = described(running(), "named")
        found["tree"] = _tree(root, args)
    except UkyError as error:
        found["error"] = dict(zip(("title", "cause", "advice"), _message_parts(error), strict=True))
    found["seconds"] = time.monotonic() - started
    return found


def _machine(root: str | None) -> dict[str, Any]:
    at = root or "/"
    found, missing = gather(
        {
            "gpus": Fact(gpus.gpus, gpus.SECONDS + 0.5),
            "tree": Fact(lambda: resources.room(at), _SHORT),
            "tmp": Fact(lambda: resources.room("/tmp"), _SHORT),  # noqa: S108
            "shm": Fact(lambda: resources.room("/dev/shm"), _SHORT),  # noqa: S108
        }
    )
    return {
        "hostname": platform.node(),
        "python": {"executable": sys.executable, "version": platform.python_version()},
        "variables": shown(dict(os.environ)),
        "gpus": [{name: gpu.get(name) for name in ("name", "memory", "driver")} for gpu in found.get("gpus", ())],
        "disks": {name: found.get(name) for name in ("tree", "tmp", "shm")},
        "missing": missing,
    }


def _tree(root: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    if root is None:
        raise UsageError(
            phrase("no tree was named, and a worker finds no verl"),
            advice=phrase("Name it with --root DIR, as its path is on the nodes."),
        )
    tree = Tree.open(Path(root))
    for attempt in range(1, _READS + 1):
        with tree.reading(wait=args["wait"]) as reading:
            if reading.unfinished is not None:
                raise reading.unfinished
            found = {
                "contents": contents(tree.root),
                "plan": _files_of_plan(tree, {*args["files"], *reading.ledger.files}, args["folders"]),
                "delivered": _delivered(tree, reading.ledger),
                "identity": identity(tree.root),
            }
            if not reading.disturbed() or attempt == _READS:
                return found
    raise AssertionError("unreachable")


def contents(root: Path) -> dict[str, str]:
    """The digest of each file of the tree's packages, by its path; caches of Python are left out.

    A file that cannot be read has an empty digest.
    """
    paths = [
        f"{folder}/{path}"
        for folder in PACKAGES
        for path in disk.files_below(str(root / folder))
        if "__pycache__/" not in path and not path.endswith(".pyc")
    ]
    found, failed = digests(str(root), paths)
    return {path: found[path].sha256[:_LENGTH] for path in sorted(found)} | dict.fromkeys(failed, "")


def identity(root: Path) -> dict[str, str | int]:
    """What tells one tree from another: the kernel that it is seen by, its device and inode, its file system."""
    status = (root / "verl").stat()
    kind, source = resources.mount(str(root / "verl"))
    return {
        "boot": _BOOT.read_text().strip(),
        "device": status.st_dev,
        "inode": status.st_ino,
        "born": status.st_ctime_ns,
        "kind": kind,
        "source": source,
    }


def _files_of_plan(tree: Tree, named: Iterable[str], folders: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Digest and mode of each file that a plan may read: sources and settings, the ledger, the pre-images.

    A file that a record names may be reached by a symlink within the tree. Raises TreeError where one leads out of it.
    """
    paths = {file.path for file in tree.text_files()} | set(_stated(tree.root)) | set(_listed(tree, folders))
    found, _ = digests(str(tree.root), sorted(paths))
    told = {path: (one.sha256, one.mode) for path, one in found.items()}
    for path in sorted(named):
        if path not in told and (source := tree.read(path)) is not None:
            told[path] = (source.sha256, source.mode)
    return told


def _stated(root: Path) -> Iterator[str]:
    yield from _STATED
    for pattern in ("verl-*.dist-info/METADATA", "verl-*.dist-info/RECORD", f"{FOLDER}/originals/*"):
        yield from (path.relative_to(root).as_posix() for path in root.glob(pattern))


def _listed(tree: Tree, folders: Iterable[str]) -> Iterator[str]:
    """The records that lie in folders of the tree, as its own settings name them."""
    for folder in folders:
        yield from (path.relative_to(tree.root).as_posix() for path in (tree.root / folder).glob("*.toml"))


def _delivered(tree: Tree, ledger: Ledger) -> list[str]:
    """Of the patched files that hold something else now: those that git or pip has put there."""
    odd = {}
    for path, file in ledger.files.items():
        source = tree.read(path)
        if source is None or source.sha256 not in (file.patched, file.original):
            odd[path] = source
    return sorted(delivered(tree.root, odd))


@_refusing
def texts(request: Request) -> dict[str, Any]:
    """The contents of `paths` below `root`, one after another in the body, compressed; `sizes` are those of each.

    A file that is gone meanwhile has size -1.
    """
    tree = Tree.open(Path(request.args["root"]))
    found = [_content(tree, path) for path in request.args["paths"]]
    request.reply_body = zlib.compress(b"".join(content or b"" for content in found), 3)
    return {"sizes": [-1 if content is None else len(content) for content in found]}


def _content(tree: Tree, path: str) -> bytes | None:
    if not path.startswith(f"{FOLDER}/"):
        source = tree.read(path)
        return source.content if source is not None else None
    try:
        return disk.read(tree.root / path)[0]
    except OSError:
        return None


@_refusing
def commit(request: Request) -> dict[str, Any]:
    """Write what was planned for the tree at `root`, in one transaction under its lock: all of it or nothing.

    `planned_on` holds the digest of each file that the plan was made from ("" where there was none), `ledger_before`
    that of the ledger. Answers `changed` with the names of what is another now, and has written nothing then; else
    `written`. `patcher.worktree.transaction` says what `changes`, `ledger` and `originals` are. `release` is a ledger,
    and the release that its pre-images are of, to be kept before.
    """
    args = request.args
    tree = Tree.open(Path(args["root"]))
    _search_only_outside(tree.root)
    changes = [Change(path, expected, base64.b64decode(content)) for path, expected, content in args["changes"]]
    with tree.transaction("apply", wait=args["wait"]) as transaction:
        changed = [path for path, expected in args["planned_on"].items() if _digest(tree, path) != expected]
        if digest_of(dump(transaction.ledger)) != args["ledger_before"]:
            changed.append(f"{FOLDER}/ledger.json")
        if changed:
            return {"changed": changed}
        if not args["allow_dirty"]:
            refuse_foreign_changes(tree, transaction.ledger, {change.path for change in changes})
        if args["release"] is not None:
            kept, release = args["release"]
            tree.storage.keep_release(parse(kept.encode(), f"{FOLDER}/ledger.json"), release)
        originals = {name: base64.b64decode(content) for name, content in args["originals"].items()}
        ledger = parse(args["ledger"].encode(), f"{FOLDER}/ledger.json")
        transaction.commit(changes, ledger, originals=originals)
    return {"written": [change.path for change in changes]}


def _search_only_outside(root: Path) -> None:
    """Let no `git` that lies in the tree be started, as `PATH=.:$PATH` or `PATH=/fork/bin:$PATH` would have it."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [entry for entry in entries if entry.startswith("/") and not lies_in(entry, root)]
    os.environ["PATH"] = os.pathsep.join(kept)


def _digest(tree: Tree, path: str) -> str:
    source = tree.read(path)
    return source.sha256 if source is not None else ""
