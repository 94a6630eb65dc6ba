"""All that was learnt of a run, put together: sections of the archive, facts for the report, and what is missing."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher.bundle import gathering
from patcher.bundle.gathering import as_text
from patcher.bundle.model import Asked, Found, Missing, Section
from patcher.errors import UsageError
from patcher.homes import home
from patcher.i18n import phrase
from patcher.jobs.logs import Log, command_in, sections_of
from patcher.remote.agent.variables import of_process, told
from patcher.secrets.known import values_here
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.diagnose.model import Diagnosis
    from patcher.remote.host import Host
    from patcher.remote.survey import Survey
    from patcher.session.session import Session

SCRIPT = 1 << 20
POINTS = ("hardware", "software", "command", "log", "environment", "script", "tried")
"""The seven points of a bug report, in order."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What the machine, the agent and the log say."""

    host: Host
    machine: Survey
    state: Mapping[str, Any]
    log: Log | None
    diagnosis: Diagnosis | None
    stacks: tuple[Section, ...]
    hidden: int
    """Secrets that were taken out of the log on its way."""


def found(session: Session, asked: Asked, learnt: Learnt) -> Found:
    """Put it together. Raises UsageError where the script that was named cannot be read."""
    host, machine, state, log, diagnosis = learnt.host, learnt.machine, learnt.state, learnt.log, learnt.diagnosis
    script = _script(asked.script)
    missing: list[Missing] = []
    sections: list[Section] = []
    facts: dict[str, Any] = {
        "machine": gathering.machine(machine, state),
        "versions": gathering.versions(machine, session, here=host.here),
        "tried": asked.tried,
        "others": state.get("others", ()),
    }
    facts["environments"] = list(state["environments"]) or _own(host, asked, missing)
    facts["command"] = asked.command or state["command"] or command_in(log)
    if log is not None:
        sections += sections_of(log, diagnosis, asked, facts)
    if diagnosis is not None:
        sections += _diagnosis_sections(diagnosis, log)
    tree_sections, lacking, machines = gathering.tree(session) if session.root_if_any is not None else ([], [], [])
    missing += lacking
    sections += tree_sections
    _tree_facts(tree_sections, facts)
    known = {name: item["version"] for name, item in facts["versions"]["packages"].items()}
    decided = gathering.settings(known, facts["environments"])
    facts["ignored"] = decided["set_and_ignored"]
    sections += [
        Section(
            "machine.json",
            phrase("GPUs, driver, kernel, limits, disk, shared memory"),
            as_text(facts["machine"]),
        ),
        Section("versions.json", phrase("what is installed under the interpreter"), as_text(facts["versions"])),
        Section(
            "environment.json",
            phrase("variables by a closed list; of others their number"),
            as_text(facts["environments"]),
        ),
        Section("settings.json", phrase("which variables these versions read, and which not"), as_text(decided)),
    ]
    if state["smi"].strip():
        sections.append(Section("nvidia-smi.txt", phrase("what nvidia-smi shows"), state["smi"]))
    sections += [*gathering.rays(state), *gathering.job(state)]
    sections += learnt.stacks
    facts["script"] = script or _script_of_job(state)
    if facts["script"] is not None:
        holds = phrase("the script that reproduces it") if script else phrase("the run script of the job")
        sections.append(Section(f"script/{facts['script']['name']}", holds, facts["script"]["text"]))
    missing += _lacking(facts, machine, log, asked)
    names = state["names"]
    users = [*names["users"], machine.user, *([host.target.partition("@")[0]] if "@" in host.target else [])]
    users += [process["user"] for gpu in state["devices"] for process in gpu["busy"] if process.get("user")]
    here = [] if host.here else [host.name, host.target.rpartition("@")[2]]
    return Found(
        sections=tuple(sections),
        facts=facts,
        diagnosis=diagnosis,
        missing=tuple(sorted(missing, key=lambda one: POINTS.index(one.point))),
        secrets=frozenset(_known(host, state)),
        users=tuple(dict.fromkeys([*users, *_users_here()])),
        homes=tuple(dict.fromkeys([*names["homes"], machine.home, str(home())])),
        hosts=tuple(dict.fromkeys([*names["hosts"], machine.hostname, *here, *_hosts_here(), *machines])),
        hidden=learnt.hidden + int(state["hidden"]),
    )


def _diagnosis_sections(diagnosis: Diagnosis, log: Log | None) -> list[Section]:
    from patcher.report.diagnose import show_diagnosis

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        show_diagnosis(diagnosis, "text")
    table, text = as_text(diagnosis.as_json()), shown.getvalue()
    if log is not None:
        table, text = (one.replace(str(log.spot), log.said) for one in (table, text))
    return [
        Section("diagnosis.json", phrase("what diagnose says, for programs"), table),
        Section("diagnosis.txt", phrase("what diagnose says"), text),
    ]


def _tree_facts(sections: list[Section], facts: dict[str, Any]) -> None:
    for section in sections:
        if section.name == "tree/git.json" and isinstance(section.content, str):
            told = parse_json(section.content)
            facts["git"] = told if told["checkout"] else None
        if section.name == "tree/records.json" and isinstance(section.content, str):
            told = parse_json(section.content)
            facts["applied"] = [one["id"] for one in told["records"] if one["outcome"] in ("applied", "adopted")]


def _own(host: Host, asked: Asked, missing: list[Missing]) -> list[dict[str, Any]]:
    """Of a run that is over only this shell's variables can be told, on this machine."""
    if not host.here:
        return []
    if asked.log is not None:
        how = phrase("Run it in the shell that started the run, or while the run lives.")
        missing.append(Missing("environment", phrase("the run's own variables: these are this shell's"), how))
    return [told(os.environ, "this shell", [])]


def _script(path: Path | None) -> Mapping[str, str] | None:
    if path is None:
        return None
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(SCRIPT)
    except OSError as error:
        raise UsageError(phrase("{path}: cannot be read", path=path), cause=error.strerror or str(error)) from error
    return {"name": path.name, "text": text, "kind": _kind(path.name)}


def _script_of_job(state: Mapping[str, Any]) -> Mapping[str, str] | None:
    script = state["script"]
    return None if script is None else {**script, "kind": _kind(script["name"])}


def _kind(name: str) -> str:
    return "python" if name.endswith(".py") else "bash"


def _lacking(facts: Mapping[str, Any], machine: Survey, log: Log | None, asked: Asked) -> Iterator[Missing]:
    if not machine.gpus:
        reason = machine.missing.get("gpus", phrase("nvidia-smi shows no GPU"))
        yield Missing("hardware", phrase("the GPUs: {reason}", reason=reason))
    for name in ("torch", "vllm"):
        if name not in facts["versions"]["packages"]:
            how = phrase("Name the environment that trains with --python.")
            yield Missing("software", phrase("{package} is not installed there", package=name), how)
    if not facts["command"]:
        yield Missing("command", phrase("the whole command"), phrase("Give it with --command."))
    if log is None:
        yield Missing("log", phrase("the log"), phrase("Name it: uky-patch bundle LOG"))
    elif log.skipped and not asked.whole_log:
        told = phrase("{size} MiB in the middle of the log were not looked at", size=log.skipped >> 20)
        yield Missing("log", told, phrase("--whole-log fetches all of it."))
    if not facts["environments"]:
        yield Missing("environment", phrase("the variables of the run"))
    if asked.script is None:
        yield Missing("script", phrase("a minimal script that reproduces it"), phrase("Add one with --script FILE."))
    if not asked.tried:
        yield Missing(
            "tried", phrase("what was tried already"), phrase("Say it with --tried TEXT, as often as needed.")
        )


def _known(host: Host, state: Mapping[str, Any]) -> set[str]:
    """Values that are secret: the host's, those of this user, and here those of the run's processes."""
    found = values_here(dict(os.environ)) | set(host.secrets.values())
    for process in state["processes"] if host.here else ():
        found |= values_here(of_process(process["pid"]))
    return found


def _users_here() -> list[str]:
    import getpass

    try:
        return [getpass.getuser()]
    except (KeyError, OSError):
        return []


def _hosts_here() -> list[str]:
    import platform

    return [platform.node()]
