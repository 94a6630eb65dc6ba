"""What the usual files pin."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.errors import UsageError
from patcher.packages.pins import UNTOLD, read_pins

REQUIREMENTS = """\
# what runs on the cluster
-r base.txt
--extra-index-url https://example.invalid/simple
vllm==0.20.2  # tried
torch == 2.11.0+cu130 \\
    --hash=sha256:0123
Flash_Attn @ https://example.invalid/flash_attn-2.8.3+cu12torch2.8-cp312-cp312-linux_x86_64.whl#sha256=1
transformers>=4.57,<5
ray[default]
numpy<2; python_version < "3"
-e git+https://example.invalid/verl.git#egg=verl
"""


def pins(folder: Path, name: str, text: str) -> dict[str, str]:
    file = folder / name
    file.write_text(text)
    return read_pins(file)


def test_requirements(tmp_path: Path) -> None:
    (tmp_path / "base.txt").touch()
    assert pins(tmp_path, "requirements.txt", REQUIREMENTS) == {
        "vllm": "==0.20.2",
        "torch": "==2.11.0+cu130",
        "flash-attn": "==2.8.3+cu12torch2.8",
        "transformers": "<5,>=4.57",
        "ray": "",
        "verl": UNTOLD,
    }


@pytest.mark.parametrize(
    ("url", "pinned"),
    [
        (
            "file:///workspace/flash_attn-2.7.4.post1%2Bcu12torch2.6-cp310-cp310-linux_x86_64.whl#sha256=1",
            "==2.7.4.post1+cu12torch2.6",
        ),
        ("file:///workspace/flash_attn-nightly-cp310-cp310-linux_x86_64.whl", UNTOLD),
        ("file:///workspace/flash-attention", UNTOLD),
    ],
)
def test_a_place_instead_of_a_version(tmp_path: Path, url: str, pinned: str) -> None:
    assert pins(tmp_path, "freeze.txt", f"flash_attn @ {url}\n") == {"flash-attn": pinned}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uky-patch.toml", '[pins]\nvllm = "0.20.2"\n'),
        ("pins.toml", '[pins]\nvllm = "==0.20.2"\n'),
        ("pyproject.toml", '[project]\ndependencies = ["vllm==0.20.2"]\n'),
        ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["vllm==0.20.2"]\n'),
        ("pyproject.toml", '[dependency-groups]\ngpu = ["vllm==0.20.2", {include-group = "x"}]\n'),
        ("uv.lock", 'version = 1\n[[package]]\nname = "vllm"\nversion = "0.20.2"\n'),
        ("freeze.txt", "vllm==0.20.2\n"),
        ("setup.py", 'VLLM = ["vllm==0.20.2"]\nsetup(name="x", version="1.0", extras_require={"vllm": VLLM})\n'),
    ],
)
def test_each_kind_of_file(tmp_path: Path, name: str, text: str) -> None:
    assert pins(tmp_path, name, text) == {"vllm": "==0.20.2"}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("requirements.txt", "numpy\nvllm==\n", "requirements.txt:2"),
        ("pins.toml", '[pins\nvllm = "1"\n', "pins.toml"),
        ("pins.toml", '[pins]\nvllm = "one"\n', "pins.toml"),
    ],
)
def test_a_broken_file_is_named_with_the_place(tmp_path: Path, name: str, text: str, place: str) -> None:
    with pytest.raises(UsageError, match=place):
        pins(tmp_path, name, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.txt"):
        read_pins(tmp_path / "none.txt")


def test_files_that_a_file_names_count_too(tmp_path: Path) -> None:
    files = {
        "base.txt": "-r ../all.txt\nvllm==0.20.2\n-c limits.txt\n",
        "limits.txt": "torch<2.12,>=2\n--requirement more.txt\n",
        "more.txt": "ray==2.50\n",
    }
    (tmp_path / "below").mkdir()
    for name, text in files.items():
        (tmp_path / "below" / name).write_text(text)
    assert pins(tmp_path, "all.txt", "-rbelow/base.txt\n--constraint=below/limits.txt\ntorch\n") == {
        "vllm": "==0.20.2",
        "torch": "<2.12,>=2",
        "ray": "==2.50",
    }


@pytest.mark.parametrize("line", ["-r gone.txt", "-c https://example.invalid/limits.txt"])
def test_a_named_file_that_cannot_be_had_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError) as raised:
        pins(tmp_path, "all.txt", f"numpy\n{line}\n")
    assert f"{tmp_path}/all.txt:2: {line.split()[1]}" in str(raised.value)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("vllm==0.11.0", "vllm==0.20.2", True),
        ("vllm>=0.12", "vllm==0.11.0", True),
        ("vllm==0.11.0", "vllm<0.12", False),
        ("torch==2.9.0+cu130", "torch==2.9.0", False),
        ("vllm==0.11.0", 'vllm==0.20.2; python_version < "3"', False),
    ],
)
def test_pins_that_contradict_each_other_are_refused_with_both_places(
    tmp_path: Path, first: str, second: str, refused: bool
) -> None:
    (tmp_path / "base.txt").write_text(f"{second}\n")
    if not refused:
        assert len(pins(tmp_path, "all.txt", f"{first}\n-r base.txt\n")) == 1
        return
    with pytest.raises(UsageError) as raised:
        pins(tmp_path, "all.txt", f"{first}\n-r base.txt\n")
    assert f"{tmp_path}/all.txt:1" in str(raised.value)
    assert f"{tmp_path}/base.txt:1" in str(raised.value)
