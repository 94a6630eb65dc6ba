"""Edits of verl 0.8.0 that let a CPU stand in for a GPU, so that a real training comes as far as its steps."""

from __future__ import annotations

from pathlib import Path

ACCELERATOR = """

def _stand_in_for_an_accelerator():
    nothing = {
        "memory_allocated": 0, "memory_reserved": 0, "max_memory_allocated": 0, "max_memory_reserved": 0,
        "empty_cache": None, "reset_peak_memory_stats": None, "ipc_collect": None, "manual_seed": None,
        "manual_seed_all": None, "set_device": None, "synchronize": None, "set_rng_state": None,
    }
    for name, value in nothing.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, lambda *a, value=value, **k: value)
    torch.cpu.mem_get_info = lambda *a: (16 << 30, 24 << 30)
    torch.cpu.get_rng_state = torch.get_rng_state
    torch.cpu.device_count = lambda: 1
    torch.cpu.get_device_name = lambda *a: "cpu"


_stand_in_for_an_accelerator()
"""
WEIGHTS = """

def _keep_weights_as_they_are(layer, remove_weight):
    import torch

    layer.cpu_linear = torch.nn.functional.linear


import vllm.model_executor.layers.utils as _layers

_layers.dispatch_cpu_unquantized_gemm = _keep_weights_as_they_are
"""
"""vLLM packs its weights on a CPU, after which none can be loaded again."""

EDITS = {
    "verl/utils/device.py": ('return "GPU" if is_cuda_available else "NPU"', 'return "GPU"'),
    "verl/utils/distributed.py": ('f"cpu:gloo,{get_device_name()}:{get_nccl_backend()}"', '"gloo"'),
    "verl/workers/engine/base.py": (
        "device = get_device_name()\n        assert device in",
        'device = "cuda"\n        assert device in',
    ),
    "verl/workers/rollout/vllm_rollout/utils.py": (
        "return current_platform.get_device_uuid(device_id)",
        'return "CPU-0"',
    ),
}
ADDED = {"verl/utils/device.py": ACCELERATOR, "verl/workers/rollout/vllm_rollout/utils.py": WEIGHTS}


def stand_in(tree: Path) -> None:
    """Edit a patched tree of verl 0.8.0."""
    for name, (old, new) in EDITS.items():
        path = tree / name
        text = path.read_text()
        assert text.count(old) == 1, name
        path.write_text(text.replace(old, new) + ADDED.get(name, ""))
