"""Which environment variables and hydra overrides a run script gets for the installed versions, and which are left out,
and why.

The facts are the files of `settings/`: who reads a variable, in which version range, its value in each profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from patcher.i18n import phrase
from patcher.packages.versions import Kind, No, satisfies
from patcher.profiles.rendered_file import Text
from patcher.records.settings import Override, Setting, load_settings
from patcher.remote.host import Profile
from patcher.remote.survey import Survey

_ENOUGH = 16
"""CPUs that Ray is given at most, unless the GPUs need more: it starts a Python process for each of them."""


def variables(profile: Profile, versions: Mapping[str, str], notes: list[Text]) -> dict[str, str]:
    """Variables that the profile sets and these versions read."""
    found: dict[str, str] = {}
    for setting in _settings():
        if setting.value is None or profile not in setting.profiles:
            continue
        unknown, unmet = _unknown(setting.when, versions), _unmet(setting.when, versions)
        if unmet is not None:
            fields = {"variable": setting.variable, "package": unmet, "version": versions[unmet]}
            notes.append(phrase("{variable} left out: {package} {version} ignores it", **fields))
        elif unknown is not None:
            template = "{variable} left out: the version of {package} is not known"
            notes.append(phrase(template, variable=setting.variable, package=unknown))
        else:
            found[setting.variable] = setting.value
    return found


def never_set(given: Mapping[str, str]) -> Iterator[str]:
    """Variables that guides set and no run script does, each with why; less those that the host's profile gives.

    For a comment in the script: `NCCL_TIMEOUT is not set: Neither torch nor NCCL reads it; instead: …`.
    """
    for setting in _settings():
        reasons = setting.reasons
        if setting.variable and setting.value is None and reasons.instead and setting.variable not in given:
            instead = "" if reasons.instead == "leave it out" else f"; instead: {reasons.instead}"
            yield f"{setting.variable} is not set: {reasons.reason.partition('. ')[0].rstrip('.')}{instead}"


def ignored(name: str, versions: Mapping[str, str]) -> Text | None:
    """Why a variable that the host's profile sets has no effect there; None if it may have one."""
    about = [setting for setting in _settings() if setting.variable == name]
    if any(setting.reader != "nothing" and _unmet(setting.when, versions) is None for setting in about):
        return None
    for setting in about:
        package = _unmet(setting.when, versions)
        if package is not None:
            fields = {"variable": name, "package": package, "version": versions[package]}
            return phrase("{variable} is set by the host's profile, but {package} {version} ignores it", **fields)
        return phrase("{variable} is set by the host's profile, but nothing reads it", variable=name)
    return None


def setting_overrides(profile: Profile, versions: Mapping[str, str], survey: Survey | None) -> Iterator[Override]:
    """Overrides that the profile gives with these versions; values are settled."""
    for setting in _settings():
        for item in setting.overrides:
            if profile not in item.profiles or not _holds(item, versions):
                continue
            if item.value != "{ray_cpus}":
                yield item
            elif (cpus := ray_cpus(survey)) is not None:
                yield Override(item.key, str(cpus), item.add, item.profiles, item.when, item.absent)


def ray_cpus(survey: Survey | None) -> int | None:
    """How many CPUs Ray is to be given: few on a large machine, and on a small one what verl asks for at least.

    verl reserves three for each GPU, and some for its driver. None where Ray's own count is right, or none is known.
    """
    if survey is None or survey.cpus < 1:
        return None
    needed = 4 * max(1, len(survey.gpus)) + 4
    wanted = max(needed, min(survey.cpus, _ENOUGH))
    return wanted if wanted != survey.cpus else None


def _holds(item: Override, versions: Mapping[str, str]) -> bool:
    if any(name in versions for name in item.absent):
        return False
    return _unmet(item.when, versions) is None and _unknown(item.when, versions) is None


def _unmet(when: Mapping[str, str], versions: Mapping[str, str]) -> str | None:
    """The first package whose version is known and does not fit."""
    for package, specifier in when.items():
        kind: Kind = "tree" if package == "verl" else "dependency"
        if package in versions and isinstance(satisfies(versions[package], specifier, kind=kind), No):
            return package
    return None


def _unknown(when: Mapping[str, str], versions: Mapping[str, str]) -> str | None:
    return next((package for package in when if package not in versions), None)


@lru_cache(maxsize=1)
def _settings() -> tuple[Setting, ...]:
    return load_settings()
