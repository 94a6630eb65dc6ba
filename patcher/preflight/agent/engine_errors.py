"""Why vLLM's engine did not start: the first error of its processes, and what helps."""

from __future__ import annotations

import re

from patcher.messages import Message, phrase

_PREFIX = r"(?:\([^)]*pid=\d+\)\s*)?(?:ERROR\s[\d: -]*(?:\[[^\]]*\])?\s*)?"
"""What each process of vLLM writes before a line."""
_ERROR = re.compile(rf"^{_PREFIX}(?P<said>[A-Za-z_][\w.]*(?:Error|Exception): .+)$")
_FOLLOWS = ("Engine core initialization failed", "WorkerProc initialization failed", "Worker failed with error")
"""What the processes above say when one below has failed."""
_LONGEST = 400


def first_error(output: str) -> str:
    """The first error that is no consequence of another, on one line; empty where there is none."""
    for line in output.splitlines():
        found = _ERROR.match(line.strip())
        if found and not any(text in line for text in _FOLLOWS):
            said = " ".join(found["said"].split())
            return said if len(said) <= _LONGEST else said[:_LONGEST] + " …"
    return ""


def fix_of(said: str) -> Message:
    for pattern, fix in (
        (r"(Free|Available) memory on|out of memory|No available memory", _MEMORY),
        (r"trust_remote_code", phrase("allow the model's own code: actor_rollout_ref.model.trust_remote_code=True")),
        (r"[Mm]odel architectures|not supported for now|does not recognize this architecture", _UNKNOWN),
        (r"-lcuda|libcuda|gcc|CalledProcessError", phrase("see the check triton: what it compiles at the start fails")),
        (r"size of tensor|size mismatch|shape|safetensors", phrase("fetch the model again: its files do not agree")),
    ):
        if re.search(pattern, said):
            return fix
    return phrase("for more of what it says: VLLM_LOGGING_LEVEL=DEBUG in the host's env")


_MEMORY = phrase("somebody else holds memory of the GPU: nvidia-smi shows who; end that, or wait")
_UNKNOWN = phrase("this vLLM does not know the model: take a newer vLLM, or another model")
