"""What changed in vLLM, seen on its own releases: the first that shows a change, and the one before."""

from __future__ import annotations

from functools import lru_cache

import pytest

from patcher.analysis.symbols import Absent, Class, Function, Symbols, Unknown, full_name
from patcher.packages.releases import sources

ENGINE = "vllm.v1.engine"
FP8 = "vllm.model_executor.layers.quantization"

GONE = [
    ("vllm.engine.arg_utils.AsyncEngineArgs.disable_log_requests", "0.11.2", "0.12.0"),
    ("vllm.engine.arg_utils.AsyncEngineArgs(disable_log_requests)", "0.10.0", "0.10.1"),
    (f"{ENGINE}.async_llm.AsyncLLM.from_vllm_config(disable_log_requests)", "0.11.2", "0.12.0"),
    ("vllm.utils.FlexibleArgumentParser", "0.11.0", "0.11.1"),
    ("vllm.utils.get_tcp_uri", "0.11.0", "0.11.1"),
    ("vllm.utils.get_open_port", "0.13.0", "0.14.0"),
    ("vllm.entrypoints.openai.api_server.init_app_state(vllm_config)", "0.11.0", "0.11.1"),
    ("vllm.worker.worker_base.WorkerWrapperBase", "0.11.0", "0.11.1"),
    ("vllm.v1.worker.worker_base.WorkerWrapperBase(vllm_config)", "0.13.0", "0.14.0"),
    (f"{ENGINE}.utils.CoreEngineProcManager(target_fn)", "0.17.1", "0.18.0"),
    ("vllm.lora.models.LoRAModel", "0.12.0", "0.13.0"),
    ("vllm.entrypoints.harmony_utils.get_encoding", "0.12.0", "0.13.0"),
    (f"{ENGINE}.async_llm.AsyncLLM.pause_generation(wait_for_inflight_requests)", "0.31.0", "0.32.0"),
    ("vllm.model_executor.layers.fused_moe.layer.FusedMoE", "0.26.0", "0.27.0"),
    ("vllm.model_executor.layers.fused_moe.FusedMoE", "0.26.0", "0.27.0"),
    (f"{FP8}.fp8._swap_w13_to_w31", "0.10.0", "0.10.1"),
    ("vllm.utils.deep_gemm.is_blackwell_deep_gemm_used", "0.10.0", "0.10.1"),
    (f"{FP8}.fp8._is_col_major", "0.10.2", "0.11.0"),
    (f"{FP8}.utils.fp8_utils.get_col_major_tma_aligned_tensor", "0.10.2", "0.11.0"),
    ("vllm.model_executor.layers.fused_moe.rocm_aiter_fused_moe.is_rocm_aiter_moe_enabled", "0.11.0", "0.11.1"),
    (f"{FP8}.utils.fp8_utils.expert_weight_is_col_major", "0.13.0", "0.14.0"),
    (f"{FP8}.utils.fp8_utils.maybe_post_process_fp8_weight_block", "0.19.1", "0.20.0"),
    ("vllm.envs.VLLM_USE_V1", "0.11.0", "0.11.1"),
    ("vllm.envs.VLLM_ATTENTION_BACKEND", "0.14.1", "0.15.0"),
]

CAME = [
    ("vllm.engine.arg_utils.AsyncEngineArgs.enable_log_requests", "0.10.0", "0.10.1"),
    (f"{ENGINE}.async_llm.AsyncLLM.from_vllm_config(enable_log_requests)", "0.10.0", "0.10.1"),
    ("vllm.utils.argparse_utils.FlexibleArgumentParser", "0.11.0", "0.11.1"),
    ("vllm.utils.network_utils.get_tcp_uri", "0.11.0", "0.11.1"),
    ("vllm.v1.executor.abstract.Executor.execute_model(non_block)", "0.10.2", "0.11.0"),
    ("vllm.v1.executor.abstract.Executor.collective_rpc(non_block)", "0.10.2", "0.11.0"),
    ("vllm.v1.executor.abstract.Executor.sample_tokens", "0.11.0", "0.11.1"),
    ("vllm.v1.worker.worker_base.WorkerWrapperBase", "0.11.0", "0.11.1"),
    ("vllm.v1.serial_utils.run_method", "0.11.0", "0.11.1"),
    (f"{ENGINE}.utils.CoreEngineProcManager", "0.9.1", "0.9.2"),
    ("vllm.lora.lora_model.LoRAModel", "0.12.0", "0.13.0"),
    ("vllm.entrypoints.openai.parser.harmony_utils.get_encoding", "0.12.0", "0.13.0"),
    (f"{ENGINE}.output_processor.OutputProcessor.abort_requests(internal)", "0.13.0", "0.14.0"),
]


@lru_cache(maxsize=4)
def symbols(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


@pytest.mark.network
@pytest.mark.parametrize(("symbol", "last", "first"), GONE)
def test_gone(symbol: str, last: str, first: str) -> None:
    assert symbols(last).has(symbol) is True
    assert symbols(first).has(symbol) is False


@pytest.mark.network
@pytest.mark.parametrize(("symbol", "last", "first"), CAME)
def test_came(symbol: str, last: str, first: str) -> None:
    assert symbols(last).has(symbol) is False
    assert symbols(first).has(symbol) is True


@pytest.mark.network
def test_an_optional_parameter_that_became_required() -> None:
    for version, required in (("0.13.0", False), ("0.14.0", True)):
        found = symbols(version).resolve(f"{ENGINE}.output_processor.OutputProcessor.abort_requests").definition
        signature = symbols(version).signature(found)
        assert not isinstance(signature, Unknown)
        assert ("internal" in [own.name for own in signature.parameters if own.required]) is required


@pytest.mark.network
def test_a_fourth_parameter_lets_an_old_call_bind_shifted() -> None:
    for version, count in (("0.11.0", 4), ("0.15.1", 3), ("0.16.0", 4)):
        found = symbols(version).resolve("vllm.entrypoints.openai.api_server.init_app_state").definition
        signature = symbols(version).signature(found)
        assert not isinstance(signature, Unknown)
        assert len(signature.parameters) == count


@pytest.mark.network
def test_a_method_that_an_instance_may_delegate_is_undecided() -> None:
    wrapper = "vllm.v1.worker.worker_base.WorkerWrapperBase"
    assert symbols("0.17.1").has(f"{wrapper}.execute_method") is True
    assert symbols("0.18.0").has(f"{wrapper}.execute_method") is None


@pytest.mark.network
def test_a_class_that_became_a_factory() -> None:
    name = "vllm.model_executor.layers.fused_moe.FusedMoE"
    assert isinstance(symbols("0.23.0").resolve(name).definition, Class)
    assert isinstance(symbols("0.24.0").resolve(name).definition, Function)


@pytest.mark.network
def test_a_property_kept_for_old_callers_is_no_parameter() -> None:
    name = "vllm.engine.arg_utils.AsyncEngineArgs.disable_log_requests"
    assert isinstance(symbols("0.11.2").resolve(name).definition, Function)
    assert symbols("0.11.2").has("vllm.engine.arg_utils.AsyncEngineArgs(disable_log_requests)") is False


@pytest.mark.network
def test_lazily_served_names_lead_to_their_definition() -> None:
    found = symbols("0.20.2").resolve("vllm.LLM")
    assert full_name(found.definition) == "vllm.entrypoints.llm.LLM"
    assert found.chain[0] == "vllm.LLM"
    assert isinstance(symbols("0.11.1").resolve("vllm.utils.get_open_port").definition, Function)
    assert symbols("0.20.2").resolve("vllm.nothing").definition == Absent("vllm", "nothing")
