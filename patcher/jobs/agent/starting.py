"""Start a job that outlives the connection, unless something of somebody's is running already."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import devices, folder, login, processes, traces_key
from patcher.jobs.agent.sitecustomize_hook import VARIABLE
from patcher.jobs.agent.stacks_hook import FOLDER
from patcher.messages import Message, Refusal, phrase, why
from patcher.remote.agent import place, variables
from patcher.worktree import files
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

BEGIN = 30.0
HOOK = "hook"
"""In a job's folder: what its Pythons load when they start."""
KEPT = ("git_ignore.py",)
"""Beside the script itself: what a job read, kept in its folder as it was then."""


def start(request: Request) -> dict[str, Any]:
    """Start `script` with `arguments` as a job; the body is JSON of the variables that are secret.

    `env` are the others, `python` the interpreter to train with, `here` whether it is the user's own machine, whose
    environment is then taken as it is, `host` what the user calls it. With `share` nothing that runs is in the way.
    Answers what `look` does.
    """
    args = request.args
    if "begun" not in request.kept:
        raise RuntimeError("a job is started under the tree's lock")
    root = place.root(request)
    script = _script(root, args["script"])
    if not args.get("share"):
        _require_idle(root, args.get("env", {}).get("CUDA_VISIBLE_DEVICES"), args["host"])
    environment, shell = (login.connection(), "") if args.get("here") else login.login()
    environment = login.with_interpreter(environment, args.get("python"))
    environment.update(args.get("env", {}))
    name = _name()
    environment.update({"PYTHONUNBUFFERED": "1", processes.MARK: name})
    _add_stacks_hook(environment, os.path.join(folder.jobs_folder(root), name))
    secrets = parse_json(request.body) if request.body else {}
    job = {
        "profile": args.get("profile"),
        "script": args["script"],
        "argv": _argv(script, args.get("python")) + list(args.get("arguments", [])),
        "root": root,
        "user": processes.user_of(os.getpid()),
        "machine": processes.here(),
        "shell": shell,
        "env": sorted(args.get("env", {})),
        "secrets": sorted(secrets),
        "arguments": list(args.get("arguments", [])),
        "steps": args.get("steps"),
        "facts": args.get("facts", {}),
        "ordered": time.time(),
        "variables": variables.shown(environment),
        "others": len(environment) - len(variables.shown(environment)),
    }
    at = _make(root, name, job, script)
    order = {"argv": job["argv"], "cwd": root, "env": dict(environment, **secrets), "job": dict(job, id=name)}
    order["key"] = traces_key.key(make=True).hex()
    _launch(at, order)
    _show(at, name)
    return folder.look(at)


def _script(root: str, script: str) -> str:
    path = os.path.realpath(os.path.join(root, script))
    if os.path.isabs(script) or os.path.commonpath([path, os.path.realpath(root)]) != os.path.realpath(root):
        raise Refusal("script", phrase("{script} does not lie in the tree", script=script))
    if not os.path.isfile(path):
        advice = phrase("Name a script of the tree with --script.")
        raise Refusal("script", phrase("{path}: there is no such file", path=path), None, advice)
    return path


def _argv(script: str, python: str | None) -> list[str]:
    if script.endswith(".py"):
        return [python or "python3", script]
    return [shutil.which("bash") or "/bin/sh", script]


def _require_idle(root: str, wanted: str | None, host: str) -> None:
    """Raises Refusal where a job of this tree runs, or somebody's process is on a GPU that the job would use."""
    jobs = [folder.look(os.path.join(folder.jobs_folder(root), name)) for name in folder.ids(root)]
    for job in jobs:
        if job["state"] in ("running", "starting"):
            cause = phrase("job {id} runs there since {seconds:.0f} s", id=job["id"], seconds=job["now"])
            if job.get("process"):
                user, pid = job.get("user", ""), job["process"]["pid"]
                cause = phrase("{cause}, process {pid} of {user}", cause=cause, pid=pid, user=user)
            advice = "Wait, stop it with uky-patch job stop {host}, or start beside it with --share."
            raise Refusal("busy", phrase("a job of this tree is running"), cause, phrase(advice, host=host))
    busy = [
        _describe_user(gpu, process)
        for gpu in devices.visible(devices.devices(), wanted)
        for process in gpu["busy"] or devices.unseen(gpu)
    ]
    if busy:
        raise Refusal("busy", phrase("the GPUs are in use"), busy, phrase("Wait, or start beside it with --share."))


def _describe_user(gpu: dict[str, Any], process: dict[str, Any]) -> Message:
    told = {"index": gpu["index"], "memory": f"{process['memory'] / (1 << 30):.1f}"}
    if process["pid"] is None:
        return phrase("GPU {index}: {memory} GiB are held by a process that is not visible here", **told)
    user = process["user"] or phrase("another user")
    told.update(pid=process["pid"], name=os.path.basename(process["name"]) or "?")
    mark = processes.mark_of(process["pid"])
    if mark is not None:
        return phrase("GPU {index}: process {pid} ({name}) of job {id}, {memory} GiB", id=mark, **told)
    return phrase("GPU {index}: process {pid} ({name}) of {user}, {memory} GiB", user=user, **told)


def _make(root: str, name: str, job: dict[str, Any], script: str) -> str:
    at = os.path.join(folder.jobs_folder(root), name)
    try:
        folder.make(root, name)
        for program in ("runner", "traces", "viewer"):
            _write(os.path.join(at, f"{program}.py"), _source(f"patcher.jobs.agent.{program}"))
        for inner in (HOOK, FOLDER):
            os.mkdir(os.path.join(at, inner), 0o700)
        _write(os.path.join(at, HOOK, "sitecustomize.py"), _source("patcher.jobs.agent.sitecustomize_hook"))
        for kept in (script, *(os.path.join(root, other) for other in KEPT)):
            if os.path.isfile(kept):
                _write(os.path.join(at, os.path.basename(kept)), files.read(kept, files.SOURCE_BYTES, follow=True))
        _write(os.path.join(at, "log"), b"")
        _write(os.path.join(at, "job.json"), json.dumps(dict(job, id=name)).encode())
    except OSError as error:
        shutil.rmtree(at, ignore_errors=True)
        cause = phrase("{file}: {reason}", file=str(error.filename or at), reason=why(error))
        raise Refusal("unwritable", phrase("the job cannot be started"), cause) from error
    return at


def _name() -> str:
    """A new job's id, `20261123-005844-9f01c2`: names sort as the jobs were started, also within one second."""
    now = time.time()
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{int(now % 1 * 16**6):06x}"


def _add_stacks_hook(environment: dict[str, str], at: str) -> None:
    """Let every Python of the job be asked for its stacks, also where it may not be traced."""
    environment[VARIABLE] = os.path.join(at, FOLDER)
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([os.path.join(at, HOOK), *([before] if before else [])])


def _launch(at: str, order: dict[str, Any]) -> None:
    """Start the program that runs the job, and wait until it has."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(os.path.join(at, "log"), flags), "ab") as log:
        runner = subprocess.Popen(
            [sys.executable, "-I", "-u", os.path.join(at, "runner.py"), at],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=at,
            start_new_session=True,
        )
    assert runner.stdin is not None
    assert runner.stdout is not None
    try:
        runner.stdin.write(json.dumps(order).encode())
        runner.stdin.close()
    except OSError:
        pass
    ready = select.select([runner.stdout], [], [], BEGIN)[0]
    answer = runner.stdout.read() if ready else b""
    runner.stdout.close()
    if not ready:
        runner.kill()
    runner.wait()
    told = parse_json(answer) if answer else {"error": "the program that runs it gave no answer", "file": at}
    if "error" in told:
        shutil.rmtree(at, ignore_errors=True)
        cause = phrase("{file}: {reason}", file=told.get("file") or at, reason=phrase(told["error"]))
        raise Refusal("unwritable", phrase("the job cannot be started"), cause)


def _show(at: str, name: str) -> None:
    """Open a session of tmux, on a server of its own, that shows the log; where there is a tmux."""
    program = shutil.which("tmux")
    if program is None:
        return
    view = [sys.executable, "-I", os.path.join(at, "viewer.py"), at, folder.SOCKET]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE", processes.MARK)}
    environment.setdefault("TERM", "screen")
    size = ["-x", "200", "-y", "50"]
    command = [program, "-f", os.devnull, "-S", folder.SOCKET, "new-session", "-d", "-s", f"uky-{name}", *size, *view]
    try:
        subprocess.run(command, cwd=at, env=environment, timeout=10, check=False, **quiet)  # type: ignore[call-overload]
    except (OSError, subprocess.TimeoutExpired):
        pass


def _source(program: str) -> bytes:
    """The text of a module, wherever it was loaded from."""
    module = import_module(program)
    loader: Any = module.__spec__.loader if module.__spec__ else None
    return str(loader.get_source(module.__name__)).encode()


def _write(path: str, content: bytes) -> None:
    files.replace(path, content, mode=0o600)
