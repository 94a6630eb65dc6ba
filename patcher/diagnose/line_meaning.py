"""What one line means by itself: an exception and how it relates to the root cause, a traceback that was handled, the
beginning of something else, or nothing.

What it says of an end is read in `endings`, an error that is no exception in `complaints`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from patcher.diagnose.evidence import Nature
from patcher.diagnose.exception_message import MESSAGE_WORDS, UNREADABLE_CODE
from patcher.diagnose.message_words import points_elsewhere
from patcher.logs.labels import strip_labels

ALONE = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Failure|OOM|Unsupported|NotFound|Expired)"
    r"|Exception(?=: \S))"
    r"(?P<of>\([\w.]+\))?(?::(?=\s|$)|$)"
)
"""An exception at the beginning of a line, recognised by its name alone: `ValueError: …`."""
ENDING = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\.(?:\w+|<locals>))*)(?P<of>\([\w.]+\))?(?::(?=\s|$)|$)")
"""The line that ends a traceback, whatever the exception is called."""


def without_point(text: str) -> str:
    """The text of an exception that the output of another process has parted from its module: `.ValidationError: …`."""
    return text[1:] if text.startswith(".") and ALONE.match(text, 1) else text


_LAUNCHER = re.compile(
    r"(?:srun|slurmstepd|mpirun|mpiexec|orterun|prterun|salloc|sbatch): "
    r"(?:error|warning|info|Job step|Terminating|Force)"
)


def is_of_launcher(text: str) -> bool:
    """Whether a line is of a launcher, which may write it amid the traceback of one of its tasks."""
    return _LAUNCHER.match(text) is not None


_PRINTED = re.compile(r"(?:[A-Z][\w-]* (?:\w+ )?)?(?:exception|error)\s*: (?P<message>\S.*)", re.IGNORECASE)
"""An error that a program prints without the exception's name: `Exception          : f() takes 1 positional argument
…`."""


def printed_message(text: str) -> str:
    """The message of an exception that a program prints without its name; "" for any other line."""
    found = _PRINTED.match(text)
    return found["message"] if found is not None else ""


_AS_OBJECT = re.compile(
    r"(?P<name>(?:\w+\.)*[A-Z]\w*(?:Error|Exception))\((?P<quote>['\"])(?P<message>.+)(?P=quote),?\)$"
)
_BY_HYDRA = re.compile(r"Error (?:in call to target|instantiating|locating target) '")


def exception_of_hydra(text: str, above: str) -> re.Match[str] | None:
    """The exception of what hydra was to call, without its traceback:

    Error in call to target 'farm.plough.open_gate':        ◀ above
    TypeError("open_gate() got an unexpected keyword argument 'colour'")
    """
    return _AS_OBJECT.match(text) if _BY_HYDRA.match(above) else None


# What ends the message above it: the prompt of a shell, and what hydra, Python, a scheduler and others print next.
_BEGINS = re.compile(
    r"(?:\([\w.+-]{1,64}\) ?)?\[?[\w.-]{1,64}@[\w.-]{1,64}[ :][^$#%]{0,80}[$#%](?:\s|$)"
    r"|(?:\([\w.+-]{1,64}\) ?)?(?:\$ |[\u276f\u279c] |PS [A-Z]:|bash-\d[\d.]*[$#])|>>> |In ?\[\d+\]: "
    r"|Error (?:executing job with overrides|running \w)|Set the environment variable HYDRA_FULL_ERROR"
    r"|Traceback \(most recent|During handling of the above|The above exception was the|Unhandled error \(suppress "
    r"|Exception ignored |Exception in thread |Process [\w-]+:$|[a-z]+: error: |slurmstepd: |wandb: |make(?:\[\d+\])?: "
    r"|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[[WIEF]\d{3,4} |={5,} |!{5,} |-{20,}$"
    r"|\[(?:DEBUG|INFO|WARNING|ERROR)\] |(?:scontrol|sacct|seff) |JobId=\d+ JobName="
    r"|Process finished with exit code |`?[\w.-]+:\d+:\d+ \[\d+\] (?:\S+ )?NCCL [A-Z]"
)


def begins_anew(text: str) -> bool:
    """Whether a line below a message does not belong to it. The line comes without labels."""
    return _BEGINS.match(text.lstrip()) is not None or is_bar(text) or is_warning(text)


_WARNED = re.compile(r"\S{1,800}\.py:\d+\)?: \w*Warning: ")


def is_warning(text: str) -> bool:
    """Whether a line is a warning of Python: `x/__init__.py:32: RuntimeWarning: no version`. It ends nothing."""
    return _WARNED.match(text) is not None


RANK = re.compile(r" ?(?:\[[a-z_]*? ?\d+\]:|\[\d+,\d+\]<std(?:err|out)>:)")


def is_of_another_rank(text: str, label: str) -> bool:
    """Whether a launcher has put another rank before this line than before one that begins with `label`:
    `[default3]:`."""
    one, other = RANK.match(text), RANK.match(label)
    return one is not None and other is not None and one[0].strip() != other[0].strip()


# Exceptions that carry another one, which is the cause: `ray.exceptions.RayTaskError(ValueError): …`.
_WRAPPERS = (
    *("RayTaskError", "ChildFailedError", "CalledProcessError", "ExceptionGroup", "ProcessRaisedException"),
    *("ProcessExitedException", "InstantiationException", "RemoteTraceback", "SystemExit", "WorkerCrashedError"),
    *("CellExecutionError", "PapermillExecutionError"),
)
# Exceptions that a process raises because another one has ended: `EngineDeadError` says that the engine is gone, and
# not why.
_EFFECTS = (
    *("RayActorError", "ActorDiedError", "ActorUnavailableError", "EngineDeadError", "BrokenProcessPool"),
    *("BrokenPipeError", "ConnectionResetError", "EOFError", "CancelledError", "DistNetworkError", "DistBackendError"),
    *("OwnerDiedError", "ReferenceCountingAssertionError", "LocalRayletDiedError", "NodeDiedError"),
)
# Messages that mark an exception of any class as the carrier of another: `RuntimeError: Engine core initialization
# failed. See root cause above.`
_CARRIED = re.compile(
    r"Caught \w+ in |died because of an error raised in its creation task|CheckpointException ranks:"
    r"|Engine core initialization failed|Engine process failed to start|WorkerProc initialization failed"
    r"|EngineCore encountered an issue|Engine loop has died"
    r"|RaySystemError: System error: |The actor with name \S+ failed to import on the worker"
    # A server's answer with its own traceback: `RuntimeError: Request failed with status code 500: Traceback (most …`.
    r"|: Traceback \(most recent call last\):$"
    # pickle creates an exception again from its text only. Many classes take other arguments, so that fails.
    r"|\b\w+(?:Error|Exception|Failed|Failure)\.__init__\(\) missing"
)
# Printed by Python, or wandb, before a traceback that does not end the process: `Exception ignored in: <function …>`.
_IGNORED = re.compile(
    r"Exception ignored (?:in|on|while)|Error in atexit|Error in sys\.excepthook|--- Logging error ---"
    # subprocess reads the output of a program in a thread, on Windows; where that is no text, it goes on without.
    r"|Exception in thread .*(?:MsgRouterThr|NetStatThr|ChkStopThr|wandb|\(_readerthread\))"
)
# Words of a warning that announces the next traceback as handled: `WARNING … failed to import X, falling back:`.
_SOFT = re.compile(
    r"fail|error|except|could not|couldn't|cannot|can't|unable|skipp|ignor|fall(?:ing)?[ -]?back"
    r"|not (?:found|available)",
    re.IGNORECASE,
)


# The answer of a server that belongs to the run, and that logs the cause itself: `500 Server Error: Internal Server
# Error for url: http://127.0.0.1:8000/wake_up`. Servers outside the run are reached by https.
_OF_SERVER = re.compile(r"\b[45]\d\d\b.*\bfor url:? '?http://")


def nature(name: str, of: str | None, text: str) -> Nature:
    """How an exception of this name relates to the root cause; `of` is what it wraps, `(ValueError)`."""
    last = name.rpartition(".")[2]
    if last in ("HTTPError", "HTTPStatusError") and _OF_SERVER.search(text):
        return "effect"
    if (
        of
        or last in _WRAPPERS
        or last.endswith("CalledProcessError")
        or _CARRIED.search(text)
        or points_elsewhere(text)
    ):
        return "wrapper"
    return "effect" if last in _EFFECTS else "exception"


_ACCESS = re.compile(r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) \S+ HTTP/[\d.]+" \d{3}\b')
"""The line of a server's access log. What it answered announces nothing."""
_ABSENT = re.compile(
    r"\b(?:do(?:es)? not|doesn't|don't) exist\b"
    r"|\b(?:could|can|was|were)(?: ?not|n't) (?:be )?(?:found|find|opened|open|loaded|load)\b"
    r"|\bnot found\b|\bno such (?:file|directory|path|dataset|model|key)\b|\bunable to (?:find|open|load|read)\b"
    r"|\bfailed to (?:find|open|load|read)\b|\bno (?:\w+ ){1,3}found\b",
    re.IGNORECASE,
)
_DOES_WITHOUT = re.compile(
    r"\b(?:using|used|use|falls?|falling|fallback|defaults?|skip\w*|ignor\w*|instead|optional|disabl\w*|will|creat\w*|download\w*"
    r"|initializ\w*|from scratch|continu\w*|retry\w*|install\w*)\b|==",
    re.IGNORECASE,
)


def says_absent(text: str, level: str) -> bool:
    """Whether a line says that something is not there, and not that the program does without it."""
    if level == "DEBUG" or _ACCESS.search(text):
        return False
    return _ABSENT.search(text) is not None and _DOES_WITHOUT.search(text) is None


def announces(text: str) -> bool:
    """Whether text tells of a failure: `The start failed: ` in front of the header of a traceback."""
    return _SOFT.search(text) is not None


def was_handled(level: str, before: str, before_level: str) -> bool:
    """Whether a traceback was only logged and the run went on. Its own level, or the line before it, shows that."""
    if _ACCESS.search(before):
        before_level = ""
    if level in ("DEBUG", "INFO", "WARNING") or _IGNORED.match(before):
        return True
    return before_level in ("DEBUG", "INFO", "WARNING") and _SOFT.search(before) is not None


_TASK = re.compile(
    r"future: <Task finished .*?\bcoro=<(?P<function>[\w.<>]+)\(\).*? defined at (?P<path>[^\s>]+):(?P<line>\d+)>"
    r".*? exception=(?P<name>[A-Za-z_][\w.]*)\((?P<message>.*)\)>"
)


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """The exception of a task of asyncio that nobody has asked for, and the function that ran."""

    name: str
    message: str
    frame: str
    """The function as a frame of a traceback; its line is where the function begins."""


def task_failure(text: str) -> TaskFailure | None:
    """What asyncio says of a task below `Task exception was never retrieved`; None for any other line."""
    found = _TASK.search(text)
    if found is None:
        return None
    try:
        said = ast.literal_eval(found["message"]) if found["message"] else ""
    except UNREADABLE_CODE:
        said = found["message"]
    frame = f'  File "{found["path"]}", line {found["line"]}, in {found["function"].rpartition(".")[2]}'
    return TaskFailure(found["name"], str(said), frame)


_MUTE = ("assertionerror", "notimplementederror", "memoryerror")
"""Often raised without a message. Where a log begins within the traceback, this line is all there is."""
EXCEPTION_WORDS = (
    *("error:", "exception:", "interrupt:", "timeout:", "failure:", "notfound:", "expired:", "unsupported:"),
    *_MUTE,
    *("exception ", " exception=", "e   assert ", "e       assert "),
    *MESSAGE_WORDS,
)
"""Each line with an exception holds one of these, in lower case."""


# The state of a progress bar: `Loading:  40%|####      | 4/10 [00:03<00:05,  1.2it/s]`.
_BAR = re.compile(r"\d+%\||\d+(?:it|\w*/s)? ?\[\d\d:\d\d")
# Lines at the end of many logs that say nothing of the cause: `UserWarning: …` with the line of code below it, the
# summary of wandb, Python's `resource_tracker: There appear to be 6 leaked semaphore objects`, torch's reminders at the
# exit.
_SAYS_NOTHING = re.compile(
    r"\W*$|:(?:job_id|actor_name|task_name):"
    r"|.*\b\w*Warning: |\s+(?:\S.*\bwarn\(|return |self\.|warnings\.|FSDP\.|torch\.|_\w+\()|.*warnings?\.warn\("
    r"|wandb: |.*\bNIXL\b|.*\b(?:resource_tracker|leaked semaphore)|.*destroy_process_group\(\) was not called"
    r"|.*hostname of the client socket cannot be retrieved"
    # Frames of C++: `3  0x7f0000001000 /usr/lib/libplugin.so.9(+0x1)`, `frame #0: c10::Error::Error(…) + 0x96 (…)`.
    r"|\s*(?:frame )?#?\d+:? +(?:0x[0-9a-f]{6,} |\S.* \+ (?:0x[0-9a-f]+|\d+) )"
    # Those of Ray and glog: `    @     0x7f0000001000  ray::RayLog::~RayLog()`, `/env/ray/_raylet.so(+0x1) [0x7f00] …`.
    r"|\s*@ +0x[0-9a-f]{6,} |\S+\.so[\d.]*\([^)]*\) \[0x[0-9a-f]+\]"
)
_TRIED = re.compile(
    r"\bdry[- ]run (?:error|failed|failure)\b|torch/_inductor/select_algorithm\.py:\d+\]"
    r"|\bthrown while requesting (?:GET|HEAD|POST) ",
    re.IGNORECASE,
)
_LOOKED_FOR = re.compile(r"\b(?:checking|is not available because)\b", re.IGNORECASE)


def is_tried(text: str) -> bool:
    """Whether a line is of what is only tried, and may fail: `DEBUG CUDA platform is not available because: …`,
    `dry-run error: out of memory`, the kernels that torch's autotuning passes over, and a request to the Hub that is
    made again."""
    if _TRIED.search(text):
        return True
    return "DEBUG" in text and strip_labels(text).level == "DEBUG" and _LOOKED_FOR.search(text) is not None


_HANDED_UP = re.compile(r"\bNCCL INFO \S+:\d+ -> [1-9]")
"""NCCL passes an error up from call to call; the warning before these lines says which error it is."""


def is_bar(text: str) -> bool:
    """Whether a line is the state of a progress bar."""
    return _BAR.search(text) is not None


def is_noise(text: str) -> bool:
    """Whether a line says nothing of where the run stands, as progress bars and warnings do."""
    return bool(_BAR.search(text) or _SAYS_NOTHING.match(strip_labels(text).text))


def is_passed_on(text: str) -> bool:
    """Whether NCCL only passes on an error that an earlier line reported."""
    return _HANDED_UP.search(text) is not None


INNER_WORDS = ("stderr:", "stderr ---", "--- stderr", "stderr output", "standard error:", "raised in subprocess:")
_INNER = re.compile(
    r"\W*(?:(?:sub)?process |child |captured |command |the )?(?:stderr|standard error)"
    r"(?: output| was| of [^:]{1,60})?\W*$|(?:\w+Error: )?Error raised in subprocess:$",
    re.IGNORECASE,
)
_NOT_ZERO = re.compile(
    r"CalledProcessError|SubprocessError|non-?zero (?:exit )?(?:status|code)"
    r"|\bexit(?:ed)? (?:with )?(?:status|code)\W{0,3}[1-9]|raised in subprocess",
    re.IGNORECASE,
)


def begins_inner_errors(text: str) -> bool:
    """Whether a line stands above what another process wrote as its errors: `# Subprocess stderr:`."""
    return _INNER.match(strip_labels(text).text) is not None


def tells_of_process(text: str) -> bool:
    """Whether a line only says that another process failed: `CalledProcessError: … returned non-zero exit status 1.`"""
    return _NOT_ZERO.search(text) is not None


# What a shell says before the job: it could not set its environment up, and mostly ran the job all the same. What
# builds an extension is not meant: its compiler is no part of a shell's set-up.
_OF_SHELL = re.compile(
    r"(?:\S+(?: line \d+)?: )*(?:conda|mamba|micromamba|module|ml|nvm|pyenv|workon|nvidia-smi|deactivate)"
    r": (?:command )?not found$"
    r"|CommandNotFoundError: Your shell has not been properly configured|CondaError: Run 'conda init'"
    r"|bash: (?:cannot set terminal process group|no job control in this shell)"
)


def is_of_shell(text: str) -> bool:
    """Whether a line is an error of the shell that prepares a job, which the job may well do without."""
    return _OF_SHELL.match(strip_labels(text).text) is not None
