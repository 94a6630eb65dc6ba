"""The keys of `[hosts.NAME]` that say what its jobs ask of Slurm, and the rules for their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from patcher.i18n import phrase
from patcher.remote.slurm import KEYS
from patcher.secrets.contexts import is_secret_value
from patcher.tables.mistakes import KeyPath
from patcher.tables.shapes import Field, Matching, Mistakes, choice, text, texts, whole

_MOST_NODES = 4096
"""The most nodes of a job. A guess, which only catches a slip of the finger."""
_OURS = (
    *("output", "error", "input", "wrap", "array", "export", "export-file", "chdir", "wait", "test-only", "parsable"),
    *("job-name", "clusters"),
)
"""Options of sbatch that uky-patch gives itself, or that change what it has to know: where the log is, which job it
is, and when sbatch returns."""


def _is_option(value: str) -> None:
    """sbatch takes any unambiguous beginning of a long option, so `--out=x` is refused as `--output=x` is."""
    found = re.fullmatch(r"--([a-z][a-z0-9-]*)(=[^\x00-\x1f\x7f]+)?", value)
    if found is None:
        raise ValueError(phrase("{value!r} is no option such as --qos=high", value=value))
    if found[1] in KEYS:
        raise ValueError(phrase("{value!r}: the key {key} says that", value=value, key=found[1]))
    if any(name.startswith(found[1]) for name in _OURS):
        raise ValueError(phrase("{value!r}: uky-patch itself gives this option", value=value))
    if is_secret_value((found[2] or "")[1:]):
        raise ValueError(phrase("--{name} looks like a secret, which anybody on the cluster can read", name=found[1]))


_IS_WORD = Matching(
    re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:@+=/()*-]*"), "{value!r} is not what Slurm takes there", "value"
)
_IS_TIME = Matching(
    re.compile(r"\d+(?::\d+){0,2}|\d+-\d+(?::\d+){0,2}"),
    "{value!r} is no time limit; Slurm's own form: 30 (minutes), 4:00:00, 2-00:00:00",
    "value",
)
FIELDS: Mapping[str, Field] = {
    "scheduler": choice(("slurm",), default=None),
    **{key: text(_IS_WORD, default=None) for key in ("partition", "account", "gres")},
    "time": text(_IS_TIME, default=None),
    "nodes": whole(None, most=_MOST_NODES),
    "sbatch": texts(_is_option),
}
"""Keys of `[hosts.NAME]`."""


def check_slurm(mistakes: Mistakes, path: KeyPath, table: Mapping[str, Any]) -> None:
    """Note the keys that mean nothing without `scheduler = "slurm"`."""
    if "scheduler" not in table:
        for key in (*KEYS, "sbatch"):
            if key in table:
                mistakes.note((*path, key), phrase('goes with scheduler = "slurm"'))
