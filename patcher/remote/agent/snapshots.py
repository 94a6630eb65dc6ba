"""Which model a folder holds.

This is the only such rule. `uky-patch model newest` and the checks call it, and its text is rendered into git_ignore.py
and the run scripts of a host: so it uses the standard library alone, and to change its text is to change those files.
"""

from __future__ import annotations

import os


def newest_snapshot(base: str, depth: int = 2) -> str:
    """The folder of the model at `base`: itself if it holds config.json, else the snapshot that refs/main names (as
    Hugging Face's cache has it), else the newest by modification time, the later name where two are equal.

    Looks `depth` folders below a folder of models. Raises FileNotFoundError where there is none.
    """
    if os.path.isfile(os.path.join(base, "config.json")):
        return base
    inner = os.path.join(base, "snapshots")
    if os.path.isdir(inner):
        base = inner
    if os.path.basename(os.path.normpath(base)) == "snapshots":
        depth = 1
        try:
            place = os.path.join(os.path.dirname(os.path.normpath(base)), "refs", "main")
            with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK)) as file:  # Also rendered alone into git_ignore.py.
                named = os.path.join(base, file.read(4096).strip() or "-")
            if os.path.isfile(os.path.join(named, "config.json")):
                return named
        except (OSError, ValueError):
            pass
    found = []
    names = os.listdir(base) if depth and os.path.isdir(base) else []
    for name in names:
        folder = os.path.join(base, name)
        if os.path.isdir(folder):
            try:
                model = newest_snapshot(folder, depth - 1)
                found.append((os.stat(model).st_mtime_ns, model))
            except OSError:
                pass
    if not found:
        raise FileNotFoundError(2, "there is no folder with config.json at or below", base)
    return max(found)[1]
