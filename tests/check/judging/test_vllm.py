"""What is known to have broken between verl and vLLM: the last release that has it, the first that does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

ENGINE = "vllm.v1.engine"
WORKER = "vllm.v1.worker.worker_base.WorkerWrapperBase"
INIT = "vllm.entrypoints.openai.api_server.init_app_state"

INIT_APP_STATE = f"""
from {INIT.rpartition(".")[0]} import init_app_state
async def serve(app, args, engine_client, vllm_config):
    await init_app_state(engine_client, vllm_config, app.state, args)
"""

WRAPPER = """
from vllm.v1.worker.worker_base import WorkerWrapperBase
class Rollout:
    def __init__(self, vllm_config):
        self.engine: WorkerWrapperBase = None
        self.engine = WorkerWrapperBase(vllm_config=vllm_config)
    def run(self, method):
        self.engine.sleep(level=1)
        return self.engine.execute_method(method)
"""

ABORT = """
from vllm.v1.engine.async_llm import AsyncLLM
class Server:
    def start(self, vllm_config):
        self.engine = AsyncLLM.from_vllm_config(vllm_config)
    async def abort(self, ids):
        self.engine.output_processor.abort_requests(ids)
        await self.engine.pause_generation(wait_for_inflight_requests=True)
"""

EXECUTOR = """
from vllm.v1.executor.abstract import Executor
class Remote(Executor):
    def _init_executor(self): ...
    def collective_rpc(self, method, timeout=None, args=(), kwargs=None, **extra):
        return [method]
    def check_health(self): ...
"""

BREAKS = [
    (
        "B1 an argument",
        """
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
        args = AsyncEngineArgs()
        AsyncLLM.from_vllm_config(args.create_engine_config(), disable_log_requests=args.disable_log_requests)
        """,
        "0.11.2",
        "0.12.0",
        {
            ("argument-removed", f"{ENGINE}.async_llm.AsyncLLM.from_vllm_config(disable_log_requests)"),
            ("attribute-removed", "vllm.engine.arg_utils.AsyncEngineArgs.disable_log_requests"),
        },
    ),
    (
        "B2 moved functions",
        "from vllm.utils import FlexibleArgumentParser, get_tcp_uri",
        "0.11.0",
        "0.11.1",
        {("symbol-moved", "vllm.utils.FlexibleArgumentParser"), ("symbol-moved", "vllm.utils.get_tcp_uri")},
    ),
    ("B3 too many", INIT_APP_STATE, "0.11.0", "0.11.1", {("argument-removed", f"{INIT}(vllm_config)")}),
    ("B3 shifted", INIT_APP_STATE, "0.11.0", "0.16.0", {("argument-shifted", f"{INIT}(vllm_config)")}),
    (
        "B4 an argument that the override refuses",
        EXECUTOR.replace(", **extra", ""),
        "0.10.2",
        "0.11.0",
        {("override-mismatch", "vllm.v1.executor.abstract.Executor.collective_rpc(non_block)")},
    ),
    (
        "B4 one that it swallows",
        EXECUTOR,
        "0.11.0",
        "0.11.1",
        {("override-mismatch", "vllm.v1.executor.abstract.Executor.collective_rpc(non_block)")},
    ),
    (
        "B5 a moved class",
        "from vllm.worker.worker_base import WorkerWrapperBase",
        "0.11.0",
        "0.11.1",
        {("module-moved", "vllm.worker.worker_base.WorkerWrapperBase")},
    ),
    ("B6 a constructor", WRAPPER, "0.13.0", "0.14.0", {("argument-removed", f"{WORKER}(vllm_config)")}),
    (
        "B7 a delegated method",
        WRAPPER,
        "0.13.0",
        "0.18.0",
        {("argument-removed", f"{WORKER}(vllm_config)"), ("attribute-removed", f"{WORKER}.execute_method")},
    ),
    (
        "B8 a process manager",
        f"from {ENGINE}.utils import CoreEngineProcManager\nCoreEngineProcManager(target_fn=print, **given())\n",
        "0.17.1",
        "0.18.0",
        {("argument-removed", f"{ENGINE}.utils.CoreEngineProcManager(target_fn)")},
    ),
    (
        "B9 a moved module",
        "from vllm.lora.models import LoRAModel",
        "0.12.0",
        "0.13.0",
        {("module-moved", "vllm.lora.models.LoRAModel")},
    ),
    (
        "B13 a moved module",
        "from vllm.entrypoints.harmony_utils import get_encoding",
        "0.12.0",
        "0.13.0",
        {("module-moved", "vllm.entrypoints.harmony_utils.get_encoding")},
    ),
    (
        "B19 a parameter that is required now",
        ABORT,
        "0.13.0",
        "0.14.0",
        {("argument-required", f"{ENGINE}.output_processor.OutputProcessor.abort_requests(internal)")},
    ),
    (
        "B23 a class that is gone",
        "from vllm.model_executor.layers.fused_moe.layer import FusedMoE",
        "0.26.0",
        "0.27.0",
        {("symbol-removed", "vllm.model_executor.layers.fused_moe.layer.FusedMoE")},
    ),
    (
        "B24 helpers",
        "from vllm.utils.deep_gemm import is_blackwell_deep_gemm_used",
        "0.10.0",
        "0.10.1",
        {("symbol-removed", "vllm.utils.deep_gemm.is_blackwell_deep_gemm_used")},
    ),
    (
        "B16 engine arguments through an inherited constructor",
        "from vllm import LLM\nLLM('m', swap_space=4, enforce_eager=True, max_seq_len_to_capture=1)\n",
        "0.10.2",
        "0.18.0",
        {("argument-removed", "vllm.LLM(max_seq_len_to_capture)")},  # swap_space is still taken out and ignored
    ),
]


@pytest.mark.network
@pytest.mark.parametrize(("tree", "last", "first", "told"), [row[1:] for row in BREAKS], ids=[row[0] for row in BREAKS])
def test_known_breaks(on_vllm: Callable, tree: str, last: str, first: str, told: set[tuple[str, str]]) -> None:
    before = on_vllm(tree, last)
    assert before.told == set()
    assert before.fine
    assert on_vllm(tree, first).told == told


@pytest.mark.network
def test_pausing_lost_an_argument(on_vllm: Callable) -> None:
    told = f"{ENGINE}.async_llm.AsyncLLM.pause_generation(wait_for_inflight_requests)"
    assert ("argument-removed", told) not in on_vllm(ABORT, "0.31.0").told
    assert ("argument-removed", told) in on_vllm(ABORT, "0.32.0").told


@pytest.mark.network
def test_where_moved_names_are_now(on_vllm: Callable) -> None:
    tree = """
    from vllm.lora.models import LoRAModel
    from vllm.utils import FlexibleArgumentParser, get_tcp_uri
    from vllm.worker.worker_base import WorkerWrapperBase
    """
    found = on_vllm(tree, "0.20.2")
    assert {problem.moved_to for problem in found.problems} == {
        "vllm.lora.lora_model.LoRAModel",
        "vllm.utils.argparse_utils.FlexibleArgumentParser",
        "vllm.utils.network_utils.get_tcp_uri",
        "vllm.v1.worker.worker_base.WorkerWrapperBase",
    }
    assert all(problem.suggestion for problem in found.problems)
