"""Failures that are a program's own, which no record can know."""

from tests.corpus.making.rebuilt.failing import HYDRA, OVERRIDES, core, frames, from_server, runner
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage, said
from tests.corpus.making.rebuilt.topics.between_ranks import died

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"


@log("own-agent-tool", "unknown", made="A tool of an own agent loop refuses a session in step 7.", versions=SETS)
def tool() -> str:
    stage = Stage(71)
    told = stage.until("loop", range(1, 7), dump=True)
    where = f"(pid={stage.runner + 5200}, ip=10.0.0.5, actor_id=aa41c0dd6f4a40b8c5d00e2501000000, repr=<verl.experimental.agent_loop.agent_loop.AgentLoopWorker object at 0x7f0a30>)"
    return told + (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, 'SessionRefused')}{frames('fit generate')}"
        f"ray.exceptions.RayTaskError(SessionRefused): \x1b[36mray::AgentLoopWorker.generate_sequences()\x1b[39m {where}\n"
        + frames(
            "experimental/agent_loop/agent_loop.py 566 _run_agent_loop: output: AgentLoopOutput = await agent_loop.run(sampling_params, **kwargs)",
            "/home/user/agents/browse/loop.py 88 run: page = await self.pool.open(call.arguments['url'])",
            "/home/user/agents/browse/pool.py 141 open: raise SessionRefused(self.zone, reply.code)",
        )
        + f"{MARK}agents.browse.pool.SessionRefused: zone b2 gave 417 to session 0x51\n{HYDRA}"
    )


@log(
    "own-rust-panic",
    "unknown",
    made="A Rust library of the user's own panics in a worker while rewards are computed.",
    versions=SETS,
)
def panic() -> str:
    stage = Stage(72)
    told = stage.until("loop", range(1, 3))
    told += stage.run(
        f"\n{MARK}thread '<unnamed>' (21184) panicked at src/grid.rs:88:14:\n{MARK}called `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
    )
    return told + (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, 'PanicException')}"
        + frames(
            "trainer/main_ppo.py 359 run: trainer.fit()",
            "trainer/ppo/ray_trainer.py 1388 fit: reward_tensor, reward_extra_infos_dict = self._compute_or_extract_reward(",
            "/home/user/gridworld/reward.py 19 __call__: return [gridcore.score(row) for row in rows]",
        )
        + f"{MARK}pyo3_runtime.PanicException: called `Option::unwrap()` on a `None` value\n{HYDRA}"
    )


@log(
    "own-native-abort",
    "native-abort",
    "unknown",
    made="A C++ library of the user's own aborts the TaskRunner with its own words.",
    phase="dataset",
    versions="verl=0.8.0 ray=2.55.1",
)
def abort() -> str:
    stage = Stage(73, verl="0.8.0")
    told = stage.until("dataset", dump=True) + stage.run(
        "Using dataset class: PackedGameDataset\nloading 12 shards with libboardpack 3.1"
    )
    told += said(
        f"TaskRunner pid={stage.runner}",
        (
            f"{MARK}terminate called after throwing an instance of 'boardpack::BadMagic'\n{MARK}  what():  shard 7: magic 0x42504b31 expected, 0x00000000 found\n"
            "*** SIGABRT received at time=1773481562 on cpu 12 ***\nPC: @     0x7f6a6d2e99fc  (unknown)  pthread_kill\nFatal Python error: Aborted"
        ),
    )
    return told + (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: TaskRunner\n"
        f"\tactor_id: 7d1a\n\tpid: {stage.runner}\n\tip: 10.0.0.5\nThe actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a "
        f"connection error code 2. End of file.\n{HYDRA}"
    )


@log(
    "own-engine-plugin",
    "unknown",
    made="An own plugin of vLLM finds its table broken, and the engine ends with it in step 21.",
    versions=SETS,
)
def plugin() -> str:
    stage = Stage(74, color=0)
    told = stage.until("loop", range(15, 21))
    error = f"{MARK}steer_plugin.tables.TableDamaged: row 40961 of steer.bin has checksum 9c1e, 77d0 was written"
    told += core(
        stage,
        error,
        "core loop",
        "/home/user/steer/steer_plugin/tables.py 58 row: raise TableDamaged(self.path, number, found, kept)",
        headline="EngineCore encountered a fatal error.",
        line=710,
    )
    last = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause."
    return told + from_server(stage, "EngineDeadError", last, "fit generate", "generate", "serve")


@log(
    "own-licence-text",
    "unknown",
    made="A simulator of the user's own ends the script with a sentence and a code, without a traceback.",
    phase="",
    versions="torch=2.6.0",
)
def licence() -> str:
    rows = "".join(
        f"2026-03-02 08:{20 + n}:11,402 - trainer - INFO - iteration {n} reward {0.41 + n / 90:.3f} fps {812 + n}\n"
        for n in range(12)
    )
    return (
        "2026-03-02 08:19:55,017 - trainer - INFO - 64 environments of cellsim 9.2\n"
        + rows
        + f"{MARK}cellsim: fatal: seat 12 was withdrawn by the seat server (reason 31)\n"
        "E0302 08:32:24.101000 7711 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 31) local_rank: 0 (pid: 7790) of binary: /home/user/venv/bin/python\n"
        "Traceback (most recent call last):\n"
        + frames(
            "/home/user/venv/bin/torchrun 8 <module>: sys.exit(main())", "torch/distributed/run.py 918 main: run(args)"
        )
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\nppo_cells.py FAILED\n"
        "------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n------------------------------------------------------------\nRoot Cause (first observed failure):\n"
        "[0]:\n  time      : 2026-03-02_08:32:24\n  host      : node-1\n  rank      : 0 (local_rank: 0)\n  exitcode  : 31 (pid: 7790)\n  error_file: <N/A>\n"
        "============================================================\n"
    )


@log(
    "own-worker-exits-silently-after-assert",
    "unknown",
    made="An assertion of the user's own sampler ends a worker in step 5.",
    versions=SETS,
)
def sampler() -> str:
    stage = Stage(75)
    told = stage.until("loop", range(1, 5))
    told += stage.at(
        1,
        "Exception raised in creation task or method of the worker:\nTraceback (most recent call last):\n"
        + frames(
            "worker",
            "update",
            "/home/user/sampler/strata.py 33 draw: assert left >= 0, f'stratum {name} is overdrawn by {-left}'",
        )
        + f"{MARK}AssertionError: stratum algebra is overdrawn by 3",
    )
    return told + died(stage, 1)
