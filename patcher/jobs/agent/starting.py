"""The verb `job_start`: start a job that outlives the connection, unless another job or a busy GPU is in the way.

On a host the job gets the environment that its user has after logging in, as in a shell of `ssh host`; on the user's
own machine it gets that of the command.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from importlib import import_module
from typing import TYPE_CHECKING, Any

from patcher.jobs.agent import accelerators, folder, processes, queued
from patcher.jobs.agent.sitecustomize_hook import VARIABLE
from patcher.messages import Message, Refusal, phrase
from patcher.remote.agent import place, variables
from patcher.remote.agent.environs import decode_environ
from patcher.remote.agent.setup import set_up
from patcher.worktree import files, os_errors
from patcher.worktree.json_text import parse_json

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

LOGIN_SECONDS = 10.0
"""Seconds that the user's login files may take. A guess: they may lie on a network disk."""
_OF_CONNECTION = (
    *("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SHLVL", "OLDPWD", "PWD", "_", "TMUX", "TMUX_PANE"),
)
"""Variables that belong to a connection or a terminal, and not to a job."""


def login_environment() -> tuple[dict[str, str], str]:
    """The variables of a login shell of this user, and that shell's path.

    Where the shell gives none, or not in time, the variables are the connection's and the path is empty. A `fence`
    before and behind them tells them from what the login files print.
    """
    try:
        shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:  # A user that the system does not know, as in a container.
        shell = "/bin/sh"
    fence = uuid.uuid4().hex
    command = f"printf {fence}; env -0; printf {fence}"
    try:
        asked = subprocess.Popen(
            [shell, "-l", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return connection_environment(), ""
    try:
        message, _ = asked.communicate(timeout=LOGIN_SECONDS)
    except subprocess.TimeoutExpired:
        try:
            os.killpg(asked.pid, signal.SIGKILL)
        except OSError:
            pass
        asked.kill()
        asked.wait()
        return connection_environment(), ""
    parts = message.split(fence.encode())
    if len(parts) != 3 or b"PATH=" not in parts[1]:
        return connection_environment(), ""
    return _clean(decode_environ(parts[1])), shell


def connection_environment() -> dict[str, str]:
    """The variables of this program, without those of the connection."""
    return _clean(dict(os.environ))


def with_interpreter(environment: dict[str, str], python: str | None) -> dict[str, str]:
    """`environment` as if the environment of the interpreter `python` were activated: it comes first in PATH, and
    VIRTUAL_ENV or CONDA_PREFIX names its folder.
    """
    if not python:
        return environment
    folder = os.path.dirname(python)
    found = dict(environment)
    rest = [part for part in found.get("PATH", os.defpath).split(os.pathsep) if part != folder]
    found["PATH"] = os.pathsep.join([folder, *rest])
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONHOME"):
        found.pop(name, None)
    above = os.path.dirname(folder)
    if os.path.isfile(os.path.join(above, "pyvenv.cfg")):
        found["VIRTUAL_ENV"] = above
    elif os.path.isdir(os.path.join(above, "conda-meta")):
        found["CONDA_PREFIX"] = above
    return found


def _clean(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _OF_CONNECTION}


BEGIN = 30.0
"""Seconds that the program which runs the job may take to report its start. A guess: a network disk is slow."""


def start(request: Request) -> dict[str, Any]:
    """Start `script`, a path below the tree's root, with `arguments` as a job. Answers what `folder.look` does.

    The body is JSON of the job's secret variables, `env` are its other ones. `python` is the interpreter to train with;
    `here` tells whether this is the user's own machine, `host` what the user calls it; `setup` are lines that run
    before (see `set_up`). `profile`, `steps` and `facts` are only noted. With `slurm`, options of sbatch, the job is
    submitted to Slurm, and GPUs are looked for on the compute node.

    Raises Refusal of kind `busy` where a job of the tree or a process on a GPU is in the way, unless `share`; `no-gpu`
    where the script trains and no GPU is visible, unless `force`; `script`, `setup`, `slurm`, `unwritable`.
    """
    args = request.args
    if "begun" not in request.kept:
        raise RuntimeError("a job is started under the tree's lock")
    root = place.root(request)
    script = _script(root, args["script"])
    in_queue = args.get("slurm") is not None
    environment, shell = _require_startable(request, script)
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
    at = _make(root, name, job, script, queued.PROGRAMS if in_queue else ())
    if in_queue:
        _submit(at, args, dict(environment, **secrets), job, script)
        return folder.look(at)
    order = {"argv": job["argv"], "cwd": root, "env": dict(environment, **secrets), "job": dict(job, id=name)}
    order["key"] = folder.notes_key(make=True).hex()
    _launch(at, order)
    _show(at, name)
    return folder.look(at)


def check(request: Request) -> dict[str, Any]:
    """Raise what `start` would raise where a job of the script could not be started now. Writes nothing.

    A script that is not there yet will have the `text` of the request."""
    path = os.path.join(place.root(request), request.args["script"])
    _require_startable(request, path if os.path.lexists(path) else None)
    return {}


def _require_startable(request: Request, script: str | None) -> tuple[dict[str, str], str]:
    """The variables of a job, and the shell that they come from. Raises Refusal as `start` does.

    `script`: the path of what is to run; its text is that of the request where it is None.
    """
    args = request.args
    in_queue = args.get("slurm") is not None
    if not args.get("share"):
        _require_idle(place.root(request), args["host"])
        if not in_queue:
            _require_idle_gpus(args.get("env", {}).get("CUDA_VISIBLE_DEVICES"))
    set_up(request)
    own = args.get("here") or args.get("setup")
    environment, shell = (connection_environment(), "") if own else login_environment()
    environment = with_interpreter(environment, args.get("python"))
    environment.update(args.get("env", {}))
    if not in_queue and not args.get("force"):
        _require_gpu(script, args.get("text", ""), environment)
    return environment, shell


def _script(root: str, script: str) -> str:
    """The absolute path of the script. Raises Refusal where it is no file in the tree, once symlinks are resolved."""
    path = os.path.realpath(os.path.join(root, script))
    if os.path.isabs(script) or os.path.commonpath([path, os.path.realpath(root)]) != os.path.realpath(root):
        raise Refusal("script", phrase("{script} does not lie in the tree", script=script))
    if not os.path.isfile(path):
        advice = phrase("Name a script of the tree with --script.")
        title = phrase("{path}: there is no such file", path=path)
        if os.path.exists(path):
            title = phrase("{path} is no file", path=path)
        raise Refusal("script", title, None, advice)
    return path


def _argv(script: str, python: str | None) -> list[str]:
    if script.endswith(".py"):
        return [python or "python3", script]
    return [shutil.which("bash") or "/bin/sh", script]


def _submit(at: str, args: dict[str, Any], environment: dict[str, str], job: dict[str, Any], script: str) -> None:
    """Submit the job to Slurm. Its folder is removed where Slurm does not take it."""
    try:
        queued.launch(at, args, environment, job, script)
    except BaseException:
        shutil.rmtree(at, ignore_errors=True)
        raise


def _require_idle(root: str, host: str) -> None:
    """Raises Refusal where a job of this tree runs, or waits in a queue."""
    for job in folder.all_jobs(root):
        if job["state"] in folder.NOT_OVER:
            cause = phrase("job {id} runs there since {seconds:.0f} s", id=job["id"], seconds=job["now"])
            if job.get("process"):
                user, pid = job.get("user", ""), job["process"]["pid"]
                cause = phrase("{cause}, process {pid} of {user}", cause=cause, pid=pid, user=user)
            advice = "Wait, stop it with uky-patch job stop {host}, or start beside it with --share."
            raise Refusal("busy", phrase("a job of this tree is running"), cause, phrase(advice, host=host))


def _require_idle_gpus(wanted: str | None) -> None:
    """Raises Refusal where somebody's process is on a GPU that the job would use; `wanted` as CUDA_VISIBLE_DEVICES."""
    busy = [
        _describe_user(gpu, process)
        for gpu in processes.visible_gpus(processes.gpus_in_use(), wanted)
        for process in gpu["busy"] or processes.unseen_process(gpu)
    ]
    if busy:
        raise Refusal("busy", phrase("the GPUs are in use"), busy, phrase("Wait, or start beside it with --share."))


def _require_gpu(script: str | None, text: str, environment: dict[str, str]) -> None:
    """Raises Refusal where the script, or this text of one, trains, and no GPU is visible to it."""
    try:
        if script is not None:
            text = files.read(script, files.SOURCE_BYTES, follow=True).decode("utf-8", "replace")
    except OSError:
        return  # The copy into the job's folder will raise the same error, and report it.
    cause = accelerators.why_no_gpu(text, environment, processes.gpus_in_use())
    if cause is not None:
        advice = "Start it on a machine with GPUs, or start it here all the same with --force."
        raise Refusal("no-gpu", phrase("no GPU is visible where the job would start"), cause, phrase(advice))


def _describe_user(gpu: dict[str, Any], process: dict[str, Any]) -> Message:
    """Who holds a GPU, and how much of its memory."""
    holder = {"index": gpu["index"], "memory": f"{process['memory'] / (1 << 30):.1f}"}
    if process["pid"] is None:
        return phrase("GPU {index}: {memory} GiB are held by a process that is not visible here", **holder)
    user = process["user"] or phrase("another user")
    holder.update(pid=process["pid"], name=os.path.basename(process["name"]) or "?")
    mark = processes.mark_of(process["pid"])
    if mark is not None:
        return phrase("GPU {index}: process {pid} ({name}) of job {id}, {memory} GiB", id=mark, **holder)
    return phrase("GPU {index}: process {pid} ({name}) of {user}, {memory} GiB", user=user, **holder)


def _make(root: str, name: str, job: dict[str, Any], script: str, more: tuple[str, ...] = ()) -> str:
    """Make the job's folder with the programs and files that belong there, `more` programs too. Returns its path."""
    at = os.path.join(folder.jobs_folder(root), name)
    try:
        folder.make(root, name)
        for program in ("runner", "traces", "viewer", *more):
            _write(os.path.join(at, f"{program}.py"), _source(f"patcher.jobs.agent.{program}"))
        for inner in (folder.HOOK, folder.STACKS):
            os.mkdir(os.path.join(at, inner), 0o700)
        _write(os.path.join(at, folder.HOOK, "sitecustomize.py"), _source("patcher.jobs.agent.sitecustomize_hook"))
        for kept in (script, *(os.path.join(root, other) for other in folder.KEPT)):
            if os.path.isfile(kept):
                _write(os.path.join(at, os.path.basename(kept)), files.read(kept, files.SOURCE_BYTES, follow=True))
        _write(os.path.join(at, "log"), b"")
        _write(os.path.join(at, "job.json"), json.dumps(dict(job, id=name)).encode())
    except OSError as error:
        shutil.rmtree(at, ignore_errors=True)
        title = phrase("the job cannot be started")
        raise Refusal("unwritable", title, *os_errors.cause_and_advice(error)) from error
    return at


def _name() -> str:
    """A new job's id, `20261123-005844-9f01c2`: names sort as the jobs were started, also within one second."""
    now = time.time()
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{int(now % 1 * 16**6):06x}"


def _add_stacks_hook(environment: dict[str, str], at: str) -> None:
    """Have every Python process of the job load `sitecustomize_hook`, which writes its stacks on request.

    That works where py-spy may not trace processes, as in most containers.
    """
    environment[VARIABLE] = os.path.join(at, folder.STACKS)
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([os.path.join(at, folder.HOOK), *([before] if before else [])])


def _launch(at: str, order: dict[str, Any]) -> None:
    """Start the program that runs the job (`runner`), and wait until that has started the job.

    `order` goes to its standard input, because it holds secrets. Raises Refusal of kind `unwritable`, and removes the
    job's folder then.
    """
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
    outcome = parse_json(answer) if answer else {"error": "the program that runs it gave no answer", "file": at}
    if "error" in outcome:
        shutil.rmtree(at, ignore_errors=True)
        cause = phrase("{file}: {reason}", file=outcome.get("file") or at, reason=phrase(outcome["error"]))
        raise Refusal("unwritable", phrase("the job cannot be started"), cause)


def _show(at: str, name: str) -> None:
    """Open a session of tmux, on a server of its own, that shows the log; where tmux is installed."""
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
    """The text of a module, also where the agent has loaded it from memory."""
    module = import_module(program)
    loader: Any = module.__spec__.loader if module.__spec__ else None
    return str(loader.get_source(module.__name__)).encode()


def _write(path: str, content: bytes) -> None:
    files.write_whole_file(path, content, mode=0o600)
