"""verl's rollout for vLLM: what imports on the release that it was written for, and fails on others."""

from __future__ import annotations

import importlib

from patcher.messages import phrase
from patcher.preflight.agent.check_report import Check, short

MEND = phrase("uky-patch status says whether a record repairs it, and uky-patch check what else has changed")
with Check("verl rollout", fix=MEND) as here:
    module = importlib.import_module("verl.workers.rollout.vllm_rollout.vllm_async_server")
    here.ok(phrase("{path} imports", path=short(str(module.__file__))))
