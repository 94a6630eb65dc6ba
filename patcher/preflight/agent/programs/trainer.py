"""The trainer's imports, and the attention functions that every step comes to."""

from __future__ import annotations

import importlib
import importlib.util
import warnings

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check

warnings.simplefilter("ignore")
MEND = phrase("uky-patch status says whether a record repairs it, and uky-patch check what else has changed")
FLASH = phrase("install flash-attn, or apply the record that does without it: uky-patch apply flash-attn-padding")

with Check("verl trainer", fix=MEND, needed=False) as here:
    importlib.import_module("verl.trainer.main_ppo")
    here.ok(phrase("verl.trainer.main_ppo imports"))

with Check("attention", needed=False, fix=FLASH) as here:
    if not ARGS["gpus"]:
        here.skip(phrase("no GPU to attend on"))
    elif importlib.util.find_spec("verl.utils.attention_utils") is None:
        importlib.import_module("flash_attn.bert_padding")
        here.ok(phrase("flash-attn is there"))
    else:
        module = importlib.import_module("verl.utils.attention_utils")
        here.ok(phrase("padding comes from {module}", module=module._get_attention_functions()[-1].__module__))
