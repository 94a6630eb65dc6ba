"""verl in the interpreter that trains: whether it is this tree's, and which of its modules import."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shlex
import signal
import traceback
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


def check_modules() -> None:
    """Whether each of the named modules imports, a check for each, as if no import had failed before it."""
    warnings.simplefilter("ignore")
    for name in ARGS["warm"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    left = list(ARGS["modules"])
    while left:
        # What a module has registered before it fails would be there twice when it is imported again. So a failure ends
        # its process, and the modules after it begin anew from here.
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            for name in left:
                imported = _imports(name)
                os.write(writer, b".")
                if not imported:
                    break
            os._exit(0)
        os.close(writer)
        done = 0
        while answer := os.read(reader, 4096):
            done += len(answer)
        os.close(reader)
        _, status = os.waitpid(child, 0)
        if status or not done:  # `os._exit(0)` in a module ends it with status 0, and before it has told anything.
            with Check(left[done], needed=False) as here:
                here.fail(phrase("the interpreter ended: {how}", how=_ended(status)))
            done += 1
        del left[:done]


def _imports(name: str) -> bool:
    """Import a module and tell what came of it. False where that may spoil imports after it."""
    with Check(name, needed=False) as here:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not _is_lacking(error):
                raise
            here.skip(phrase("{name} is not installed", name=str(error.name).partition(".")[0]))
            return True
        except ImportError as error:
            if not _refuses(error):
                raise
            here.skip(phrase("it refuses by itself: {message}", message=str(error)))
            return False
        here.ok(phrase("it imports"))
        return True
    return False


def _is_lacking(error: ModuleNotFoundError) -> bool:
    """Whether a whole package is missing: `import cupy`. `import vllm.lora.models` lacks a part of one."""
    package = str(error.name).partition(".")[0]
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(package) is None
    return False


def _refuses(error: ImportError) -> bool:
    """Whether the tree itself raises the error, and for no other one: `raise ImportError("an NPU is needed")`."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    cause = error.__cause__ or error.__context__
    own = last.filename.startswith(str(ARGS["root"]) + os.sep)
    return own and cause is None and (last.line or "").startswith("raise ")


def _ended(status: int) -> str:
    if os.WIFEXITED(status):
        return f"exit code {os.WEXITSTATUS(status)}"
    return signal.Signals(os.WTERMSIG(status)).name
