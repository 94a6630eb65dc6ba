"""A package's sources in a folder of any of the usual layouts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from patcher.environment.model import MODULES
from patcher.errors import UsageError
from patcher.language import phrase

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
