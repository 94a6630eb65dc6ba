"""Makes, in the runtime environment, a random model of a few hundred kilobytes and a data set of two rows.

`python tiny.py FOLDER` leaves `model/` and `train.parquet` there. Runs outside the tool: torch and transformers alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

TEMPLATE = (
    "{% for turn in messages %}<|{{ turn['role'] }}|>{{ turn['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = Tokenizer(models.BPE())
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|user|>", "<|assistant|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    letters.train_from_iterator(
        [], trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    )
    words = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<|end|>", pad_token="<|end|>")
    words.chat_template = TEMPLATE
    words.save_pretrained(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder)


def rows(file: Path) -> None:
    import pandas as pd

    table = [
        {
            "data_source": "openai/gsm8k",
            "prompt": [{"role": "user", "content": f"{number} + 2?"}],
            "reward_model": {"style": "rule", "ground_truth": str(number + 2)},
        }
        for number in range(2)
    ]
    pd.DataFrame(table).to_parquet(file)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    model(place / "model")
    rows(place / "train.parquet")
