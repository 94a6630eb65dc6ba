"""verl in the interpreter that trains: whether it is this tree's, and whether its trainer and rollout import."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import warnings

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, PYTHON, Check, short

MEND = phrase("uky-patch status says whether a record repairs it, and uky-patch check what else has changed")
FLASH = phrase("install flash-attn, or apply the record that does without it: uky-patch apply flash-attn-padding")


def check_tree() -> None:
    """Whether verl imports, and is this tree's."""
    warnings.simplefilter("ignore")
    with Check("verl", fix=MEND) as here:
        verl = importlib.import_module("verl")
        place = os.path.dirname(os.path.realpath(str(verl.__file__)))
        wanted = os.path.realpath(os.path.join(ARGS["root"], "verl"))
        version = getattr(verl, "__version__", "?")
        if place == wanted:
            here.ok(phrase("{version}, from this tree", version=version))
        else:
            here.fail(
                phrase("{version} comes from {place}, and not from this tree", version=version, place=place),
                phrase(
                    "put the tree first: export PYTHONPATH={root}, or {python} -m pip install --no-deps -e {root}",
                    root=shlex.quote(ARGS["root"]),
                    python=PYTHON,
                ),
            )


def check_trainer() -> None:
    """The trainer's imports, and the attention functions that every step comes to."""
    warnings.simplefilter("ignore")
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


def check_rollout() -> None:
    """verl's rollout for vLLM: what imports on the release that it was written for, and fails on others."""
    with Check("verl rollout", fix=MEND) as here:
        module = importlib.import_module("verl.workers.rollout.vllm_rollout.vllm_async_server")
        here.ok(phrase("{path} imports", path=short(str(module.__file__))))
