"""Words by which a log shows whose it is."""

from __future__ import annotations

from collections.abc import Mapping

ORIGINS: Mapping[str, tuple[str, ...]] = {
    "verl": (
        *("verl/", "verl.", "/verl", "verl_", "actor_rollout_ref", "(taskrunner", "(workerdict", "fsdp_workers"),
        *("ray_trainer", "main_ppo", "single_controller", "algorithm.adv_estimator"),
    ),
    "other": (
        *("/trl/", "from trl", "grpotrainer", "sfttrainer", "dpotrainer", "transformers/trainer.py", "|trainer.py:"),
        *("nemo_rl", "nemo-rl", "llamafactory", "llama-factory", "llama_factory", "axolotl", "unsloth", "ms-swift"),
        *("swift/trainers", "swift/llm", "openrlhf", "torchtitan", "torchtune", "levanter", "pretrain_gpt"),
        *("megatron/training", "deepspeed/runtime", "deepspeed/launcher", "pytorch_lightning", "lightning/pytorch"),
        *("/slime/", "skyrl", "/areal/", "open_instruct", "open-instruct", "roll/pipeline", "llama_recipes"),
        *("accelerate/commands/launch", "***** running training *****", "h2o llm studio", "instructlab", "nanotron"),
        *("mmengine", "xtuner", "colossalai", "open_r1", "open-r1", "vlm_r1", "vlm-r1", "gpt-neox", "litgpt"),
        *("consumed samples:", "llm-foundry", "llmfoundry", "fairseq"),
    ),
}
"""Words by which a log shows whose trainer wrote it."""
ENGINES: Mapping[str, tuple[str, ...]] = {"vllm": ("vllm",), "sglang": ("sglang", "launch_server.py")}
"""Words by which a log shows which inference engine runs."""
