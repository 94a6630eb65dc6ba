"""What records repair for models with images where verl breaks by itself, whatever else is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime import on_images
from tests.runtime.environment import BUILDS
from tests.runtime.lane.running import apply, copied
from tests.runtime.running import ran

pytestmark = [pytest.mark.runtime, pytest.mark.network]


@pytest.mark.parametrize(
    ("verl", "record", "what", "before", "after"),
    [
        (
            "0.8.0",
            "mrope-jagged-positions",
            "positions",
            "in unbind",
            "SHAPES [(4, 5), (4, 5)]",
        ),
        (
            "0.9.1",
            "mrope-jagged-positions",
            "positions",
            "in unbind",
            "SHAPES [(4, 5), (4, 5)]",
        ),
        ("0.7.0", "image-bytes-decoded", "messages", "IMAGE dict", "IMAGE Image"),
    ],
)
def test_a_record_makes_the_difference(
    verl: str, record: str, what: str, before: str, after: str, python: Callable[[str], Path], tmp_path: Path
) -> None:
    interpreter = python(BUILDS[0])

    def said(scratch: Path) -> str:
        tree, _ = apply(verl, BUILDS[0], interpreter, scratch)
        return ran(interpreter, [interpreter, "-W", "ignore", on_images.__file__, what], [tree], 120, {}).text

    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    without = copied(verl, tmp_path / "without" / f"verl-{verl}-{BUILDS[0]}")
    (without / "uky-patch.toml").write_text(f'disable = ["{record}"]\n')
    assert before in said(tmp_path / "without")
    assert after in said(tmp_path / "with")
