"""What `bundle` collects of a run, here or on a host: sections (files of the archive), facts for the report, what is
missing.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patcher import __version__
from patcher.bundle.contents import BundleOptions, Missing, Run, Section
from patcher.bundle.excerpts import command_in, log_sections
from patcher.bundle.pseudonyms import machine_of
from patcher.diagnose.diagnose import diagnose_any, look_up
from patcher.diagnose.log_argument import LogOrHost, log_or_host, no_log_error
from patcher.errors import HostError, UkyError, UsageError, message_of
from patcher.git.checkout import checkout
from patcher.homes import home
from patcher.i18n import Phrase, phrase
from patcher.jobs.job_log import Log, job_log, judge_job, unnamed_copy
from patcher.packages.environment import probe
from patcher.patching.status import records_status
from patcher.profiles.version_settings import ignored
from patcher.profiles.version_settings import variables as variables_of
from patcher.remote.agent.variables import of_process, report_of
from patcher.remote.connection import connect
from patcher.remote.host import HERE, Host
from patcher.remote.survey import survey_host
from patcher.remote.tree_folder import open_tree_folder
from patcher.secrets.known import values_here
from patcher.session.hosts import host_for_session

if TYPE_CHECKING:
    from patcher.diagnose.diagnosis import Diagnosis
    from patcher.packages.environment import Environment
    from patcher.patching.status import RecordsStatus
    from patcher.remote.connection import Connection
    from patcher.remote.survey import Survey
    from patcher.session.session import Session

MOST_TEXT = 1 << 20
"""Bytes of a script or of uky-patch.toml that are taken: both are written by hand, and far smaller."""
_TITLE = 200
"""Characters of a command line above a stack. A longer one is not shown: its end may have been cut within a secret."""
_USERINFO = re.compile(r"(?<=://)[^@/\s]*@")


def target(session: Session, text: str | None, job: str | None, given: Mapping[str, Any]) -> LogOrHost:
    """The log here that `text` means, or the host; this machine where it is None.

    Raises UsageError for what can be neither, for a log that is not there, and for a job beside a log.
    """
    subject = log_or_host(session, HERE if text is None else text, given, "uky-patch bundle")
    if subject.log is None:
        return subject
    if job is not None:
        raise UsageError("--job names a job of a host, and a log was given")
    if subject.log != "-" and not Path(subject.log).exists():
        raise no_log_error(session, subject.log, "uky-patch bundle")
    return replace(subject, host=host_for_session(session, None))


@contextmanager
def collected(session: Session, host: Host, options: BundleOptions) -> Iterator[Run]:
    """All that there is, for as long as the log can be read.

    Raises HostError where the host cannot be reached, RefusedError where it has no such job, UsageError for a script
    that cannot be read, OSError where there is no room for a copy of the log.
    """
    script = _read_script(options.script)
    root = session.root_if_any
    if host.here:
        python = host.python or str(_environment_here(session).python)
        host = replace(host, path=str(root) if root is not None else None, python=python)
    elif root is None:
        raise UsageError(phrase("no verl tree here, so it is not known which one on {host} is meant", host=host.name))
    with connect(host) as connection:
        if root is not None:
            open_tree_folder(connection, root.name, None)
            options = _with_job(connection, root, options)
        machine = survey_host(connection, host)
        state = _ask_state(connection, options, machine)
        with _open_log(connection, options, state) as log:
            yield _run(session, connection, options, machine, state, log, script)


def _with_job(connection: Connection, root: Path, options: BundleOptions) -> BundleOptions:
    """Where no log was named it is the newest job's, if there is one; a log in a job's folder is that job's."""
    if options.log is not None and options.log != "-":
        at = Path(options.log).absolute()
        if connection.host.here and at.name == "log" and at.parent.parent == root / ".uky-patch" / "host" / "jobs":
            return replace(options, log=None, job=at.parent.name)
    if options.log is None and options.job is None:
        listed = connection.channel.ask("job_list")["jobs"]
        return replace(options, job=listed[-1]["id"] if listed else None)
    return options


def _ask_state(connection: Connection, options: BundleOptions, machine: Survey) -> Mapping[str, Any]:
    args: dict[str, Any] = {"python": machine.interpreter.python if machine.interpreter is not None else None}
    if options.job is not None:
        args["job"] = options.job
    elif options.log is not None and options.log != "-":
        args["log"] = str(Path(options.log).absolute())
    return connection.channel.ask("bundle_state", **args).values


@contextmanager
def _open_log(connection: Connection, options: BundleOptions, state: Mapping[str, Any]) -> Iterator[Log | None]:
    if options.log == "-":

        def copy(aside: Any) -> None:
            shutil.copyfileobj(sys.stdin.buffer, aside, 1 << 20)

        with unnamed_copy(copy) as path:
            yield Log(path, "-", path.stat().st_size)
    elif options.log is not None:
        yield Log(Path(options.log), options.log, Path(options.log).stat().st_size)
    else:
        job = state["job"]
        with job_log(connection, job, whole=options.whole_log) if job else nullcontext(None) as log:
            yield log


def _run(
    session: Session,
    connection: Connection,
    options: BundleOptions,
    machine: Survey,
    state: Mapping[str, Any],
    log: Log | None,
    script: Mapping[str, str] | None,
) -> Run:
    host = connection.host
    missing: list[Missing] = []
    facts: dict[str, Any] = {
        "machine": _machine(machine, state),
        "versions": _versions(machine, session, here=host.here),
        "environments": list(state["environments"]) or _own_variables(host, options, missing),
        "command": options.command or state["command"] or (command_in(log.path) if log is not None else ""),
        "script": script or _script(state["script"]),
        "tried": options.tried,
        "others": state.get("others", ()),
    }
    diagnosis = _diagnosis(session, state, log, None if host.here else facts["versions"]["packages"])
    sections: list[Section] = []
    if log is not None:
        found, facts["excerpt"], facts["first"] = log_sections(log.path, diagnosis, whole=options.whole_log)
        sections += found
    if diagnosis is not None and log is not None:
        text = as_text(diagnosis.as_json()).replace(str(log.path), log.name)
        sections.append(Section("diagnosis.json", phrase("what diagnose says, for programs"), text))
    status: RecordsStatus | None = None
    machines: list[str] = []
    if session.root_if_any is not None:
        status, machines = _tree(session, sections, facts, missing)
    sections += _machine_sections(facts, state)
    sections += _stacks(connection, state)
    if facts["script"] is not None:
        holds = phrase("the script that reproduces it") if script else phrase("the run script of the job")
        sections.append(Section(f"script/{facts['script']['name']}", holds, facts["script"]["text"]))
    missing += _lacking(facts, machine, log, options)
    names = state["names"]
    users = [*names["users"], machine.user, *([host.target.partition("@")[0]] if "@" in host.target else [])]
    users += [process["user"] for gpu in state["devices"] for process in gpu["busy"] if process.get("user")]
    there = [] if host.here else [name for name in (host.name, host.target.rpartition("@")[2]) if name]
    return Run(
        sections=tuple(sections),
        facts=facts,
        missing=tuple(missing),
        log=log,
        diagnosis=diagnosis,
        status=status,
        secrets=frozenset(_known_secrets(host, state)),
        users=tuple(dict.fromkeys([*users, *_user_here()])),
        homes=tuple(dict.fromkeys([*names["homes"], machine.home, str(home())])),
        hosts=tuple(dict.fromkeys([*names["hosts"], machine.hostname, *there, platform.node(), *machines])),
        hidden=(log.hidden if log is not None else 0) + int(state["hidden"]),
    )


def _diagnosis(
    session: Session, state: Mapping[str, Any], log: Log | None, packages: Mapping[str, Mapping[str, Any]] | None
) -> Diagnosis | None:
    """As `diagnose` says it; of a job with what its host knows of its end. `packages`: those there, None for here."""
    if log is None or state["job"] is None:
        return diagnose_any(session, str(log.path)) if log is not None else None
    versions = {name: item["version"] for name, item in packages.items()} if packages is not None else None
    return look_up(session, judge_job(session, state["job"], log, str(log.path), versions))


def as_text(values: Any) -> str:
    """A table as JSON for people and programs."""
    return json.dumps(values, ensure_ascii=False, indent=1, default=str) + "\n"


# The machine and what is installed.


def _machine(machine: Survey, state: Mapping[str, Any]) -> dict[str, Any]:
    """Hardware, system and limits. Sizes in bytes."""
    shm = machine.raw.get("found", {}).get("shm", {})
    # All limits as the kernel lists them: `Max open files            1024                 4096                 files`.
    limits = re.findall(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", state.get("limits", ""), re.MULTILINE)
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
            for gpu in machine.gpus
        ],
        "driver": machine.driver,
        "cuda": machine.cuda,
        "libcuda": list(machine.libcuda),
        "libcuda_compat": list(machine.compat),
        "kernel": machine.kernel,
        "architecture": machine.machine,
        "container": machine.container,
        "cpus": machine.cpus,
        "memory": machine.memory,
        "memory_available": machine.available,
        "shm": {"size": shm.get("size"), "free": shm.get("free")},
        "disk": {"free": machine.free, "inodes": machine.inodes, "type": machine.filesystem, "tmp_free": machine.tmp},
        "limits": {**machine.limits, **{name: f"{soft} / {hard}" for name, soft, hard in limits}},
        "missing": {name: str(reason) for name, reason in machine.missing.items()},
    }


def _versions(machine: Survey, session: Session, *, here: bool) -> dict[str, Any]:
    """What is installed under the interpreter that trains."""
    chosen = _environment_here(session) if here else machine.interpreter
    packages: dict[str, Any] = {}
    if chosen is not None:
        packages = {
            name: {"version": item.version, "distribution": item.distribution, "origin": item.origin}
            for name, item in chosen.packages.items()
        }
    if not here and machine.interpreter is not None:
        python = {"version": machine.interpreter.version, "distribution": None, "origin": machine.interpreter.origin}
        packages["python"] = python
    problems = {"problems": [str(one) for one in chosen.problems]} if chosen is not None else {}
    return {"uky-patch": __version__, "packages": packages, **problems}


def _environment_here(session: Session) -> Environment:
    """What is installed here, also where there is no tree."""
    return session.environment if session.root_if_any is not None else probe(session.python, None, session.assume)


def _machine_sections(facts: dict[str, Any], state: Mapping[str, Any]) -> Iterator[Section]:
    """What is the same for every run: machine, versions, variables, Ray and the job. Adds the fact `ignored`."""
    installed = {name: item["version"] for name, item in facts["versions"]["packages"].items()}
    settings = _settings(installed, facts["environments"])
    facts["ignored"] = settings["set_and_ignored"]
    for name, holds, values in (
        ("machine.json", phrase("GPUs, driver, kernel, limits, disk, shared memory"), facts["machine"]),
        ("versions.json", phrase("what is installed under the interpreter"), facts["versions"]),
        ("environment.json", phrase("variables by a closed list; of others their number"), facts["environments"]),
        ("settings.json", phrase("which variables these versions read, and which not"), settings),
    ):
        yield Section(name, holds, as_text(values))
    if state["smi"].strip():
        yield Section("nvidia-smi.txt", phrase("what nvidia-smi shows"), state["smi"])
    ray = state["ray"]
    for asked in ray["asked"]:
        name = asked["command"].replace("ray ", "").replace(" ", "-")
        text = asked["output"] or f"({asked['reason']})\n"
        yield Section(f"ray/{name}.txt", phrase("the output of {command}", command=asked["command"]), text)
    for log in ray["logs"]:
        holds = phrase("the end of one of Ray's logs")
        if not ray.get("sure"):
            holds = phrase("the end of a log of Ray's newest session, maybe another run's")
        yield Section(f"ray/logs/{log['name']}", holds, log["text"])
    if state.get("job") is not None:
        left_out = ("variables", "env", "secrets", "clock", "folder")
        job = {key: value for key, value in state["job"].items() if key not in left_out}
        job["others"] = state.get("others", [])
        holds = phrase("the job: how it was started, its state, the tree's other jobs")
        yield Section("job.json", holds, as_text(job))
    if state["processes"]:
        yield Section("processes.json", phrase("the run's processes"), as_text(state["processes"]))


def _settings(versions: Mapping[str, str], environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the versions make of the variables that are set, and which ones a run script would set or leave out."""
    notes: list[Any] = []
    wanted = variables_of("standard", versions, notes)
    shown = {name for environment in environments for name in environment["variables"]}
    reasons = {name: str(reason) for name in sorted(shown) if (reason := ignored(name, versions)) is not None}
    return {"run_script_sets": wanted, "left_out": [str(note) for note in notes], "set_and_ignored": reasons}


def _own_variables(host: Host, options: BundleOptions, missing: list[Missing]) -> list[dict[str, Any]]:
    """Of a run that is over only this shell's variables is known, on this machine."""
    if not host.here:
        return []
    if options.log is not None:
        how = phrase("Run it in the shell that started the run, or while the run lives.")
        missing.append(Missing("environment", phrase("the run's own variables: these are this shell's"), how))
    return [report_of(os.environ, "this shell", [])]


# The tree.


def _tree(
    session: Session, sections: list[Section], facts: dict[str, Any], missing: list[Missing]
) -> tuple[RecordsStatus | None, list[str]]:
    """Git's state, the fork's settings and the records' status; and the machines that git's remotes name."""
    root = session.tree.root
    status: RecordsStatus | None = None
    machines: list[str] = []
    try:
        facts["git"], state, machines = _git(root)
        sections.append(Section("tree/git.json", phrase("commit, branch, names of changed files"), as_text(state)))
    except (UkyError, OSError) as error:
        missing.append(Missing("software", phrase("the state of git: {reason}", reason=_why(error))))
    try:
        status = records_status(session)
        facts["applied"] = [one.id for one in status.outcomes if one.kind in ("applied", "adopted")]
    except (UkyError, OSError) as error:
        missing.append(missing_status(error))
    try:
        with (root / "uky-patch.toml").open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(MOST_TEXT)
        sections.append(Section("tree/uky-patch.toml", phrase("the fork's own settings, without secrets"), text))
    except OSError:
        pass
    return status, machines


def missing_status(error: UkyError | OSError) -> Missing:
    """What a report lacks where the records' status cannot be known."""
    return Missing("software", phrase("the records' outcomes: {reason}", reason=_why(error)))


def _git(root: Path) -> tuple[dict[str, Any] | None, dict[str, Any], list[str]]:
    """Git's state for the report, None without a repository; the same for its file; and machines that remotes name."""
    found = checkout(root)
    if found is None:
        return None, {"checkout": False}, []
    changed = found.changed_files()
    remotes = {name: _USERINFO.sub("", url) for name, url in found.remotes().items()}
    state = {
        "checkout": True,
        "branch": found.head.branch,
        "commit": found.head.commit,
        "changed": list(changed[:500]),
        "changed_count": len(changed),
        "remotes": remotes,
    }
    return state, state, [name for url in remotes.values() if (name := machine_of(url)) is not None]


def _why(error: UkyError | OSError) -> Phrase | str:
    if isinstance(error, UkyError):
        return error.title if isinstance(error.title, Phrase) else str(error.title)
    return str(message_of(error))


# The run.


def _read_script(path: Path | None) -> Mapping[str, str] | None:
    if path is None:
        return None
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return _script({"name": path.name, "text": stream.read(MOST_TEXT)})
    except OSError as error:
        raise UsageError(phrase("{path}: cannot be read", path=path), cause=error.strerror or str(error)) from error


def _script(script: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """A script with its `kind`, as Markdown calls it."""
    if script is None:
        return None
    return {**script, "kind": "python" if script["name"].endswith(".py") else "bash"}


def _stacks(connection: Connection, state: Mapping[str, Any]) -> list[Section]:
    """A section with the stacks of the run's processes; none where it has ended, or they cannot be taken."""
    if not state["processes"]:
        return []
    order: dict[str, Any] = {"pids": [[process["pid"], process["start"]] for process in state["processes"]]}
    if state["job"] is not None:
        order = {"job": state["job"]["id"]}
    try:
        taken = connection.channel.ask("stacks", order=order).values
    except HostError:
        return []
    text = "\n".join(line for process in taken["processes"] for line in _stack_lines(process))
    return [Section("stacks.txt", phrase("where each of its processes stood"), text + "\n")] if text else []


def _stack_lines(process: Mapping[str, Any]) -> Iterator[str]:
    title = process.get("title") or ""
    named = title if 0 < len(title) <= _TITLE else process["name"]
    yield f"process {process['pid']} ({named}), state {process['state']}, by {process.get('how', 'proc')}"
    stack = process.get("stack")
    if isinstance(stack, str):
        yield stack
    elif isinstance(stack, list):
        for thread in stack:
            yield f"  thread {thread['name']}"
            yield from (f"    {name} ({path}:{line})" for path, name, line in thread["frames"])
    else:
        yield f"  waits: {process.get('waits')}"
        yield from (f"  {line}" for line in process.get("kernel", ()))
    yield ""


def _lacking(facts: Mapping[str, Any], machine: Survey, log: Log | None, options: BundleOptions) -> Iterator[Missing]:
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
    elif log.skipped and not options.whole_log:
        what = phrase("{size} MiB in the middle of the log were not looked at", size=log.skipped >> 20)
        yield Missing("log", what, phrase("--whole-log fetches all of it."))
    if not facts["environments"]:
        yield Missing("environment", phrase("the variables of the run"))
    if options.script is None:
        yield Missing("script", phrase("a minimal script that reproduces it"), phrase("Add one with --script FILE."))
    if not options.tried:
        how = phrase("Say it with --tried TEXT, as often as needed.")
        yield Missing("tried", phrase("what was tried already"), how)


def _known_secrets(host: Host, state: Mapping[str, Any]) -> set[str]:
    """Values that are secret: the host's, those of this user, and here those of the run's processes."""
    found = values_here(dict(os.environ)) | set(host.secrets.values())
    for process in state["processes"] if host.here else ():
        found |= values_here(of_process(process["pid"]))
    return found


def _user_here() -> list[str]:
    try:
        return [getpass.getuser()]
    except (KeyError, OSError):
        return []
