"""The run as this machine has it: its processes, their commands and variables, its GPUs, and what Ray says of it."""

from __future__ import annotations

import glob
import os
import platform
import pwd
import re
import shlex
import shutil
import time
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import folder, processes, starting
from patcher.jobs.agent.folder import noted
from patcher.jobs.agent.traces import session_of
from patcher.logs.agent.writers import writers
from patcher.remote.agent import gpus, place, variables
from patcher.remote.agent.environs import search
from patcher.remote.agent.facts import Fact, UnknownFact, gather, run
from patcher.secrets.known import values_here
from patcher.secrets.redacting import Redactor
from patcher.worktree import files

if TYPE_CHECKING:
    from patcher.jobs.agent.processes import Process, Table
    from patcher.remote.agent.serving import Request

GROUPS = 6
"""Environments that differ and are shown: of the driver, the workers, the engine, and a few more."""
_COMMAND = 8192
"""Characters of a command line: a run with a hundred overrides has some thousand."""
_LIMITS = "/proc/self/limits"
RAY_SECONDS = 20.0
"""Seconds that each question to Ray may take: its command line takes some to load."""
_RAY_LOGS = (
    "raylet.out",
    "raylet.err",
    "gcs_server.out",
    "gcs_server.err",
    "monitor.log",
    "monitor.err",
    "dashboard.log",
    "dashboard_agent.log",
    "runtime_env_agent.log",
    "runtime_env_setup-*.log",
    "python-core-driver-*.log",
    "worker-*.err",
    "worker-*.out",
)
"""In the order in which they are taken. Of the workers only errors."""
_RAY_TROUBLE = re.compile(rb"Traceback|Error|ERROR|FATAL|Fatal|\[[EF] |SIG[A-Z]{3,4}|[Kk]illed|out of memory|OOM")
LOG_END = 1 << 14
"""Bytes of each log's end: one traceback with what led to it."""
MOST_LOGS = 24
"""A node of eight GPUs has some forty workers; those that fail fail alike."""
NEAR = 300.0
"""Seconds between the last words of a run's log and of its Ray's. Set by hand: Ray's processes end some time after."""
MOST_BYTES = 1 << 20
"""Bytes of all of them together."""


def run_state(request: Request) -> dict[str, Any]:
    """What is known of the run: of the job `id`, of whoever writes the file `log`, or of neither.

    `python` is the interpreter that trains. Answers `job` as `look` does, `processes`, `environments` (see
    `variables.report_of`), `command`, `script`, `devices`, `smi`, `limits`, `ray` (see `_ray`), `others`: the tree's
    other jobs, `names` (users, hosts, homes), `hidden`: how many secrets were taken out, `missing`: what is not there,
    and why.
    """
    args = request.args
    job = folder.look(folder.folder_of(place.root(request), args["job"])) if "job" in args else None
    everything = processes.table()
    mine = _mine(job, args.get("log"), everything)
    environments = {process.pid: variables.of_process(process.pid) for process in mine}
    known = values_here(dict(os.environ))
    for environment in environments.values():
        known |= values_here(environment)
    redactor = Redactor(known)
    found, missing = gather(
        {
            "devices": Fact(processes.gpus_in_use, 2 * gpus.SECONDS),
            "smi": Fact(_smi, gpus.SECONDS + 0.5),
            "ray": Fact(
                lambda: _ray(job, args.get("log"), mine, environments, args.get("python"), redactor),
                2 * RAY_SECONDS + 6.0,
            ),
        }
    )
    state = {
        "job": job,
        "processes": [
            dict(process._asdict(), command=redactor.text(" ".join(_words(process.pid)))[:_COMMAND]) for process in mine
        ],
        "command": redactor.text(_started_as(job, mine)),
        "environments": _environments(job, mine, environments, redactor),
        "devices": found.get("devices", []),
        "script": _script(job, redactor),
        "smi": redactor.text(found.get("smi", "")),
        "ray": found.get("ray", {"logs": [], "asked": []}),
        "limits": _read(_LIMITS),
        "others": _others(request, job),
        "names": _names(),
        "missing": missing,
    }
    state["hidden"] = redactor.count
    return state


def _others(request: Request, job: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The newest jobs of the tree beside this one, newest first."""
    if job is None:
        return []
    root = place.root(request)
    names = [name for name in folder.ids(root) if name != job["id"]][:-10:-1]
    found = [folder.look(os.path.join(folder.jobs_folder(root), name)) for name in names]
    keys = ("id", "state", "script", "arguments", "now", "end")
    return [{key: other.get(key) for key in keys} for other in found]


def _mine(job: dict[str, Any] | None, log: str | None, everything: Table) -> list[Process]:
    if job is not None:
        return processes.of_job(job, everything) if job["elsewhere"] is None else []
    return _writers(log, everything) if log else []


def _writers(log: str, everything: Table) -> list[Process]:
    """The processes that have the file open for writing, and those of their groups: what is piped into `tee`."""
    try:
        wanted = os.stat(log)
    except OSError:
        return []
    groups = {_group(pid) for pid in writers(wanted, everything) if pid != os.getpid()}
    groups.discard(_group(os.getpid()))
    seeds = [pid for pid in everything if _group(pid) in groups]
    return [
        everything[pid]
        for pid in sorted(processes.descendants(seeds, everything))
        if processes.owner_of(pid) == os.getuid()
    ]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return -pid


def _environments(
    job: dict[str, Any] | None, mine: list[Process], environments: dict[int, dict[str, str]], redactor: Redactor
) -> list[dict[str, Any]]:
    """What may be shown of the environments that differ, the one that most Python processes share first."""
    groups: dict[Any, list[Process]] = {}
    for process in mine:
        if environments[process.pid]:
            groups.setdefault(tuple(variables.shown(environments[process.pid]).items()), []).append(process)
    found = []
    ordered = sorted(groups.values(), key=lambda group: (-sum(_trains(one) for one in group), group[0].pid))
    for group in ordered[:GROUPS]:
        names = ", ".join(sorted({process.name for process in group})[:4])
        found.append(variables.report_of(environments[group[0].pid], names, [process.pid for process in group]))
    if not found and job is not None and "variables" in job:
        found = [{"whose": "start", "pids": [], "variables": job["variables"], "others": job.get("others", 0)}]
    if not found and job is not None:
        found = [variables.report_of(starting.login_environment()[0], "login", [])]
    for one in found:
        one["variables"] = {name: redactor.text(value) for name, value in one["variables"].items()}
    return found


def _trains(process: Process) -> bool:
    return process.name.startswith(("python", "pt_main", "torchrun", "main_ppo"))


def _started_as(job: dict[str, Any] | None, mine: list[Process]) -> str:
    """The whole command line: of the job, else of the first Python that writes the log."""
    trains = next((process for process in mine if _trains(process)), None)
    parts = _words(trains.pid) if trains is not None else []
    # The job's own command is the script; what the script has made of it is the command line of the Python below.
    if job is not None and job.get("argv"):
        return shlex.join(job["argv"]) + (f"\n{shlex.join(parts)}" if parts else "")
    return shlex.join(parts)


def _words(pid: int) -> list[str]:
    return [word.decode("utf-8", "replace") for word in processes.command_line(pid)]


def _script(job: dict[str, Any] | None, redactor: Redactor) -> dict[str, str] | None:
    """What the job ran, as it was then."""
    if job is None or not job.get("script"):
        return None
    name = os.path.basename(job["script"])
    text = _read(os.path.join(job["folder"], name))
    return {"name": name, "text": redactor.text(text)} if text else None


def _smi() -> str:
    """What nvidia-smi shows a person."""
    places = search(os.environ.get("PATH", ""), "/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib")
    program = shutil.which("nvidia-smi", path=places)
    return run([program], gpus.SECONDS).out if program else ""


def _names() -> dict[str, list[str]]:
    """Who and where this is: what a report does not say."""
    users, homes = [], [os.path.expanduser("~")]
    try:
        entry = pwd.getpwuid(os.getuid())
        users.append(entry.pw_name)
        homes.append(entry.pw_dir)
        users += [entry.pw_gecos.split(",")[0]] if " " in entry.pw_gecos.split(",")[0] else []
    except KeyError:
        pass
    users += [os.environ[name] for name in ("USER", "LOGNAME", "SUDO_USER") if os.environ.get(name)]
    hosts = [platform.node()] + [os.environ[n] for n in ("HOSTNAME", "SLURMD_NODENAME") if os.environ.get(n)]
    return {"users": users, "homes": homes, "hosts": hosts}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(1 << 16)
    except OSError:
        return ""


def _ray(
    job: dict[str, Any] | None,
    log: str | None,
    mine: list[Process],
    environments: dict[int, dict[str, str]],
    python: str | None,
    redactor: Redactor,
) -> dict[str, Any]:
    """`asked`: commands with what they printed, or why not; `logs`: ends of the session's logs; `session`: its folder.

    `sure` is false where the session only fell silent when `log` did, and nothing else tells that it is the run's.
    """
    folder, sure = _find_session(job, mine, log)
    found: dict[str, Any] = {"asked": [], "logs": [], "session": folder, "sure": sure}
    raylet = next((process for process in mine if process.name == "raylet"), None)
    address = _option(raylet.pid, "gcs-address") if raylet is not None else None
    if raylet is not None and address:
        environment = environments.get(raylet.pid, {})
        found["asked"] = [
            _ask_ray(words, address, python, environment, redactor) for words in (["status"], ["list", "nodes"])
        ]
    if folder is not None:
        found["logs"] = _ray_logs(folder, redactor)
    return found


def _find_session(job: dict[str, Any] | None, mine: list[Process], log: str | None) -> tuple[str | None, bool]:
    for process in mine:
        folder = session_of(process.pid)
        if folder is not None:
            return folder, True
    if job is not None:
        own = [note["path"] for note in noted(job["folder"], "session") if os.path.isdir(note["path"])]
        return (own[-1], True) if own else (None, False)
    newest = os.path.realpath("/tmp/ray/session_latest")
    try:
        status = os.stat(os.path.join(newest, "logs", "raylet.out"))
        if log is not None and status.st_uid == os.getuid() and abs(status.st_mtime - os.stat(log).st_mtime) < NEAR:
            return newest, False
    except OSError:
        pass
    return None, False


def _option(pid: int, name: str) -> str | None:
    """The value of an option of a running program: `--gcs-address=10.0.0.1:6379`."""
    spelled = (f"--{name}=", f"--{name.replace('-', '_')}=")
    return next((word.partition("=")[2] for word in _words(pid) if word.startswith(spelled)), None)


def _ask_ray(
    words: list[str], address: str, python: str | None, environment: dict[str, str], redactor: Redactor
) -> dict[str, Any]:
    """Ask the `ray` of the interpreter that trains, with Ray's own variables as the cluster has them."""
    places = [os.path.dirname(python)] if python else []
    program = shutil.which("ray", path=search(*places, environment.get("PATH", ""), os.environ.get("PATH", "")))
    answer: dict[str, Any] = {"command": " ".join(["ray", *words]), "output": "", "reason": None}
    if program is None:
        answer["reason"] = "there is no ray"
        return answer
    settings = {name: value for name, value in environment.items() if name.startswith("RAY_")}
    try:
        output = run([program, *words, "--address", address], RAY_SECONDS, settings)
    except UnknownFact:
        answer["reason"] = "no answer"
        return answer
    answer["output"] = redactor.text((output.out if output.code == 0 else output.out + output.err)[-LOG_END:])
    return answer


def _ray_logs(folder: str, redactor: Redactor) -> list[dict[str, Any]]:
    """The ends of the logs that may tell something, bounded in number and size."""
    found: list[dict[str, Any]] = []
    left = MOST_BYTES
    deadline = time.monotonic() + RAY_SECONDS
    for pattern in _RAY_LOGS:
        for path in sorted(glob.glob(os.path.join(glob.escape(os.path.join(folder, "logs")), pattern))):
            if len(found) >= MOST_LOGS or left <= 0 or time.monotonic() > deadline:
                return found
            content, size = _log_end(path)
            if not content or (pattern.startswith("worker") and not _RAY_TROUBLE.search(content)):
                continue
            left -= len(content)
            text = redactor.content(content).decode("utf-8", "replace")
            found.append({"name": os.path.basename(path), "size": size, "text": text})
    return found


def _log_end(path: str) -> tuple[bytes, int]:
    """The last whole lines of a file, and its size."""
    try:
        with files.open_binary(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - LOG_END))
            content = stream.read(LOG_END)
    except OSError:
        return b"", 0
    return (content if size <= LOG_END else content[content.find(b"\n") + 1 :]), size
