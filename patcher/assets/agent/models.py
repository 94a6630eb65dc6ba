"""The newest model on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from patcher.messages import Refusal, phrase
from patcher.remote.agent.snapshots import newest_snapshot

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request


def newest(request: Request) -> dict[str, Any]:
    """The model in the first of the folders `bases` that is there; all are tried in order. Raises Refusal."""
    base = _base(request)
    model = found(request)
    return {"base": base, "model": model, "size": sum(size for _, size in weights(model))}


def found(request: Request) -> str:
    """The folder of the model that a request means."""
    base = _base(request)
    try:
        return newest_snapshot(base)
    except OSError:
        title = phrase("{path}: there is no model", path=base)
        cause = phrase("no folder with config.json is in it or below it")
        raise Refusal("missing", title, cause, phrase("Name the folder, or set models for this host.")) from None


def weights(model: str) -> list[tuple[str, int]]:
    """The files of weights with their sizes, largest first, linked ones once; all files where none is named so."""
    named: dict[tuple[int, int], tuple[str, int]] = {}
    others: dict[tuple[int, int], tuple[str, int]] = {}
    for name in sorted(os.listdir(model)):
        path = os.path.join(model, name)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if os.path.isfile(path):
            kind = named if name.endswith((".safetensors", ".bin", ".pt", ".pth", ".gguf")) else others
            kind[status.st_dev, status.st_ino] = (os.path.realpath(path), status.st_size)
    return sorted((named or others).values(), key=lambda file: -file[1])


def _base(request: Request) -> str:
    bases = [os.path.expanduser(str(base)) for base in request.args["bases"]]
    there = [base for base in bases if os.path.isdir(base)]
    if not there:
        title = phrase("{path}: there is no such folder", path=bases[-1])
        raise Refusal("missing", title, None, phrase("Name the folder, or set models for this host."))
    return there[0]
