"""The model's tokenizer and processor, as verl loads them, from local files alone."""

from __future__ import annotations

import os
import warnings
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check

warnings.simplefilter("ignore")
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
OPTIONS: dict[str, Any] = {"local_files_only": True, "trust_remote_code": bool(ARGS.get("trust"))}
FIX = phrase("fetch its small files again; code of its own needs actor_rollout_ref.model.trust_remote_code=True")
folder = ARGS["snapshot"]

with Check("tokenizer", fix=FIX) as here:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, **OPTIONS)
    if not getattr(tokenizer, "chat_template", None):
        here.fail(
            phrase("{kind} without a chat template: verl cannot make prompts of turns", kind=type(tokenizer).__name__),
            phrase("use the model's instruct release, or put a chat_template.jinja into its folder"),
        )
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "1 + 2"}], tokenize=False, add_generation_prompt=True
    )
    count = len(tokenizer(text)["input_ids"])
    here.ok(
        phrase(
            "{kind}, {size:,} tokens; a turn is {count} tokens",
            kind=type(tokenizer).__name__,
            size=len(tokenizer),
            count=count,
        )
    )

with Check("processor", fix=FIX) as here:
    if not any(os.path.exists(os.path.join(folder, name)) for name in PROCESSORS):
        here.skip(phrase("a model for text alone"))
    else:
        from transformers import AutoProcessor

        here.ok(phrase("{kind}", kind=type(AutoProcessor.from_pretrained(folder, **OPTIONS)).__name__))
