"""`python -m inside.serving MODEL`: has verl's own rollout server answer with a model, on a CPU; prints the answer.

With a tree of verl first in PYTHONPATH. The configuration is verl's own; what a CPU asks for is overridden. The server
runs as the Ray actor that verl makes of it, in standalone mode.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import urllib.request
from pathlib import Path

OVERRIDES = (
    "actor_rollout_ref.rollout.name=vllm",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
    "actor_rollout_ref.rollout.free_cache_engine=False",
    "+actor_rollout_ref.rollout.engine_kwargs.vllm.enable_sleep_mode=False",
    "actor_rollout_ref.rollout.enforce_eager=True",
    "actor_rollout_ref.rollout.load_format=auto",
    "actor_rollout_ref.rollout.dtype=float32",  # bfloat16 takes AMX, which some virtual machines claim and do not have.
    "actor_rollout_ref.rollout.prompt_length=64",
    "actor_rollout_ref.rollout.response_length=16",
    "actor_rollout_ref.rollout.max_model_len=512",
    "actor_rollout_ref.rollout.max_num_seqs=8",
    "actor_rollout_ref.rollout.max_num_batched_tokens=512",
)


def main() -> None:
    import ray
    import verl
    from hydra import compose, initialize_config_dir
    from verl.workers.rollout.replica import RolloutMode
    from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer

    model = sys.argv[1]
    folder = Path(verl.__file__).parent / "trainer" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("ppo_trainer", [f"actor_rollout_ref.model.path={model}", *OVERRIDES]).actor_rollout_ref
    given = {
        "config": config.rollout,
        "model_config": config.model,
        "rollout_mode": RolloutMode.STANDALONE,
        "workers": [],
        "replica_rank": 0,
        "node_rank": 0,
        "gpus_per_node": 1,
        "nnodes": 1,
        "cuda_visible_devices": "",
    }
    with tempfile.TemporaryDirectory(prefix="uky-ray-", dir="/tmp") as place:
        ray.init(
            num_cpus=1, include_dashboard=False, object_store_memory=80_000_000, _temp_dir=place, log_to_driver=True
        )
        try:
            taken = inspect.signature(vLLMHttpServer.__init__).parameters
            actor = (
                ray.remote(vLLMHttpServer)
                .options(max_concurrency=8)
                .remote(**{k: v for k, v in given.items() if k in taken})
            )
            ray.get(actor.launch_server.remote())
            address, port = ray.get(actor.get_server_address.remote())
            with urllib.request.urlopen(f"http://{address}:{port}/v1/models", timeout=60) as reply:
                served = json.loads(reply.read())["data"][0]["id"]
            output = ray.get(actor.generate.remote([5, 6, 7], {"temperature": 0.0, "max_tokens": 8}, "one"))
            tokens = output if isinstance(output, list) else output.token_ids
            print("ANSWER", json.dumps({"served": served, "tokens": list(tokens)}), flush=True)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
