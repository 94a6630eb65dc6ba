"""The surroundings of a run: what verl, Ray and vLLM print while all goes well."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

VENV = "/home/user/venv/lib/python3.11/site-packages"
HERE = Path(__file__).parent
MODEL = "/data/models/Qwen2.5-7B-Instruct"
_BAR = " ▏▎▍▌▋▊▉█"


def said(who: str, text: str, *, color: int = 36, again: int = 0) -> str:
    """Each line with the prefix that Ray puts before a worker's output; `again` says how often it came from others."""
    head = f"\x1b[{color}m({who})\x1b[0m " if color else f"({who}) "
    lines = text.rstrip("\n").split("\n")
    tail = f"\x1b[32m [repeated {again}x across cluster]\x1b[0m" if again else ""
    return "".join(f"{head}{line}{tail}\n" for line in lines)


def bar(name: str, done: int, total: int, took: str, rate: str) -> str:
    """A tqdm bar, as after a carriage return."""
    share = done / total
    full = int(share * 10)
    part = _BAR[int((share * 10 - full) * 8)] if full < 10 else ""
    return f"{name}: {share:>4.0%}|{'█' * full}{part:<{10 - full}}| {done}/{total} [{took}, {rate}]"


@dataclass
class Stage:
    """A verl run on `gpus` GPUs of each of `nodes` nodes, from its first line on."""

    seed: int = 1
    verl: str = "0.7.1"
    gpus: int = 8
    nodes: int = 1
    color: int = 36
    clock: str = "2026-03-14 09:21"
    total: int = 435
    model: str = MODEL
    runner: int = 0
    workers: tuple[int, ...] = ()
    rng: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        base = self.rng.randrange(4000, 200000)
        self.runner = self.runner or base
        self.workers = self.workers or tuple(base + 800 + 6 * rank for rank in range(self.gpus * self.nodes))

    def worker(self, rank: int = 0) -> str:
        """The name that Ray gives the worker of a rank; those of other nodes have an address."""
        node = rank // self.gpus
        return f"WorkerDict pid={self.workers[rank]}" + (f", ip=10.0.0.{5 + node}" if node else "")

    def at(self, rank: int, text: str, again: int = 0) -> str:
        return said(self.worker(rank), text, color=self.color, again=again)

    def run(self, text: str) -> str:
        return said(f"TaskRunner pid={self.runner}", text, color=self.color)

    def ray(self) -> str:
        return (
            "ray init kwargs: {'num_cpus': None, 'runtime_env': {'env_vars': {'TOKENIZERS_PARALLELISM': 'true', 'NCCL_DEBUG': 'WARN', "
            "'VLLM_LOGGING_LEVEL': 'WARN', 'VLLM_ALLOW_RUNTIME_LORA_UPDATING': 'true', 'CUDA_DEVICE_MAX_CONNECTIONS': '1', "
            "'NCCL_CUMEM_ENABLE': '0'}, 'working_dir': None}}\n"
            f"{self.clock}:07,612\tINFO worker.py:1927 -- Started a local Ray instance. View the dashboard at "
            "\x1b[1m\x1b[32mhttp://127.0.0.1:8265 \x1b[39m\x1b[22m\n"
        )

    def config(self, *changes: tuple[str, str]) -> str:
        """verl's configuration, as it prints it."""
        text = (HERE / ("config-080.txt" if self.verl >= "0.8" else "config-071.txt")).read_text(encoding="utf-8")
        text = text.replace("/data/models/Qwen2.5-0.5B-Instruct", self.model)
        text = text.replace("'n_gpus_per_node': 1", f"'n_gpus_per_node': {self.gpus}").replace(
            "'nnodes': 1", f"'nnodes': {self.nodes}"
        )
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return self.run(f"TaskRunner hostname: node-1, PID: {self.runner}\n{text}")

    def data(self, rows: int = 7473) -> str:
        return self.run(
            "WARNING: val_batch_size is deprecated. Validation datasets are sent to inference engines as a whole batch, "
            "which will schedule the memory themselves.\n[validate_config] All configuration checks passed successfully!\n"
            f"Using dataset class: RLHFDataset\n\rGenerating train split: 0 examples [00:00, ? examples/s]\r"
            f"Generating train split: {rows} examples [00:00, {rows * 21.3:.2f} examples/s]\ndataset len: {rows}\n"
            f"\rFiltering prompts longer than 512 tokens (num_proc=1):   0%|          | 0/{rows} [00:00<?, ? examples/s]\r"
            f"Filtering prompts longer than 512 tokens (num_proc=1): 100%|██████████| {rows}/{rows} "
            f"[00:02<00:00, 3214.55 examples/s]\nfilter dataset len: {rows}\nUsing dataset class: RLHFDataset\ndataset len: 1319\n"
            f"Size of train dataloader: {self.total // 15}, Size of val dataloader: 1\nTotal training steps: {self.total}\n"
            "colocated worker base class <class 'verl.single_controller.base.worker.Worker'>\n"
            f"bind role actor_rollout method chat_completion to class <class 'verl.single_controller.ray.base.create_colocated_worker_cls."
            "<locals>.WorkerDict'>"
        )

    def actor(self) -> str:
        """The workers meet, and load the model."""
        others = len(self.workers) - 1
        told = self.at(
            0,
            "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0\n"
            'Model config after override: Qwen2Config {\n  "architectures": [\n    "Qwen2ForCausalLM"\n  ],\n  "attention_dropout": 0.0,\n'
            '  "eos_token_id": 151645,\n  "hidden_act": "silu",\n  "hidden_size": 3584,\n  "initializer_range": 0.02,\n'
            '  "intermediate_size": 18944,\n  "max_position_embeddings": 32768,\n  "model_type": "qwen2",\n  "num_attention_heads": 28,\n'
            '  "num_hidden_layers": 28,\n  "num_key_value_heads": 4,\n  "pad_token_id": 151643,\n  "rms_norm_eps": 1e-06,\n'
            '  "rope_theta": 1000000.0,\n  "tie_word_embeddings": false,\n  "use_cache": true,\n  "vocab_size": 152064\n}\n',
        )
        told += self.at(
            0,
            "You are attempting to use Flash Attention 2.0 with a model not initialized on GPU. Make sure to move the model to GPU "
            "after initializing it on CPU with `model.to('cuda')`.\n\rLoading checkpoint shards:   0%|          | 0/4 [00:00<?, ?it/s]\r"
            "Loading checkpoint shards:  25%|██▌       | 1/4 [00:03<00:10,  3.44s/it]\rLoading checkpoint shards: 100%|██████████| 4/4 "
            "[00:12<00:00,  3.13s/it]\nQwen2ForCausalLM contains 7.62B parameters\nwrap_policy: functools.partial(<function _or_policy at "
            "0x7f1a5c2b9d00>, policies=[functools.partial(<function transformer_auto_wrap_policy at 0x7f1a5c2b9bc0>, "
            "transformer_layer_cls={<class 'transformers.models.qwen2.modeling_qwen2.Qwen2DecoderLayer'>})])\n"
            "Total steps: 435, num_warmup_steps: 0\nActor use_remove_padding=True\nActor use_fused_kernels=False",
        )
        if others > 1:
            told += self.at(1, "Total steps: 435, num_warmup_steps: 0", again=others)
            told += self.at(len(self.workers) - 1, "Actor use_remove_padding=True", again=others)
        return told

    def engine(self, vllm: str = "0.11.0", server: int = 0, graphs: bool = True) -> str:
        """The rollout servers start."""
        pid = self.runner + 4100 + server
        core = f"\x1b[1;36m(EngineCore_DP0 pid={pid + 212})\x1b[0;0m INFO 03-14 09:2"
        lines = [
            "INFO 03-14 09:23:11 [__init__.py:216] Automatically detected platform cuda.",
            f"['serve', '{self.model}', '--dtype', 'bfloat16', '--load_format', 'dummy', '--max_model_len', '1536', "
            "'--max_num_seqs', '1024', '--enable_chunked_prefill', '--max_num_batched_tokens', '8192', '--enable_prefix_caching', "
            "'--enable_sleep_mode', '--gpu_memory_utilization', '0.6', '--tensor_parallel_size', '1', '--seed', '0']",
            "INFO 03-14 09:23:22 [model.py:547] Resolved architecture: Qwen2ForCausalLM",
            "INFO 03-14 09:23:22 [model.py:1510] Using max model len 1536",
            "INFO 03-14 09:23:23 [scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=8192.",
            f"{core}3:31 [core.py:644] Waiting for init message from front-end.",
            f"{core}3:31 [core.py:77] Initializing a V1 LLM engine (v{vllm}) with config: model='{self.model}', "
            f"speculative_config=None, tokenizer='{self.model}', skip_tokenizer_init=False, dtype=torch.bfloat16, max_seq_len=1536, "
            "load_format=dummy, tensor_parallel_size=1, pipeline_parallel_size=1, disable_custom_all_reduce=False, quantization=None, "
            "enforce_eager=False, seed=0, enable_prefix_caching=True, chunked_prefill_enabled=True",
            f"{core}3:35 [parallel_state.py:1208] rank 0 in world size 1 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0",
            f"{core}3:36 [gpu_model_runner.py:2602] Starting to load model {self.model}...",
            f"{core}3:36 [gpu_model_runner.py:2634] Loading model from scratch...",
            f"{core}3:37 [cuda.py:366] Using Flash Attention backend on V1 engine.",
        ]
        if graphs:
            lines += [
                f"{core}3:41 [gpu_model_runner.py:2653] Model loading took 14.2488 GiB and 3.127645 seconds",
                f"{core}3:58 [gpu_worker.py:298] Available KV cache memory: 30.42 GiB",
                f"{core}3:58 [kv_cache_utils.py:1087] GPU KV cache size: 569,552 tokens",
                f"{core}3:58 [kv_cache_utils.py:1091] Maximum concurrency for 1,536 tokens per request: 370.80x",
                *(
                    f"\rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE): {bar('', n, 67, '00:04<00:01', '17.02it/s')[2:]}"
                    for n in (0, 31, 67)
                ),
                f"{core}4:06 [gpu_model_runner.py:3480] Graph capturing finished in 6 secs, took 0.51 GiB",
                f"{core}4:06 [core.py:210] init engine (profile, create kv cache, warmup model) took 24.63 seconds",
            ]
        return said(f"vLLMHttpServer pid={pid}", "\n".join(lines), color=self.color)

    def step(self, number: int, **changes: str) -> str:
        """verl's line of metrics of one step, of a run that learns."""
        draw = self.rng.uniform
        gone = number / self.total
        score = min(0.93, 0.31 + 1.4 * gone + draw(-0.02, 0.02))
        gen, update = draw(21, 26), draw(33, 38)
        old, ref = draw(7, 9), draw(6, 8)
        tokens = int(draw(980000, 1120000))
        length = 268 + draw(-8, 8)
        told = {
            "global_seqlen/min": f"{int(tokens / 8 * 0.97)}",
            "global_seqlen/max": f"{int(tokens / 8 * 1.03)}",
            "global_seqlen/mean": f"{tokens / 8}",
            "actor/entropy": f"{0.41 - 0.08 * gone + draw(-0.01, 0.01):.16f}",
            "perf/mfu/actor_infer": f"{draw(0.40, 0.46):.16f}",
            "actor/pg_loss": f"{draw(-0.012, 0.014):.16f}",
            "actor/kl_loss": f"{0.0004 + 0.002 * gone + draw(0, 0.0002):.16f}",
            "actor/pg_clipfrac": f"{draw(0.0002, 0.0009):.18f}",
            "actor/ppo_kl": f"{draw(-0.0003, 0.0004):.18f}",
            "actor/pg_clipfrac_lower": "0.0",
            "actor/grad_norm": f"{draw(0.21, 0.44):.16f}",
            "perf/mfu/actor": f"{draw(0.38, 0.44):.16f}",
            "perf/max_memory_allocated_gb": "61.27264642715454",
            "perf/max_memory_reserved_gb": "68.4609375",
            "perf/cpu_memory_used_gb": f"{181 + draw(-0.5, 0.5):.13f}",
            "actor/lr": "1e-06",
            "training/global_step": f"{number}",
            "training/epoch": f"{number // 29}",
            "critic/score/mean": f"{score:.16f}",
            "critic/score/max": "1.0",
            "critic/score/min": "0.0",
            "critic/rewards/mean": f"{score:.16f}",
            "critic/rewards/max": "1.0",
            "critic/rewards/min": "0.0",
            "critic/advantages/mean": f"{draw(-0.02, 0.02):.16f}",
            "critic/advantages/max": "1.7888507843017578",
            "critic/advantages/min": "-1.7888507843017578",
            "response_length/mean": f"{length:.13f}",
            "response_length/max": "1024.0",
            "response_length/min": "61.0",
            "response_length/clip_ratio": f"{draw(0.002, 0.008):.18f}",
            "response/aborted_ratio": "0.0",
            "prompt_length/mean": "104.1640625",
            "prompt_length/max": "211.0",
            "prompt_length/min": "54.0",
            "timing_s/start_profile": "0.00012",
            "timing_s/generate_sequences": f"{gen - 1:.13f}",
            "timing_s/gen": f"{gen:.13f}",
            "timing_s/reward": f"{draw(0.2, 0.4):.13f}",
            "timing_s/old_log_prob": f"{old:.13f}",
            "timing_s/ref": f"{ref:.13f}",
            "timing_s/adv": f"{draw(0.05, 0.09):.13f}",
            "timing_s/update_actor": f"{update:.13f}",
            "timing_s/update_weights": f"{draw(1.1, 1.5):.13f}",
            "timing_s/step": f"{gen + old + ref + update + 2:.13f}",
            "perf/total_num_tokens": f"{tokens}",
            "perf/time_per_step": f"{gen + old + ref + update + 2:.13f}",
            "perf/throughput": f"{tokens / 8 / (gen + old + ref + update + 2):.13f}",
        }
        told.update({name.replace("__", "/"): value for name, value in changes.items()})
        return f"step:{number} - " + " - ".join(f"{name}:{value}" for name, value in told.items())

    def progress(self, number: int) -> str:
        seconds = number * 76
        left = (self.total - number) * 76
        span = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}<{left // 3600}:{left // 60 % 60:02}:{left % 60:02}"
        return bar("Training Progress", number, self.total, span, f"{self.rng.uniform(74, 78):5.2f}s/it")

    def steps(self, numbers: Iterable[int], first: str = "Training from scratch") -> str:
        """The loop: its bar and its steps."""
        told = (
            self.run(f"{first}\n\rTraining Progress:   0%|          | 0/{self.total} [00:00<?, ?it/s]") if first else ""
        )
        for number in numbers:
            told += self.run(f"{self.step(number)}\n\r{self.progress(number)}")
        return told

    def validated(self) -> str:
        return self.run(
            "test_gen_batch meta info: {'eos_token_id': 151645, 'pad_token_id': 151643, 'recompute_log_prob': False, 'do_sample': False, "
            "'validate': True, 'global_steps': 0}\nvalidation generation end\n"
            "(\"Initial validation metrics: {'val-core/openai/gsm8k/reward/mean@1': 0.3328, 'val-aux/num_turns/min': 2, \"\n"
            " \"'val-aux/num_turns/max': 2, 'val-aux/num_turns/mean': 2.0}\")\n"
            "step:0 - val-core/openai/gsm8k/reward/mean@1:0.3328 - val-aux/num_turns/min:2 - val-aux/num_turns/max:2 - val-aux/num_turns/mean:2.0"
        )

    def until(self, phase: str, steps: Iterable[int] = (), *, dump: bool = False, vllm: str = "0.11.0") -> str:
        """All that is printed before something happens in `phase`."""
        pieces: list[tuple[str, Callable[[], str]]] = [
            (
                "config",
                lambda: (
                    self.ray()
                    + (self.config() if dump else self.run(f"TaskRunner hostname: node-1, PID: {self.runner}"))
                ),
            ),
            ("dataset", self.data),
            ("actor", self.actor),
            ("rollout", lambda: self.engine(vllm)),
            ("loop", lambda: self.validated() + self.steps(steps)),
        ]
        names = [name for name, _ in pieces]
        last = {"dataset": 1, "resource-pool": 2, "actor": 2, "rollout": 3, "loop": 5, "config": 1}[phase]
        assert phase in (*names, "resource-pool")
        return "".join(write() for _, write in pieces[:last])
