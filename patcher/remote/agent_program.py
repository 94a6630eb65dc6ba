"""The agent's program as it is sent to a host: its sources, a loader that runs them from memory, and what starts it.

Nothing is installed or written on the host. The steps:

1. ssh runs `COMMAND` on the host, which is `SCRIPT` in a `sh`. It reads a line, the Python to try first, and starts the
   first usable one with `BOOTSTRAP`.
2. `BOOTSTRAP` reads the size of the program, then the program (`program`), and executes it.
3. The program is the sources as one literal, and `_LOADER`, which lets `import patcher…` find them; then the agent.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import patcher

_FOLDER = Path(patcher.__file__).parent
SENT = ("__init__.py", "agent.py", "messages.py", "*/agent", "secrets", "worktree")
"""What is sent, as patterns below `patcher`: code that uses the standard library of Python 3.8 alone."""

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
"""An import hook that finds modules in `SOURCES`, and then the statements to begin with in place of `START`.

Under another `__name__` than `__main__` only the hook is installed: an actor of Ray (`patcher.cluster.worker`) loads
the program into its own process, where the modules are needed and no request is answered."""

_LEVEL = 5
"""Of zlib: with 9 the program is 2 % smaller, and takes 50 ms to pack instead of 13."""
NO_INPUT, NO_PYTHON, OLD_PYTHON, CRASHED = 96, 97, 98, 99
"""Exit codes: nothing came on standard input; no Python was found; only older ones than 3.8 were; the agent crashed."""

BOOTSTRAP = (
    f"import sys; sys.version_info < (3, 8) and sys.exit({OLD_PYTHON}); "
    "import io, zlib; b = io.BufferedReader(io.FileIO(0, closefd=False), 1); "
    "exec(zlib.decompress(b.read(int(b.readline()))))"
)
"""What Python is started with: it reads a size on a line, then so many bytes of program, and executes them.

The buffer has one byte, so that nothing behind the program is read: those are requests, which the agent reads."""

OPTIONS = ("-I", "-S", "-X", "utf8", "-u", "-c")
"""Options of Python: nothing of the user's is loaded, neither `PYTHON…` variables nor site-packages (`-I -S`), and
file names are UTF-8 whatever the locale is."""

_PYTHONS = (
    "python3 python /usr/bin/python3 /usr/local/bin/python3 /opt/conda/bin/python3 "
    "python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8"
)
_CONDA = '"$HOME"/.conda/envs/"$n"/bin/python "$HOME"/*/envs/"$n"/bin/python /opt/*/envs/"$n"/bin/python'
"""Where the conda environment `$n` may be, for a user who names it alone."""

# What the host is told to try first, and what that becomes:
#   (nothing), /opt/env, /opt/env/bin/python   $p as it is; of a folder, its bin/python
#   ~/env, envs/train                          $p below the home
#   train                                      $n, a conda environment
# Exit codes of a Python: 2 and OLD_PYTHON are of one that is too old (2: a Python 2, which has no option -I); 1, 126
# and 127 of one that does not run at all. Then the next one is tried. Any other code is the agent's own, and the end.
SCRIPT = (
    f"IFS= read -r p || exit {NO_INPUT}; o={NO_PYTHON}; n=; "
    'case "$p" in ""|/*) ;; "~/"*) p="$HOME/${p#??}";; */*) p="$HOME/$p";; *) n="$p"; p=;; esac; '
    f'for q in "$p" ${{p:+"$p/bin/python"}} ${{n:+{_CONDA}}} {_PYTHONS}; do '
    '[ -n "$q" ] && [ ! -d "$q" ] && command -v "$q" >/dev/null 2>&1 || continue; '
    f'"$q" {" ".join(OPTIONS)} "{BOOTSTRAP}"; c=$?; '
    f'case $c in {OLD_PYTHON}|2) o={OLD_PYTHON}; "$q" -V >&2;; 1|126|127) ;; *) exit $c;; esac; '
    "done; exit $o"
)
"""For `sh -c`: it reads a line, the Python to try first, and starts the agent. It holds no single quote, so that it can
be put between two of them."""

COMMAND = f"exec sh -c '{SCRIPT}'"
"""The only command that a remote shell is given. Nothing that a user typed is in it: what varies is read as data."""

VIA_COMMAND = (
    f"exec sh -c 'IFS= read -r n || exit {NO_INPUT}; set --; "
    'while [ "$n" -gt 0 ]; do IFS= read -r a; set -- "$@" "$a"; n=$((n-1)); done; '
    f"""exec "$@" sh -c "$0"' '{SCRIPT}'"""
)
"""The same for a container on the host. The words of the container's client, such as `docker exec -i verl`, are read
first: their number, then one on each line."""


def program(nonce: str) -> bytes:
    """The bytes that `BOOTSTRAP` reads: size and program of the agent, which greets with `nonce`."""
    return _packed(_sources(), f"from patcher.agent import main; main({nonce!r})")


def program_of(sources: Mapping[str, str], start: str) -> bytes:
    """The same for other modules, by their dotted names; once they can be imported, the statements `start` run."""
    return _packed(_as_text(sources), start)


def _packed(sources: str, start: str) -> bytes:
    """Size, newline, compressed program."""
    packed = zlib.compress(f"CRASHED = {CRASHED}\n{sources}{_LOADER.replace('START', start)}".encode(), _LEVEL)
    return b"%d\n" % len(packed) + packed


@lru_cache(maxsize=1)
def _sources() -> str:
    return _as_text(sources_of(SENT))


def _as_text(sources: Mapping[str, str]) -> str:
    """Statements that define `SOURCES` and `PACKAGES` for `_LOADER`."""
    packages = [name for name in sources if any(other.startswith(f"{name}.") for other in sources)]
    return f"SOURCES = {dict(sources)!r}\nPACKAGES = {packages!r}\n"


def sources_of(patterns: Sequence[str]) -> dict[str, str]:
    """The text of each module that the patterns name, as `files_of` finds it, by its dotted name.

    The packages around it are empty unless they are named too: their own `__init__.py` may import what is not sent.
    """
    found: dict[str, str] = {}
    for path in files_of(patterns):
        parts = path.relative_to(_FOLDER).with_suffix("").parts
        for length in range(len(parts)):
            found.setdefault(".".join(("patcher", *parts[:length])), "")
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(("patcher", *parts))] = path.read_text(encoding="utf-8")
    return found


def files_of(patterns: Sequence[str]) -> list[Path]:
    """The modules below `patcher` that the patterns name; of a folder all that are in it."""
    named = [path for pattern in patterns for path in sorted(_FOLDER.glob(pattern))]
    return [file for path in named for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
