"""Verdict, root and cascade of whole logs."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest

from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.frame import frame_of
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms
from tests.diagnose.diagnosed import LOGS, SYMPTOMS, TRACEBACK, diagnosed, healthy, root, symptom, unfinished

STEP = "(TaskRunner pid=9) step:{0} - actor/pg_loss:0.1 - actor/grad_norm:1.0\n"
INNER = f"{TRACEBACK}ValueError: 3 rows, not 4\n"


@pytest.mark.parametrize("release", ["0.6.1", "0.7.0", "0.8.0"])
def test_a_healthy_run_is_ok_and_has_no_finding(release: str) -> None:
    found = diagnosed(healthy(release))
    assert (found.verdict, found.phase, found.step, found.steps) == ("ok", "loop", 2, 2)
    assert found.findings == ()
    assert found.clean


def test_a_failed_run_of_verl_names_the_exception_under_two_that_carry_it() -> None:
    found = diagnosed((LOGS / "verl-0.6.1-failed.log").read_bytes())
    assert (found.verdict, found.phase) == ("failed", "loop")
    assert root(found) == ("unknown", 179)
    assert [finding.id for finding in found.findings[1:]] == ["task-error"]
    told = [place.text for place in found.telling]
    assert told[-1] == "KeyError: 'raw_prompt'"
    assert any("single_turn_agent_loop.py" in text for text in told)


def test_a_run_that_is_cut_off_is_running() -> None:
    found = diagnosed(unfinished())
    assert (found.verdict, found.phase, found.findings) == ("running", "loop", ())


def test_the_cause_is_the_root_wherever_it_stands_among_its_effects() -> None:
    log = "engine is gone\n" + INNER + "ray.exceptions.RayTaskError(ValueError): x\nRuntimeError: CUDA out of memory\n"
    found = diagnosed(log)
    assert root(found) == ("memory", 7)
    assert [(finding.id, finding.role) for finding in found.findings[1:]] == [
        ("engine-dead", "cascade"),
        ("task-error", "cascade"),
    ]


def test_what_is_only_warned_of_is_a_root_where_no_other_cause_is() -> None:
    scanner = Scanner((symptom("taken", "port is taken"), symptom("late", "too late")))

    def root_of(log: str) -> tuple[str, int] | None:
        return root(diagnosis_of(scanner.scan([("run.log", io.BytesIO(log.encode()))]), FixContext({})))

    warned = "WARNING 01-02 10:00:00 [server.py:12] the port is taken, using another instead\n"
    assert root_of(f"{warned}RuntimeError: too late\n") == ("late", 2)
    assert root_of(warned + INNER) == ("taken", 1)
    assert root_of(f"{warned}RuntimeError: too late\nOSError: the port is taken\n") == ("taken", 1)


def test_an_unknown_exception_is_a_better_root_than_an_effect() -> None:
    assert root(diagnosed("engine is gone\n" + INNER)) == ("unknown", 5)
    assert root(diagnosed("engine is gone\n")) == ("engine-dead", 1)


@pytest.mark.parametrize("name", ["AssertionError", "NotImplementedError", "[rank1]: AssertionError", "MemoryError"])
def test_an_exception_without_words_is_a_failure_though_the_log_begins_within_its_traceback(name: str) -> None:
    found = diagnosed(f"    assert len(found) == wanted\n{name}\n")
    assert (found.verdict, root(found)) == ("failed", ("unknown", 2))


@pytest.mark.parametrize("words", ["except AssertionError", "WARNING: AssertionError", "raised AssertionError before"])
def test_a_name_of_an_exception_among_other_words_is_no_failure(words: str) -> None:
    assert diagnosed(f"ready\n{words}\n").verdict == "running"


def test_what_follows_from_another_is_not_the_root_where_both_are_seen() -> None:
    assert root(diagnosed("address is taken\nCUDA out of memory\n")) == ("memory", 2)
    assert root(diagnosed("address is taken\n")) == ("clash", 1)


def test_how_a_process_ended_is_the_root_unless_an_exception_before_it_tells_why() -> None:
    killed = symptom("killed", "^Killed$", part="end")
    peer = symptom("peer-closed", "peer closed", part="effect")

    def named(log: str) -> str:
        found = diagnosis_of(Scanner((killed, peer)).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({})).root
        assert found is not None
        return found.id

    assert named(f"{INNER}The child failed\nKilled\n") == "unknown"
    assert named(f"Killed\n{INNER}") == "killed"
    assert named("RuntimeError: peer closed\nKilled\n") == "killed"


@pytest.mark.parametrize(
    "wrapper",
    [
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::A.f()",
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])",
    ],
)
def test_what_carries_the_exception_of_another_process_is_not_the_root(wrapper: str) -> None:
    log = f"{TRACEBACK}{wrapper}\n{TRACEBACK}ValueError: 3 rows, not 4\n"
    assert root(diagnosed(log)) == ("unknown", 8)


def test_of_two_causes_the_earlier_is_the_root() -> None:
    log = "RuntimeError: CUDA out of memory\n" * 3
    found = diagnosed(log)
    assert root(found) == ("memory", 1)
    assert found.findings[0].count == 3


@pytest.mark.parametrize("trouble", ["RuntimeError: CUDA out of memory\n", INNER])
def test_what_training_went_on_after_is_no_failure(trouble: str) -> None:
    found = diagnosed(unfinished() + trouble + STEP.format(1) + STEP.format(2))
    assert found.findings == ()
    found = diagnosed(unfinished() + STEP.format(1) + trouble)
    assert found.verdict == "failed"


def test_the_first_sign_after_the_last_step_is_the_root() -> None:
    log = unfinished() + "CUDA out of memory, retried\n" + STEP.format(1) + "\nCUDA out of memory, retried\n"
    found = diagnosed(log)
    assert root(found) == ("memory", log.count("\n"))


def test_a_later_step_of_any_trainer_counts() -> None:
    steps = "".join(f"{{'loss': 0.{at}, 'grad_norm': 1.0, 'epoch': 0.{at}}}\n" for at in range(1, 9))
    assert diagnosed(INNER + steps).findings == ()
    bar = "".join(f"\rTrain epoch [1/1]:  {at}%|#  | {at}/100 [00:01<00:02,  1.0it/s]" for at in range(1, 9))
    assert diagnosed(INNER + bar + "\n").findings == ()
    assert diagnosed(bar + "\n" + INNER + "\rTrain epoch [1/1]:  8%|#  | 8/100 [00:09<00:02]\n").verdict == "failed"


@pytest.mark.parametrize(
    "noise",
    [
        "Exception ignored in: <function Pool.__del__ at 0x7f>\n" + TRACEBACK + "AttributeError: 'Pool'\n",
        "Error in atexit._run_exitfuncs:\n" + TRACEBACK + "RuntimeError: closed\n",
        "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: There appears to be 1 object\n",
        "[rank0]:[W1120 21:05:00.1 ProcessGroupNCCL.cpp:1538] Warning: destroy_process_group() was not called before\n",
    ],
)
def test_noise_is_no_failure(noise: str) -> None:
    assert diagnosed(healthy() + noise).verdict == "ok"
    assert diagnosed(unfinished() + noise).findings == ()


def test_an_engine_that_was_started_again_is_no_failure_once_a_step_is_reported() -> None:
    log = INNER + "engine 5 recovered in 61.7s\n" * 9
    assert diagnosed(log).verdict == "failed"
    assert diagnosed(log + "(GRPODriver pid=61010)   • Total step time: 201.90s\n").verdict == "running"


@pytest.mark.parametrize(("seconds", "cause"), [(2000, "waits"), (200, "killed")])
def test_what_a_run_waited_for_may_be_told_a_while_before_somebody_ended_it(seconds: int, cause: str) -> None:
    killed = symptom("killed", "was told to end", part="end")
    waits = symptom("waits", "no node has a GPU", kind="stall")
    end = datetime(2026, 3, 1, 10, 0, 5) + timedelta(seconds=seconds)
    log = (
        "2026-03-01 10:00:00,000 INFO main.py:3 -- {'actor_rollout_ref': {'actor': {'strategy': 'fsdp'}}}\n"
        + "2026-03-01 10:00:05,000 INFO core.py:12 -- no node has a GPU\n"
        + "asked again\n" * 9
        + f"{end:%Y-%m-%d %H:%M:%S},000 INFO main.py:3 -- was told to end\n"
    )
    evidence = Scanner((killed, waits)).scan([("run.log", io.BytesIO(log.encode()))])
    found = diagnosis_of(evidence, FixContext(), ended=True)
    assert found.root is not None
    assert (found.verdict, found.root.id) == ("failed", cause)


def test_what_a_traceback_of_a_warning_ends_in_is_no_root_beside_a_failure() -> None:
    told = "WARNING 11-27 23:09:10 [import_utils.py:408] "
    warned = "".join(f"{told}{line}\n" for line in f"{TRACEBACK}RuntimeError: CUDA out of memory".splitlines())
    assert root(diagnosed(warned)) == ("memory", warned.count("\n"))
    assert root(diagnosed(warned + INNER)) == ("unknown", warned.count("\n") + 4)


def test_a_traceback_that_a_warning_tells_of_is_no_failure() -> None:
    warned = "2026-01-11 10:00:00,123 WARNING ops: could not import flash_attn, falling back\n"
    assert diagnosed(warned + TRACEBACK + "ImportError: flash_attn\nready\n").findings == ()
    assert diagnosed("2026-01-11 10:00:00,123 ERROR ops: failed\n" + INNER).verdict == "failed"
    native = "[2026-11-21 23:25:00,019 W 12458 12458] gcs_client.cc:210: Failed to get cluster ID\n"
    assert diagnosed(native + INNER).verdict == "failed"


def test_a_request_that_failed_does_not_end_a_server() -> None:
    served = 'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK\n'
    assert diagnosed("ERROR:    Exception in ASGI application\n" + INNER + served * 300).findings == ()


@pytest.mark.parametrize(
    "line",
    [
        "run.sh: line 3:    77 Killed                  python3 -m verl.trainer.main_ppo",
        "Segmentation fault (core dumped)",
        "Fatal Python error: Segmentation fault",
        "*** SIGSEGV received at time=1795302762 on cpu 0 ***",
        "Bus error",
        "Aborted (core dumped)",
        "terminate called after throwing an instance of 'c10::Error'",
        "subprocess exited with code 137",
        "torch.multiprocessing: Process 3 terminated with signal SIGKILL",
        "srun: error: node1: task 3: Exited with exit code 1",
    ],
)
def test_a_process_that_a_signal_or_an_exit_code_tells_of_is_a_failure(line: str) -> None:
    found = diagnosed(f"loading\n{line}\n")
    assert (found.verdict, root(found)) == ("failed", ("unknown", 2))


@pytest.mark.parametrize(
    "line",
    [
        "exit code 0",
        "exited with code 0",
        "Set HYDRA_FULL_ERROR=1 to exit 1 on errors",
        "signal handlers installed",
        "the old session was killed by user request",
        "Training will be aborted if the loss is nan",
        "training complete in 3 h",
    ],
)
def test_words_of_ends_in_other_sentences_are_no_failure(line: str) -> None:
    assert diagnosed(f"loading\n{line}\ngoing on\n").findings == ()


def test_an_error_that_is_no_exception_is_the_last_word() -> None:
    found = diagnosed("usage: x [-h]\nx.py: error: unrecognized arguments: --foo\n")
    assert (found.verdict, root(found)) == ("failed", ("unknown", 2))
    assert diagnosed("x.py: error: unrecognized arguments: --foo\n" + "going on\n" * 10).verdict == "running"


def test_last_words_tell_a_stall_unless_the_log_is_being_written() -> None:
    log = "(A pid=1) waiting at the barrier\n(B pid=2) x.py:3: UserWarning: slow\n(B pid=2)   warnings.warn(\n"
    bars = "\rLoading:  50%|##   | 1/2 [00:01<00:01]\n\n"
    found = diagnosed(log + bars)
    assert (found.verdict, root(found)) == ("stalled", ("barrier", 1))
    assert diagnosed(log + bars, silent=False).verdict == "running"
    assert diagnosed(log + "formed\n").verdict == "running"
    assert diagnosed(log + INNER).verdict == "failed"


SAVING = symptom("saving", "[[wait]]\nline = 'global_step_folder: '", kind="stall")


@pytest.mark.parametrize(("step", "verdict"), [(2, "running"), (3, "stalled")])
def test_a_checkpoint_of_a_step_that_is_told_is_written(step: int, verdict: str) -> None:
    log = healthy()[: healthy().index("Final validation")].rpartition("\n")[0]
    log = f"{log.replace('/2 [', '/9 [')}\n(TaskRunner pid=9) local_global_step_folder: /ckpt/global_step_{step}\n"
    evidence = Scanner((SAVING,)).scan([("run.log", io.BytesIO(log.encode()))])
    assert diagnosis_of(evidence, FixContext({})).verdict == verdict


@pytest.mark.parametrize(
    "step",
    [
        "[2026-09-08 11:20:20] model.py:611 - step 0: {'train/loss': 1.2e-08, 'train/grad_norm': 0.3311}",
        "01:10:42    INFO Step 1 | Time: 88.31s | Reward: 0.4120 | Throughput: 5120.4 tokens/s",
        "{'loss': 0.0027, 'grad_norm': 0.1502, 'learning_rate': 5.8e-07, 'epoch': 0.41}",
    ],
)
def test_a_step_of_a_trainer_of_one_s_own_is_progress(step: str) -> None:
    assert diagnosed(f"{INNER}going on\n{step}\n").verdict == "running"


def test_what_ends_a_run_that_says_that_it_has_finished_is_no_failure() -> None:
    log = f"21:29:32 [TRAIN] [Rank 0] [INFO] Training finished, exiting ...\n{INNER}"
    assert diagnosed(log).verdict == "ok"
    for other in ("finished for epoch 1,", "completed or interrupted"):
        assert diagnosed(log.replace("finished,", other)).verdict == "failed"


BAR = "(TaskRunner pid=9) Training Progress: {0}%|x| {0}/100 [00:0{1}<00:10, 1.0s/it]\n"


@pytest.mark.parametrize(("step", "verdict"), [(40, "failed"), (100, "ok")])
def test_a_run_that_calls_itself_complete_has_failed_where_steps_are_left(step: int, verdict: str) -> None:
    log = BAR.format(step, 5) + INNER + "[ASYNC MAIN] Training completed successfully\n[ASYNC MAIN] Cleaning up...\n"
    assert diagnosed(log.encode()).verdict == verdict


@pytest.mark.parametrize(("status", "verdict"), [(1, "failed"), (0, "ok")])
def test_what_comes_behind_the_end_of_training_is_a_failure_where_the_status_says_so(status: int, verdict: str) -> None:
    end = f"[ERROR] [launch.py:341:x] ['python', 'train.py', '--local_rank=1'] exits with return code = {status}\n"
    log = "{'train_runtime': '912.7', 'train_loss': '0.001'}\n" + INNER + end
    found = diagnosed(log.encode())
    assert (found.verdict, bool(found.findings)) == (verdict, status != 0)


def test_what_hydra_tells_behind_the_end_of_training_ended_the_program() -> None:
    """A script goes on behind its training; hydra leaves out the frames in which a program begins."""
    ended = "{'train_runtime': '912.7', 'train_loss': '0.001'}\n"
    inner = INNER.replace("in <module>", "in main")
    assert diagnosed(ended + inner).verdict == "ok"
    assert diagnosed(f"{ended}Error executing job with overrides: []\n{inner}").verdict == "failed"


def test_a_job_that_ray_says_succeeded_has_not_failed_of_what_ends_its_servers() -> None:
    assert diagnosed(f"Job 'raysubmit_x1' succeeded\n{INNER}").verdict == "ok"


def test_a_job_that_was_started_again_and_ended_normally_has_not_failed() -> None:
    failed = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n  exitcode  : 85 (pid: 149)\n"
    ended = "- 13:11:23.0 `005 terminated` Job terminated. - (1) Normal termination (return value {0})\n"
    assert diagnosed(failed).verdict == "failed"
    assert diagnosed(failed + ended.format(0)).verdict == "ok"
    assert diagnosed(failed + ended.format(1)).verdict == "failed"


def test_the_end_of_a_job_of_lsf() -> None:
    failed = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n  exitcode  : 85 (pid: 149)\n"
    job = "{}Sender: LSF System <lsf@node3>\n\n{}\n\nResource usage summary:\n    CPU time : 1843.00 sec.\n"
    assert diagnosed(job.format("epoch 3\n", "Successfully completed.")).verdict == "ok"
    assert diagnosed(job.format("epoch 3\n", "Exited with exit code 7.")).verdict == "failed"
    assert diagnosed(job.format(failed, "Exited with exit code 1.")).verdict == "failed"


def with_shipped(log: str) -> Diagnosis:
    evidence = Scanner(load_symptoms()).scan([("run.log", io.BytesIO(log.encode()))])
    return diagnosis_of(evidence, FixContext(evidence.versions))


def test_a_command_that_is_given_again_corrected_has_not_failed() -> None:
    prompt = "(verl) me@node1:~/verl$ "
    refused = (
        f"{prompt}python3 -m verl.model_merger merge --local dir ckpt\nusage: __main__.py [-h] {{merge,test}} ...\n"
        "__main__.py: error: unrecognized arguments: ckpt\n"
    )
    corrected = f"{prompt}python3 -m verl.model_merger merge --local_dir ckpt\n"
    works = "".join(f"Saving shard {number} to /data/final\n" for number in range(6))
    assert with_shipped(refused).verdict == "failed"
    assert with_shipped(refused + corrected + works).clean
    assert with_shipped(refused + refused).verdict == "failed"
    assert with_shipped(f"{refused}{prompt}ls\nrecipe\n").verdict == "failed"


def test_what_nccl_tells_above_a_cut_traceback_is_why() -> None:
    log = (
        "NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n\n"
        'INFO:     10.0.0.7:52504 - "POST /init_communicator/ HTTP/1.1" 200 OK\n'
        "ERROR 05-02 21:36:34 [core.py:459] Invocation of collective_rpc method failed\n"
        "ERROR 05-02 21:36:34 [core.py:459] Traceback (most recent call last):\n"
        'ERROR 05-02 21:36:34 [core.py:459]   File "/app/vllm/v1/engine/core.py", line 456, in _handle\n'
        "ERROR 05-02 21:36:34 [core.py:459]     output.result = method(\n"
    )
    assert root(with_shipped(log)) == ("nccl-system-error", 1)


def test_a_fatal_error_ends_a_prompt_that_is_printed() -> None:
    """verl prints samples, and what they say of errors counts for nothing."""
    dump = "[prompt] add two numbers\n{}Fatal Python error: Aborted\n"
    assert root(diagnosed(dump.format("ValueError: of the sample\n"))) == ("unknown", 3)


def test_what_a_client_sees_of_a_server_s_failure_is_no_cause() -> None:
    server = INNER.replace("app/run.py", "srv/engine.py")
    client = f"{TRACEBACK}requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: "
    assert root(diagnosed(f"{server}{client}http://127.0.0.1:8000/wake_up\n")) == ("unknown", 4)
    assert root(diagnosed(f"{client}http://127.0.0.1:8000/wake_up\n{server}")) == ("unknown", 8)
    assert root(diagnosed(f"{client}https://elsewhere.org/x\n{server}")) == ("unknown", 4)


def test_times_with_and_without_a_year_are_of_one_run() -> None:
    year = datetime.now().year - 1
    log = f"{year}-09-19 10:12:41,337\tINFO worker.py:1927 -- View the dashboard at http://127.0.0.1:8265\n"
    log += "(WorkerDict pid=7) one\n(WorkerDict pid=7) INFO 09-19 10:14:02 [core.py:58] Initializing a V1 LLM engine\n"
    assert 80 < diagnosed(log).spans["actor"] < 82


def test_a_sign_of_a_stall_counts_at_the_end_alone() -> None:
    sign = "INFO 11-20 21:00:01 [shm.py:1] no broadcast block found in 60 seconds\n"
    found = diagnosed("ready\n" + sign * 4)
    assert (found.verdict, root(found)) == ("stalled", ("barrier", 2))
    assert diagnosed(sign + "ready\n" * 100).findings == ()


def test_a_run_that_is_known_to_be_silent_or_over() -> None:
    assert diagnosed(unfinished(), silent=True).verdict == "stalled"
    found = diagnosed("loading\nthen nothing\n", ended=True)
    assert (found.verdict, root(found)) == ("failed", ("unknown", 2))
    assert diagnosed(healthy(), ended=True).verdict == "ok"


def test_a_bad_course_is_a_finding_of_a_run_that_goes_on() -> None:
    bad = "".join(f"step:{at} - actor/pg_loss:{'nan' if at > 2 else at} - x:1\n" for at in range(1, 7))
    found = diagnosed(unfinished() + bad)
    assert (found.verdict, found.findings[0].id, found.findings[0].role) == ("running", "nan", "root")
    assert not found.clean
    found = diagnosed(unfinished() + bad + "CUDA out of memory\n")
    assert [(one.id, one.role) for one in found.findings] == [("memory", "root"), ("nan", "cascade")]


def test_a_notice_is_told_beside_a_failure_and_never_alone() -> None:
    assert diagnosed("a proxy is set\n").findings == ()
    found = diagnosed("a proxy is set\n" + INNER)
    assert [(one.id, one.role) for one in found.findings] == [("unknown", "root"), ("proxy", "cascade")]


@pytest.mark.parametrize("log", ["", "\n\n  \n", "\x00" * 5000, "ready\n"])
def test_a_log_that_says_nothing_is_no_failure(log: str) -> None:
    found = diagnosed(log)
    assert (found.verdict, found.findings, found.phase) == ("running", (), None)


def test_versions_are_those_that_the_log_tells() -> None:
    log = (
        "(EngineCore pid=3) INFO 11-20 21:00:01 [core.py:93] Initializing a V1 LLM engine (v0.20.2) with config: x\n"
        "Successfully installed flash_attn-2.8.3 torch-2.8.0+cu129 verl-0.7.0\n"
        'Qwen2Config {\n  "architectures": [],\n  "transformers_version": "4.57.1",\n}\n'
        "Requirement already satisfied: ray[default]==2.40.0 in /venv\nray==2.51.1\n"
    )
    assert diagnosed(log).versions == {
        "vllm": "0.20.2",
        "flash-attn": "2.8.3",
        "torch": "2.8.0+cu129",
        "verl": "0.7.0",
        "transformers": "4.57.1",
        "ray": "2.51.1",
    }
    assert diagnosed('{"transformers_version": "4.1.0"}\nCollecting vllm>=0.8\n').versions == {}


def test_where_only_a_launcher_tells_of_an_end_the_words_before_it_are_the_root() -> None:
    launcher = (
        "E0302 08:32:24.101000 7711 torch/distributed/elastic/api.py:869] failed (exitcode: 31) local_rank: 0\n"
        f"{TRACEBACK}torch.distributed.elastic.errors.ChildFailedError: \n  exitcode  : 31 (pid: 7790)\n"
    )
    log = "2026-03-02 08:31:11,402 - trainer - INFO - iteration 11\n"
    found = diagnosed(log + "simulator: fatal: the seat was withdrawn\n" + launcher)
    assert root(found) == ("unknown", 2)
    assert found.root is not None
    assert found.root.place.text == "simulator: fatal: the seat was withdrawn"
    told = diagnosed(log + launcher).root
    assert told is not None
    assert told.place.number > 1


def test_the_phase_is_the_one_that_was_about_to_begin_where_the_symptom_belongs_to_it() -> None:

    begun = healthy()[: healthy().index("(vLLMHttpServer")]
    begun = begun[: begun.rindex("\n") + 1]
    for phases, phase in (("[]", "actor"), ('["rollout"]', "rollout"), ('["loop"]', "actor"), ('["actor"]', "actor")):
        one = symptom("engine", "no engine today", more=f"phase = {phases}")
        evidence = Scanner([one]).scan([("log", io.BytesIO((begun + "no engine today\n").encode()))])
        assert diagnosis_of(evidence, FixContext()).phase == phase


def test_a_warning_of_nccl_ends_a_run_where_nccl_handed_an_error_up() -> None:
    warned = "node1:51:53 [0] transport/turtle.cc:12 NCCL WARN Turtle 3 does not answer\n"
    handed = "".join(f"node1:51:53 [0] NCCL INFO init.cc:{line} -> 2\n" for line in range(1000, 1006))
    begun = "node1:51:53 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.5<0>\n"
    found = diagnosed(begun + warned + handed)
    assert (found.verdict, root(found)) == ("failed", ("unknown", 2))
    assert diagnosed(begun + warned).verdict == "running"


@pytest.mark.parametrize(("seconds", "cause"), [(400, "barrier"), (100, "killed")])
def test_a_run_that_stood_still_for_long_until_somebody_ended_it(seconds: int, cause: str) -> None:
    """What it waited for is told, and that it was ended follows from that; a short wait may be none at all."""
    killed = symptom("killed", "was told to end", part="end")
    end = datetime(2026, 3, 1, 10, 0, 5) + timedelta(seconds=seconds)
    log = (
        "2026-03-01 10:00:00,000 INFO main.py:3 -- {'actor_rollout_ref': {'actor': {'strategy': 'fsdp'}}}\n"
        "2026-03-01 10:00:05,000 INFO core.py:12 -- waiting at the barrier\n"
        f"{end:%Y-%m-%d %H:%M:%S},000 INFO main.py:3 -- was told to end\n"
    )
    evidence = Scanner((*SYMPTOMS, killed)).scan([("run.log", io.BytesIO(log.encode()))])
    found = diagnosis_of(evidence, FixContext(), ended=True)
    assert [one.symptom.id for one in found.findings if one.symptom] == [cause, "killed"][: 2 if seconds > 300 else 1]
    assert found.verdict == "failed"


def test_a_run_in_its_steps_that_somebody_ended_is_told_as_ended() -> None:
    """The loop lasts as long as all steps, so its time says nothing of how long the last words are ago."""
    killed = symptom("killed", "was told to end", part="end")
    log = (
        "2026-03-01 10:00:00,000 INFO main.py:3 -- {'actor_rollout_ref': {'actor': {'strategy': 'fsdp'}}}\n"
        + "".join(f"2026-03-01 1{hour}:00:00,000 INFO x -- \n" + STEP.format(hour) for hour in range(1, 5))
        + "2026-03-01 15:00:05,000 INFO core.py:12 -- waiting at the barrier\n"
        "2026-03-01 15:00:08,000 INFO main.py:3 -- was told to end\n"
    )
    evidence = Scanner((*SYMPTOMS, killed)).scan([("run.log", io.BytesIO(log.encode()))])
    assert (evidence.phase, evidence.wait_before_end is not None) == ("loop", True)
    found = diagnosis_of(evidence, FixContext(), ended=True).root
    assert found is not None
    assert found.symptom is killed


def test_what_slurm_ends_a_job_with_counts_although_a_bar_comes_late() -> None:
    killed = (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=81.batch. Some of the step tasks have been killed.\n"
    )
    bar = "Training:  50%|█████     | 50/100 [00:50<00:50,  1.00it/s]\n"
    symptoms = (symptom("killed", "Detected \\d+ oom_kill event", part="end"),)

    def verdict(log: str) -> str:
        evidence = Scanner(symptoms).scan([("run.log", io.BytesIO(log.encode()))])
        return diagnosis_of(evidence, FixContext({})).verdict

    assert verdict(f"***** Running training *****\n{killed}{bar}") == "failed"
    more = "more is planted here\n" * 50
    assert verdict(f"***** Running training *****\n{killed}{more}{bar}") == "running"


def test_exception_above_its_frames() -> None:
    log = (
        'ZeroDivisionError: integer modulo by zero\n  File "/app/farm.py", line 12, in plant\n    left = beds % rows\n'
    )
    found = diagnosed(log).root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence) == "/app/farm.py:12 or what it calls divides by rows, which is 0"


@pytest.mark.parametrize(
    "last",
    [
        "Epoch: [4] Total time: 0:31:02\nTraining time 1:02:03\n",
        "Epoch 0: : 5000it [12:14,  6.81it/s][INFO] `Trainer.fit` stopped: `max_steps=5000` reached.\n",
        "INFO 2026-06-12 18:27:59 ot_train.py:438 End of training\n",
        "wandb: Synced 5 W&B file(s), 0 media file(s), 0 artifact file(s) and 1 other file(s)\n"
        "wandb: Find logs at: ./wandb/run-20260617_203548-6q5/logs\n",
        "tests/test_beds.py .....\n========== 5 passed, 2 warnings in 0.31s ==========\n",
    ],
)
def test_a_run_that_says_that_it_has_ended_is_ok(last: str) -> None:
    assert diagnosed(f"***** Running training *****\n{last}").verdict == "ok"


@pytest.mark.parametrize("last", ["wandb: Synced 5 W&B file(s)\n", "===== 5 passed in 0.31s =====\n"])
def test_what_is_printed_at_any_end_does_not_hide_a_failure(last: str) -> None:
    assert diagnosed(f"***** Running training *****\n{INNER}{last}").verdict == "failed"


def test_a_compiler_s_error_ends_a_build_whatever_it_explains_below() -> None:
    error = "/srv/farm/bed.hip:27:33: error: no member named 'dig' in namespace 'farm'; did you mean 'dog'?\n"
    shown = "   27 |   auto x = farm::dig();\n      |            ~~~~~~^~~\n      |                  dog\n"
    note = "/srv/farm/include/farm.h:44:20: note: 'dog' declared here\n"
    assert root(diagnosed(f"Building the farm\n{error}{shown * 2}{note}1 error generated.\n")) == ("unknown", 2)


def test_what_tensorflow_warns_of_is_no_error() -> None:
    line = "2026-05-16 19:28:58.123952: {} tensorflow/x.cc:64] Could not load library: No such file or directory\n"
    warned, failed = (Scanner(()).scan([("a", io.BytesIO(line.format(level).encode()))]) for level in "WE")
    assert (warned.complained, len(failed.complained)) == ((), 1)


def test_pytest_s_last_line_with_a_failed_test_is_no_good_end() -> None:
    assert diagnosed("tests/test_beds.py ..F\n======= 1 failed, 5 passed in 0.31s =======\n").verdict != "ok"


def test_what_is_raised_again_after_the_others_began_a_phase_ended_the_run() -> None:
    """One worker cannot start, the others load their model, and the driver tells the failure once more."""
    broken = f"{TRACEBACK}ImportError: the bed is not there\n"
    others = "rows are planted\n" * 50 + "***** Running training *****\n"
    assert diagnosed(broken + others).verdict == "running"
    assert diagnosed(broken + others + broken).verdict == "failed"


def test_a_thread_of_subprocess_that_cannot_decode_ends_nothing() -> None:
    log = (
        "Exception in thread Thread-2 (_readerthread):\n"
        'Traceback (most recent call last):\n  File "C:\\Python311\\Lib\\subprocess.py", line 1599, in _readerthread\n'
        "    buffer.append(fh.read())\nUnicodeDecodeError: 'utf-8' codec can't decode byte 0xad in position 7\n"
    )
    assert diagnosed(log + "GPU: of 4 GB\n" * 10).verdict == "running"
    assert diagnosed(log.replace("_readerthread", "_plant") + "GPU: of 4 GB\n" * 10).verdict == "failed"


def test_trials_of_ray_tune_that_run_are_progress() -> None:
    waits = " {'TPU': 1.0} * 1 (PACK): 99+ pending placement groups\n"
    symptoms = (symptom("pending", "pending placement groups", kind="stall"),)

    def verdict(log: str) -> str:
        return diagnosis_of(Scanner(symptoms).scan([("run.log", io.BytesIO(log.encode()))]), FixContext()).verdict

    assert verdict(waits) == "stalled"
    assert verdict(f"{waits}Number of trials: 100/100 (94 PENDING, 4 RUNNING, 2 TERMINATED)\n") == "running"
    assert verdict(f"{waits}Number of trials: 100/100 (100 PENDING)\n") == "stalled"


def test_what_ray_has_held_back_was_raised_before_what_stands_above_it() -> None:
    outer = f"{TRACEBACK}AssertionError: no crop\n"
    inner = "(Gardener pid=81) ValueError: the bed is empty"
    held = f"{outer}{inner} [repeated 7x across cluster]\n"
    assert root(diagnosed(held)) == ("unknown", 5)
    assert root(diagnosed(f"{outer}{inner}\n")) == ("unknown", 4)
    assert root(diagnosed(f"{outer}{inner}\n{inner} [repeated 7x across cluster]\n")) == ("unknown", 4)


def test_what_failed_before_a_server_was_started_again_comes_behind() -> None:
    start = "INFO 01-02 10:00:{0} [api_server.py:9] vLLM API server version 0.11.0\n"
    earlier, later = "ValueError: address is taken\n", f"{TRACEBACK}RuntimeError: CUDA out of memory\n"
    for log, first in (
        (start.format("01") + earlier + start.format("09") + later, "memory"),
        (start.format("01") + earlier + start.format("09"), "clash"),
        (start.format("01") + start.format("02") + earlier, "clash"),
    ):
        found = diagnosed(log, ended=True)
        assert found.root is not None
        assert found.root.id == first
    again = start.format("01") + later + start.format("09") + f"{TRACEBACK}ValueError: 3 rows, not 4\n"
    assert root(diagnosed(again, ended=True)) == ("unknown", 10)


def test_traceback_that_reaches_the_start_of_the_program_was_not_handled() -> None:
    warned = "2026-01-02 10:00:01,123 - ops - WARNING - Failed to import the kernels: no such library\n"
    inner = '  File "/app/beds.py", line 3, in <module>\n    import soil\n'
    program = '  File "/usr/lib/python3.10/runpy.py", line 187, in _run_module_as_main\n    start()\n'
    head, end = "Traceback (most recent call last):\n", "RuntimeError: the class of soil does not exist here\n"
    assert diagnosed(warned + head + program + inner + end).verdict == "failed"
    assert diagnosed(warned + head + inner + end).verdict == "running"


def test_slow_start_is_no_matter_once_it_is_over() -> None:
    slow = symptom("slow", "took 900 seconds", kind="course", more='phase = ["rollout"]')
    log = "INFO 01-02 10:00:01 [core.py:9] Initializing a V1 LLM engine\nLoading took 900 seconds\n"
    for more, roots in (("", ["slow"]), ("INFO:     Application shutdown complete.\n", [])):
        evidence = Scanner((slow,)).scan([("run.log", io.BytesIO((log + more).encode()))])
        assert [one.id for one in diagnosis_of(evidence, FixContext({})).findings] == roots


def test_what_cann_says_below_a_failed_call_is_quoted() -> None:
    npu = symptom("npu", "NPU function error")
    log = (
        "RuntimeError: copy.cpp:90 NPU function error: call aclnnInplaceCopy failed, error code is 161002\n"
        "[PID: 8] 2026-01-02-03:04:05 AclNN_Parameter_Error(EZ1001): The tensor cannot be larger than 8 dimensions.\n"
    )
    found = diagnosis_of(Scanner((npu,)).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))
    assert found.root is not None
    assert found.root.explanation is not None
    assert str(found.root.explanation.sentence) == "CANN says: The tensor cannot be larger than 8 dimensions."


def test_exception_that_is_only_raised_again_comes_behind_the_one_with_its_frames() -> None:
    again = TRACEBACK.replace("start()", "raise result") + "ValueError: 3 rows, not 4\n"
    worker = "".join(f"(Worker pid=8) {line}\n" for line in INNER.splitlines())
    assert root(diagnosed(again + worker, ended=True)) == ("unknown", 8)


def test_warning_of_python_is_no_cause_of_an_exception() -> None:
    warned = "/app/hub.py:9: UserWarning: CUDA out of memory while looking\n  warnings.warn(\n"
    assert root(diagnosed(warned + INNER, ended=True)) == ("unknown", 6)
    assert root(diagnosed(warned.partition("\n")[0] + "\n" + INNER, ended=True)) == ("unknown", 5)
    assert root(diagnosed(warned, ended=True)) == ("memory", 1)


def test_folder_called_verl_is_no_tree_of_it() -> None:
    for path, shown in (
        ("/w/verl/ART/src/art/a.py", "/w/verl/ART/src/art/a.py"),
        ("/w/verl/utils/a.py", "verl/utils/a.py"),
    ):
        frame = frame_of(f'  File "{path}", line 3, in f')
        assert frame is not None
        assert frame.path == shown


def test_what_was_warned_of_ends_a_run_only_at_the_logs_end() -> None:
    warned = "WARNING 01-02 10:00:01 [ops.py:9] CUDA out of memory\n"
    more = "".join(f"INFO 01-02 10:00:0{second} [core.py:9] It goes on\n" for second in range(2, 9))
    assert diagnosed(warned + more[:90]).verdict == "failed"
    assert diagnosed(warned + more).verdict == "running"


def test_what_was_ignored_at_the_exit_is_no_failure() -> None:
    ignored = "Exception ignored in atexit callback: <function tidy at 0x7f00>\n"
    trace = f"{TRACEBACK}RuntimeError: CUDA out of memory\n"
    after = "[W319 11:07:18.6 ProcessGroupNCCL.cpp:1250] Warning: it was not destroyed\n" * 8
    assert diagnosed(ignored + trace + after).verdict == "running"
    assert diagnosed(trace + after).verdict == "failed"


def test_code_that_ipython_lists_is_no_line_of_the_log() -> None:
    listed = '    305     raise RuntimeError(\n    306         "CUDA out of memory"\n    307     )\n'
    assert root(diagnosed(listed + INNER, ended=True)) == ("unknown", 7)
    assert root(diagnosed(listed.replace("305", "205") + INNER, ended=True)) == ("memory", 2)


def test_bad_metric_of_a_step_that_others_followed_is_past() -> None:
    nan = symptom(
        "nan", "[[match]]\nline = 'loss is nan'\n[[trend]]\nmetric = 'a'\ntest = 'nan'\nsteps = 1", kind="course"
    )
    steps = [STEP.format(step) for step in (1, 2, 3)]
    for log, told in (
        (steps[0] + "loss is nan\n" + steps[1] + steps[2], []),
        (steps[0] + steps[1] + "loss is nan\n" + steps[2], ["nan"]),
    ):
        evidence = Scanner((nan,)).scan([("run.log", io.BytesIO(log.encode()))])
        assert [one.id for one in diagnosis_of(evidence, FixContext({})).findings] == told


@pytest.mark.parametrize(
    ("path", "code", "first"),
    [
        ("/src/Q-Align/q_align/main.py", "from q_align.a import A", "export PYTHONPATH=/src/Q-Align:$PYTHONPATH"),
        ("q_align/train.py", "import q_align.a", "export PYTHONPATH=.:$PYTHONPATH"),
        ("/src/q_align/train.py", "from q_align import A", "python3 -m pip install q-align"),
        ("/src/other/train.py", "import q_align.a", "python3 -m pip install q-align"),
        ("/venv/lib/python3.11/site-packages/b/q_align/x.py", "import q_align.a", "python3 -m pip install q-align"),
    ],
)
def test_a_program_that_lies_in_the_folder_that_is_missing_is_told_the_folder_above(
    path: str, code: str, first: str
) -> None:
    log = (
        f'Traceback (most recent call last):\n  File "{path}", line 34, in <module>\n'
        f"    {code}\nModuleNotFoundError: No module named 'q_align'\n"
    )
    found = with_shipped(log).root
    assert found is not None
    assert found.id == "module-missing"
    assert found.fixes[0].commands[0] == first
