"""Sections of what is known of the machine, the tree and the run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patcher.bundle.model import Missing, Section
from patcher.errors import UkyError
from patcher.i18n import Phrase, language, phrase, show
from patcher.i18n.decoding import heard

if TYPE_CHECKING:
    from patcher.packages import Environment
    from patcher.remote.survey import Survey
    from patcher.session.session import Session

CONFIG_BYTES = 1 << 20
_USERINFO = re.compile(r"(?<=://)[^@/\s]*@")


def as_text(values: Any) -> str:
    """A table as JSON for people and programs."""
    return json.dumps(values, ensure_ascii=False, indent=1, default=str) + "\n"


def machine(survey: Survey, state: Mapping[str, Any]) -> dict[str, Any]:
    """Hardware, system and limits. Sizes in bytes."""
    shm = survey.raw.get("found", {}).get("shm", {})
    return {
        "gpus": [
            {
                "index": gpu.index,
                "name": gpu.name,
                "memory": gpu.memory,
                "used": gpu.used,
                "use": gpu.use,
                "mig": gpu.mig,
                "odd": gpu.odd,
                "processes": [
                    {"pid": one.pid, "memory": one.memory, "user": one.user, "name": one.name} for one in gpu.busy
                ],
            }
            for gpu in survey.gpus
        ],
        "driver": survey.driver,
        "cuda": survey.cuda,
        "libcuda": list(survey.libcuda),
        "libcuda_compat": list(survey.compat),
        "kernel": survey.kernel,
        "architecture": survey.machine,
        "container": survey.container,
        "cpus": survey.cpus,
        "memory": survey.memory,
        "memory_available": survey.available,
        "shm": {"size": shm.get("size"), "free": shm.get("free")},
        "disk": {"free": survey.free, "inodes": survey.inodes, "type": survey.filesystem, "tmp_free": survey.tmp},
        "limits": {**survey.limits, **_hard(state.get("limits", ""))},
        "missing": {name: str(reason) for name, reason in survey.missing.items()},
    }


def _hard(text: str) -> dict[str, str]:
    """All limits as the kernel lists them: soft and hard."""
    found = re.findall(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", text, re.MULTILINE)
    return {name: f"{soft} / {hard}" for name, soft, hard in found}


def versions(survey: Survey, session: Session, *, here: bool) -> dict[str, Any]:
    """What is installed under the interpreter that trains."""
    from patcher import __version__

    found: dict[str, Any] = {"uky-patch": __version__}
    if here:
        environment = environment_here(session)
        packages = {
            name: {"version": item.version, "distribution": item.distribution, "origin": item.origin}
            for name, item in environment.packages.items()
        }
        return found | {"packages": packages, "problems": [str(one) for one in environment.problems]}
    chosen = survey.interpreter
    if chosen is None:
        return found | {"packages": {}}
    packages = {
        name: {"version": item.version, "distribution": item.distribution, "origin": item.origin}
        for name, item in chosen.packages.items()
    }
    python = {"python": {"version": chosen.version, "distribution": None, "origin": chosen.origin}}
    return found | {"packages": packages | python, "problems": [str(one) for one in chosen.problems]}


def environment_here(session: Session) -> Environment:
    """What is installed here, also where there is no tree."""
    from patcher.packages import probe

    return session.environment if session.root_if_any is not None else probe(session.python, None, session.assume)


def tree(session: Session) -> tuple[list[Section], list[Missing], list[str]]:
    """Git's state, the records' outcomes and the fork's settings; what is missing; and machines that remotes name."""
    sections: list[Section] = []
    missing: list[Missing] = []
    machines: list[str] = []
    try:
        root = session.tree.root
    except UkyError as error:
        return [], [Missing("software", error.title)], []
    try:
        state, machines = _git(session)
        sections.append(Section("tree/git.json", phrase("commit, branch, names of changed files"), as_text(state)))
    except (UkyError, OSError) as error:
        missing.append(Missing("software", phrase("the state of git: {reason}", reason=_why(error))))
    try:
        sections.append(_records(session))
    except (UkyError, OSError) as error:
        missing.append(Missing("software", phrase("the records' outcomes: {reason}", reason=_why(error))))
    config = root / "uky-patch.toml"
    try:
        with config.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(CONFIG_BYTES)
        sections.append(Section("tree/uky-patch.toml", phrase("the fork's own settings, without secrets"), text))
    except OSError:
        pass
    return sections, missing, machines


def _git(session: Session) -> tuple[dict[str, Any], list[str]]:
    from patcher.bundle.names import machine_of
    from patcher.git.checkout import checkout

    root = session.tree.root
    found = checkout(root)
    if found is None:
        return {"checkout": False}, []
    changed = found.changed_files()
    plain = {name: _USERINFO.sub("", url) for name, url in found.remotes().items()}
    state = {
        "checkout": True,
        "branch": found.head.branch,
        "commit": found.head.commit,
        "changed": list(changed[:500]),
        "changed_count": len(changed),
        "remotes": plain,
    }
    return state, [name for url in plain.values() if (name := machine_of(url)) is not None]


def _records(session: Session) -> Section:
    from patcher.patching.status import standing
    from patcher.report.status import status_json

    told = status_json(standing(session), None, session)
    return Section("tree/records.json", phrase("the records and their outcomes on the tree"), as_text(told))


def settings(versions_of: Mapping[str, str], environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the versions make of the variables that are set, and which ones a run script would set or leave out."""
    from patcher.profiles.version_settings import ignored, variables

    notes: list[Any] = []
    wanted = variables("standard", versions_of, notes)
    shown = {name for environment in environments for name in environment["variables"]}
    reasons = {name: str(reason) for name in sorted(shown) if (reason := ignored(name, versions_of)) is not None}
    return {"run_script_sets": wanted, "left_out": [str(note) for note in notes], "set_and_ignored": reasons}


def rays(state: Mapping[str, Any]) -> Iterator[Section]:
    """What Ray's own commands said, and the ends of its logs."""
    told = state["ray"]
    for asked in told["asked"]:
        name = asked["command"].replace("ray ", "").replace(" ", "-")
        text = asked["output"] or f"({asked['reason']})\n"
        yield Section(f"ray/{name}.txt", phrase("what {command} said", command=asked["command"]), text)
    for log in told["logs"]:
        holds = phrase("the end of one of Ray's logs")
        if not told.get("sure"):
            holds = phrase("the end of a log of Ray's newest session, maybe another run's")
        yield Section(f"ray/logs/{log['name']}", holds, log["text"])


def job(state: Mapping[str, Any]) -> Iterator[Section]:
    """The job as it was started, and the tree's other ones."""
    found = state.get("job")
    if found is not None:
        left = ("variables", "env", "secrets", "clock", "folder")
        told = {key: value for key, value in found.items() if key not in left}
        told["others"] = state.get("others", [])
        yield Section(
            "job.json", phrase("the job: how it was started, its state, the tree's other jobs"), as_text(told)
        )
    if state["processes"]:
        yield Section("processes.json", phrase("the run's processes"), as_text(state["processes"]))


def said_in_words(reason: Any) -> str:
    """A sentence of the agent's in the reader's language."""
    return show(heard(reason), language())


def _why(error: UkyError | OSError) -> Phrase | str:
    from patcher.error_messages import said

    if isinstance(error, UkyError):
        return error.title if isinstance(error.title, Phrase) else str(error.title)
    return str(said(error))
