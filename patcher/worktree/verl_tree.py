"""Which folder is a verl tree, and which of its files are read: found fast, as every command does it first."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Iterator, NamedTuple

from patcher.messages import Message, Refusal, phrase
from patcher.worktree import disk
from patcher.worktree.files import SETTINGS_BYTES, SOURCE_BYTES, inside, read, read_text

PACKAGE = "verl"
"""The name of the package, unless the fork has renamed it (`package = "..."` in its uky-patch.toml)."""
_PACKAGE_LINE = re.compile(r"""^[ \t]*package[ \t]*=[ \t]*(["'])([A-Za-z_]\w*)\1""", re.MULTILINE)
_SUBMODULE = re.compile(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t]*$", re.MULTILINE)
"""Where a submodule lies, in `.gitmodules`."""
_MOST_SEARCHED = 300
"""Folders of each level that are searched for a tree. A guess: a home has fewer, a folder of data may have more."""
FOLDERS = ("recipe", "examples", "scripts")
"""The folders beside the package that `files` goes through; of the root it takes only the files."""
PYTHON = (".py",)
SHELL = (".sh", ".bash", ".slurm", ".sbatch")
TEXT = (".py", ".pyi", ".sh", ".bash", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".env", ".txt", ".json")
MAX_BYTES = 4 << 20
"""The largest file that is taken for a source and not for data. A guess."""
_NOT_JUDGED = frozenset({"tests", "test", "docs", "doc", "build", "dist", "unsloth_compiled_cache"})
"""Folders beside the package with Python that no job runs (tests, documents) or that a build has made."""
_MOST_FOLDERS = 3000
"""Folders that are looked into beside the package. Checkouts of verl have 40 to 400; data sets and checkpoints beside
it may have a million."""
COPIES = frozenset(
    {
        *("vllm", "sglang", "transformers", "torch", "torchvision", "torchaudio", "triton", "ray", "numpy", "wandb"),
        *("tensordict", "flash_attn", "megatron", "deepspeed", "accelerate", "peft", "trl", "datasets", "xformers"),
        *("transformer_engine", "apex", "liger_kernel", "mbridge", "qwen_vl_utils", "unsloth", "lm_eval", "openai"),
        *("pandas", "pyarrow", "pydantic", "hydra", "omegaconf", "fastapi", "uvicorn", "tokenizers", "evaluate"),
    }
)
"""Import names of other packages: a folder with such a name and an `__init__.py` is a copy, and not the fork's code."""

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "env"})


class Found(NamedTuple):
    """A file of the tree. It is not read before `read`."""

    path: str
    """Below the root, with forward slashes."""
    place: str
    """The path to open."""

    def read(self) -> bytes:
        """The file's bytes; b"" if it is gone or cannot be read."""
        try:
            return read(self.place, SOURCE_BYTES)
        except OSError:
            return b""


def root_of(folder: Path) -> Path:
    """The real path of `folder`, which must be the root of a verl tree. Raises Refusal if it is not."""
    place = Path(os.path.realpath(folder))
    if holds_verl(place):
        return place
    advice = phrase(
        "Name a fork's checkout, or the folder above the package verl, with --root. A fork that calls the package "
        "otherwise says so in its uky-patch.toml: package = 'NAME'."
    )
    if place.name == package_of(place.parent) and holds_verl(place.parent):
        itself = "{folder} is the package itself: name the folder above it, --root {above}"
        advice = phrase(itself, folder=place, above=place.parent)
    elif (near := where_else(place)) is not None:
        advice = near
    if not place.is_dir():
        cause = phrase("no folder")
    elif (package := package_of(place)) != PACKAGE:
        cause = phrase("its uky-patch.toml says package = {package!r}, and that folder is no package", package=package)
    else:
        cause = phrase("it has no folder verl with __init__.py or version/version in it")
    raise Refusal("no-tree", phrase("{path}: no verl tree", path=folder), cause, advice)


def package_of(root: Path) -> str:
    """The name of the package in `root`: `package` in its uky-patch.toml, else `verl`."""
    settings = os.path.join(root, "uky-patch.toml")
    if not os.path.lexists(settings):  # The common case, and asked of every folder on the way up: no exception.
        return PACKAGE
    try:
        text = read_text(inside(root, settings), SETTINGS_BYTES)
    except (OSError, ValueError):
        return PACKAGE
    # Python 3.8 has no parser for TOML. Top-level keys are before the first table.
    found = _PACKAGE_LINE.search(re.split(r"^[ \t]*\[", text, maxsplit=1, flags=re.MULTILINE)[0])
    return found[2] if found is not None else PACKAGE


def holds_verl(folder: Path) -> bool:
    """Whether `folder` is the root of a verl tree."""
    package = folder / package_of(folder)
    return (package / "__init__.py").is_file() or (package / "version" / "version").is_file()


def inner(root: Path) -> tuple[str, ...]:
    """The names of folders in `root` that are verl trees of their own."""
    package = package_of(root)
    names = [name for name in disk.names(root) if not name.startswith(".") and name != package]
    found = [name for name in names if holds_verl(root / name)]
    return (*found, *([package] if (root / package / package).is_dir() and holds_verl(root / package) else []))


def below(folder: Path) -> Path | None:
    """The first verl tree one or two levels below `folder`: `third_party/verl` of a project that holds verl."""
    names = [name for name in disk.names(folder) if not name.startswith(".") and name not in _SKIPPED][:_MOST_SEARCHED]
    for name in names:
        if holds_verl(folder / name):
            return folder / name
    for name in names:
        try:
            deeper = disk.names(folder / name)
        except OSError:
            continue
        for other in deeper[:_MOST_SEARCHED]:
            if not other.startswith(".") and other not in _SKIPPED and holds_verl(folder / name / other):
                return folder / name / other
    return None


def wrong_package(folder: Path) -> Message | None:
    """What a uky-patch.toml in a folder or above it says of the package, where no such package lies beside it."""
    for place in (folder, *folder.parents):
        package = package_of(place)
        if package != PACKAGE and not holds_verl(place):
            text = "{file} says package = {package!r}, and no such package lies beside it: set it right"
            return phrase(text, file=place / "uky-patch.toml", package=package)
    return None


def where_else(folder: Path) -> Message | None:
    """Where a verl tree is to be had in a folder that is none itself; None where nothing shows that."""
    if (found := below(folder)) is not None:
        return phrase("There is one further down: --root {folder}", folder=found)
    # A clone without `--recurse-submodules` has an empty folder in place of each submodule.
    try:
        paths = _SUBMODULE.findall(read_text(inside(folder, str(folder / ".gitmodules")), SETTINGS_BYTES))
    except (OSError, ValueError):
        return None
    for path in paths:
        place = folder / path
        if PACKAGE in path.lower() and not (place.is_dir() and disk.names(place)):
            advice = "{path} is a submodule that is not checked out: git -C {folder} submodule update --init {path}"
            return phrase(advice, path=path, folder=folder)
    return None


class Beside(NamedTuple):
    """What is in a checkout beside the package: paths below the root, sorted."""

    python: tuple[str, ...]
    scripts: tuple[str, ...]
    """Shell scripts, as they may start a job."""
    copies: tuple[str, ...]
    """Folders that are copies of other packages. One in the root is imported instead of the installed package."""
    trees: tuple[str, ...]
    """Folders that are verl trees of their own."""


def beside(root: Path) -> Beside:
    """The files beside the package that may be part of a job. None of them is read.

    Left out are tests, documents, builds, environments, hidden folders, symlinks, copies of other packages and their
    projects, and checkouts of verl within the checkout.
    """
    python: list[str] = []
    scripts: list[str] = []
    copies: list[str] = []
    trees: list[str] = []
    package, waiting, looked_into = package_of(root), [""], 0
    while waiting and looked_into < _MOST_FOLDERS:
        folder = waiting.pop(0)  # Breadth first, so that the limit cuts off the deepest folders.
        looked_into += 1
        # `verl_ascend/third_party/vllm` holds parts of old releases, as verl's own does.
        is_part = bool(folder) and (root / folder / "__init__.py").is_file() and "third_party/" not in folder
        for item in _folder(str(root / folder), folder, (*PYTHON, *SHELL)):
            if isinstance(item, Found):
                # `conftest.py` and `test_x.py` are run by pytest alone, `setup.py` by a build.
                name = item.path.rpartition("/")[2]
                if not name.endswith(PYTHON):
                    scripts.append(item.path)
                elif not name.startswith("test_") and name not in ("conftest.py", "setup.py"):
                    python.append(item.path)
            elif item in _NOT_JUDGED or (not folder and item == package):
                continue
            elif _is_copy(root / folder / item, is_part=is_part):
                copies.append(f"{folder}{item}")
            elif holds_verl(root / folder / item):
                trees.append(f"{folder}{item}")
            else:
                waiting.append(f"{folder}{item}/")
    return Beside(tuple(sorted(python)), tuple(sorted(scripts)), tuple(sorted(copies)), tuple(sorted(trees)))


def _is_copy(folder: Path, *, is_part: bool) -> bool:
    """Whether a folder is a copy of another package: `vllm/__init__.py`, or its project: `vllm/vllm/__init__.py`.

    `is_part`: it lies in a package. There `verl_ascend/utils/vllm` is the fork's own code for vLLM, imported as
    `verl_ascend.utils.vllm`, unless it says which version of vLLM it is.
    """
    name = folder.name.lower().replace("-", "_")
    if name in COPIES and (folder / "__init__.py").is_file():
        return not is_part or _tells_its_version(folder)
    if name in COPIES:
        return (folder / name / "__init__.py").is_file()
    if not any((folder / file).is_file() for file in ("pyproject.toml", "setup.py")):
        return False
    # A project under another name, such as `Megatron-LM/megatron` or `vllm-fork/vllm`.
    return any((folder / inner / "__init__.py").is_file() for inner in COPIES)


def _tells_its_version(package: Path) -> bool:
    """Whether a package has a version of its own, as those that are released have."""
    if any((package / file).is_file() for file in ("version.py", "_version.py")):
        return True
    try:
        return "__version__" in read_text(package / "__init__.py", SOURCE_BYTES, errors="replace")
    except OSError:
        return False


def files(root: Path, suffixes: tuple[str, ...], folders: tuple[str, ...] = FOLDERS) -> Iterator[Found]:
    """The files with these suffixes, in a fixed order: those in the root, those of the package, then `folders`.

    Symlinks, hidden folders, bytecode, virtual environments and large files that are no Python are left out.
    """
    yield from (file for file in _folder(str(root), "", suffixes) if isinstance(file, Found))
    for folder in (package_of(root), *folders):
        if not os.path.islink(root / folder):
            yield from _walk(str(root / folder), f"{folder}/", suffixes)


def _walk(place: str, prefix: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    for item in _folder(place, prefix, suffixes):
        if isinstance(item, Found):
            yield item
        else:
            yield from _walk(f"{place}/{item}", f"{prefix}{item}/", suffixes)


def _folder(place: str, prefix: str, suffixes: tuple[str, ...]) -> list[Found | str]:
    """The files of one folder with these suffixes, and the names (`str`) of its folders to go into."""
    try:
        with os.scandir(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
    if any(entry.name == "pyvenv.cfg" for entry in found):
        return []
    wanted: list[Found | str] = []
    for entry in found:
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            if name not in _SKIPPED and not name.startswith("."):
                wanted.append(name)
        elif name.endswith(suffixes) and entry.is_file(follow_symlinks=False) and _is_source(entry):
            wanted.append(Found(f"{prefix}{name}", f"{place}/{name}"))
    return wanted


def _is_source(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") or entry.stat(follow_symlinks=False).st_size <= MAX_BYTES
