"""What native programs, shells, launchers and other processes print around a failure."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from patcher.diagnose.diagnosis import Diagnosis, Finding
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms
from patcher.records.symptoms import Symptom
from tests.diagnose.diagnosed import TRACEBACK, symptom

SHIPPED = load_symptoms()
INSTALL = tuple(one for one in SHIPPED if one.id == "module-missing")
CRASH = tuple(one for one in SHIPPED if one.id == "segmentation-fault")
HEAD = "Traceback (most recent call last):\n"
RAY = '  File "/env/lib/python3.12/site-packages/ray/'


def diagnosed(log: str, symptoms: tuple[Symptom, ...] = ()) -> Diagnosis:
    evidence = Scanner(symptoms).scan([("run.log", io.BytesIO(log.encode()))])
    return diagnosis_of(evidence, FixContext({}))


def root(log: str, symptoms: tuple[Symptom, ...] = ()) -> Finding:
    found = diagnosed(log, symptoms)
    assert found.verdict == "failed"
    assert found.root is not None
    return found.root


def sentence(finding: Finding) -> str:
    assert finding.explanation is not None
    return str(finding.explanation.sentence)


STACK = "    @     0x7f00000010a5  ray::RayLog::~RayLog()\n    @     0x7f00000020b6  ray::gcs::Client::Ping()\n"


@pytest.mark.parametrize(
    ("fatal", "mark"),
    [
        ("[2026-01-02 10:00:00,123 C 81 93] client.cc:41: The server of the cluster went away", "*** StackTrace "),
        (
            "F0102 10:00:00.123456 81 pool.cc:12] Check failed: the size of the pool > 0",
            "*** Check failure stack trace: ***",
        ),
    ],
)
def test_a_stack_of_native_code_is_an_abort_told_by_the_line_above_it(fatal: str, mark: str) -> None:
    mark = f"{mark}Information ***" if mark.endswith("StackTrace ") else mark
    found = root(f"Local node IP: 10.0.0.7\n{fatal}\n{mark}\n{STACK * 4}")
    assert found.place.number == 2
    assert sentence(found).startswith("the program says: ")


def test_a_stack_of_native_code_alone_is_an_abort_too() -> None:
    assert root(f"starting\n*** StackTrace Information ***\n{STACK}").place.number == 2


def test_what_ran_on_after_a_stack_was_no_abort() -> None:
    step = "step 4: {'train/loss': 0.25}\n"
    assert diagnosed(f"*** StackTrace Information ***\n{STACK}{step}").verdict == "running"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "InterpolationKeyError: Interpolation key 'paths.out' not found\n    full_key: job.folder\n",
            "job.folder refers to paths.out, which the configuration does not have",
        ),
        (
            "InterpolationToMissingValueError: MissingMandatoryValue while resolving interpolation: "
            "Missing mandatory value: model.path\n    full_key: critic.path\n",
            "critic.path refers to model.path, which has no value",
        ),
        (
            "MissingMandatoryValue: Missing mandatory value: model.path\n    full_key: model.path\n",
            "the configuration has no value for model.path",
        ),
        (
            "ConfigAttributeError: Key 'pth' is not in struct\n    full_key: model.pth\n",
            "the configuration has no key model.pth",
        ),
    ],
)
def test_the_key_that_is_missing_is_told_and_the_one_that_refers_to_it(message: str, said: str) -> None:
    assert sentence(root(f"{TRACEBACK}omegaconf.errors.{message}    object_type=dict\n")) == said


def test_a_line_of_code_that_holds_the_message_is_not_the_place() -> None:
    gone = symptom("gone", "key .* is gone")
    assert (
        root("  raise GoneError(f\"key '{key}' is gone\")\nGoneError: key 'a.b' is gone\n", (gone,)).place.number == 2
    )


UNPICKLED = (
    f'{RAY}_private/function_manager.py", line 60, in _load_actor_class_from_gcs\n    loads(pickled)\n'
    f'{RAY}cloudpickle/cloudpickle.py", line 90, in subimport\n    __import__(name)\n'
)


@pytest.mark.parametrize(
    "frames",
    [UNPICKLED, f'{RAY}_private/serialization.py", line 40, in _deserialize_pickle5_data\n    obj = loads(x)\n'],
)
def test_a_module_that_a_pickle_asks_for_is_one_of_the_user_s_own(frames: str) -> None:
    found = root(f"{HEAD}{frames}ModuleNotFoundError: No module named 'garden_rewards'\n", INSTALL)
    assert found.id == "unknown"
    assert "another process has pickled; garden_rewards" in sentence(found)
    assert not any("pip install" in command for fix in found.fixes for command in fix.commands)
    assert "PYTHONPATH" in found.fixes[0].text


@pytest.mark.parametrize(
    ("frames", "module"),
    [
        (UNPICKLED, "flash_attn"),
        (UNPICKLED, "cv2"),
        (f'{UNPICKLED}  File "/app/rewards.py", line 3, in <module>\n    import garden\n', "garden"),
    ],
)
def test_a_package_or_what_one_s_own_file_imports_is_no_such_module(frames: str, module: str) -> None:
    found = root(f"{HEAD}{frames}ModuleNotFoundError: No module named '{module}'\n")
    assert "pickled" not in sentence(found)


def test_in_a_worker_of_ray_a_missing_module_may_be_the_user_s_own_too() -> None:
    found = root("(Learner pid=7, ip=10.0.0.2) ModuleNotFoundError: No module named 'garden_rewards'\n", INSTALL)
    assert found.id == "module-missing"
    assert found.fixes[1].text.startswith("If it is a file of your own")


CUT = f'{HEAD}  File "/app/loop.py", line 7, in run\n    raise task.exception()\n'


@pytest.mark.parametrize(
    ("announced", "said"),
    [
        ("[Loop] The stream ended with exception:no rows are left in it", "no rows are left in it"),
        ("ERROR 01-02 10:00:00 [loop.py:12] Step 4 failed: the bed is empty", "the bed is empty"),
        ("Error while planting: ValueError: the bed is empty", "the bed is empty"),
    ],
)
def test_a_cut_traceback_is_told_by_the_line_that_announces_it(announced: str, said: str) -> None:
    found = root(f"{announced}\n{CUT}")
    assert (found.place.number, sentence(found).endswith(said)) == (1, True)


@pytest.mark.parametrize(
    "other", ["Loading the model: all is well so far", "errors: 0", "(Other pid=8) failed: it is so"]
)
def test_a_line_that_announces_no_error_is_not_taken_for_the_message(other: str) -> None:
    assert sentence(root(f"{other}\n{CUT}")).startswith("the log ends within a traceback")


WRAPPED = "subprocess.CalledProcessError: Command '['python3', '-m', 'probe']' returned non-zero exit status 1.\n"
INNER = "File \"/app/probe.py\", line 4, in main\n    look()\nKeyError: 'the cellar has no door at all'\n"


@pytest.mark.parametrize("mark", ["# Subprocess stderr:", "stderr:", "--- stderr", "Captured stderr output:"])
def test_the_errors_of_an_inner_process_come_before_what_carries_them(mark: str) -> None:
    carried = symptom("probe-failed", "returned non-zero exit status")
    found = root(f"{WRAPPED}\n{mark}\nValueError: first\n{INNER}", (carried,))
    assert (found.id, found.place.number) == ("unknown", 7)
    assert root(f"{WRAPPED}\n{mark}\nall is well\n", (carried,)).id == "probe-failed"


def test_a_label_of_a_stream_is_no_heading() -> None:
    carried = symptom("probe-failed", "returned non-zero exit status")
    assert root(f"[1,0]<stderr>:{WRAPPED}[1,0]<stderr>:ValueError: later\n", (carried,)).id == "probe-failed"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("[Transfer] Sending 12 tensors to the engine", "[Transfer] Sending 12 tensors to the engine"),
        ("INFO 01-02 10:00:00 [pool.py:7] Waking the weights up", "Waking the weights up"),
        ("Capturing graphs:  40%|####      | 4/10 [00:03<00:05,  1.2it/s]", "Capturing graphs: 40%|"),
    ],
)
@pytest.mark.parametrize("symptoms", [(), CRASH])
def test_of_a_crash_is_told_what_came_before_it(last: str, said: str, symptoms: tuple[Symptom, ...]) -> None:
    noise = "  warnings.warn(\n"
    found = root(
        f"ready\n{last}\n{noise}Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n",
        symptoms,
    )
    assert sentence(found).startswith("the last that was said before it, in line 2: ")
    assert said in sentence(found)


def test_of_an_exception_is_not_told_what_came_before_it() -> None:
    assert "before" not in sentence(root(f"[Transfer] Sending\n{TRACEBACK}ValueError: no such bed is there\n"))


EXPLAINED = "".join(f"        Solution: {at}. Look at the network of node {at}.\n" for at in range(1, 7))


@pytest.mark.parametrize(
    "line",
    [
        "[Error]: The stream did not end within the time that was set.",
        "EE1002: 2026-01-02-10:00:00.123 The stream timed out.",
        "[rank0]: EZ9999: [PID: 81] The kernel was not found.",
        "ERR02200 DIST call of the library failed.",
        "the wait for the device failed, runtime result = 507000.[FUNC:Wait]",
        "node7: Test CUDA failure common.cu:41 'invalid device ordinal'",
        "node7: Test NCCL failure common.cu:52 'unhandled system error'",
    ],
)
def test_errors_of_ascend_and_of_nccl_tests_end_a_run(line: str) -> None:
    found = diagnosed(f"starting\n{line}\n{EXPLAINED}")
    assert (found.verdict, found.blank) == ("failed", False)
    assert found.root is not None
    assert found.root.place.number == 2


def test_what_is_logged_as_no_error_is_none() -> None:
    assert (
        diagnosed("starting\n2026-01-02 10:00:00 WARNING [a.py:1] [Error]: it went well again\n").verdict == "running"
    )


def test_of_ascend_s_errors_the_one_with_a_code_and_words_tells_most() -> None:
    log = "[Error]: The wait is over.\nEE9999: Inner Error!\nEE1001: The argument of the call is invalid.\n"
    assert root(log).place.number == 3


def test_what_ascend_gives_as_the_reason_is_told_with_the_exception() -> None:
    log = (
        f"{TRACEBACK}RuntimeError: the group of ranks cannot be made, error code is 15\n"
        "EE9999: Inner Error!\n        rtGetIndex execute failed, reason=[device id error][FUNC:F][FILE:a.cc][LINE:5]\n"
    )
    found = root(log)
    assert found.explanation is not None
    assert found.explanation.remedy == "rtGetIndex execute failed: device id error"
    named = (
        "EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the process. Reason: Maybe the last one is running.\n"
        "        Solution: Wait for 10s.\n"
    )
    found = root(log.replace("EE9999: Inner Error!\n", named))
    assert found.explanation is not None
    assert found.explanation.remedy == "Failed to initialize the process. Reason: Maybe the last one is running."


def test_a_table_of_nccl_tests_with_wrong_values_is_a_failure() -> None:
    table = "# Using devices\n  1024 256 float sum 20.1 0.05 0.10 0\n# Out of bounds values : {0}\n"
    table += "# Avg bus bandwidth : 1.1\n"
    assert diagnosed(table.format("0 OK")).verdict == "ok"
    assert diagnosed(table.format("3 FAILED")).verdict == "failed"


WORKING = "working\n" * 60
SHELL = "CondaError: Run 'conda init' before 'conda activate'\n"


@pytest.mark.parametrize(
    "shell", [SHELL, "CommandNotFoundError: Your shell has not been properly configured to use it.\n"]
)
def test_an_error_of_the_shell_before_the_job_is_not_what_ended_it(shell: str) -> None:
    assert root(f"{shell}working\n{TRACEBACK}ValueError: no\n").place.number == 6
    limit = symptom("limit", "TIME LIMIT", part="end")
    assert root(f"{shell}working\nslurmstepd: error: CANCELLED DUE TO TIME LIMIT\n", (limit,)).id == "limit"
    assert diagnosed(f"{shell}***** Running training *****\n").verdict == "running"


def test_a_command_that_the_shell_lacks_is_the_root_of_what_the_job_then_lacks_alone() -> None:
    gone = symptom("gone", "command not found")
    conda = "/spool/job81/script: line 12: conda: command not found\n"
    missing = f"{TRACEBACK}ModuleNotFoundError: No module named 'torch'\n"
    assert root(f"{conda}{missing}", (gone,)).id == "gone"
    assert root(f"{conda}{TRACEBACK}ValueError: the bed is empty\n", (gone,)).id == "unknown"
    assert root(f"{conda}{WORKING}script: line 14: torchrun: command not found\n", (gone,)).id == "gone"
    assert diagnosed(f"{conda}{WORKING}", (gone,)).verdict == "running"


def test_an_error_of_the_shell_is_the_root_where_nothing_else_is() -> None:
    assert root(SHELL).place.number == 1
    assert root(f"{SHELL}job ended with exit code 1\n").place.number == 1


@pytest.mark.parametrize(
    ("sign", "first"),
    [
        ("***** Running training *****\n", False),
        ("{'x': 1}  /env/trl/trainer/grpo.py\n", False),
        ("", True),
        ("***** Running training *****\n(TaskRunner pid=7) verl/trainer/main_ppo.py\n", True),
    ],
)
def test_settings_of_verl_come_last_for_another_trainer(sign: str, first: bool) -> None:
    limit = symptom("limit", "TIME LIMIT")
    keyed = replace(limit.fixes[0], text="Save more often", set={"trainer.save_freq": "10"})
    record = replace(limit, fixes=(keyed, *limit.fixes))
    found = root(f"{sign}slurmstepd: error: *** JOB 81 CANCELLED DUE TO TIME LIMIT ***\n", (record,))
    assert found.fixes[0].text.startswith(keyed.text) is first
    assert any(one.commands for one in found.fixes) is first


def test_an_object_that_ray_cannot_read_asks_for_such_a_module_too() -> None:
    said = "ray.exceptions.RaySystemError: System error: No module named 'garden_rewards'\n"
    frame = f'{RAY}_private/serialization.py", line 40, in _deserialize_pickle5_data\n    obj = pickle.loads(x)\n'
    for more in ("", f"traceback: {HEAD}{frame}ModuleNotFoundError: No module named 'garden_rewards'\n"):
        assert "garden_rewards, which that one could import" in sentence(root(f"{said}{more}"))


def test_a_record_that_matches_above_and_within_the_wrapper_comes_behind_the_inner_error_as_well() -> None:
    signs = "[[match]]\nline = 'Error in looking'\n[[match]]\nline = 'Error raised in subprocess'"
    outer = f"{HEAD}{INNER.splitlines()[0]}\nRuntimeError: Error raised in subprocess:\n"
    log = f"Error in looking at it\n{outer}{HEAD}{INNER}"
    found = diagnosed(log, (symptom("looking-failed", signs),))
    assert found.root is not None
    assert (found.root.id, found.root.place.text[:8]) == ("unknown", "KeyError")


@pytest.mark.parametrize(
    "line",
    [
        r"C:\Temp\x\launcher.c(12): error C2059: syntax error: '}'",
        "CUDA Error: invalid argument at allocator.cpp:62",
        "nvcc fatal   : Unsupported gpu architecture 'compute_99'",
        "[saver.cpp] CUresult error: 2 (out of memory) file=a.h line=3",
        "[2026-01-02 10:00:00,123] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 81",
    ],
)
def test_a_native_program_that_gives_up(line: str) -> None:
    assert root(f"Building the barn\n{line}\n").place.text == line


def test_a_value_that_is_printed_at_the_level_of_errors_is_none() -> None:
    log = "".join(f"[2026-01-02 10:00:0{rank}][CRITICAL][trainer:29] - \"devid='cuda:{rank}'\"\n" for rank in range(4))
    assert diagnosed(f"{log}wandb: Tracking run with wandb version 0.15.12\n").verdict == "running"


def test_the_time_before_a_prefix_may_stand_in_brackets_of_chinese() -> None:
    head = "【2026-01-02 10:00:00】(Farmer pid=81, ip=10.0.0.2) "
    lines = (
        'File "/app/farm.py", line 6, in feed',
        "hay = self.barn.hay",
        "AttributeError: 'Barn' object has no attribute 'hay'",
    )
    found = root("".join(f"{head}{line}\n" for line in lines))
    assert sentence(found).startswith("/app/farm.py:6 asks an object of Barn for hay")
