"""The Python sources of one installed package, for questions about its symbols that are asked elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from typing import Any

from patcher.messages import Refusal, phrase
from patcher.remote.agent.serving import Request
from patcher.worktree import files as files_

MOST_BYTES = 200_000_000
_COMPILED = (".so", ".pyd")


def sources(request: Request) -> dict[str, Any]:
    """All of `package`'s .py files, compressed into the body, unless their stamp is the one `known`.

    The body is a line of JSON, [path, size] each, and then the files one after another; compiled modules are named
    with size -1. Nothing but .py files below the package's folder is read. Raises Refusal where there is no package.
    """
    package = request.args["package"]
    if not os.path.isabs(package) or not os.path.isfile(os.path.join(package, "__init__.py")):
        raise Refusal("package", phrase("{path}: no package", path=package))
    files = _files(package)
    stamp = hashlib.sha256(json.dumps(files).encode("ascii")).hexdigest()
    if stamp != request.args.get("known"):
        request.reply_body = zlib.compress(_packed(package, files), 3)
    return {"stamp": stamp}


def _files(package: str) -> list[tuple[str, int, int]]:
    """Path below the package, size and time of change of each; compiled ones too."""
    found = []
    total = 0
    for folder, folders, names in os.walk(package):
        folders.sort()
        for name in sorted(names):
            if not name.endswith((".py", *_COMPILED)):
                continue
            path = os.path.join(folder, name)
            status = os.lstat(path)
            found.append((os.path.relpath(path, package), status.st_size, status.st_mtime_ns))
            total += status.st_size if name.endswith(".py") else 0
    if total > MOST_BYTES:
        raise Refusal("package", phrase("{path}: too large to be read over the line", path=package))
    return found


def _packed(package: str, files: list[tuple[str, int, int]]) -> bytes:
    entries: list[tuple[str, int]] = []
    contents: list[bytes] = []
    for path, _, _ in files:
        if path.endswith(_COMPILED):
            entries.append((path, -1))
            continue
        try:
            contents.append(files_.read(os.path.join(package, path), files_.SOURCE_BYTES))
        except OSError:
            continue
        entries.append((path, len(contents[-1])))
    return json.dumps(entries).encode("ascii") + b"\n" + b"".join(contents)
