"""An interpreter by its path, and the folders that it imports from: off its files, else by asking it.

Known by their files are virtual environments (`pyvenv.cfg`), conda, builds in a prefix and the system's Python. What is
no binary, such as a shim of pyenv, has to be asked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from patcher.messages import Message, english, phrase, why
from patcher.packages.agent.folders import text_of
from patcher.worktree import files


class Unusable(Exception):  # noqa: N818
    """What is named is no interpreter that can be used, and why."""

    def __init__(self, title: Message, cause: Message) -> None:
        super().__init__(english(title))
        self.title = title
        self.cause = cause


class Interpreter(NamedTuple):
    """An interpreter, its version (`3.11`, with the patch level where a file tells it) and its import folders."""

    python: Path | None
    version: str
    site: tuple[Path, ...]
    """Site folders in import order; their `.pth` files are still to be followed."""
    extra: tuple[Path, ...] = ()
    """Folders before the site folders, without `.pth` files (PYTHONPATH of the running interpreter)."""
    problems: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()


def from_files(python: Path) -> Interpreter | None:
    """Read the layout of a virtual environment, conda, a build in a prefix, or the system; None for any other."""
    broken = phrase("{path} is a broken link: the interpreter it stood for is gone", path=python)
    problems = () if python.exists() else (broken,)
    prefix = python.parent.parent
    config = _pyvenv(prefix)
    if config is None:
        # A wrapper script such as a pyenv shim starts some other interpreter, which has to be asked.
        if not python.exists() or not _is_binary(python):
            return None
        real = Path(os.path.realpath(python))
        prefix, series = real.parent.parent, _series(real.name, real.parent.parent)
        if series is None or not (site := _site_folders(prefix, series)):
            return None
        return Interpreter(python, _patch_level(prefix, series), (*_user_site(series), *site))
    version = config.get("version_info") or config.get("version", "")
    version = ".".join(version.split(".")[:3])
    series = _series(python.name, prefix, ".".join(version.split(".")[:2]))
    if series is None or not (site := _site_folders(prefix, series)):
        return None
    if config.get("include-system-site-packages", "false").lower() == "true" and "home" in config:
        home = Path(os.path.realpath(Path(config["home"]) / "python3"))
        base = home.parent.parent if home.exists() else Path(config["home"]).parent
        site = (*site, *_user_site(series), *_site_folders(base, series))
    return Interpreter(python, version if version.startswith(series) else series, site, (), problems)


def _pyvenv(prefix: Path) -> dict[str, str] | None:
    try:
        text = files.read_text(prefix / "pyvenv.cfg", files.SETTINGS_BYTES, errors="replace", follow=True)
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _is_binary(python: Path) -> bool:
    """False for a wrapper script (a pyenv shim): what it starts is not known from its place."""
    try:
        with files.open_binary(python) as file:
            return file.read(2) != b"#!"
    except OSError as error:
        raise Unusable(phrase("cannot read {path}", path=python), why(error)) from error


def _series(name: str, prefix: Path, hint: str = "") -> str | None:
    """`3.11`, from the executable's name, the hint, or the only library folder there is."""
    found = re.fullmatch(r"python(\d+\.\d+t?)", name)
    folders = sorted(path.name[len("python") :] for path in (prefix / "lib").glob("python*.*") if path.is_dir())
    if found and found[1] in folders:
        return found[1]
    if hint and hint in folders:
        return hint
    return folders[0] if len(folders) == 1 else None


def _site_folders(prefix: Path, series: str) -> tuple[Path, ...]:
    lib, major = f"python{series}", "python" + series.partition(".")[0]
    # Debian keeps packages in `dist-packages`, Fedora those with compiled code in `lib64`.
    candidates = [
        *((prefix / "local" / "lib" / lib / "dist-packages",) if prefix == Path("/usr") else ()),
        *((prefix / "local" / "lib" / lib / "site-packages",) if prefix == Path("/usr") else ()),
        prefix / "lib64" / lib / "site-packages",
        prefix / "lib" / lib / "site-packages",
        *((prefix / "lib" / major / "dist-packages",) if prefix == Path("/usr") else ()),
        prefix / "lib" / lib / "dist-packages",
    ]
    folders = {os.path.realpath(path): path for path in reversed(candidates) if path.is_dir()}
    return tuple(reversed(folders.values()))


def _user_site(series: str) -> tuple[Path, ...]:
    if os.environ.get("PYTHONNOUSERSITE"):
        return ()
    base = Path(os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local"))
    folder = base / "lib" / f"python{series}" / "site-packages"
    return (folder,) if folder.is_dir() else ()


def _patch_level(prefix: Path, series: str) -> str:
    header = text_of(prefix / "include" / f"python{series}" / "patchlevel.h")
    found = re.search(r'#define PY_VERSION\s+"(\d+\.\d+\.\d+)', header)
    return found[1] if found else series


ASK_SECONDS = 20
"""How long an interpreter may take to tell its paths. A guess: starting Python on a busy network disk takes seconds."""
SITE_NAMES = ("site-packages", "dist-packages")
_ASK = (
    "import sys, json, site; u = [site.getusersitepackages()] if sys.prefix == sys.base_prefix else []; "
    "print(json.dumps([sys.path, sys.version.split()[0], u]))"
)


def executable(given: Path) -> Path:
    """The interpreter of an environment, its bin folder, a name on PATH, or the path itself.

    Links are not followed, as they show which environment it is of. Raises Unusable where there is none.
    """
    path = Path(os.path.expanduser(given))
    is_name = len(path.parts) == 1 and (path.name.startswith("python") or not path.is_dir())
    on_path = shutil.which(str(path)) if is_name else None
    if on_path:  # As a shell has it: `python3` is that of PATH, whatever lies in the folder where one stands.
        return Path(on_path).absolute()
    path = path.absolute()
    if path.is_dir():
        folder = path if path.name in ("bin", "Scripts") else path / "bin"
        for name in ("python", "python3"):
            if os.path.lexists(folder / name):
                return folder / name
        cause = phrase("{folder} has neither python nor python3", folder=folder)
        raise Unusable(phrase("no interpreter in {path}", path=given), cause)
    if not os.path.lexists(path):
        raise Unusable(phrase("no interpreter at {path}", path=given), phrase("there is no such file"))
    return path


def read(python: Path, seconds: float | None = ASK_SECONDS) -> Interpreter:
    """Where `python` imports from. Only where its files do not tell it is run, for at most `seconds`; None: never.

    Raises Unusable.
    """
    found = from_files(python)
    if found is None and seconds is None:
        raise Unusable(phrase("cannot use {path}", path=python), phrase("its files do not tell where it imports from"))
    return found or _ask(python, seconds or 0)


def running() -> Interpreter:
    """Take this process's own path; what follows its site folders was added by their `.pth` files."""
    entries = sys.path if getattr(sys.flags, "safe_path", False) else sys.path[1:]
    folders = [folder for folder in map(Path, filter(None, entries)) if folder.is_dir()]
    site = [folder for folder in folders if folder.name in SITE_NAMES]
    stdlib = {Path(os.__file__).parent, Path(os.__file__).parent / "lib-dynload"}
    before = folders[: folders.index(site[0])] if site else folders
    extra = [folder for folder in before if folder not in stdlib]
    return Interpreter(Path(sys.executable), "{}.{}.{}".format(*sys.version_info), tuple(site), tuple(extra))


def _ask(python: Path, seconds: float) -> Interpreter:
    """Run the interpreter for its paths: the last resort, for wrapper scripts and unknown layouts."""
    title = phrase("cannot use {path}", path=python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd="/",
        )
    except subprocess.TimeoutExpired as error:
        raise Unusable(title, phrase("it did not tell its paths within {seconds} s", seconds=seconds)) from error
    except OSError as error:
        raise Unusable(title, why(error)) from error
    try:
        entries, version, user_sites = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise Unusable(phrase("{path} is no Python interpreter", path=python), _last_line(done.stderr)) from error
    site = [Path(entry) for entry in entries if Path(entry).name in SITE_NAMES]
    users = [Path(user) for user in user_sites if not os.environ.get("PYTHONNOUSERSITE") and Path(user).is_dir()]
    return Interpreter(python, version, tuple(dict.fromkeys(users + site)))


def _last_line(output: str) -> Message:
    lines = output.strip().splitlines()
    return phrase("{line}", line=lines[-1]) if lines else phrase("it printed no paths")
