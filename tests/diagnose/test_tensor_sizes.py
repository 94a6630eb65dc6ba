"""What sizes that do not fit say: a piece of a rank, too few samples for a group."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnosed import diagnosed
from tests.diagnose.test_explaining import explained

FRAME = '  File "/app/run.py", line 3, in f\n    y = x.view(count, 8)\n'
PIECE = "one of the two has 1/4 of the other's elements"


@pytest.mark.parametrize(
    ("message", "piece"),
    [
        (
            "RuntimeError: The size of tensor a (9846529) must match the size of tensor b (39386113) at dimension 0",
            True,
        ),
        (
            "ValueError: Size mismatch between saved torch.Size([257152, 2048]) and current: torch.Size([131661824]) "
            "for model.embed_tokens.weight",
            True,
        ),
        ("RuntimeError: The size of tensor a (8) must match the size of tensor b (32) at dimension 0", False),
        (
            "RuntimeError: The size of tensor a (9846529) must match the size of tensor b (39386119) at dimension 0",
            False,
        ),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x1024 and 4096x8)", False),
    ],
)
def test_the_flat_piece_of_one_rank_is_known_by_its_size(message: str, piece: bool) -> None:
    sharded = '  File "/env/site-packages/torch/distributed/fsdp/api.py", line 7, in load\n    x.copy_(y)\n'
    assert str(explained(message, sharded).often).startswith(PIECE) == piece


@pytest.mark.parametrize(
    ("frame", "size", "piece"),
    [
        ('  File "/app/run.py", line 3, in f\n    y = module.weight.view(shape)\n', 1048576, True),
        ('  File "/app/run.py", line 3, in f\n    y = module.weight.view(shape)\n', 16777216, False),
        ('  File "/app/run.py", line 3, in f\n    y = hidden.view(shape)\n', 1048576, False),
        ('  File "/src/vllm/vllm/models/a.py", line 3, in forward\n    y = weighted.view(shape)\n', 1048576, False),
    ],
)
def test_the_flat_piece_is_of_a_parameter_and_smaller_than_the_whole(frame: str, size: int, piece: bool) -> None:
    message = f"RuntimeError: shape '[2048, 2048]' is invalid for input of size {size}"
    assert str(explained(message, frame).often).startswith(PIECE) == piece


def test_more_elements_than_an_engines_shape_are_those_of_several_ranks() -> None:
    message = "RuntimeError: shape '[16, 2048]' is invalid for input of size 131072"
    engine = '  File "/src/vllm/vllm/models/a.py", line 3, in forward\n    y = hidden.view(shape)\n'
    assert str(explained(message, engine).often).startswith("there are 4 times the elements that the shape holds")
    assert explained(message, FRAME).often is None


def test_fewer_elements_than_a_group_are_told() -> None:
    found = explained("RuntimeError: shape '[0, 8]' is invalid for input of size 2", FRAME)
    assert str(found.often).startswith("2 elements are fewer than one group of 8")
    more = explained("RuntimeError: shape '[0, 8]' is invalid for input of size 20", FRAME)
    assert str(more.often).startswith("there is data, and count came out as 0")


def test_the_argument_at_tritons_caret_is_named() -> None:
    lines = [
        "triton.compiler.errors.CompilationError: at 31:16:",
        "    o_k = i_k * BK + tl.arange(0, BK)",
        "        p_hk0 = hk0 + i_bg * K * M",
        "                ^",
        "AttributeError(\"'NoneType' object has no attribute 'type'\")",
    ]
    found = explained("\n".join(lines), "")
    assert str(found.sentence).endswith("asks hk0 for type: hk0 is None")


def test_values_that_are_no_whole_groups_of_answers() -> None:
    code = "grouped = rewards.view(num_devices, self.num_generations)"
    log = (
        f'Traceback (most recent call last):\n  File "/home/me/grpo.py", line 587, in compute_loss\n    {code}\n'
        "RuntimeError: shape '[2, 8]' is invalid for input of size 17\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert "17 values were gathered, which are no whole groups" in str(root.explanation.often)
