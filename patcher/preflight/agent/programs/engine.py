"""vLLM's engine with the model: small, eager, a few tokens."""

from __future__ import annotations

import gc
import time

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check, last_words

TOKENS = 8

if __name__ == "__main__":
    gc.enable()
    with Check("engine") as here:
        from vllm import LLM, SamplingParams

        began = time.monotonic()
        options = {"gpu_memory_utilization": ARGS["memory"], "max_model_len": ARGS["length"], "enforce_eager": True}
        try:
            engine = LLM(model=ARGS["snapshot"], trust_remote_code=bool(ARGS.get("trust")), **options)
            ready = time.monotonic() - began
            said = engine.generate(
                ["1 + 2 ="], SamplingParams(max_tokens=TOKENS, temperature=0.0, ignore_eos=True), use_tqdm=False
            )
        except Exception as error:
            here.fail(last_words(error), look_into_output=True)
        count = len(said[0].outputs[0].token_ids)
        here.ok(phrase("ready in {ready:.1f} s, {count} tokens generated", ready=ready, count=count))
