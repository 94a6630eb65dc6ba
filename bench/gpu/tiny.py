"""Makes random models and their data, in the interpreter that trains: `tiny.py FOLDER`, and `tiny.py FOLDER --large`.

- `text/`: a Qwen2 of two layers and eight questions.
- `vision/`: a Qwen2.5-VL of two layers, and eight questions with an image each.
- `large/`, if asked for: a Qwen2.5-VL with the layers and widths of the 3B one, and the same questions.

Each folder holds `model/` and `train.parquet`. Nothing is fetched. Needs torch, transformers, pandas and Pillow.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ROWS = 8
WORDS, LARGE_WORDS = 65_536, 151_936
"""Sizes of the vocabularies."""
PIXELS = 56
"""Of an image, each way: four tokens."""


def words(folder: Path, size: int) -> Any:
    """A byte-level tokenizer of `size` tokens, most of which no text has.

    verl lets the engine sample only what the tokenizer knows: of a few hundred tokens a random model would say special
    ones all the time, and an image token in an answer ends the training.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2TokenizerFast

    letters = Tokenizer(models.BPE())
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    text = ["how much is one and two? as a number: #### 3"]
    letters.train_from_iterator(
        text, trainers.BpeTrainer(vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=alphabet)
    )
    result = json.loads(letters.to_str())
    vocabulary = result["model"]["vocab"]
    vocabulary |= {f"word{number}": number for number in range(len(vocabulary), size)}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(result), encoding="utf-8")
    made = Qwen2TokenizerFast(tokenizer_file=str(file), eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL[1:])})
    made.chat_template = CHAT
    made.save_pretrained(folder)
    return made


def text_model(folder: Path) -> None:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    known = words(folder, WORDS)
    torch.manual_seed(0)
    shape = Qwen2Config(
        vocab_size=WORDS,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=16384,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=known.eos_token_id,
        pad_token_id=known.pad_token_id,
    )
    Qwen2ForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)


SMALL = {
    "text": {
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "words": WORDS,
        "tied": False,
        "heads": (4, 2),
        "rope": [8, 12, 12],
    },
    "vision": {"hidden_size": 128, "intermediate_size": 256, "depth": 2, "num_heads": 4, "fullatt_block_indexes": [1]},
}
LARGE = {
    "text": {
        "hidden_size": 2048,
        "intermediate_size": 11008,
        "num_hidden_layers": 36,
        "words": LARGE_WORDS,
        "tied": True,
        "heads": (16, 2),
        "rope": [16, 24, 24],
    },
    "vision": {
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "depth": 32,
        "num_heads": 16,
        "fullatt_block_indexes": [7, 15, 23, 31],
    },
}


def vision_model(folder: Path, shape: dict[str, Any]) -> None:
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    text, vision = shape["text"], shape["vision"]
    known = words(folder, text["words"])
    processor(folder, known)
    heads, groups = text["heads"]
    ids = {
        name: known.convert_tokens_to_ids(f"<|{name}|>")
        for name in ("vision_start", "vision_end", "image_pad", "video_pad")
    }
    torch.manual_seed(0)
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": text["words"],
            "tie_word_embeddings": text["tied"],
            "hidden_size": text["hidden_size"],
            "intermediate_size": text["intermediate_size"],
            "num_hidden_layers": text["num_hidden_layers"],
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "max_position_embeddings": 16384,
            "rope_scaling": {"type": "mrope", "mrope_section": text["rope"]},
            "bos_token_id": None,
            "eos_token_id": known.eos_token_id,
            "pad_token_id": known.pad_token_id,
        },
        vision_config={
            **vision,
            "out_hidden_size": text["hidden_size"],
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 112,
        },
        image_token_id=ids["image_pad"],
        video_token_id=ids["video_pad"],
        vision_start_token_id=ids["vision_start"],
        vision_end_token_id=ids["vision_end"],
        tie_word_embeddings=text["tied"],
        eos_token_id=known.eos_token_id,
        pad_token_id=known.pad_token_id,
    )
    place = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(place):
        model = Qwen2_5_VLForConditionalGeneration(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    print(folder, sum(weight.numel() for weight in model.parameters()), "parameters")


def processor(folder: Path, known: Any) -> None:
    from transformers import Qwen2_5_VLProcessor, Qwen2VLImageProcessorFast, Qwen2VLVideoProcessor

    limits = {"min_pixels": PIXELS * PIXELS, "max_pixels": 4 * PIXELS * PIXELS}
    Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessorFast(**limits),
        tokenizer=known,
        video_processor=Qwen2VLVideoProcessor(**limits),
        chat_template=CHAT,
    ).save_pretrained(folder)


def rows(file: Path, *, images: bool) -> None:
    """Questions, and their images as bytes and path, not declared as images."""
    import pandas as pd

    table = []
    for number in range(ROWS):
        question = f"how much is {number} and two? as a number: ####"
        row: dict[str, Any] = {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": f"<image>{question}" if images else question}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(number + 2)},
            "extra_info": {"split": "train", "index": number},
        }
        if images:
            row["images"] = [{"bytes": _picture(number), "path": None}]
        table.append(row)
    pd.DataFrame(table).to_parquet(file)


def _picture(number: int) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (PIXELS, PIXELS), (30 * number, 255 - 30 * number, 128)).save(stream, "PNG")
    return stream.getvalue()


def main() -> None:
    folder = Path(sys.argv[1])
    if "--large" in sys.argv[2:]:
        vision_model(folder / "large" / "model", LARGE)
        rows(folder / "large" / "train.parquet", images=True)
        return
    text_model(folder / "text" / "model")
    rows(folder / "text" / "train.parquet", images=False)
    vision_model(folder / "vision" / "model", SMALL)
    rows(folder / "vision" / "train.parquet", images=True)


if __name__ == "__main__":
    main()
