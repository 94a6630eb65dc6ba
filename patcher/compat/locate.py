"""The sources of a package: of a release, of what is installed under an interpreter, or in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.environment.model import MODULES, Environment
from patcher.errors import EnvironmentProbeError, ReleaseError, UsageError
from patcher.language import phrase

if TYPE_CHECKING:
    from patcher.releases import Progress

INSTALLED = "installed"
"""In place of a version: what the interpreter has."""
_ADVICE = "Name a release ({name}==VERSION), a folder, or another interpreter with --python."
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
    """The import name of a distribution."""
    return MODULES.get(name, name.replace("-", "_"))


def package_of(
    name: str,
    where: str,
    *,
    environment: Environment | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    offline: bool = False,
) -> PackageSource:
    """The package by what stands behind `==`: a version, `installed`, or a folder (`./vllm`, `/src/vllm`).

    A folder may be the package, a checkout, site-packages or a virtual environment. Raises `ReleaseError`,
    `EnvironmentProbeError` or `UsageError` where it cannot be had.
    """
    if where == INSTALLED:
        return package_installed(name, environment or Environment(None, {}), cache, progress, offline)
    if "/" in where or where in (".", "..") or where.startswith("~"):
        return package_in_folder(name, Path(where).expanduser())
    return package_released(name, where, cache, progress, offline)


def package_released(
    name: str, version: str, cache: Path | None = None, progress: Progress | None = None, offline: bool = False
) -> PackageSource:
    """The sources of a release, fetched unless they are in the cache."""
    from patcher.releases import sources

    folder = sources(name, version, cache=cache, progress=progress, offline=offline)
    package = folder / module_of(name)
    if not package.is_dir():
        raise ReleaseError(
            phrase("{name} {version} has no package {module}", name=name, version=version, module=package.name),
            cause=phrase("looked in {folder}", folder=folder),
        )
    return PackageSource(name, package, version)


def package_installed(
    name: str,
    environment: Environment,
    cache: Path | None = None,
    progress: Progress | None = None,
    offline: bool = False,
) -> PackageSource:
    """What the interpreter would import; the release's sources where only its version is known (`--assume`)."""
    found = environment.packages.get(name)
    if found is None:
        raise EnvironmentProbeError(
            phrase("{name} is not installed under {python}", name=name, python=environment.python or "python"),
            advice=phrase(_ADVICE, name=name),
        )
    if found.location is None:
        return package_released(name, found.version, cache, progress, offline)
    return PackageSource(name, found.location, _known(found.version))


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
            return PackageSource(name, package, _version(name, package))
    raise UsageError(
        phrase("{folder} holds no package {module}", folder=folder, module=module),
        advice=phrase("Give the package's folder, a checkout, site-packages or a virtual environment."),
    )


def _candidates(folder: Path, module: str) -> list[Path]:
    found = [folder] if folder.name == module else []
    found += [folder / below / module for below in _BELOW]
    found += [site / module for pattern in _SITES for site in sorted(folder.glob(pattern))]
    return [Path(path) for path in found]


def _version(name: str, package: Path) -> str | None:
    from patcher.environment.folders import search_path
    from patcher.environment.metadata import literal_version
    from patcher.environment.resolve import resolve

    if name in MODULES:
        installed, _ = resolve(name, search_path((), (package.parent,)))
        if installed is not None:
            return _known(installed.version)
    return literal_version(package)


def _known(version: str) -> str | None:
    return version if version and version != "unknown" else None
