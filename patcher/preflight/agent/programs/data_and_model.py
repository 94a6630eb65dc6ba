"""Data and model: where they are, whether the data is readable and the weights are whole, and vLLM's engine on them."""

from __future__ import annotations

import gc
import importlib
import json
import os
import shlex
import sys
import time
import warnings
from glob import glob
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check, last_words
from patcher.remote.agent.snapshots import newest_snapshot

TRAIN = ("train.parquet", "train_tiny.parquet", "train_TINY.parquet")
FILES = (".parquet", ".json", ".jsonl")
MODELS = ("QWEN_VL_3B_BASE", "MODEL_BASE")
"""The usual names of a data file, and of the constants that say where models are, first choice first."""


def path_constants() -> dict[str, str]:
    """The module's paths by the name of their constant; a `NAME_STR` counts as `NAME`."""
    module = importlib.import_module("git_ignore")
    found: dict[str, str] = {}
    for name, value in vars(module).items():
        if name.isupper() and isinstance(value, (str, os.PathLike)):
            found[name[:-4] if name.endswith("_STR") else name] = str(value)
    return found


def data_file(given: str | None, found: dict[str, str]) -> str | None:
    """The file to train on: the one given, or the usual name in the folder given or in DATA_OUTPUT_DIR."""
    place = given or found.get("DATA_OUTPUT_DIR")
    if place is None or place.endswith(FILES) or os.path.isfile(place):
        return place
    return next(
        (path for name in TRAIN if os.path.isfile(path := os.path.join(place, name))), os.path.join(place, TRAIN[0])
    )


def validate_paths(check: Check, found: dict[str, str]) -> None:
    """Call the fork's own `validate_paths()`, which may raise, or return what is wrong."""
    count = len(found)
    function: Any = getattr(sys.modules["git_ignore"], "validate_paths", None)
    if function is None:
        check.ok(phrase("{count} {count:path|paths}; it has no validate_paths()", count=count))
        return
    result = function()
    if result is None or result is True or (result is not False and not result):
        check.ok(phrase("{count} {count:path|paths}, validate_paths() holds", count=count))
        return
    message = "" if result is False else str(result)
    check.fail(
        phrase("validate_paths() fails: {message}", message=message) if message else phrase("validate_paths() fails"),
        phrase("mend the paths in git_ignore.py, or in the host's table in uky-patch.toml"),
    )


def check_places() -> None:
    """Where the tree's own git_ignore.py says that data and models are, and whether its paths hold."""
    sys.path.insert(0, ARGS["root"])
    paths: dict[str, str] = {}
    command = "uky-patch render git_ignore.py --write" + (f" --host {ARGS['host']}" if ARGS.get("host") else "")
    fix = phrase(
        "mend git_ignore.py, or make what it lacks; to render it anew, with the paths of uky-patch.toml: {command}",
        command=command,
    )
    with Check("git_ignore.py", needed=False, fix=fix) as here:
        if os.path.exists(os.path.join(ARGS["root"], "git_ignore.py")):
            paths = path_constants()
            validate_paths(here, paths)
        else:
            here.skip(phrase("this tree has none"))
    paths = dict(ARGS["usual"], **paths)

    with Check("data") as here:
        train = data_file(ARGS.get("data"), paths)
        model = ARGS.get("model") or next((paths[name] for name in MODELS if os.path.isdir(paths.get(name, ""))), None)
        values: dict[str, Any] = {"data": train, "model": model, "paths": paths}
        if train is None:
            here.warn(
                phrase("no data named: neither on the command line, nor for the host, nor in git_ignore.py"),
                phrase("name it with --data"),
                **values,
            )
        elif not os.path.isfile(train):
            here.fail(
                phrase("{path}: no such file", path=train),
                phrase("copy the data there, or name it with --data"),
                **values,
            )
        elif not os.access(train, os.R_OK):
            here.fail(
                phrase("{path} cannot be read", path=train), phrase("give this user the right to read it"), **values
            )
        else:
            size = os.path.getsize(train)
            here.ok(phrase("{path}, {size:,} {size:byte|bytes}", path=train, size=size), **values)


NEEDED = ("prompt", "data_source", "reward_model")
SHOWN = 160
"""Characters of the first row that are shown: it fits a few lines of a terminal."""


def read_rows(path: str) -> tuple[int, list[str], dict[str, Any]]:
    """The number of rows, the columns, and the first row."""
    if path.endswith((".json", ".jsonl")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        rows = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
        return len(rows), list(rows[0]) if rows else [], rows[0] if rows else {}
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        count = file.metadata.num_rows
        first = next(file.iter_batches(batch_size=1)).to_pylist()[0] if count else {}
        return count, list(file.schema_arrow.names), first


def shortened(value: Any) -> Any:
    """The value with long texts and bytes cut, so that a row fits a line."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [shortened(item) for item in value[:2]] + (["…"] if len(value) > 2 else [])
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} B"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else text[:40] + "…"


def unreadable_by_verl(row: dict[str, Any]) -> Any:
    """What verl would stumble over in this row; None where nothing."""
    prompt = row["prompt"]
    if not isinstance(prompt, list) or not all(
        isinstance(turn, dict) and {"role", "content"} <= set(turn) for turn in prompt
    ):
        return phrase("prompt is no list of turns with role and content, but {kind}", kind=type(prompt).__name__)
    reward = row["reward_model"]
    if not isinstance(reward, dict) or "ground_truth" not in reward:
        return phrase("reward_model holds no ground_truth")
    images = row.get("images")
    if images:
        marks = sum(str(turn["content"]).count("<image>") for turn in prompt)
        if marks != len(images):
            return phrase("{marks} times <image> in the prompt, and {count} images", marks=marks, count=len(images))
    return None


def check_rows() -> None:
    """The data file: rows, columns, the first row, and whether verl can read its prompts and images."""
    make = phrase("make the file anew")
    with Check("rows", fix=make) as here:
        count, columns, first = read_rows(ARGS["data"])
        if not count:
            here.fail(phrase("{path} holds no row", path=ARGS["data"]), make)
        shown = json.dumps(shortened(first), ensure_ascii=False)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
        here.ok(phrase("{count:,} {count:row|rows}; the first: {row}", count=count, row=shown))

    with Check("columns", fix=make) as here:
        missing = [name for name in NEEDED if name not in columns]
        if missing:
            here.fail(
                phrase(
                    "verl needs {missing}; there are {columns}", missing=", ".join(missing), columns=", ".join(columns)
                ),
                phrase("make these columns, or name others: data.prompt_key, data.reward_fn_key"),
            )
        odd = unreadable_by_verl(first)
        if odd is not None:
            here.fail(odd, make)
        here.ok(phrase("{columns}", columns=", ".join(columns)))


def damage(path: str) -> str:
    """What is wrong with a safetensors file, by its header and its size; empty where nothing is."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            return "no safetensors header"
        tensors = json.loads(file.read(length))
    end = max((item["data_offsets"][1] for name, item in tensors.items() if name != "__metadata__"), default=0)
    return f"{size:,} of {8 + length + end:,} bytes" if size != 8 + length + end else ""


def weight_files(folder: str) -> list[str]:
    """The names of the weight files, by the index where there is one."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            return sorted(set(json.load(file)["weight_map"].values()))
    return [os.path.basename(path) for path in glob(os.path.join(folder, "*.safetensors"))]


def check_weights() -> None:
    """The model's folder: newest snapshot, configuration, and whether the weights are whole, by their headers."""
    fetch = phrase(
        "fetch the model again, MODEL being its name on the hub: hf download MODEL --local-dir {folder}",
        folder=shlex.quote(ARGS["model"]),
    )
    with Check("config", fix=fetch) as here:
        try:
            folder = newest_snapshot(ARGS["model"])
        except FileNotFoundError:
            here.fail(
                phrase("{folder} holds no model: no config.json in it, nor in a snapshot", folder=ARGS["model"]), fetch
            )
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        kind = ", ".join(config.get("architectures") or [str(config.get("model_type"))])
        here.ok(phrase("{kind} at {folder}", kind=kind, folder=folder), snapshot=folder)

    with Check("weights", fix=fetch) as here:
        names = weight_files(folder)
        missing = [name for name in names if not os.path.exists(os.path.join(folder, name))]
        if not names:
            others = glob(os.path.join(folder, "*.bin"))
            if not others:
                here.fail(phrase("{folder} holds no weights", folder=folder), fetch)
            here.warn(
                phrase("{count} {count:file|files} of weights, none in safetensors", count=len(others)),
                phrase("convert them: load_format=safetensors needs them"),
            )
        elif missing:
            shown = ", ".join(missing[:3])
            here.fail(
                phrase(
                    "{missing} of {count} {count:file|files} {missing:is|are} missing: {shown}",
                    missing=len(missing),
                    count=len(names),
                    shown=shown,
                ),
                fetch,
            )
        else:
            broken = [f"{name} ({odd})" for name in names if (odd := damage(os.path.join(folder, name)))]
            if broken:
                here.fail(phrase("not whole: {files}", files=", ".join(broken[:3])), fetch)
            size = sum(os.path.getsize(os.path.join(folder, name)) for name in names)
            here.ok(
                phrase(
                    "{count} {count:file|files}, {size:.2f} GB, whole by their headers",
                    count=len(names),
                    size=size / 1e9,
                )
            )


PROCESSORS = ("preprocessor_config.json", "processor_config.json")


def check_tokenizer() -> None:
    """The model's tokenizer and processor, as verl loads them, from local files alone."""
    warnings.simplefilter("ignore")
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": bool(ARGS.get("trust"))}
    fix = phrase("fetch its small files again; code of its own needs actor_rollout_ref.model.trust_remote_code=True")
    folder = ARGS["snapshot"]
    with Check("tokenizer", fix=fix) as here:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        if not getattr(tokenizer, "chat_template", None):
            here.fail(
                phrase(
                    "{kind} without a chat template: verl cannot make prompts of turns", kind=type(tokenizer).__name__
                ),
                phrase("use the model's instruct release, or put a chat_template.jinja into its folder"),
            )
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": "1 + 2"}], tokenize=False, add_generation_prompt=True
        )
        count = len(tokenizer(text)["input_ids"])
        here.ok(
            phrase(
                "{kind}, {size:,} {size:token|tokens}; a turn is {count} {count:token|tokens}",
                kind=type(tokenizer).__name__,
                size=len(tokenizer),
                count=count,
            )
        )

    with Check("processor", fix=fix) as here:
        if not any(os.path.exists(os.path.join(folder, name)) for name in PROCESSORS):
            here.skip(phrase("a model for text alone"))
        else:
            from transformers import AutoProcessor

            here.ok(phrase("{kind}", kind=type(AutoProcessor.from_pretrained(folder, **options)).__name__))


TOKENS = 8
"""Tokens that the engine generates: it has compiled, loaded and scheduled by the first one."""


def check_engine() -> None:
    """vLLM's engine with the model: small, eager, a few tokens."""
    gc.enable()
    with Check("engine") as here:
        from vllm import LLM, SamplingParams

        began = time.monotonic()
        options = {"gpu_memory_utilization": ARGS["memory"], "max_model_len": ARGS["length"], "enforce_eager": True}
        try:
            engine = LLM(model=ARGS["snapshot"], trust_remote_code=bool(ARGS.get("trust")), **options)
            ready = time.monotonic() - began
            message = engine.generate(
                ["1 + 2 ="], SamplingParams(max_tokens=TOKENS, temperature=0.0, ignore_eos=True), use_tqdm=False
            )
        except Exception as error:
            here.fail(last_words(error), look_into_output=True)
        count = len(message[0].outputs[0].token_ids)
        here.ok(phrase("ready in {ready:.1f} s, {count} {count:token|tokens} generated", ready=ready, count=count))
