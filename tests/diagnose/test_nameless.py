"""What an exception says without its name, and where its message ends."""

from __future__ import annotations

import pytest

from patcher.diagnose.exception_message import parse_message, raised_as
from tests.diagnose.test_cut_logs import FRAME, HEAD, OWN, WHO, diagnosed, sentence

SHOWN = "verl (verl/trainer/main_ppo.py:30) or what it calls passes soil to Bed.__init__, which does not take it"
REFUSED = "Bed.__init__() got an unexpected keyword argument 'soil'"


@pytest.mark.parametrize(
    "line",
    [
        f"Exception          : {REFUSED}",
        f"Exception: {REFUSED}",
        f"Error: {REFUSED}",
        f"error: {REFUSED}",
        f"Unexpected error: {REFUSED}",
        f"2026-01-02 10:00:00,123 - planter - ERROR - Fatal error: {REFUSED}",
    ],
)
def test_an_exception_that_a_program_prints_without_its_name(line: str) -> None:
    log = f"Planting failed\nArguments : ()\n{line}\n\n[rank0]: {HEAD}[rank0]: {OWN.splitlines()[0]}\n"
    assert sentence(log) == SHOWN
    found = diagnosed(log).root
    assert found is not None
    assert found.place.number == 3


@pytest.mark.parametrize(
    "log",
    [
        f"INFO 01-02 10:00:00 [x.py:1] Error: {REFUSED}\n" + "Planting the next one\n" * 4,
        f"Warning: {REFUSED}\n",
        "Error: the first bed is empty, so the next one is taken\nThe work goes on\nIt goes on\nAnd on\nAnd on\n",
        f"Error: {REFUSED}\n" + "Planting the next one\n" * 60,
    ],
)
def test_what_only_speaks_of_one_is_none(log: str) -> None:
    assert diagnosed(log).root is None


def test_an_exception_says_more_than_what_is_printed_before_it() -> None:
    log = f"Error: No module named 'gnomes'\n{HEAD}{OWN}{FRAME}    f()\nTypeError: {REFUSED}\n"
    assert sentence(log) == f"{WHO} passes soil to Bed.__init__, which does not take it"


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("'Rose' object has no attribute 'bloom'", "AttributeError"),
        ("module 'garden' has no attribute 'Bed'", "AttributeError"),
        ("cannot import name 'Bed' from 'garden' (/opt/garden/__init__.py)", "ImportError"),
        ("No module named 'garden.beds'", "ModuleNotFoundError"),
        (REFUSED, "TypeError"),
        ("dig() missing 1 required positional argument: 'depth'", "TypeError"),
        ("dig() takes 1 positional argument but 2 were given", "TypeError"),
        ("'Rose' object is not iterable", "TypeError"),
        ("unsupported operand type(s) for +: 'int' and 'str'", "TypeError"),
        ("'<' not supported between instances of 'str' and 'int'", "TypeError"),
        ("name 'rose' is not defined", "NameError"),
        ("cannot access local variable 'rose' where it is not associated with a value", "UnboundLocalError"),
        ("too many values to unpack (expected 2)", "ValueError"),
        ("list index out of range", "IndexError"),
        ("[Errno 2] No such file or directory: '/data/beds.json'", "FileNotFoundError"),
    ],
)
def test_a_message_below_frames_needs_no_name(message: str, name: str) -> None:
    assert raised_as(message) == name
    for head in ("", HEAD):
        log = f"{head}{OWN}{FRAME}    dig(bed)\n    ^^^^^^^^\n{message}\n"
        found = diagnosed(log)
        assert found.verdict == "failed"
        assert found.root is not None
        assert (found.root.place.text, found.root.place.number) == (message, 7 if head else 6)
        assert found.root.explanation is not None
        if parse_message([message]) is not None:
            assert str(found.root.explanation.sentence).startswith(WHO)
    assert diagnosed(f"step 1 of 3\n{message}\nepoch 1: loss 0.5, lr 0.1\ntraining finished\n").root is None


@pytest.mark.parametrize("before", ["", "Failed to load the garden: ", "ERROR Planting failed: "])
def test_a_log_with_nothing_else_is_of_the_failure_that_a_program_tells(before: str) -> None:
    found = diagnosed(f"The garden opens\n{before}{REFUSED}. A stone garden will do\n")
    assert found.verdict == "failed"
    assert found.root is not None
    assert found.root.explanation is not None
    assert str(found.root.explanation.sentence) == "the program passes soil to Bed.__init__, which does not take it"
    assert diagnosed(f"The garden opens\nIgnoring a bed: {REFUSED}\n").root is None


def test_what_stands_below_a_raise_is_its_message() -> None:
    said = "The beds are not all of one size"
    log = f"{OWN}{FRAME}    raise ValueError(\n        describe(beds)\n{said}\n"
    assert sentence(log) == f"{WHO} says: {said}"
    assert diagnosed(f"{OWN}{FRAME}    dig(beds)\n{said}\n").root is None
    assert diagnosed(f"{OWN}{FRAME}    raise error\n{said}\n").root is None


@pytest.mark.parametrize(
    "line",
    [
        "(beds) gardener@G.2718:~/plans$",
        "gardener@shed:/work# ls",
        "[gardener@shed beds]$ ls",
        "(beds) $ ls",
        "$ ls",
        "PS C:\\beds> dir",
        "bash-5.2$ ls",
        ">>> plan()",
        "In [7]: plan()",
        "Error executing job with overrides: ['beds.rows=3']",
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
        "Exception ignored in: <function Bed.__del__ at 0x7f00>",
        "Process Planter-1:",
        "srun: error: shed: task 0: Exited with exit code 1",
        "slurmstepd: error: *** JOB 1 ON shed CANCELLED ***",
        "wandb: You can sync this run",
        "make: *** [Makefile:3: plant] Error 1",
        "2026-01-02 10:00:00 the planter ends",
        "========================================",
    ],
)
def test_a_message_ends_where_somebody_else_speaks(line: str) -> None:
    said = "The beds are not all of one size"
    for log in (f"{HEAD}{OWN}{FRAME}    dig()\n", OWN + FRAME + "    dig()\n"):
        assert sentence(f"{log}ValueError: {said}\n{line}\n") == f"{WHO} says: {said}"
    assert sentence(f"ValueError: {said}\n{line}\n") == f"the program says: {said}"


def test_a_message_goes_on_below_its_first_line() -> None:
    log = (
        f"{HEAD}{OWN}{FRAME}    dig()\nValueError: The beds are not of one size:\n- the first has 3 @ 4 rows for $ 5\n"
    )
    assert sentence(log) == f"{WHO} says: The beds are not of one size: - the first has 3 @ 4 rows for $ 5"


def test_what_a_logger_says_of_versions_of_a_part_is_no_requirement() -> None:
    line = "Cannot use kernel version 2 is not supported due to a unit of capability >= 8"
    assert parse_message([line]) is None
    parts = parse_message(["ImportError: beds 1.2 is installed but the planter needs beds>=2.0"])
    assert parts is not None
    assert (parts.matter, parts.found) == ("version", "1.2")


def test_the_second_line_of_a_warning_is_no_failure() -> None:
    log = (
        "/env/lib/python3.10/site-packages/vllm/connections.py:8: RuntimeWarning: Failed to read commit hash:\n"
        "No module named 'vllm._version'\n"
        "  from vllm.version import __version__ as VLLM_VERSION\n"
    )
    assert diagnosed(log).verdict == "running"
    assert diagnosed(log.replace("RuntimeWarning: Failed", "cannot start: Failed")).verdict == "failed"


def test_a_quoted_exception_may_begin_with_a_blank() -> None:
    assert diagnosed(" TypeError: the field has no value of that type\n").verdict == "failed"
    assert diagnosed("reading the file\n TypeError: is what it says there\n").verdict == "running"


def test_what_a_server_answers_to_a_client_ends_nothing() -> None:
    log = (
        "ERROR 03-18 09:02:34 [serving.py:133] Error with model object='error' message='The model `x` does not exist.' "
        "type='NotFoundError' param=None code=404\n"
    )
    assert diagnosed(log).verdict == "running"
    assert diagnosed(log.replace("code=404", "code=500")).verdict == "failed"


def test_what_a_model_asks_of_a_tool_in_a_wrong_form_ends_nothing() -> None:
    log = "(AgentLoopWorker pid=7) ERROR:2026-01-01 08:14:21,179:Failed to decode {what}: Invalid \\escape: line 2\n"
    assert diagnosed(log.format(what="tool call")).verdict == "running"
    assert diagnosed(log.format(what="the answer")).verdict == "failed"


def test_a_kernel_that_autotuning_passes_over_ends_nothing() -> None:
    head = "E0912 11:54:57.366 112 torch/_inductor/{file}.py:2100] [7/0] "
    log = (
        f"{head}No valid triton configs. OutOfResources: out of resource: shared memory\n{head}Ignoring this choice.\n"
    )
    assert diagnosed(log.format(file="select_algorithm")).verdict == "running"
    assert diagnosed(log.format(file="runtime")).verdict == "failed"


def test_a_line_that_says_what_is_dead_already_is_not_the_root() -> None:
    log = (
        "CRITICAL 11-26 13:20:09 launcher.py:99] MQLLMEngine is already dead, terminating server process\n"
        "ERROR 11-26 13:20:09 engine.py:135] RuntimeError('Error in execution: the plan has no rows')\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.place.number == 2
