"""The host's `setup` lines: what a person types there before anything can train, such as `module load cuda/12.4`.

They run once for a connection, one after another in one bash, so that `source …/conda.sh` serves `conda activate verl`.
The variables that they leave are this program's own from then on, and with that those of everything that it starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import IO, TYPE_CHECKING

from patcher.messages import Message, Refusal, phrase, why
from patcher.remote.agent.environs import decode_environ, search

if TYPE_CHECKING:
    from patcher.remote.agent.serving import Request

SECONDS = 60.0
"""Seconds that all lines together may take. A guess: environment modules and conda lie on network disks."""
_LONGEST = 300
"""Characters that an error shows of the end of what the lines printed."""


def set_up(request: Request) -> None:
    """Run the request's lines `setup`, unless they have run on this connection, and take over their variables.

    They run in a login shell if the request says `login`: only that knows `module` and `conda` on most clusters.

    Raises Refusal of kind `setup` where a line fails, ends the shell or takes too long.
    """
    lines = request.args.get("setup") or []
    if not lines or request.kept.get("setup") == lines:
        return
    environment = _environment_after(lines, login=bool(request.args.get("login")))
    os.environ.clear()
    os.environ.update(environment)
    os.environ["PATH"] = search(environment.get("PATH", os.defpath))
    request.kept["setup"] = lines


def _environment_after(lines: list[str], *, login: bool) -> dict[str, str]:
    """The variables that the lines leave. What they print is shown where one fails.

    bash gets one program, here for the only line `module load cuda`; the descriptor 5 is that of `variables`:

        uky_end() { printf "%s %s" "$uky_line" "$uky_status" >&5; exit 0; }
        uky_line=0
        module load cuda
        uky_status=$?; test $uky_status = 0 || uky_end
        unset -f uky_end; env -0 >&5

    So the file holds the variables, separated by NUL; or the number of the line that failed and its exit code; or
    nothing, where a line ended the shell, as `exit` or `exec` does.
    """
    import tempfile  # Costs 2 ms, and few hosts have such lines.

    with tempfile.TemporaryFile() as variables, tempfile.TemporaryFile() as printed:
        out = variables.fileno()
        program = [
            f'uky_end() {{ printf "%s %s" "$uky_line" "$uky_status" >&{out}; exit 0; }}',
            *(_step(number, line) for number, line in enumerate(lines)),
            f"unset -f uky_end; env -0 >&{out}",
        ]
        command = ["bash", *(["-l"] if login else []), "-c", "\n".join(program)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": printed}
        try:
            shell = subprocess.Popen(command, pass_fds=(out,), start_new_session=True, **quiet)  # type: ignore[call-overload]
        except OSError as error:
            raise _failed(lines[0], why(error)) from error
        try:
            shell.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            _kill(shell)
            raise _failed("; ".join(lines), phrase("no end within {seconds:.0f} s", seconds=SECONDS)) from None
        answer, output = _whole(variables), _whole(printed)
    if b"\0" not in answer:
        raise _refused(lines, answer.decode("ascii", "replace").split(), output)
    return decode_environ(answer)


def _step(number: int, line: str) -> str:
    """A line that is run in the shell itself, so that `source` and `export` last, and the check of its exit code."""
    return f"uky_line={number}\n{line}\nuky_status=$?; test $uky_status = 0 || uky_end"


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _kill(shell: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(shell.pid, signal.SIGKILL)
    except OSError:
        pass
    shell.wait()


def _refused(lines: list[str], failed_at: list[str], output: bytes) -> Refusal:
    """`failed_at`: the number of the line and its exit code; anything else where a line ended the shell."""
    last = output.decode("utf-8", "replace").strip()[-_LONGEST:]
    if len(failed_at) == 2:
        cause = phrase("it ended with exit code {code}: {output}", code=failed_at[1], output=last or "–")
        return _failed(lines[int(failed_at[0])], cause)
    return _failed("; ".join(lines), phrase("a line ended the shell: {output}", output=last or "–"))


def _failed(line: str, cause: Message) -> Refusal:
    advice = phrase("Try it in a shell there, and correct setup of this host in uky-patch.toml.")
    return Refusal("setup", phrase("a line of setup failed: {line}", line=line), cause, advice)
