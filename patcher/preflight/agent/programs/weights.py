"""The model's folder: its newest snapshot, its configuration, and whether its weights are whole, by their headers."""

from __future__ import annotations

import json
import os
import shlex
from glob import glob

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check
from patcher.remote.agent.snapshots import newest_snapshot

FETCH = phrase(
    "fetch the model again, MODEL being its name on the hub: hf download MODEL --local-dir {folder}",
    folder=shlex.quote(ARGS["model"]),
)


def header(path: str) -> str:
    """What is wrong with a safetensors file, by its header and its size; empty where nothing is."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            return "no safetensors header"
        tensors = json.loads(file.read(length))
    end = max((item["data_offsets"][1] for name, item in tensors.items() if name != "__metadata__"), default=0)
    return f"{size:,} of {8 + length + end:,} bytes" if size != 8 + length + end else ""


def shards(folder: str) -> list[str]:
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            return sorted(set(json.load(file)["weight_map"].values()))
    return [os.path.basename(path) for path in glob(os.path.join(folder, "*.safetensors"))]


with Check("config", fix=FETCH) as here:
    try:
        folder = newest_snapshot(ARGS["model"])
    except FileNotFoundError:
        here.fail(
            phrase("{folder} holds no model: no config.json in it, nor in a snapshot", folder=ARGS["model"]), FETCH
        )
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    kind = ", ".join(config.get("architectures") or [str(config.get("model_type"))])
    here.ok(phrase("{kind} at {folder}", kind=kind, folder=folder), snapshot=folder)

with Check("weights", fix=FETCH) as here:
    names = shards(folder)
    missing = [name for name in names if not os.path.exists(os.path.join(folder, name))]
    if not names:
        others = glob(os.path.join(folder, "*.bin"))
        if not others:
            here.fail(phrase("{folder} holds no weights", folder=folder), FETCH)
        here.warn(
            phrase("{count} {count:file|files} of weights, none in safetensors", count=len(others)),
            phrase("convert them: load_format=safetensors needs them"),
        )
    elif missing:
        shown = ", ".join(missing[:3])
        here.fail(
            phrase(
                "{missing} of {count} {count:file|files} {missing:is|are} missing: {shown}",
                missing=len(missing),
                count=len(names),
                shown=shown,
            ),
            FETCH,
        )
    else:
        broken = [f"{name} ({odd})" for name in names if (odd := header(os.path.join(folder, name)))]
        if broken:
            here.fail(phrase("not whole: {files}", files=", ".join(broken[:3])), FETCH)
        size = sum(os.path.getsize(os.path.join(folder, name)) for name in names)
        here.ok(
            phrase(
                "{count} {count:file|files}, {size:.2f} GB, whole by their headers", count=len(names), size=size / 1e9
            )
        )
