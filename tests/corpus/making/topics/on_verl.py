"""verl's own entry point: its releases as they are, patched, and on a CPU that stands in for a GPU."""

from tests.corpus.making.scenes import scene

COMMAND = """PYTHONPATH=$TREES/{tree} HF_HUB_OFFLINE=1 $PYTHON -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
  data.train_files=$DATA data.val_files=$DATA data.train_batch_size=2 data.max_prompt_length=64 data.max_response_length=16 \\
  actor_rollout_ref.model.path=$MODEL actor_rollout_ref.model.use_remove_padding=False \\
  +actor_rollout_ref.model.override_config.attn_implementation=sdpa actor_rollout_ref.actor.ppo_mini_batch_size=2 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=2 \\
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \\
  trainer.n_gpus_per_node=1 trainer.nnodes=1 'trainer.logger=["console"]' trainer.total_epochs={epochs} \\
  ray_kwargs.ray_init.num_cpus=4 {overrides}"""
ON_A_CPU = (
    "+ray_kwargs.ray_init.num_gpus=1 data.dataloader_num_workers=0 actor_rollout_ref.actor.strategy=fsdp2 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1 actor_rollout_ref.rollout.free_cache_engine=False "
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.enable_sleep_mode=False actor_rollout_ref.rollout.enforce_eager=True "
    "trainer.val_before_train=False actor_rollout_ref.rollout.agent.num_workers=1"
)
NO_COMPILER = {"TORCHDYNAMO_DISABLE": "1"}
VERSIONS = ("vllm", "torch", "ray", "transformers")


def training(tree: str, overrides: str = "", epochs: int = 1, head: str = "") -> str:
    """A GRPO run of a tiny model; `head` goes before it in the shell."""
    return head + COMMAND.format(tree=tree, overrides=overrides, epochs=epochs)


def verl(name: str, tree: str, overrides: str = "", **told: object) -> None:
    """A run of verl as it comes, on a machine without a GPU."""
    release = tree.split("-")[1]
    head = str(told.pop("head", ""))
    scene(
        name,
        command=training(tree, overrides, head=head),
        versions=(f"verl=={release}", *VERSIONS),
        **{"seconds": 400, **told},
    )


def on_cpu(name: str, overrides: str = "", **told: object) -> None:
    """A run of verl 0.8.0 with a CPU in place of the GPU."""
    epochs, head = int(str(told.pop("epochs", 1))), str(told.pop("head", ""))
    environment = told.pop("environment", NO_COMPILER)
    command = training("verl-0.8.0-cpu", f"{ON_A_CPU} {overrides}", epochs, head)
    scene(
        name, command=command, environment=environment, versions=("verl==0.8.0", *VERSIONS), **{"seconds": 600, **told}
    )  # fmt: skip


verl(
    "verl-091-transfer-queue", "verl-0.9.1-patched", "",
    made="verl 0.9.1 without TransferQueue, which it needs.", root=["module-missing"], phase="config",
    signs=[r"No module named 'transfer_queue'"],
)  # fmt: skip
# What hydra and the configuration refuse.
verl(
    "verl-unknown-key", "verl-0.8.0-patched", "actor_rollout_ref.rollout.gpu_memory_utilisation=0.4",
    made="A key of the configuration is misspelt.", root=["hydra-unknown-key"], phase="config",
    signs=[r"Could not override 'actor_rollout_ref.rollout.gpu_memory_utilisation'"],
)  # fmt: skip
verl(
    "verl-key-exists", "verl-0.7.1-patched", "+data.train_batch_size=4",
    made="A plus before a key that is there already.", root=["hydra-key-exists"], phase="config",
    signs=[r"Could not append to config"],
)  # fmt: skip
verl(
    "verl-override-syntax", "verl-0.8.0-patched", "data.train_files=[/data/a.parquet,/data/b.parquet",
    made="A list in an override is not closed.", root=["hydra-override-syntax"], phase="config",
    signs=[r"(?i)mismatched input|no viable alternative|extraneous|missing BRACKET|LexerNoViableAlt|OverrideParseException|Error parsing"],
    all_signs=True,
)  # fmt: skip
verl(
    "verl-config-name", "verl-0.8.0-patched", "--config-name ppo_trainer_uky",
    made="--config-name names a configuration that does not exist.", root=["hydra-config-not-found"], phase="config",
    signs=[r"Cannot find primary config"],
)  # fmt: skip
verl(
    "verl-unknown-flag", "verl-0.8.0-patched", "--gpu-memory-utilization 0.5",
    made="A command line flag in vLLM's style is given to verl.", root=["hydra-unknown-flag"], phase="config",
    signs=[r"unrecognized arguments"],
)  # fmt: skip
verl(
    "verl-missing-interpolation", "verl-0.8.0-patched", "'data.val_files=${oc.env:VAL_FILES}'",
    made="An override takes an environment variable that is not set.", root=["hydra-interpolation"], phase="config",
    signs=[r"Environment variable 'VAL_FILES' not found"], all_signs=True,
)  # fmt: skip
verl(
    "verl-dataset-group", "verl-0.9.1-patched", "actor@actor_rollout_ref.actor=dp_actr",
    made="A config group is overridden with an option that does not exist.", root=["hydra-config-not-found", "hydra-unknown-key"],
    phase="config", signs=[r"Could not find|Could not override|In 'ppo_trainer'"],
)  # fmt: skip
verl(
    "verl-type", "verl-0.8.0-patched", "actor_rollout_ref.rollout.n=two",
    made="The number of rollouts is a word.", root=["config-wrong-type", "config-value-unknown", "unknown"], phase="config",
    signs=[r"Error: |Error\("], all_signs=True,
)  # fmt: skip
verl(
    "verl-micro-batch-unset", "verl-0.7.1-patched", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=null",
    made="No micro batch size is given.", root=["micro-batch-size-unset"], phase="config",
    signs=[r"Please set at least one of"], all_signs=True,
)  # fmt: skip
verl(
    "verl-micro-batch-twice", "verl-0.7.0-patched", "actor_rollout_ref.actor.ppo_micro_batch_size=2",
    made="Both the old and the new key of the micro batch size are given.", root=["micro-batch-size-twice"], phase="config",
    signs=[r"[Ee]rror: .*ppo_micro_batch_size|You have set both"], all_signs=True,
)  # fmt: skip
verl(
    "verl-batch-below-mini-batch", "verl-0.8.0-patched", "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    made="The mini batch is larger than the batch.", root=["train-batch-too-small"], phase="config",
    signs=[r"ValueError: train_batch_size|must be >="], all_signs=True,
)  # fmt: skip
# Data and model.
verl(
    "verl-data-missing", "verl-0.8.0-patched", "data.train_files=/data/gsm8k_uky/train.parquet",
    made="The training file does not exist.", root=["data-file-missing"], phase="dataset",
    signs=[r"FileNotFoundError: .*gsm8k_uky"], all_signs=True,
)  # fmt: skip
verl(
    "verl-data-missing-071", "verl-0.7.1-patched", "data.val_files=/data/math/test.parquet",
    made="The validation file does not exist.", root=["data-file-missing"], phase="dataset",
    signs=[r"FileNotFoundError: .*math/test"], all_signs=True,
)  # fmt: skip
verl(
    "verl-model-missing", "verl-0.8.0-patched", "actor_rollout_ref.model.path=/data/models/Qwen3-8B",
    made="The model's folder does not exist.", root=["model-path-wrong"],
    signs=[r"Repo id must be in the form|OSError: .*Qwen3-8B|HFValidationError"], all_signs=True,
)  # fmt: skip
verl(
    "verl-model-not-cached", "verl-0.7.1-patched", "actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct",
    made="The model is named by its hub id, the hub is off, and it is not in the cache.",
    root=["hf-offline-not-cached", "hf-no-connection"],
    signs=[r"OSError: |LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect|not find the requested files in the disk cache"], all_signs=True,
)  # fmt: skip
verl(
    "verl-prompt-key", "verl-0.8.0-patched", "data.prompt_key=question data.filter_overlong_prompts=True",
    made="The key of the prompt's column is wrong.", root=["data-column-missing"], phase="dataset",
    signs=[r"KeyError: 'question'"], all_signs=True,
)  # fmt: skip
verl(
    "verl-all-filtered", "verl-0.8.0-patched", "data.max_prompt_length=2 data.filter_overlong_prompts=True",
    made="No prompt is as short as the longest that is let through.", root=["data-all-filtered", "data-too-small"], phase="dataset",
    signs=[r"filter dataset len: 0|Train dataloader is empty|num_samples=0"], all_signs=True,
)  # fmt: skip
verl(
    "verl-batch-above-data", "verl-0.7.1-patched", "data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64",
    made="A batch is larger than the data set of two rows.", root=["data-too-small"], phase="dataset",
    signs=[r"Train dataloader is empty"], all_signs=True,
)  # fmt: skip
# Resources.
verl(
    "verl-too-few-gpus", "verl-0.8.0-patched", "", made="A run for one GPU on a machine that has none.",
    root=["ray-too-few-gpus"], phase="resource-pool", signs=[r"Total available GPUs 0 is less than"], all_signs=True,
)  # fmt: skip
verl(
    "verl-too-few-gpus-060", "verl-0.6.1-patched", "trainer.n_gpus_per_node=2",
    made="A run for 2 GPUs on a machine that has none, verl 0.6.1.",
    root=["ray-too-few-gpus"], phase="resource-pool", signs=[r"Total available GPUs 0"], all_signs=True,
)  # fmt: skip
verl(
    "verl-existing-ray", "verl-0.8.0-patched", "", head="ray start --head --num-cpus 2 --include-dashboard=false --port 6381; ",
    made="A Ray cluster runs already, and the configuration gives num_cpus to ray.init.",
    root=["ray-existing-cluster"], phase="config", signs=[r"When connecting to an existing cluster"],
)  # fmt: skip
verl(
    "verl-nccl-backend-on-cpu", "verl-0.8.0-patched", "+ray_kwargs.ray_init.num_gpus=1 data.dataloader_num_workers=0",
    made="Ray is told of a GPU that is not there; the worker's process group has two backends for the CPU.",
    root=["unknown", "cuda-no-device", "nccl-not-built", "torch-without-cuda"], phase="actor", signs=[r"Duplicate device type cpu"], all_signs=True,
)  # fmt: skip
# What drifts between releases.
for release in ("0.6.0", "0.6.1"):
    verl(
        f"verl-drift-{release.replace('.', '')}", f"verl-{release}", "",
        made=f"verl {release} as released, with transformers 5.", root=["transformers-vision2seq"],
        signs=[r"ImportError: cannot import name 'AutoModelForVision2Seq'"], all_signs=True,
    )  # fmt: skip
scene(
    "verl-drift-fused-moe",
    made="Importing the rollout server of verl 0.8.0 as released with vLLM 0.28.",
    command="PYTHONPATH=$TREES/verl-0.8.0 $PYTHON -c 'import verl.workers.rollout.vllm_rollout.vllm_async_server'",
    root=["vllm-fused-moe-import"], signs=[r"FP8 quantization not available|cannot import name 'FusedMoE"], all_signs=True,
    versions=("verl==0.8.0", *VERSIONS),
)  # fmt: skip
scene(
    "verl-drift-import-server",
    made="Importing the rollout server of verl 0.7.1 as released with vLLM 0.28.",
    command="PYTHONPATH=$TREES/verl-0.7.1 $PYTHON -c 'import verl.workers.rollout.vllm_rollout.vllm_async_server'",
    root=["vllm-fused-moe-import"], signs=[r"FP8 quantization not available|cannot import name 'FusedMoE"], all_signs=True,
    versions=("verl==0.7.1", *VERSIONS),
)  # fmt: skip
scene(
    "verl-drift-lora-models",
    made="Importing verl.utils.vllm of verl 0.6.1 as released with vLLM 0.28.",
    command="PYTHONPATH=$TREES/verl-0.6.1 $PYTHON -c 'import verl.utils.vllm'",
    root=["vllm-lora-models-moved"], signs=[r"No module named 'vllm.lora.models'"], all_signs=True,
    versions=("verl==0.6.1", *VERSIONS),
)  # fmt: skip
scene(
    "verl-nested-checkout",
    made="A module of the fork is run from one folder too high: no module verl.",
    command="mkdir verl_Uky && cp -r $TREES/verl-0.8.0/verl verl_Uky/ && $PYTHON -m verl.trainer.main_ppo trainer.nnodes=1",
    root=["verl-module-missing", "module-missing", "package-not-installed", "nested-checkout"], signs=[r"No module named 'verl|No module named verl|ModuleNotFoundError"],
    versions=("verl==0.8.0",),
)  # fmt: skip
# On a CPU that stands in for a GPU.
on_cpu("verl-cpu-ok", made="Two epochs of a real GRPO training on a CPU.", verdict="ok", phase="loop", epochs=3)
on_cpu(
    "verl-cpu-running", made="A real GRPO training on a CPU, cut in its loop.", verdict="running", phase="loop", epochs=400,
    until="step:4 - ",
)  # fmt: skip
on_cpu(
    "verl-cpu-fsdp1", "actor_rollout_ref.actor.strategy=fsdp", made="FSDP wants an accelerator, and there is none.",
    root=["unknown", "cuda-no-device", "torch-without-cuda"], phase="actor", signs=[r"The module has CPU parameters or buffers|Cannot access accelerator device when none is available"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-tp", "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
    made="Tensor parallelism of 2 in the rollout of a run on one GPU.", root=["parallel-size-not-divisible", "tensor-parallel-not-divisible"], phase="actor",
    signs=[r"is not divisible by infer_world_size"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-sleep", "actor_rollout_ref.rollout.free_cache_engine=True +actor_rollout_ref.rollout.enable_sleep_mode=True ++actor_rollout_ref.rollout.engine_kwargs.vllm.enable_sleep_mode=True",
    made="The rollout asks for sleep mode, which vLLM has not on a CPU.",
    root=["sleep-mode-not-enabled", "unknown"], phase="rollout", signs=[r"Sleep mode is not supported on current platform"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-inductor", "actor_rollout_ref.rollout.enforce_eager=False", environment={},
    made="vLLM compiles with an interpreter whose headers are not installed.",
    root=["python-headers-missing"], phase="rollout", signs=[r"fatal error: Python.h: No such file", r"CppCompileError"],
    all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-compile-in-step", environment={},
    made="The engine starts eagerly, and its sampler is compiled in the first step: the headers are not installed.",
    root=["python-headers-missing"], phase="loop", signs=[r"fatal error: Python.h: No such file", r"CppCompileError"],
    all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-chunks", "actor_rollout_ref.rollout.agent.num_workers=8",
    made="Eight agent loop workers for a batch of four.", root=["unknown", "batch-not-divisible-by-gpus"], phase="loop",
    signs=[r"only support equal chunk"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-adv-estimator", "algorithm.adv_estimator=grppo",
    made="The name of the advantage estimator is misspelt, which shows when the first advantages are computed.",
    root=["config-value-unknown", "unknown"], phase="loop", signs=[r"(?i)(unknown|unsupported|invalid|not).*grppo|grppo.*(unknown|unsupported|not)|KeyError: 'grppo'"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-max-model-len", "actor_rollout_ref.rollout.max_model_len=8192 data.max_prompt_length=4096 data.max_response_length=2048",
    made="The rollout is to be longer than the model can take.", root=["max-model-len-too-long"], phase="rollout",
    signs=[r"User-specified max_model_len|should be less than or equal to max_position_embeddings"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-node-lost-under-load",
    made="The machine was so loaded that Ray took its own node for dead while the rollout started; such a run cannot be had to order.",
    root=["ray-node-died", "ray-actor-died", "ray-owner-died"], phase="actor", signs=[r"Owner's node has crashed", r"ActorDiedError: The actor died"],
    all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-engine-killed", epochs=400, head="$END SIGKILL VLLM::EngineCore 'step:1 - ' & ",
    made="vLLM's engine process is killed with SIGKILL after the first step.",
    root=["engine-process-died", "engine-dead", "process-killed"], phase="loop",
    signs=[r"Engine core proc .* died|EngineDeadError|EngineCore.*died|exit code -9"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-reward-raises",
    "reward.custom_reward_function.path=reward.py reward.custom_reward_function.name=compute_score",
    files={"reward.py": "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return float(extra_info['target'])\n"},
    made="The fork's own reward function raises KeyError.", root=["reward-function-raised", "unknown"], phase="loop",
    signs=[r"KeyError: 'target'"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-disk-full", "trainer.save_freq=1 trainer.default_local_dir=$PWD/ckpt", epochs=4,
    head="mkdir ckpt; mount -t tmpfs -o size=900k none ckpt; ",
    made="Checkpoints of a real training go to a small file system, which is full.",
    root=["disk-full", "checkpoint-save-failed"], phase="loop", signs=[r"No space left on device|PytorchStreamWriter failed|unexpected pos|basic_ios::clear|iostream error"],
    all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-resume-missing", "trainer.resume_mode=resume_path trainer.resume_from_path=$PWD/checkpoints/global_step_40",
    made="The checkpoint to go on from does not exist.", root=["checkpoint-missing"], phase="loop",
    signs=[r"FileNotFoundError: .*global_step_40|does not exist|No such file or directory: .*global_step_40"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-worker-killed", epochs=400, head="$END SIGKILL ray::WorkerDict 'step:1 - ' & ",
    made="The actor's worker is killed with SIGKILL after the first step.",
    root=["ray-worker-crashed", "ray-actor-died", "process-killed"], phase="loop",
    signs=[r"died unexpectedly|ActorDiedError|Worker unexpectedly exits|A worker died or was killed"], all_signs=True,
)  # fmt: skip
on_cpu(
    "verl-cpu-packed-weights", made="Weights are sent to a vLLM that has packed its own: loading fails, and the run hangs there.",
    head="cp -r $TREES/verl-0.8.0-cpu tree; sed -i '/dispatch_cpu_unquantized_gemm = /d' tree/verl/workers/rollout/vllm_rollout/utils.py; TREES=$PWD; mv tree verl-0.8.0-cpu; ",
    root=["unknown"], phase="loop", signs=[r"'Parameter' object has no attribute 'weight_loader'"], all_signs=True, until="please check the stack trace above for the root cause", linger=20,
)  # fmt: skip
on_cpu(
    "verl-cpu-interrupted", epochs=400, head="$END SIGINT main_ppo 'step:2 - ' & ",
    made="Ctrl-C in the loop of a real training.", root=["interrupted-by-user"], phase="loop",
    signs=[r"KeyboardInterrupt"], all_signs=True,
)  # fmt: skip
