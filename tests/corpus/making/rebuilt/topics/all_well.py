"""Runs that go well, or went well, however alarming some of their words are."""

from tests.corpus.making.rebuilt.failing import frames
from tests.corpus.making.rebuilt.keeping import log
from tests.corpus.making.rebuilt.stage import Stage, said

SETS = "verl=0.7.1 vllm=0.11.0 torch=2.8.0 ray=2.48.0"


@log("well-long-run", verdict="running", made="Thirty steps of a run that learns, still under way.", versions=SETS)
def long_run() -> str:
    stage = Stage(101, nodes=2)
    return stage.until("loop", range(1, 31), dump=True)


@log(
    "well-dangerous-settings",
    verdict="running",
    made="The configuration and the arguments name every dangerous word; the run is well.",
    versions=SETS,
)
def settings() -> str:
    stage = Stage(102)
    more = (
        "'hybrid_engine': True,\n                       'nccl_timeout': 600,\n                       'on_out_of_memory': 'raise',\n                       'detect_nan': True,\n"
        "                       'error_if_nonfinite': False,\n                       'kill_on_engine_dead': True,\n                       'ignore_cuda_error': 'illegal memory access',\n"
        "                       'watchdog_timeout_message': 'Watchdog caught collective operation timeout',\n                       'max_restarts_on_segfault': 0,\n"
        "                       'retry_on': ['ConnectionError', 'OutOfMemoryError', 'EngineDeadError', 'ActorDiedError'],"
    )
    told = stage.ray() + stage.config(("'hybrid_engine': True,", more)) + stage.data() + stage.actor()
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        "INFO 03-14 09:23:22 [utils.py:233] non-default args: {'enable_log_requests': False, 'distributed_timeout_seconds': None, 'kv_cache_memory_bytes': None, "
        "'fail_on_environ_validation': False, 'shutdown_timeout': 0, 'disable_custom_all_reduce': False, 'error_on_nan_logits': False, 'enable_sleep_mode': True}",
    )
    return told + stage.engine() + stage.validated() + stage.steps(range(1, 9))


@log(
    "well-quoting-samples",
    verdict="running",
    made="verl prints samples whose prompts and answers quote error texts.",
    versions=SETS,
)
def samples() -> str:
    stage = Stage(103)
    told = stage.until("loop", range(1, 4))
    quoted = (
        (
            "Why does my script print `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB`?",
            'The card is full. Try a smaller batch:\n```\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
            "    run()\nRuntimeError: CUDA error: an illegal memory access was encountered\n```\nThat one is another matter. #### 7",
            "7",
        ),
        (
            "Explain: NCCL WARN NET/IB : Got completion from peer with status=12",
            "[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) is what it leads to.\n"
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task. follows. #### 12",
            "12",
        ),
        (
            "Complete the log:\nERROR 03-14 09:24:09 [core.py:708] EngineCore failed to start.",
            "ERROR 03-14 09:24:09 [core.py:708] ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.\nRuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n#### 3",
            "3",
        ),
    )
    for number, (prompt, response, truth) in enumerate(quoted, 4):
        told += stage.run(
            f"[prompt] system\nYou are a helpful assistant.\nuser\n{prompt}\nassistant\n\n[response] {response}\n[ground_truth] {truth}\n[score] 1.0"
        )
        told += stage.steps([number], "")
    return told


@log(
    "well-quoting-samples-at-the-end",
    verdict="running",
    made="The last words of the log are a printed sample that quotes a traceback.",
    versions="verl=0.6.1",
)
def samples_last() -> str:
    stage = Stage(104, verl="0.6.1", color=0)
    told = stage.until("loop", range(1, 7))
    return told + stage.run(
        "[prompt] user\nWhat does this program print?\n```python\nimport json\njson.loads('{')\n```\nassistant\n\n[response] It prints\nTraceback (most recent call last):\n  File \"<stdin>\", line 2, in <module>\n"
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\nso the answer is an error.\n[ground_truth] error\n[score] 0.0"
    )


@log(
    "well-survived-errors",
    verdict="running",
    made="Requests are retried, a reward is timed out and handled, a sample is skipped, and the run goes on.",
    versions=SETS,
)
def survived() -> str:
    stage = Stage(105)
    told = stage.until("dataset") + stage.data()
    told += stage.run(
        "Error processing one of the samples, skipping...\nTraceback (most recent call last):\n"
        + frames(
            "utils/dataset/rl_dataset.py 241 doc2len: self.tokenizer.apply_chat_template(doc[prompt_key], add_generation_prompt=True)"
        )
        + "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...\n"
        "'HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)' thrown while requesting HEAD https://huggingface.co/Qwen/Qwen2.5-7B-Instruct/resolve/main/config.json\nRetrying in 1s [Retry 1/5]."
    )
    told += stage.actor() + stage.engine() + stage.validated() + stage.steps(range(1, 5))
    told += stage.run(
        "Failed to get response from the sandbox (attempt 1/3): HTTPConnectionPool(host='10.0.0.9', port=8080): Max retries exceeded with url: /run_code (Caused by NewConnectionError("
        "'<urllib3.connection.HTTPConnection object at 0x7f3>: Failed to establish a new connection: [Errno 111] Connection refused'))\nGlobal timeout in reward computing! Setting all as 0 for 1 of 1024."
    )
    told += stage.steps(range(5, 8), "")
    told += stage.at(
        3,
        f"\nnode-1:{stage.workers[3]}:40112 [3] transport/net_ib.cc:126 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
    )
    told += said(
        f"vLLMHttpServer pid={stage.runner + 4100}",
        "WARNING 03-14 09:41:02 [scheduler.py:312] async engine: 1 request was aborted by its client",
    )
    told += "wandb: Network error (ConnectionError), entering retry loop.\nwandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [504]>)\n"
    return told + stage.steps(range(8, 22), "")


@log(
    "well-optional-missing",
    verdict="running",
    made="Optional packages are missing and are told of, some with tracebacks.",
    versions=SETS,
)
def optional() -> str:
    stage = Stage(106, color=0)
    told = (
        "Failed to import Triton kernels. Please make sure your triton version is compatible. Error: No module named 'triton_kernels.routing'\n"
        "/home/user/venv/lib/python3.11/site-packages/transformers/utils/hub.py:111: FutureWarning: Using `TRANSFORMERS_CACHE` is deprecated and will be removed in v5 of Transformers. Use `HF_HOME` instead.\n"
        "ImportError while loading plugin apex: No module named 'amp_C' (ignored)\nTraceback (most recent call last):\n"
        + frames("/home/user/venv/lib/python3.11/site-packages/mbridge/core/util.py 12 <module>: import apex")
        + "ModuleNotFoundError: No module named 'apex'\nWARNING: apex is not installed, falling back to torch's fused optimizer.\n"
    )
    told += (
        stage.until("dataset")
        + stage.data()
        + stage.at(
            0,
            "Megatron is not installed: No module named 'megatron'. Only FSDP is available.\nflash_attn is not installed, sdpa is used instead.",
        )
        + stage.actor()
    )
    return told + stage.engine() + stage.validated() + stage.steps(range(1, 24))


@log(
    "well-cut-in-a-line",
    verdict="running",
    made="The log is cut in the middle of a line of the loop.",
    versions="verl=0.8.0",
)
def cut() -> str:
    stage = Stage(107, verl="0.8.0")
    told = stage.until("loop", range(1, 13), dump=True)
    return told[:-1400]


@log(
    "well-vllm-serve",
    verdict="running",
    phase="",
    made="vllm serve answers requests, one of them refused because the client asked for too much.",
    versions="vllm=0.11.0",
)
def serve() -> str:
    head = "\x1b[1;36m(APIServer pid=881)\x1b[0;0m "
    told = Stage(111).engine().replace("\x1b[36m(vLLMHttpServer", "\x1b[1;36m(APIServer")
    told += f"{head}INFO 03-14 09:24:09 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000\n{head}INFO:     Started server process [881]\n{head}INFO:     Waiting for application startup.\n{head}INFO:     Application startup complete.\n"
    for n in range(30):
        told += f'{head}INFO:     10.0.0.9:{41000 + n} - "POST /v1/chat/completions HTTP/1.1" {"400 Bad Request" if n == 11 else "200 OK"}\n'
        if n % 5 == 0:
            told += f"{head}INFO 03-14 09:{25 + n // 6}:{n % 6 * 10:02} [loggers.py:127] Engine 000: Avg prompt throughput: {211.4 + n} tokens/s, Avg generation throughput: {884.1 + n} tokens/s, Running: {3 + n % 4} reqs, Waiting: 0 reqs, GPU KV cache usage: 2.{n % 10}%, Prefix cache hit rate: 41.3%\n"
        if n == 11:
            told += f"{head}ERROR 03-14 09:27:01 [serving_chat.py:241] Error in preprocessing prompt inputs\n{head}ERROR 03-14 09:27:01 [serving_chat.py:241] ValueError: This model's maximum context length is 1536 tokens. However, you requested 2048 output tokens and your prompt contains 311 input tokens, for a total of 2359. Please reduce the length of the input prompt or the number of requested output tokens.\n"
    return told


@log(
    "well-other-framework",
    verdict="running",
    phase="",
    made="A run of another RL framework, with Chinese lines, under torchrun.",
    versions="torch=2.6.0",
)
def other() -> str:
    told = "[2026-03-02 11:34:20,013] [INFO] [real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cuda (auto detect)\n2026-03-02 11:34:22 | INFO | strategy | 初始化分布式环境：world_size=8，超时 1800 秒\n2026-03-02 11:34:30 | INFO | strategy | 正在加载 actor：/data/models/Qwen2.5-VL-7B-Instruct\n"
    told += "2026-03-02 11:35:41 | INFO | rollout | 引擎已休眠，显存已释放（OOM 保护开启，阈值 0.9）\n2026-03-02 11:35:43 | WARNING | reward | 第 3 条样本格式错误，已跳过：ValueError('missing <answer>')\n"
    for n in range(1, 25):
        told += f"\rEpisode [1/20]: {n * 4:3}%|{'█' * (n // 3):<10}| {n}/25 [{n * 41 // 60:02}:{n * 41 % 60:02}<{(25 - n) * 41 // 60:02}:{(25 - n) * 41 % 60:02}, 41.{n:02}s/it, policy_loss={0.021 - n / 9000:.4f}, kl={0.0011 + n / 90000:.5f}, reward={0.42 + n / 120:.3f}, return={0.42 + n / 121:.3f}, response_length={311 + n}, grad_norm=0.{31 - n // 4}]"
    return told + "\n2026-03-02 11:53:02 | INFO | trainer | 第 1 轮完成，平均奖励 0.61，错误 0，超时 0\n"


@log(
    "well-resumed-with-checkpoints",
    verdict="running",
    made="A run goes on from step 100, saves checkpoints and throws old ones away.",
    versions=SETS,
    line_end="\r\n",
)
def resumed() -> str:
    stage = Stage(114, nodes=2)
    told = (
        stage.until("rollout", dump=True)
        + stage.engine()
        + stage.run(
            "Load from checkpoint folder: /data/ckpt/gsm8k/global_step_100\nSetting global step to 100\nResuming from /data/ckpt/gsm8k/global_step_100"
        )
    )
    for rank in (0, 9):
        told += stage.at(
            rank,
            f"[Rank {rank}] Loading from /data/ckpt/gsm8k/global_step_100/actor/model_world_size_16_rank_{rank}.pt and /data/ckpt/gsm8k/global_step_100/actor/extra_state_world_size_16_rank_{rank}.pt",
        )
    told += stage.steps(range(101, 111), f"\rTraining Progress:  23%|██▎       | 100/{stage.total} [00:00<?, ?it/s]")
    told += stage.run("local_global_step_folder: /data/ckpt/gsm8k/global_step_110") + stage.at(
        0,
        "INFO:2026-03-14 11:01:44,117:Checkpoint manager remove previous save local path: ['/data/ckpt/gsm8k/global_step_90/actor']",
        again=15,
    )
    return told + stage.steps(range(111, 124), "")


@log(
    "well-numpy-metrics",
    verdict="running",
    made="A healthy run whose metrics are written as numpy writes them, without colours.",
    versions="verl=0.6.1 numpy=2.2.6",
)
def numpy() -> str:
    stage = Stage(115, verl="0.6.1", color=0, gpus=4)
    told = stage.until("loop")
    for number in range(1, 23):
        row = " - ".join(
            f"{name}:np.float64({value})" if "." in value else f"{name}:{value}"
            for name, value in (each.split(":", 1) for each in stage.step(number).split(" - "))
        )
        told += stage.run(f"{row}\n\r{stage.progress(number)}")
    return told
