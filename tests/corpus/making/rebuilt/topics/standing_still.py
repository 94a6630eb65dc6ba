"""Runs that stand still, by their last words."""

from tests.corpus.making.rebuilt.keeping import MARK, log
from tests.corpus.making.rebuilt.stage import Stage, said


def info(host: str, pid: int, gpu: int, text: str) -> str:
    return f"{host}:{pid}:{pid + 1210} [{gpu}] NCCL INFO {text}\n"


@log(
    "stalled-nccl-version",
    "nccl-init-stuck",
    "actor-init",
    verdict="stalled",
    phase="actor",
    made="NCCL says its version and nothing more, as two GPUs of a virtual machine cannot reach each other.",
    versions="verl=0.7.1 torch=2.8.0",
)
def version() -> str:
    stage = Stage(81, gpus=2)
    return stage.until("actor", dump=True) + stage.actor() + stage.at(0, f"{MARK}NCCL version 2.27.3+cuda12.9")


@log(
    "stalled-nccl-channels",
    "nccl-init-stuck",
    verdict="stalled",
    phase="",
    made="Sixteen ranks with NCCL_DEBUG=INFO connect their channels; one never does.",
    versions="torch=2.6.0",
)
def channels() -> str:
    told = "[2026-03-02 11:34:20,013] [INFO] [main.py:31] rank 0/16 local 0 -> tcp://10.0.0.5:29500\n"
    for gpu in range(8):
        pid = 161258 + gpu
        told += info("node-1", pid, gpu, "Bootstrap : Using bond0:10.0.0.5<0>") + info(
            "node-1", pid, gpu, "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."
        )
        told += info(
            "node-1", pid, gpu, "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB bond0:10.0.0.5<0>"
        ) + info("node-1", pid, gpu, "Using network IB")
        told += info(
            "node-1",
            pid,
            gpu,
            f"ncclCommInitRank comm 0x5581c0{gpu}e6060 rank {gpu} nranks 16 cudaDev {gpu} nvmlDev {gpu} busId {gpu + 1}b000 commId 0x9c1ab5be0a1f2d44 - Init START",
        )
    for gpu in range(8):
        for channel in range(4):
            told += info(
                "node-1",
                161258 + gpu,
                gpu,
                f"Channel 0{channel}/0 : {gpu}[{gpu}] -> {gpu + 8}[{gpu}] [send] via NET/IB/{gpu % 2}/GDRDMA",
            )
    rows = told.rstrip("\n").split("\n")
    return "\n".join([*rows[:-1], MARK + rows[-1]]) + "\n"


@log(
    "stalled-graph-capture",
    "cuda-graph-capture",
    "rollout-init",
    verdict="stalled",
    phase="rollout",
    made="The engine stands still while it captures CUDA graphs.",
    versions="verl=0.7.1 vllm=0.11.0",
)
def capture() -> str:
    stage = Stage(83)
    told = stage.until("rollout") + stage.engine()
    cut = told.rindex("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%")
    rows = told[: told.rindex("\n", 0, cut) + 1].rstrip("\n").split("\n")
    return "\n".join([*rows[:-2], MARK + rows[-2], MARK + rows[-1]]) + "\n"


@log(
    "stalled-weight-sync",
    "weight-sync-stuck",
    verdict="stalled",
    phase="weight-sync",
    made="One worker of eight does not come to an end of the first weight sync; the run is stamped.",
    versions="verl=0.8.0 vllm=0.20.2",
)
def sync() -> str:
    stage = Stage(84, verl="0.8.0")
    stamp = f"s pid={stage.runner}"
    told = (
        stage.ray()
        + stage.run(f"[uky] config begin 0.0{stamp}\n[uky] config end 0.6{stamp}\n[uky] dataset begin 0.0{stamp}")
        + stage.data()
    )
    told += stage.run(
        f"[uky] dataset end 7.9{stamp}\n[uky] resource-pool begin 0.0{stamp}\n[uky] resource-pool end 9.1{stamp}\n[uky] actor begin 0.0{stamp}"
    )
    told += (
        stage.at(0, f"[uky] [ACTOR] init_model begin 0.0s pid={stage.workers[0]}")
        + stage.actor()
        + stage.run(f"[uky] actor end 61.3{stamp}\n[uky] rollout begin 0.0{stamp}")
    )
    told += stage.engine("0.20.2") + stage.run(
        f"[uky] rollout end 58.8{stamp}\n[uky] loop begin 0.0{stamp}\n{MARK}[uky] [SYNC] weight-sync begin 0.0{stamp}"
    )
    for rank in range(8):
        told += stage.at(rank, f"{MARK}[uky] [SYNC] update_weights begin 0.0s pid={stage.workers[rank]}")
    for rank in (0, 1, 2, 3, 4, 6, 7):
        told += stage.at(rank, f"{MARK}[uky] [SYNC] update_weights end 2.{rank}s pid={stage.workers[rank]}")
    return told


@log(
    "stalled-train-split",
    "generating-train-split",
    verdict="stalled",
    phase="dataset",
    made="datasets waits for a network disk that does not answer.",
    versions="verl=0.7.1 datasets=4.4.1",
)
def split() -> str:
    stage = Stage(85)
    return stage.until("dataset", dump=True) + stage.run(
        f"Using dataset class: RLHFDataset\n{MARK}\rGenerating train split: 0 examples [00:00, ? examples/s]"
    )


@log(
    "stalled-core-engine",
    "engine-core-waiting",
    "rollout-init",
    verdict="stalled",
    phase="",
    made="vllm serve with debug words waits for an engine process that has hung in its imports.",
    versions="vllm=0.11.0",
)
def core_engine() -> str:
    head = "\x1b[1;36m(APIServer pid=881)\x1b[0;0m "
    told = (
        "INFO 03-14 10:02:11 [__init__.py:216] Automatically detected platform cuda.\n"
        f"{head}INFO 03-14 10:02:19 [api_server.py:1896] vLLM API server version 0.11.0\n{head}INFO 03-14 10:02:27 [model.py:547] Resolved architecture: Qwen2ForCausalLM\n"
        f"{head}INFO 03-14 10:02:27 [model.py:1510] Using max model len 32768\n{head}INFO 03-14 10:02:28 [scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=8192.\n"
    )
    for n in range(22):
        told += f"{head}{MARK}DEBUG 03-14 10:{2 + (38 + n * 10) // 60:02}:{(38 + n * 10) % 60:02} [utils.py:773] Waiting for 1 local, 0 remote core engine proc(s) to connect.\n"
    return told


@log(
    "stalled-shm-broadcast-start",
    "vllm-shm-broadcast-wait",
    "rollout-init",
    verdict="stalled",
    phase="rollout",
    made="A tensor-parallel worker hangs while the engine starts, and the others wait for its broadcast.",
    versions="verl=0.7.1 vllm=0.12.0",
)
def broadcast() -> str:
    stage = Stage(87)
    told = stage.until("actor") + stage.actor() + stage.engine("0.12.0", graphs=False)
    for minute in range(6):
        told += said(
            f"vLLMHttpServer pid={stage.runner + 4100}",
            f"\x1b[1;36m(EngineCore_DP0 pid={stage.runner + 4312})\x1b[0;0m {MARK}INFO 03-14 09:{24 + minute}:38 [shm_broadcast.py:501] No available shared memory broadcast block found in 60 "
            "seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).",
        )
    return told


@log(
    "stalled-shm-broadcast-loop",
    "vllm-shm-broadcast-wait",
    "loop-silent",
    "allreduce-one-absent",
    verdict="stalled",
    made="A worker of the engine hangs in step 18, and the others wait for its broadcast.",
    versions="verl=0.7.1 vllm=0.11.0",
)
def broadcast_loop() -> str:
    stage = Stage(88, color=0)
    told = stage.until("loop", range(1, 18))
    for minute in range(9):
        told += said(
            f"vLLMHttpServer pid={stage.runner + 4100}",
            f"(EngineCore_DP0 pid={stage.runner + 4312}) {MARK}INFO 03-14 10:{11 + minute}:38 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically "
            "happens when some processes are hanging or doing some time-consuming work (e.g. compilation)",
            color=0,
        )
    return told


@log(
    "stalled-loading-shards",
    "model-load-stuck",
    "actor-init",
    verdict="stalled",
    phase="actor",
    made="The weights lie on a network disk that stops answering at the third file.",
    versions="verl=0.7.1 transformers=4.57.6",
)
def shards() -> str:
    stage = Stage(89, gpus=4)
    bars = "\rLoading checkpoint shards:   0%|          | 0/4 [00:00<?, ?it/s]\rLoading checkpoint shards:  25%|██▌       | 1/4 [00:03<00:10,  3.44s/it]"
    return stage.until("actor") + stage.at(
        0, f"{MARK}{bars}\rLoading checkpoint shards:  50%|█████     | 2/4 [00:07<00:07,  3.52s/it]"
    )


@log(
    "stalled-download",
    "hub-download-stuck",
    "hf-no-connection",
    verdict="stalled",
    phase="",
    made="A download from the Hub stands still at its first large file.",
    versions="huggingface-hub=0.36.0",
)
def download() -> str:
    return (
        "+ huggingface-cli download Qwen/Qwen2.5-7B-Instruct --local-dir /data/models/Qwen2.5-7B-Instruct\n\rFetching 14 files:   0%|          | 0/14 [00:00<?, ?it/s]\n"
        "Downloading 'config.json' to '/data/models/Qwen2.5-7B-Instruct/.cache/huggingface/download/config.json.incomplete'\nDownload complete. Moving file to /data/models/Qwen2.5-7B-Instruct/config.json\n"
        "\rFetching 14 files:  36%|███▌      | 5/14 [00:02<00:04,  2.11it/s]\n"
        f"\rmodel-00001-of-00004.safetensors:   1%|          | 31.5M/3.95G [00:10<21:50, 2.99MB/s]\rmodel-00001-of-00004.safetensors:   1%|          | 41.9M/3.95G [00:14<23:02, 2.82MB/s]\n"
        f"{MARK}Error while downloading from https://cas-bridge.xethub.hf.co/xet-bridge-us/66e6d3f1/2d4f: HTTPSConnectionPool(host='cas-bridge.xethub.hf.co', port=443): Read timed out.\n{MARK}Trying to resume download...\n"
        f"\r{MARK}model-00001-of-00004.safetensors:   1%|          | 41.9M/3.95G [00:00<?, ?B/s]"
    )


@log(
    "stalled-pending-resources",
    "ray-resources-pending",
    verdict="stalled",
    phase="resource-pool",
    made="Another run holds the CPUs that the placement group asks for.",
    versions="verl=0.7.1 ray=2.48.0",
)
def pending() -> str:
    stage = Stage(91)
    told = stage.until("actor", dump=True)
    ask = "{'CPU': 24.0, 'GPU': 8.0}"
    for minute in range(7):
        told += f"{MARK}\x1b[33m(autoscaler +{minute}m{8 + minute}s)\x1b[0m Warning: The following resource request cannot be scheduled right now: {ask}. This is likely due to all cluster resources being claimed by actors. Consider creating fewer actors or adding more nodes to this Ray cluster.\n"
    return told


@log(
    "stalled-filtering",
    "data-loading-stuck",
    verdict="stalled",
    phase="dataset",
    made="The processes that filter the prompts wait for one another after a fork.",
    versions="verl=0.6.1 datasets=3.6.0",
    line_end="\r\n",
)
def filtering() -> str:
    stage = Stage(92, verl="0.6.1", color=0)
    return stage.until("dataset") + stage.run(
        "Using dataset class: RLHFDataset\ndataset len: 93733\nSetting TOKENIZERS_PARALLELISM=false for forked processes.\n"
        f"{MARK}Filtering prompts longer than 1024 tokens (num_proc=64):  98%|█████████▊| 92274/93733 [00:41<00:00, 2218.31 examples/s]"
    )


@log(
    "stalled-megatron-group",
    "process-group-init",
    verdict="stalled",
    phase="",
    made="Megatron-LM waits for a node that was not started.",
    versions="megatron-core=0.12.1 torch=2.6.0",
)
def megatron() -> str:
    rows = "".join(
        f"  {name} {'.' * (48 - len(name))} {value}\n"
        for name, value in (
            ("accumulate_allreduce_grads_in_fp32", "True"),
            ("adam_beta1", "0.9"),
            ("check_for_nan_in_loss_and_grad", "True"),
            ("ckpt_fully_parallel_save", "True"),
            ("distributed_backend", "nccl"),
            ("distributed_timeout_minutes", "10"),
            ("error_injection_rate", "0"),
            ("exit_on_missing_checkpoint", "False"),
            ("exit_signal_handler", "False"),
            ("global_batch_size", "512"),
            ("log_num_zeros_in_grad", "False"),
            ("loss_scale", "None"),
            ("nccl_communicator_config_path", "None"),
            ("rerun_mode", "disabled"),
            ("tensor_model_parallel_size", "8"),
            ("world_size", "32"),
        )
    )
    return (
        "using world size: 32, data-parallel size: 1, context-parallel size: 1, hierarchical context-parallel sizes: Nonetensor-model-parallel size: 8, pipeline-model-parallel size: 4\n"
        f"------------------------ arguments ------------------------\n{rows}-------------------- end of arguments ---------------------\n> building HuggingFaceTokenizer tokenizer ...\n"
        f" > padded vocab (size: 151643) with 421 dummy tokens (new size: 152064)\n{MARK}> initializing torch distributed ...\n"
    )
