"""Drivers, compiled packages, and releases that do not go together."""

from tests.corpus.making.rebuilt.failing import HYDRA, OVERRIDES, back, frames, runner
from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage, said


@log(
    "driver-too-old",
    "cuda-driver-too-old",
    phase="",
    made="vllm serve of a CUDA 12.8 torch starts on a host with the driver of CUDA 12.2.",
    versions="vllm=0.11.0 torch=2.8.0+cu128",
)
def driver() -> str:
    head = "\x1b[1;36m(APIServer pid=2204)\x1b[0;0m "
    rows = frames(
        "/home/user/venv/bin/vllm 7 <module>: sys.exit(main())",
        "vllm/entrypoints/cli/main.py 54 main: args.dispatch_function(args)",
        "vllm/entrypoints/openai/api_server.py 1953 run_server: await run_server_worker(listen_address, sock, args, **uvicorn_kwargs)",
        "vllm/engine/arg_utils.py 1150 create_engine_config: current_platform.pre_register_and_update()",
        "torch/cuda/__init__.py 412 _lazy_init: torch._C._cuda_init()",
    )
    return (
        "INFO 03-14 10:02:11 [__init__.py:216] Automatically detected platform cuda.\n"
        f"{head}INFO 03-14 10:02:19 [api_server.py:1896] vLLM API server version 0.11.0\n"
        f"{head}INFO 03-14 10:02:19 [utils.py:233] non-default args: {{'model_tag': '/data/models/Qwen2.5-7B-Instruct', 'port': 8010, 'gpu_memory_utilization': 0.85}}\n"
        f"{head}Traceback (most recent call last):\n"
        + "".join(f"{head}{row}\n" for row in rows.rstrip("\n").split("\n"))
        + f"{head}{MARK}RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver by downloading and installing a new version from the URL: "
        "http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.\n"
    )


@log(
    "no-kernel-image",
    "cuda-no-kernel-image",
    made="A torch without kernels for sm_120 meets such a card at its first log-prob.",
    versions="verl=0.7.1 torch=2.6.0+cu124",
)
def kernel_image() -> str:
    stage = Stage(42, gpus=2)
    warning = (
        "/home/user/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:235: UserWarning: \nNVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
        "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\nIf you want to use the NVIDIA GeForce RTX 5090 GPU with PyTorch, please check the instructions at "
        "https://pytorch.org/get-started/locally/\n\n  warnings.warn("
    )
    error = (
        f"{MARK}RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )
    told = stage.ray() + stage.run(f"TaskRunner hostname: node-1, PID: {stage.runner}") + stage.data()
    told += (
        stage.at(0, warning.replace("NVIDIA GeForce RTX 5090 with", f"{MARK}NVIDIA GeForce RTX 5090 with"))
        + stage.actor()
        + stage.engine()
        + stage.steps(())
    )
    return told + back(stage, "RuntimeError", error, "actor_rollout_compute_log_prob", "fit old", "log_prob", "forward")


@log(
    "nvml-mismatch",
    "nvml-mismatch",
    phase="",
    made="The driver's packages were updated while the old kernel module is loaded.",
    versions="vllm=0.10.0",
)
def nvml() -> str:
    return (
        "$ nvidia-smi\n"
        f"{MARK}Failed to initialize NVML: Driver/library version mismatch\n{MARK}NVML library version: 570.124\n$ bash serve.sh\n"
        "INFO 03-02 08:11:40 [__init__.py:225] No platform detected, vLLM is running on UnspecifiedPlatform\n"
        "WARNING 03-02 08:11:44 [_custom_ops.py:20] Failed to import from vllm._C with ImportError('libcuda.so.1: cannot open shared object file: No such file or directory')\n"
        "Traceback (most recent call last):\n"
        + frames(
            "/home/user/venv/bin/vllm 8 <module>: sys.exit(main())",
            "vllm/engine/arg_utils.py 1004 create_engine_config: device_config = DeviceConfig(",
            "vllm/config.py 2201 __post_init__: raise RuntimeError(",
        )
        + "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.\n"
    )


@log(
    "flash-attn-undefined-symbol",
    "extension-abi-mismatch",
    phase="actor",
    made="flash-attn was built for another torch, and verl imports it in each worker.",
    versions="verl=0.7.0 torch=2.8.0",
)
def symbol() -> str:
    stage = Stage(44)
    error = f"{MARK}ImportError: /home/user/venv/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs"
    below = frames(
        "workers/fsdp_workers.py 801 init_model: from verl.workers.actor import DataParallelPPOActor",
        "workers/actor/dp_actor.py 31 <module>: from verl.utils.attention_utils import index_first_axis, pad_input, rearrange, unpad_input",
        "utils/attention_utils.py 30 _get_attention_functions: from flash_attn.bert_padding import index_first_axis, pad_input, rearrange, unpad_input",
        "/home/user/venv/lib/python3.11/site-packages/flash_attn/__init__.py 3 <module>: from flash_attn.flash_attn_interface import (",
        "/home/user/venv/lib/python3.11/site-packages/flash_attn/flash_attn_interface.py 15 <module>: import flash_attn_2_cuda as flash_attn_gpu",
    )
    told = stage.until("dataset", dump=True) + stage.data()
    text = back(stage, "ImportError", error, "actor_rollout_init_model", "init model")
    return told + text.replace(error, below + error)


def drifted(stage: Stage, error: str, at_runner: str, below: str) -> str:
    kind = error.replace(MARK, "").split(":", 1)[0]
    return f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, kind)}{at_runner}{below}{error}\n{HYDRA}"


@log(
    "drift-vllm-worker-module",
    "vllm-worker-module-removed",
    phase="actor",
    made="verl 0.5.0 runs on vLLM 0.12.0, which has no vllm.worker.",
    versions="verl=0.5.0 vllm=0.12.0",
)
def worker_module() -> str:
    stage = Stage(45, verl="0.5.0", color=0)
    told = stage.until("dataset") + stage.data() + stage.actor()
    return told + drifted(
        stage,
        f"{MARK}ModuleNotFoundError: No module named 'vllm.worker'",
        frames(
            "trainer/main_ppo.py 239 run: trainer.init_workers()",
            "trainer/ppo/ray_trainer.py 917 init_workers: self.actor_rollout_wg.init_model()",
        ),
        frames(
            "single_controller/ray/base.py 705 func: return getattr(self.worker_dict[key], name)(*args, **kwargs)",
            "single_controller/base/decorator.py 514 inner: return func(*args, **kwargs)",
            "workers/fsdp_workers.py 626 init_model: self.rollout, self.rollout_sharding_manager = self._build_rollout(",
            "workers/fsdp_workers.py 481 _build_rollout: from verl.workers.rollout.vllm_rollout import vLLMRollout",
            "workers/rollout/vllm_rollout/__init__.py 17 <module>: from .vllm_rollout_spmd import vLLMAsyncRollout, vLLMRollout  # noqa: F401",
            "workers/rollout/vllm_rollout/vllm_rollout_spmd.py 51 <module>: from vllm.worker.worker_base import WorkerWrapperBase",
        ),
    )


@log(
    "drift-lora-models",
    "vllm-lora-models-moved",
    phase="actor",
    made="verl 0.6.1 runs on vLLM 0.13.0, which moved vllm.lora.models.",
    versions="verl=0.6.1 vllm=0.13.0",
)
def lora_models() -> str:
    stage = Stage(46, verl="0.6.1")
    told = stage.until("dataset", dump=True) + stage.data() + stage.actor()
    return told + drifted(
        stage,
        f"{MARK}ModuleNotFoundError: No module named 'vllm.lora.models'",
        frames(
            "trainer/main_ppo.py 338 run: trainer.init_workers()",
            "trainer/ppo/ray_trainer.py 755 init_workers: self.actor_rollout_wg.init_model()",
        ),
        frames(
            "workers/rollout/vllm_rollout/vllm_rollout_spmd.py 81 <module>: from verl.utils.vllm import TensorLoRARequest, VLLMHijack, is_version_ge",
            "utils/vllm/__init__.py 15 <module>: from .utils import TensorLoRARequest, VLLMHijack, is_version_ge",
            "utils/vllm/utils.py 18 <module>: from vllm.lora.models import LoRAModel",
        ),
    )


@log(
    "drift-utils-split",
    "vllm-utils-split",
    phase="rollout",
    made="verl 0.6.1 runs on vLLM 0.11.2, which split vllm.utils.",
    versions="verl=0.6.1 vllm=0.11.2",
)
def utils_split() -> str:
    stage = Stage(47, verl="0.6.1")
    told = stage.until("dataset") + stage.data() + stage.actor()
    return told + drifted(
        stage,
        f"{MARK}ImportError: cannot import name 'FlexibleArgumentParser' from 'vllm.utils' (/home/user/venv/lib/python3.11/site-packages/vllm/utils/__init__.py)",
        frames(
            "trainer/main_ppo.py 338 run: trainer.init_workers()",
            "trainer/ppo/ray_trainer.py 773 init_workers: self.async_rollout_manager = AgentLoopManager(",
        ),
        frames(
            "experimental/agent_loop/agent_loop.py 682 __init__: self.rollout_replica_class = get_rollout_replica_class(self.config.actor_rollout_ref.rollout.name)",
            "workers/rollout/replica.py 213 _load_vllm: from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica",
            "workers/rollout/vllm_rollout/vllm_async_server.py 38 <module>: from vllm.utils import FlexibleArgumentParser, get_tcp_uri",
        ),
    )


@log(
    "drift-worker-wrapper",
    "vllm-worker-wrapper-argument",
    phase="rollout",
    made="verl 0.7.0 runs on vLLM 0.20.2, whose worker takes other arguments.",
    versions="verl=0.7.0 vllm=0.20.2",
)
def wrapper() -> str:
    stage = Stage(48, verl="0.7.0")
    told = stage.until("actor") + stage.actor() + stage.engine("0.20.2", graphs=False)
    trace = frames(
        "workers/rollout/vllm_rollout/vllm_rollout.py 171 _loop_forever: result = await self._execute_method(method, *args, **kwargs)",
        "workers/rollout/vllm_rollout/vllm_rollout.py 214 _execute_method: return self._init_worker(*args, **kwargs)",
        "workers/rollout/vllm_rollout/vllm_rollout.py 205 _init_worker: self.inference_engine = WorkerWrapperBase(vllm_config=self.vllm_config)",
    )
    error = f"{MARK}TypeError: WorkerWrapperBase.__init__() got an unexpected keyword argument 'vllm_config'"
    told += stage.at(
        0,
        f"vLLMAsyncRollout _loop_forever error: {error.replace(MARK, MARK)}\nTraceback (most recent call last):\n{trace}{error}",
    )
    pid = stage.runner + 4312
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        f"(EngineCore_DP0 pid={pid}) ERROR 03-14 09:24:09 [core.py:1104] EngineCore failed to start.\n"
        f"(EngineCore_DP0 pid={pid}) ERROR 03-14 09:24:09 [core.py:1104] Traceback (most recent call last):\n(EngineCore_DP0 pid={pid}) ERROR 03-14 09:24:09 [core.py:1104] {error}",
    )
    return told + drifted(
        stage,
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
        frames("init rollout"),
        frames("launch"),
    )


@log(
    "drift-fused-moe",
    "vllm-fused-moe-import",
    phase="rollout",
    made="verl 0.8.0 runs on vLLM 0.27.0, where FusedMoE is gone.",
    versions="verl=0.8.0 vllm=0.27.0",
    line_end="\r\n",
)
def fused_moe() -> str:
    stage = Stage(49, verl="0.8.0", color=0)
    told = stage.until("dataset", dump=True) + stage.data() + stage.actor()
    return told + drifted(
        stage,
        f"{MARK}ImportError: cannot import name 'FusedMoE' from 'vllm.model_executor.layers.fused_moe.layer' (/home/user/venv/lib/python3.11/site-packages/vllm/model_executor/layers/fused_moe/layer.py)",
        frames(
            "trainer/main_ppo.py 312 run: trainer.init_workers()",
            "trainer/ppo/ray_trainer.py 942 init_workers: self.llm_server_manager = LLMServerManager.create(",
        ),
        frames(
            "workers/rollout/replica.py 322 _load_vllm: from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica",
            "workers/rollout/vllm_rollout/vllm_async_server.py 42 <module>: from verl.utils.vllm.vllm_fp8_utils import apply_vllm_fp8_patches",
            "utils/vllm/vllm_fp8_utils.py 26 <module>: from vllm.model_executor.layers.fused_moe.layer import FusedMoE",
        ),
    )
