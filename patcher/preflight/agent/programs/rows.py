"""The data file: how many rows, which columns, the first row, and whether verl can read its prompts and images."""

from __future__ import annotations

import json
from typing import Any

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, Check

NEEDED = ("prompt", "data_source", "reward_model")
SHOWN = 160


def read(path: str) -> tuple[int, list[str], dict[str, Any]]:
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


def trouble(row: dict[str, Any]) -> Any:
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


MAKE = phrase("make the file anew")
with Check("rows", fix=MAKE) as here:
    count, columns, first = read(ARGS["data"])
    if not count:
        here.fail(phrase("{path} holds no row", path=ARGS["data"]), MAKE)
    shown = json.dumps(shortened(first), ensure_ascii=False)
    shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"
    here.ok(phrase("{count:,} {count:row|rows}; the first: {row}", count=count, row=shown))

with Check("columns", fix=MAKE) as here:
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        here.fail(
            phrase("verl needs {missing}; there are {columns}", missing=", ".join(missing), columns=", ".join(columns)),
            phrase("make these columns, or name others: data.prompt_key, data.reward_fn_key"),
        )
    odd = trouble(first)
    if odd is not None:
        here.fail(odd, MAKE)
    here.ok(phrase("{columns}", columns=", ".join(columns)))
