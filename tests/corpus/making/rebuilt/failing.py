"""How an exception of a worker comes back to the driver: the frames of verl 0.7.1 and Ray, each level around the one below."""

from __future__ import annotations

from tests.corpus.making.rebuilt.stage import VENV, Stage, said

FRAMES = {
    "fit update": (
        "trainer/main_ppo.py 359 run: trainer.fit()",
        "trainer/ppo/ray_trainer.py 1507 fit: actor_output = self._update_actor(batch)",
        "trainer/ppo/ray_trainer.py 1189 _update_actor: actor_output = self.actor_rollout_wg.update_actor(batch_td)",
        "single_controller/ray/base.py 55 __call__: output = ray.get(output)",
    ),
    "fit old": (
        "trainer/main_ppo.py 359 run: trainer.fit()",
        "trainer/ppo/ray_trainer.py 1404 fit: old_log_prob, old_log_prob_mfu = self._compute_old_log_prob(batch)",
        "trainer/ppo/ray_trainer.py 1140 _compute_old_log_prob: output = self.actor_rollout_wg.compute_log_prob(batch_td)",
        "single_controller/ray/base.py 55 __call__: output = ray.get(output)",
    ),
    "fit ref": (
        "trainer/main_ppo.py 359 run: trainer.fit()",
        "trainer/ppo/ray_trainer.py 1440 fit: ref_log_prob = self._compute_ref_log_prob(batch)",
        "trainer/ppo/ray_trainer.py 1119 _compute_ref_log_prob: output = self.ref_policy_wg.compute_ref_log_prob(batch_td)",
        "single_controller/ray/base.py 55 __call__: output = ray.get(output)",
    ),
    "fit save": (
        "trainer/main_ppo.py 359 run: trainer.fit()",
        "trainer/ppo/ray_trainer.py 1529 fit: self._save_checkpoint()",
        "trainer/ppo/ray_trainer.py 884 _save_checkpoint: self.actor_rollout_wg.save_checkpoint(",
        "single_controller/ray/base.py 55 __call__: output = ray.get(output)",
    ),
    "fit generate": (
        "trainer/main_ppo.py 359 run: trainer.fit()",
        "trainer/ppo/ray_trainer.py 1321 fit: gen_batch_output = self.async_rollout_manager.generate_sequences(gen_batch_output)",
    ),
    "init model": (
        "trainer/main_ppo.py 356 run: trainer.init_workers()",
        "trainer/ppo/ray_trainer.py 802 init_workers: self.actor_rollout_wg.init_model()",
        "single_controller/ray/base.py 55 __call__: output = ray.get(output)",
    ),
    "init rollout": (
        "trainer/main_ppo.py 356 run: trainer.init_workers()",
        "trainer/ppo/ray_trainer.py 838 init_workers: self.async_rollout_manager = AgentLoopManager.create(",
    ),
    "worker": (
        "single_controller/ray/base.py 932 func: return getattr(self.worker_dict[key], name)(*args, **kwargs)",
        "single_controller/base/decorator.py 427 inner: return func(*args, **kwargs)",
    ),
    "update": (
        "utils/profiler/profile.py 173 wrapper: return func(self_instance, *args, **kwargs_inner)",
        "workers/fsdp_workers.py 1011 update_actor: metrics = self.actor.update_policy(data=data)",
        "utils/profiler/performance.py 105 f: return self.log(decorated_function, *args, **kwargs)",
        "utils/profiler/performance.py 118 log: output = func(*args, **kwargs)",
    ),
    "backward": (
        "workers/actor/dp_actor.py 667 update_policy: loss.backward()",
        "torch/_tensor.py 647 backward: torch.autograd.backward(",
        "torch/autograd/__init__.py 354 backward: _engine_run_backward(",
        "torch/autograd/graph.py 829 _engine_run_backward: return Variable._execution_engine.run_backward(  "
        "# Calls into the C++ engine to run the backward pass",
    ),
    "optimizer": (
        "workers/actor/dp_actor.py 672 update_policy: grad_norm = self._optimizer_step()",
        "workers/actor/dp_actor.py 414 _optimizer_step: self.actor_optimizer.step()",
        "torch/optim/optimizer.py 516 wrapper: out = func(*args, **kwargs)",
        "torch/optim/adamw.py 243 step: adamw(",
        "torch/optim/adam.py 758 _multi_tensor_adam: exp_avg_sq_sqrt = torch._foreach_sqrt(device_exp_avg_sqs)",
    ),
    "log_prob": (
        "utils/profiler/profile.py 173 wrapper: return func(self_instance, *args, **kwargs_inner)",
        "workers/fsdp_workers.py 1118 compute_log_prob: outputs = self.actor.compute_log_prob(data=data, calculate_entropy=calculate_entropy)",
        "workers/actor/dp_actor.py 479 compute_log_prob: outputs = self._forward_micro_batch(",
    ),
    "ref": (
        "utils/profiler/profile.py 173 wrapper: return func(self_instance, *args, **kwargs_inner)",
        "workers/fsdp_workers.py 1164 compute_ref_log_prob: outputs = self.ref_policy.compute_log_prob(data=data, calculate_entropy=False)",
        "workers/actor/dp_actor.py 479 compute_log_prob: outputs = self._forward_micro_batch(",
    ),
    "forward": (
        "workers/actor/dp_actor.py 244 _forward_micro_batch: output = self.actor_module(",
        "torch/nn/modules/module.py 1773 _wrapped_call_impl: return self._call_impl(*args, **kwargs)",
        "torch/nn/modules/module.py 1784 _call_impl: return forward_call(*args, **kwargs)",
        "torch/distributed/fsdp/fully_sharded_data_parallel.py 854 forward: output = self._fsdp_wrapped_module(*args, **kwargs)",
        "transformers/models/qwen2/modeling_qwen2.py 494 forward: logits = self.lm_head(hidden_states[:, slice_indices, :])",
        "torch/nn/modules/linear.py 125 forward: return F.linear(input, self.weight, self.bias)",
    ),
    "save": (
        "workers/fsdp_workers.py 1189 save_checkpoint: self.checkpoint_manager.save_checkpoint(",
        "utils/checkpoint/fsdp_checkpoint_manager.py 234 save_checkpoint: torch.save(model_state_dict, model_path)",
        "torch/serialization.py 966 save: with _open_zipfile_writer(f) as opened_zipfile:",
        "torch/serialization.py 798 __exit__: self.file_like.write_end_of_file()",
    ),
    "generate": (
        "experimental/agent_loop/agent_loop.py 566 _run_agent_loop: output: AgentLoopOutput = await agent_loop.run(sampling_params, **kwargs)",
        "experimental/agent_loop/single_turn_agent_loop.py 54 run: output: TokenOutput = await self.server_manager.generate(",
        "experimental/agent_loop/agent_loop.py 157 generate: output: TokenOutput = await server.generate.remote(",
    ),
    "serve": (
        "workers/rollout/vllm_rollout/vllm_async_server.py 579 generate: async for output in generator:",
        "vllm/v1/engine/async_llm.py 387 generate: out = q.get_nowait() or await q.get()",
        "vllm/v1/engine/output_processor.py 59 get: raise output",
        "vllm/v1/engine/async_llm.py 439 output_handler: outputs = await engine_core.get_output_async()",
        "vllm/v1/engine/core_client.py 846 get_output_async: raise self._format_exception(outputs) from None",
    ),
    "launch": (
        "workers/rollout/vllm_rollout/vllm_async_server.py 435 launch_server: await self.run_server(server_args)",
        "workers/rollout/vllm_rollout/vllm_async_server.py 454 run_server: engine_client = AsyncLLM.from_vllm_config("
        "vllm_config=vllm_config, usage_context=usage_context, **kwargs)",
        "vllm/v1/engine/async_llm.py 207 from_vllm_config: return cls(",
        "vllm/v1/engine/async_llm.py 134 __init__: self.engine_core = EngineCoreClient.make_async_mp_client(",
        "vllm/v1/engine/core_client.py 102 make_async_mp_client: return AsyncMPClient(*client_args)",
        "vllm/v1/engine/core_client.py 448 __init__: with launch_core_engines(vllm_config, executor_class,",
        "vllm/v1/engine/utils.py 732 launch_core_engines: wait_for_engine_startup(",
        'vllm/v1/engine/utils.py 785 wait_for_engine_startup: raise RuntimeError("Engine core initialization failed. "',
    ),
    "core": (
        "vllm/v1/engine/core.py 699 run_engine_core: engine_core = EngineCoreProc(*args, **kwargs)",
        "vllm/v1/engine/core.py 498 __init__: super().__init__(vllm_config, executor_class, log_stats,",
    ),
    "core caches": (
        "vllm/v1/engine/core.py 92 __init__: self._initialize_kv_caches(vllm_config)",
        "vllm/v1/engine/core.py 199 _initialize_kv_caches: kv_cache_configs = get_kv_cache_configs(vllm_config, kv_cache_specs,",
        "vllm/v1/core/kv_cache_utils.py 1243 get_kv_cache_configs: check_enough_kv_cache_memory(vllm_config, kv_cache_spec_one_worker,",
    ),
    "core device": (
        "vllm/v1/engine/core.py 83 __init__: self.model_executor = executor_class(vllm_config)",
        "vllm/executor/executor_base.py 54 __init__: self._init_executor()",
        'vllm/executor/uniproc_executor.py 54 _init_executor: self.collective_rpc("init_device")',
        "vllm/executor/uniproc_executor.py 83 collective_rpc: return [run_method(self.driver_worker, method, args, kwargs)]",
        "vllm/utils/__init__.py 3122 run_method: return func(*args, **kwargs)",
        "vllm/worker/worker_base.py 259 init_device: self.worker.init_device()  # type: ignore",
        "vllm/v1/worker/gpu_worker.py 187 init_device: raise ValueError(",
    ),
    "core loop": (
        "vllm/v1/engine/core.py 701 run_engine_core: engine_core.run_busy_loop()",
        "vllm/v1/engine/core.py 728 run_busy_loop: self._process_engine_step()",
        "vllm/v1/engine/core.py 754 _process_engine_step: outputs, model_executed = self.step_fn()",
        "vllm/v1/engine/core.py 284 step: model_output = self.execute_model_with_error_logging(",
        "vllm/v1/engine/core.py 270 execute_model_with_error_logging: raise err",
    ),
    "driver": (
        "trainer/main_ppo.py 45 main: run_ppo(config)",
        "trainer/main_ppo.py 99 run_ppo: ray.get(runner.run.remote(config))",
        "ray/_private/auto_init_hook.py 22 auto_init_wrapper: return fn(*args, **kwargs)",
        "ray/_private/client_mode_hook.py 104 wrapper: return func(*args, **kwargs)",
        "ray/_private/worker.py 2858 get: values, debugger_breakpoint = worker.get_objects(",
        "ray/_private/worker.py 958 get_objects: raise value.as_instanceof_cause()",
    ),
}
OVERRIDES = (
    "Error executing job with overrides: ['algorithm.adv_estimator=grpo', 'data.train_files=/data/gsm8k/train.parquet', "
    "'data.val_files=/data/gsm8k/test.parquet', 'data.train_batch_size=1024', 'data.max_prompt_length=512', "
    "'data.max_response_length=1024', 'actor_rollout_ref.model.path=/data/models/Qwen2.5-7B-Instruct', "
    "'actor_rollout_ref.actor.ppo_mini_batch_size=256', 'actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=40', "
    "'actor_rollout_ref.rollout.name=vllm', 'actor_rollout_ref.rollout.gpu_memory_utilization=0.6', 'actor_rollout_ref.rollout.n=5', "
    "'trainer.n_gpus_per_node=8', 'trainer.nnodes=1', 'trainer.save_freq=20', 'trainer.test_freq=5', 'trainer.total_epochs=15']"
)
HYDRA = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"


def frames(*blocks: str) -> str:
    """The frames of named blocks, or of rows `file line function: code`; files of verl unless they name another package."""
    told = ""
    for block in blocks:
        for row in FRAMES.get(block, (block,)):
            place, code = row.split(": ", 1)
            file, line, function = place.split(" ")
            other = file.startswith(("torch/", "vllm/", "ray/", "transformers/", "/"))
            path = file if file.startswith("/") else f"{VENV}/{'' if other else 'verl/'}{file}"
            told += f'  File "{path}", line {line}, in {function}\n    {code}\n'
    return told


def task(stage: Stage, name: str, kind: str, rank: int = 0) -> str:
    """What Ray writes over the exception of a worker's method."""
    node = f"10.0.0.{5 + rank // stage.gpus}"
    actor = f"{stage.rng.getrandbits(96):024x}01000000"
    where = f"(pid={stage.workers[rank]}, ip={node}, actor_id={actor}, repr=<verl.single_controller.ray.base.WorkerDict object at 0x7f3a{stage.rng.getrandbits(32):08x}>)"
    return f"ray.exceptions.RayTaskError({kind}): \x1b[36mray::WorkerDict.{name}()\x1b[39m {where}\n"


def runner(stage: Stage, kind: str) -> str:
    where = f"(pid={stage.runner}, ip=10.0.0.5, actor_id={stage.rng.getrandbits(96):024x}01000000, repr=<main_ppo.TaskRunner object at 0x7f11d5c3bd50>)"
    return f"ray.exceptions.RayTaskError({kind}): \x1b[36mray::TaskRunner.run()\x1b[39m {where}\n"


def back(stage: Stage, kind: str, error: str, method: str, trainer: str, *below: str, rank: int = 0) -> str:
    """The whole traceback at the driver of an `error` that a worker raised in `method`, which the `trainer` block called."""
    return (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, kind)}{frames(trainer)}"
        f"{task(stage, method, kind, rank)}{frames('worker', *below)}{error}\n{HYDRA}"
    )


def others(stage: Stage, kind: str, error: str, method: str, *below: str, ranks: tuple[int, ...]) -> str:
    """The same of other ranks, of whom nobody asked."""
    told = ""
    for rank in ranks:
        head = task(stage, method, kind, rank).split(": ", 1)[1]
        text = (
            f"Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): {head}{frames('worker', *below)}{error}"
        )
        told += stage.run(text)
    return told


def from_server(stage: Stage, kind: str, error: str, trainer: str, call: str, *below: str) -> str:
    """The whole traceback of an error of a rollout server, back at the driver."""
    pid = stage.runner + 4100
    where = f"(pid={pid}, ip=10.0.0.5, actor_id={stage.rng.getrandbits(96):024x}01000000, repr=<verl.workers.rollout.vllm_rollout.vllm_async_server.vLLMHttpServer object at 0x7ee15c0bfd90>)"
    return (
        f"{OVERRIDES}\nTraceback (most recent call last):\n{frames('driver')}{runner(stage, kind)}{frames(trainer)}"
        f"ray.exceptions.RayTaskError({kind}): \x1b[36mray::vLLMHttpServer.{call}()\x1b[39m {where}\n{frames(*below)}{error}\n{HYDRA}"
    )


def core(stage: Stage, error: str, *below: str, headline: str = "EngineCore failed to start.", line: int = 708) -> str:
    """vLLM's engine process logs its own traceback, each line with the logger's prefix."""
    pid = stage.runner + 4100
    text = f"{headline}\nTraceback (most recent call last):\n{frames(*below)}{error}"
    head = f"\x1b[1;36m(EngineCore_DP0 pid={pid + 212})\x1b[0;0m ERROR 03-14 09:24:09 [core.py:{line}] "
    return said(f"vLLMHttpServer pid={pid}", "\n".join(head + row for row in text.split("\n")), color=stage.color)
