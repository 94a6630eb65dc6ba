"""The agent on a node of a Ray cluster, with three more verbs for the tree that is there.

The sources are sent with each call and run from memory (`patcher.cluster.joining`). All requests come on standard input
as frames of the agent's protocol, until its end. The answers go in the same order to a descriptor that an argument
names, because code of the site may print to standard output.

- `node_look` tells what the machine and its tree are: versions, GPUs, disks, the digest of each file.
- `node_texts` sends the files that a plan needs and the asking side does not have.
- `node_commit` writes the bytes that were planned there, if the tree is still what they were planned for.

git is asked here, because the checkout is here, and under the tree's lock. It is asked by the room `git`, which
protects against a checkout of somebody else: no hook, filter or monitor of the repository runs. So this module, `git`
and `tree`, with the rooms that they import (`errors`, `i18n`), are sent to nodes beside the agent. Unlike the agent
they need Python 3.10.
"""

from __future__ import annotations

import base64
import contextlib
import os
import platform
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from patcher.errors import UkyError, UsageError
from patcher.git.delivered import delivered
from patcher.git.refusing import refuse_foreign_changes, refuse_under_way
from patcher.i18n import phrase
from patcher.i18n.codec import encode
from patcher.messages import Refusal
from patcher.packages.agent.interpreter import running
from patcher.remote.agent import frames, gpus, resources
from patcher.remote.agent.facts import Fact, gather
from patcher.remote.agent.interpreters import described
from patcher.remote.agent.serving import Request, Server
from patcher.remote.agent.variables import shown
from patcher.tree import Tree
from patcher.tree.source import sha256_of
from patcher.worktree import disk, verl_tree
from patcher.worktree.files import lies_in
from patcher.worktree.hashing import digest_of, digests
from patcher.worktree.layout import FOLDER
from patcher.worktree.ledger import Ledger, dump, parse
from patcher.worktree.transaction import Change

PACKAGES = ("verl", "recipe")
"""The packages of a fork that workers import: the trees of two nodes are compared by the files in them."""
_ALSO_PLANNED = ("verl/version/version", f"{FOLDER}/ledger.json")
"""Files that a plan reads besides sources and settings."""
_LENGTH = 16
"""Hexadecimal digits of a digest that is only compared: 64 bits tell the files of a cluster apart, and an answer has
thousands of them."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SHORT = 2.0
"""Seconds for a figure of a disk; a dead network mount gives none. A guess."""
_READS = 5
"""How often the tree is read where another command writes to it meanwhile; as `patcher.session.tree_access`."""


def main(verbs: Mapping[str, str]) -> None:
    """Answer all requests of standard input, in order. `verbs` are those of the agent.

    The program's arguments are the folder of the verl that the worker imports, empty for none, and the descriptor for
    the answers. What is printed goes to standard error.
    """
    sink = os.dup(int(sys.argv[2]))
    os.dup2(2, 1)
    own = {f"node_{name}": f"{__name__}:{name}" for name in ("look", "texts", "commit")}
    server = Server(-1, sink, {**verbs, **own})
    server.answer_all(frames.read_all(sys.stdin.buffer.read()))


def look(request: Request) -> dict[str, Any]:
    """The verb `node_look`: what the machine and its tree are; `patcher.cluster.model.facts_of` reads the answer.

    The tree is the one at `root`, else the one whose verl a worker imports. `files`, and the records in `folders`, are
    digested for the plan besides the usual files; `wait` is how many seconds to wait for another command that holds the
    tree's lock. Where there is no usable tree, `error` says why, and there is no `tree`.
    """
    started = time.monotonic()
    args = request.args
    imported = sys.argv[1] or None
    root = args["root"] or (str(Path(imported).parent) if imported else None)
    found: dict[str, Any] = {**_machine(root), "root": root, "imported": imported}
    try:
        # As the workers see it: with what PYTHONPATH adds, which an interpreter that is only read off would not have.
        found["interpreter"] = described(running(), "named")
        with _refusals():
            found["tree"] = _tree(root, args)
    except Refusal as error:
        found["error"] = {"title": error.title, "cause": error.cause, "advice": error.advice}
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


def _tree(named: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    if named is None:
        raise UsageError(
            phrase("no tree was named, and a worker finds no verl"),
            advice=phrase("Name it with --root DIR, as its path is on the nodes."),
        )
    tree = Tree.open(Path(named))
    for attempt in range(1, _READS + 1):
        with tree.reading(wait=args["wait"]) as under_way:
            if under_way.unfinished is not None:
                raise under_way.unfinished
            ledger = under_way.ledger
            contents, plan = _digests(tree, {*args["files"], *ledger.files}, args["folders"])
            found = {
                "contents": contents,
                "plan": plan,
                "delivered": _delivered(tree, ledger),
                "identity": identity(tree.root),
            }
            if not under_way.disturbed() or attempt == _READS:
                return found
    raise AssertionError("unreachable")


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Raise a UkyError as a Refusal, which crosses the connection."""
    try:
        yield
    except UkyError as error:
        title, cause, advice = (encode(part) or None for part in (error.title, error.cause, error.advice))
        as_message = title if isinstance(title, dict) else {"template": "{title}", "fields": {"title": title}}
        raise Refusal("tree", as_message, cause, advice) from error


def _digests(
    tree: Tree, named: Iterable[str], folders: Iterable[str]
) -> tuple[dict[str, str], dict[str, tuple[str, int]]]:
    """Two tables by path; a file that is in both is read once.

    - For the comparison of nodes: the digest of each file of the tree's packages, without Python's caches. It is empty
      where a file cannot be read.
    - For the plan: digest and mode of each file that it may read, such as sources and settings, the ledger, the
      pre-images, and those that are `named`, which may be reached by a symlink within the tree.

    Raises TreeError where such a symlink leads out of the tree.
    """
    root = tree.root
    of_packages = {
        f"{folder}/{path}"
        for folder in PACKAGES
        for path in disk.files_below(str(root / folder))
        if "__pycache__/" not in path and not path.endswith(".pyc")
    }
    of_plan = {file.path for file in verl_tree.files(root, verl_tree.TEXT)}
    of_plan.update(_also_planned(root), _records(root, folders))
    found, failed = digests(str(root), sorted(of_packages | of_plan))
    contents = {path: found[path].sha256[:_LENGTH] for path in sorted(of_packages & found.keys())}
    contents.update(dict.fromkeys(of_packages & failed.keys(), ""))
    plan = {path: (found[path].sha256, found[path].mode) for path in of_plan & found.keys()}
    for path in sorted(set(named) - plan.keys()):
        source = tree.read(path)
        if source is not None:
            plan[path] = (source.sha256, source.mode)
    return contents, plan


def _also_planned(root: Path) -> Iterator[str]:
    yield from _ALSO_PLANNED
    for pattern in ("verl-*.dist-info/METADATA", "verl-*.dist-info/RECORD", f"{FOLDER}/originals/*"):
        yield from (path.relative_to(root).as_posix() for path in root.glob(pattern))


def _records(root: Path, folders: Iterable[str]) -> Iterator[str]:
    """The records that lie in folders of the tree, as its own settings name them."""
    for folder in folders:
        yield from (path.relative_to(root).as_posix() for path in (root / folder).glob("*.toml"))


def _delivered(tree: Tree, ledger: Ledger) -> list[str]:
    """The files with records that hold neither what was written nor what was there before, because git or pip has put
    another text there; those that a person has edited are not among them.
    """
    odd = [path for path, state in tree.state(ledger).items() if state in ("tampered", "missing")]
    return sorted(delivered(tree.root, {path: tree.read(path) for path in odd}))


def identity(root: Path) -> dict[str, str | int]:
    """What tells this tree from another, as `patcher.cluster.model.Identity` holds it."""
    status = (root / "verl").stat()
    return {
        "boot": _BOOT.read_text().strip(),
        "device": status.st_dev,
        "inode": status.st_ino,
        "born": status.st_ctime_ns,
        "kind": resources.mount(str(root / "verl"))[0],
    }


def texts(request: Request) -> dict[str, Any]:
    """The verb `node_texts`: the contents of `paths` below `root`, one after another in the body, compressed by zlib.

    Answers `sizes`, the bytes of each; -1 for a file that is gone meanwhile.
    """
    with _refusals():
        tree = Tree.open(Path(request.args["root"]))
        found = [_text(tree, path) for path in request.args["paths"]]
    request.reply_body = zlib.compress(b"".join(content or b"" for content in found), 3)
    return {"sizes": [-1 if content is None else len(content) for content in found]}


def _text(tree: Tree, path: str) -> bytes | None:
    if not path.startswith(f"{FOLDER}/"):
        source = tree.read(path)
        return source.content if source is not None else None
    try:
        return disk.read(tree.root / path)[0]
    except OSError:
        return None


def commit(request: Request) -> dict[str, Any]:
    """The verb `node_commit`: write what was planned for the tree at `root`, all of it or nothing, under its lock.

    `planned_on` holds the digest of each file that the plan was made from (ABSENT where there was none),
    `ledger_before` that of the ledger. Where one of them is another now, nothing is written, and the answer is
    `changed`, their paths; else it is `written`. `patcher.worktree.transaction` says what `changes`, `ledger` and
    `originals` are; contents are base64. `release`, unless it is null, is a ledger and the release whose pre-images it
    lists, which are to be kept. With `allow_dirty` uncommitted changes of somebody are no obstacle.
    """
    args = request.args
    changes = [
        Change(path, expected, None if content is None else base64.b64decode(content))
        for path, expected, content in args["changes"]
    ]
    with _refusals():
        tree = Tree.open(Path(args["root"]))
        _search_only_outside(tree.root)
        with tree.transaction("apply", wait=args["wait"]) as under_way:
            changed = [path for path, expected in args["planned_on"].items() if sha256_of(tree.read(path)) != expected]
            if digest_of(dump(under_way.ledger)) != args["ledger_before"]:
                changed.append(f"{FOLDER}/ledger.json")
            if changed:
                return {"changed": changed}
            refuse_under_way(tree, under_way.ledger, {change.path for change in changes})
            if not args["allow_dirty"]:
                refuse_foreign_changes(tree, under_way.ledger, {change.path: change.content for change in changes})
            if args["release"] is not None:
                kept, release = args["release"]
                tree.keep_release(parse(kept.encode(), f"{FOLDER}/ledger.json"), release)
            originals = {name: base64.b64decode(content) for name, content in args["originals"].items()}
            ledger = parse(args["ledger"].encode(), f"{FOLDER}/ledger.json")
            under_way.commit(changes, ledger, originals=originals)
    return {"written": [change.path for change in changes]}


def _search_only_outside(root: Path) -> None:
    """Take folders of the tree out of PATH, so that no `git` in it is started: `PATH=.:$PATH`, `PATH=/fork/bin`."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [entry for entry in entries if entry.startswith("/") and not lies_in(entry, root)]
    os.environ["PATH"] = os.pathsep.join(kept)
