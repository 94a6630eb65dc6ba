"""Slurm's commands on a login node: submit a job, cancel it, and ask what has become of it.

`scontrol` knows a job until some minutes after its end (`MinJobAge`), `sacct` for longer where accounts are kept.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from typing import Any, Dict

from patcher.messages import Refusal, listed, phrase

SECONDS = 30.0
"""Seconds that a question to Slurm may take: a controller that is busy answers late. A guess."""
SUBMITTING = 300.0
"""Seconds that sbatch may take: it tries again for minutes where the controller is busy. A guess."""
WAITING = frozenset(
    ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD")
)
"""States of a job that has not begun, or is to begin again, as the manual page of squeue lists them."""
AT_WORK = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"))
"""States of a job that is not over. All others are an end: COMPLETED, FAILED, TIMEOUT, CANCELLED, PREEMPTED, …"""
_FIELDS = {
    "name": "JobName",
    "state": "JobState",
    "reason": "Reason",
    "nodes": "NodeList",
    "limit": "TimeLimit",
    "restarts": "Restarts",
    "exit": "ExitCode",
}
"""Fields of a job, and what `scontrol show job` calls them."""
_ACCOUNT = "State,ExitCode,NodeList,Timelimit,JobName%60"
"""The columns of sacct that `ask` reads, in this order. A name is cut at 10 characters unless a width is given."""
_NOTHING = ("(null)", "None", "")
"""What Slurm writes for a field without a value."""

Queue = Dict[str, Any]
"""`id`, `name`, `state`, `reason`, `nodes`, `limit` in Slurm's words, `restarts`, `code` once over; empty: unknown."""


class AwayError(Exception):
    """Slurm does not answer; what it says is the message."""


def call(command: list[str], environment: dict[str, str] | None = None, seconds: float = SECONDS) -> str:
    """What a command of Slurm's prints. Raises AwayError with what it says, or why it cannot be started."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        message = (late.stderr or b"").decode("utf-8", "replace").strip()
        raise AwayError(f"{command[0]}: no answer within {seconds:.0f} s {message}".strip()) from None
    except OSError as error:
        raise AwayError(f"{command[0]}: {os.strerror(error.errno or 0)}") from None
    message = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode:
        raise AwayError(message or f"{command[0]}: exit code {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def submit(name: str, options: list[str], script: str, environment: dict[str, str]) -> str:
    """Submit a script by sbatch with the variables `environment`, as a job of a `name` that no other has; its number.

    An error of sbatch does not mean that the job was not taken: "Socket timed out on send/recv operation" comes when
    the controller's answer is late. So the job is then looked for by its name.

    Raises Refusal of kind `slurm`.
    """
    try:
        output = call(["sbatch", "--parsable", f"--job-name={name}", *options, script], environment, SUBMITTING)
    except AwayError as error:
        with suppress(AwayError):
            number = number_of(name)
            if number:
                return number
        advice = phrase("Correct the host's table in uky-patch.toml, or look at the cluster: sinfo, squeue.")
        raise Refusal("slurm", phrase("Slurm does not take the job"), listed(str(error)), advice) from None
    return output.strip().partition(";")[0]  # `7`, or `7;CLUSTER` where there are several.


def number_of(name: str) -> str:
    """The number of this user's job of that name, while it waits or runs; empty where none does. Raises AwayError."""
    output = call(["squeue", "--noheader", "--format=%i", f"--user={os.getuid()}", f"--name={name}"])
    found = re.match("[0-9]{1,12}$", output.strip())
    return found[0] if found else ""


def cancel(number: str) -> None:
    """Cancel a job. Raises Refusal of kind `slurm` where Slurm does not do it."""
    try:
        call(["scancel", number])
    except AwayError as error:
        title = phrase("Slurm does not cancel job {number}", number=number)
        raise Refusal("slurm", title, listed(str(error))) from None


def ask(number: str) -> Queue:
    """What Slurm says of a job now; empty where it does not know it any more. Raises AwayError."""
    try:
        return parse_job(number, call(["scontrol", "--oneliner", "show", "job", number]))
    except AwayError as error:
        if "Invalid job id" not in str(error):
            raise
    try:
        lines = call(["sacct", "-X", "-n", "-P", "-j", number, "-o", _ACCOUNT]).splitlines()
    except AwayError:  # A cluster without accounts.
        return {}
    state, code, nodes, limit, name = (lines[-1].split("|") if lines else [""] * 5)[:5]
    if not state:
        return {}
    return _queue(number, {"name": name, "state": state.split()[0], "exit": code, "nodes": nodes, "limit": limit})


def parse_job(number: str, text: str) -> Queue:
    """Parse `JobId=7 JobName=x … JobState=PENDING Reason=Resources …`: one line for a job, several for an array.

    Of several the last one counts.
    """
    lines = text.strip().splitlines() or [""]
    found = {name: re.search(rf"\b{word}=(\S*)", lines[-1]) for name, word in _FIELDS.items()}
    return _queue(number, {name: match[1] for name, match in found.items() if match is not None})


def _queue(number: str, fields: dict[str, str]) -> Queue:
    """The values of Slurm's fields. `ExitCode=1:0` is an exit code, `ExitCode=0:9` a signal that ended the job."""
    code, _, signal = fields.get("exit", "").partition(":")
    ended_by = int(signal) if signal.isdigit() else 0
    return {
        "id": number,
        "name": fields.get("name", ""),
        "state": fields.get("state", "").rstrip("+"),  # sacct writes `CANCELLED+` where the column cuts the word.
        "reason": "" if fields.get("reason") in _NOTHING else fields.get("reason", ""),
        "nodes": "" if fields.get("nodes") in _NOTHING else fields.get("nodes", ""),
        "limit": fields.get("limit", ""),
        "restarts": int(fields["restarts"]) if fields.get("restarts", "").isdigit() else 0,
        "code": -ended_by if ended_by else int(code) if code.isdigit() else None,
    }


def is_over(queue: Queue) -> bool:
    """Whether the job has ended, as Slurm says."""
    return bool(queue.get("state")) and queue["state"] not in WAITING and queue["state"] not in AT_WORK
