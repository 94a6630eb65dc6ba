"""The verb `sources`: send the Python sources of one installed package, such as a nightly vLLM.

On this machine they answer which symbols that build has; no release that could be downloaded is the same.
"""

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
"""The most bytes of a package's sources. A guess: those of vLLM and torch have some 20 to 60 MB."""
_COMPILED = (".so", ".pyd")


def sources(request: Request) -> dict[str, Any]:
    """Answer with a `stamp` of the package in the folder `package`, and its .py files in the body, compressed by zlib.

    There is no body where the stamp is the one that the client has (`known`). The body is a line of JSON, a list of
    [path, size], and then the files one after another; compiled modules are listed with size -1. Nothing but .py files
    below the package's folder is read.

    Raises Refusal of kind `package` where there is no package, or one that is too large.
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
    """Path below the package, size and modification time in ns of each source and compiled module."""
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
    """The body of the answer. A file that cannot be read is left out."""
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
