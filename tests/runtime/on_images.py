"""`on_images.py positions|messages`: two things that verl does with images, by the tree first in PYTHONPATH."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace


def positions() -> None:
    """Pack the position ids of two samples of five tokens, and take them apart again."""
    import torch
    from tensordict import TensorDict
    from verl.utils.tensordict_utils import maybe_fix_3d_position_ids
    from verl.workers.utils.padding import left_right_2_no_padding

    samples, components, tokens = 2, 4, 5
    row = torch.arange(tokens).expand(samples, tokens).clone()
    data = TensorDict(
        {
            "input_ids": row,
            "attention_mask": torch.ones_like(row),
            "response_mask": torch.ones_like(row[:, 2:]),
            "position_ids": row.unsqueeze(1).expand(samples, components, tokens).clone(),
        },
        batch_size=samples,
    )
    packed = left_right_2_no_padding(data)
    maybe_fix_3d_position_ids(packed)
    print("SHAPES", [tuple(one.shape) for one in packed["position_ids"].unbind()])


def messages() -> None:
    """The prompt of a row whose image is bytes and path, as it is handed on."""
    from PIL import Image
    from verl.utils.dataset.rl_dataset import RLHFDataset

    stream = io.BytesIO()
    Image.new("RGB", (28, 28)).save(stream, "PNG")
    row = {
        "prompt": [{"role": "user", "content": "<image>how much is one and two?"}],
        "images": [{"bytes": stream.getvalue(), "path": None}],
    }
    keys = SimpleNamespace(prompt_key="prompt", image_key="images", video_key="videos", processor=object())
    handed = RLHFDataset._build_messages(keys, row)[0]["content"][0]["image"]
    print("IMAGE", type(handed).__mro__[-2].__name__)


if __name__ == "__main__":
    {"positions": positions, "messages": messages}[sys.argv[1]]()
