"""The agent's program as it is sent to a host: the sources of the agent, and the loader that runs them from memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import patcher

_FOLDER = Path(patcher.__file__).parent
SENT = ("__init__.py", "agent.py", "messages.py", "*/agent", "secrets", "worktree")
"""What is sent, below `patcher`: the standard library of Python 3.8 alone."""

_LOADER = """
import sys
from importlib.machinery import ModuleSpec
class Sent:
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return ModuleSpec(name, self, is_package=name in PACKAGES)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        name = module.__name__
        exec(compile(SOURCES[name], name, "exec"), module.__dict__)
    def get_source(self, name):
        return SOURCES[name]
sys.meta_path.insert(0, Sent())
if __name__ == "__main__":
    try:
        START
    except BaseException:
        import os, traceback
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(CRASHED)
"""
"""Under another name than `__main__` nothing starts: an actor of Ray loads the program into its own process, where the
modules are needed and no request is answered."""

NO_INPUT, NO_PYTHON, OLD_PYTHON, CRASHED = 96, 97, 98, 99
"""Exit codes: nothing came, no Python was found, only older ones than 3.8 were, and the agent failed by itself."""

BOOTSTRAP = (
    f"import sys; sys.version_info < (3, 8) and sys.exit({OLD_PYTHON}); "
    "import io, zlib; b = io.BufferedReader(io.FileIO(0, closefd=False), 1); "
    "exec(zlib.decompress(b.read(int(b.readline()))))"
)
"""What Python is started with: a size on a line, then that many bytes of program, on standard input, and no more."""

OPTIONS = ("-I", "-S", "-X", "utf8", "-u", "-c")
"""Nothing of the user's is loaded: no variables, no site-packages. File names are UTF-8 whatever the locale."""

_PYTHONS = (
    "python3 python /usr/bin/python3 /usr/local/bin/python3 /opt/conda/bin/python3 "
    "python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8"
)
_CONDA = '"$HOME"/.conda/envs/"$n"/bin/python "$HOME"/*/envs/"$n"/bin/python /opt/*/envs/"$n"/bin/python'
"""Where a conda environment that is named alone may be."""

SCRIPT = (
    f"IFS= read -r p || exit {NO_INPUT}; o={NO_PYTHON}; n=; "
    'case "$p" in ""|/*) ;; "~/"*) p="$HOME/${p#??}";; */*) p="$HOME/$p";; *) n="$p"; p=;; esac; '
    f'for q in "$p" ${{p:+"$p/bin/python"}} ${{n:+{_CONDA}}} {_PYTHONS}; do '
    '[ -n "$q" ] && [ ! -d "$q" ] && command -v "$q" >/dev/null 2>&1 || continue; '
    f'"$q" {" ".join(OPTIONS)} "{BOOTSTRAP}"; c=$?; '
    f'case $c in {OLD_PYTHON}|2) o={OLD_PYTHON}; "$q" -V >&2;; 1|126|127) ;; *) exit $c;; esac; '
    "done; exit $o"
)
"""For `sh -c`: it reads a line, the Python to try first, and starts the agent. It holds no single quote."""

COMMAND = f"exec sh -c '{SCRIPT}'"
"""The only command that a remote shell is given. Nothing that a user typed is in it: what varies is read as data."""

VIA_COMMAND = (
    f"exec sh -c 'IFS= read -r n || exit {NO_INPUT}; set --; "
    'while [ "$n" -gt 0 ]; do IFS= read -r a; set -- "$@" "$a"; n=$((n-1)); done; '
    f"""exec "$@" sh -c "$0"' '{SCRIPT}'"""
)
"""The same for a container there: the client's words are read first, their number and then one on each line."""


def program(nonce: str) -> bytes:
    """The bytes to write to the program that `BOOTSTRAP` starts: the agent, which greets with `nonce`."""
    return _packed(_sources(), f"from patcher.agent import main; main({nonce!r})")


def program_of(sources: Mapping[str, str], start: str) -> bytes:
    """The same for other modules: they are loaded from memory, and then the statements `start` run."""
    return _packed(_as_text(sources), start)


def _packed(sources: str, start: str) -> bytes:
    """Size, newline, program."""
    packed = zlib.compress(f"CRASHED = {CRASHED}\n{sources}{_LOADER.replace('START', start)}".encode(), 6)
    return b"%d\n" % len(packed) + packed


@lru_cache(maxsize=1)
def _sources() -> str:
    return _as_text(agent_sources())


def _as_text(sources: Mapping[str, str]) -> str:
    packages = [name for name in sources if any(other.startswith(f"{name}.") for other in sources)]
    return f"import json\nSOURCES = json.loads({json.dumps(json.dumps(dict(sources)))})\nPACKAGES = {packages!r}\n"


def agent_sources() -> dict[str, str]:
    """The modules that are sent, by their dotted names, and the packages that they are in: empty, unless sent too."""
    return sources_of(agent_files())


def sources_of(paths: Iterable[Path]) -> dict[str, str]:
    """Modules below `patcher` by their dotted names, and the packages that they are in: empty, unless listed too."""
    found: dict[str, str] = {}
    for path in paths:
        parts = path.relative_to(_FOLDER).with_suffix("").parts
        for length in range(len(parts)):
            found.setdefault(".".join(("patcher", *parts[:length])), "")
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(("patcher", *parts))] = path.read_text(encoding="utf-8")
    return found


def agent_files() -> list[Path]:
    """The files that are sent."""
    return files_of(SENT)


def files_of(patterns: Sequence[str]) -> list[Path]:
    """The modules that the patterns name below `patcher`; of a folder all."""
    named = [path for pattern in patterns for path in sorted(_FOLDER.glob(pattern))]
    return [file for path in named for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
