"""What the setting records know of a variable: which releases read it, and what to use instead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from patcher.i18n import Language, Phrase
from patcher.records.settings import Setting, load_settings


@dataclass(frozen=True, slots=True)
class Instead(Phrase):
    """A record's own words, which come with their Chinese."""

    chinese: str = ""

    def render(self, language: Language) -> str:
        return self.chinese if language == "zh" and self.chinese else str(self)


def advice_on_variable(name: str, package: str, version: str) -> Phrase | None:
    """What to use instead of a variable that the release does not read; None if no record says."""
    for setting in _records(name):
        if setting.reasons.instead and not _reads(setting, package, version):
            return Instead("{instead}", {"instead": setting.reasons.instead}, setting.zh.instead if setting.zh else "")
    return None


def was_read_before(name: str, package: str, version: str) -> bool:
    """Whether a record names releases of the package that read the variable, this one not among them."""
    return any(setting.reader == package and not _reads(setting, package, version) for setting in _records(name))


def _reads(setting: Setting, package: str, version: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import InvalidVersion, Version

    if setting.reader == "nothing" or package not in setting.when:
        return setting.reader != "nothing"
    try:
        return SpecifierSet(setting.when[package]).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _records(name: str) -> tuple[Setting, ...]:
    return _by_variable().get(name, ())


@lru_cache(maxsize=1)
def _by_variable() -> dict[str, tuple[Setting, ...]]:
    found: dict[str, tuple[Setting, ...]] = {}
    for setting in load_settings():
        if setting.variable:
            found[setting.variable] = (*found.get(setting.variable, ()), setting)
    return found
