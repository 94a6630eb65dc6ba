"""The Pythons of this machine, and which of them is the one to train with.

Candidates come from several sources (an activated environment, the tree, the home, conda, PATH, …), which are looked at
at the same time. An interpreter is started only for its own report on its packages; where somebody else may have put it
there, it is read off its files instead (`_ANYBODYS`, and `in_tree` of `look`).
"""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from patcher.messages import Message, Refusal, phrase
from patcher.packages.agent.installed import packages_of
from patcher.packages.agent.interpreter import Interpreter, Unusable, executable, read
from patcher.remote.agent.environs import search
from patcher.remote.agent.facts import Fact, gather
from patcher.worktree import files
from patcher.worktree.files import lies_in

SECONDS = 2.5
"""Seconds for all candidates of one source: a dead mount costs its own source alone. A guess."""
_ASK_SECONDS = 1.0
"""Seconds that one interpreter may take to report on its packages. A guess."""
_MOST = 40
"""Candidates of one source that are looked at. A guess: `~/venvs/*` may hold hundreds, and time is short."""

_ANYBODYS = ("/venv", "/opt", "/workspace")
"""Sources that other users may have written to: an interpreter there is read off its files, and not started."""
_CONDAS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "miniconda", "anaconda")


class Candidate(NamedTuple):
    """An interpreter or the folder of an environment, and how it came to be looked at."""

    path: str
    origin: str


Source = Callable[[], Iterable[Candidate]]
Login = Callable[[], Mapping[str, str]]
"""Gives the variables of a login shell. The first call starts that shell (`environs.Login`)."""


class Look(NamedTuple):
    """The interpreters that were found, each as `described` gives it."""

    chosen: dict[str, Any] | None
    others: list[dict[str, Any]]
    """Those besides that have vllm or torch, the best first."""
    passed: list[Message]
    """Sources that could not be looked at, and why."""


def look(
    named: str | None, root: str | None, home: str, environ: Mapping[str, str], login: Login, in_tree: str = "run"
) -> Look:
    """The interpreter `named`, else the one that has most of vllm, torch and ray, else None.

    `in_tree`: what lies in the tree at `root`, and is neither named nor activated, may be `run` to be read, is only
    `read` off its files, or is `left` alone.

    Raises Refusal of kind `python` where the named one is not to be had.
    """
    inside = root if in_tree != "run" else None
    facts = {
        origin: Fact(_reader(source, origin, inside, in_tree), SECONDS)
        for origin, source in sources(root, home, environ, login).items()
    }
    if named is not None:
        facts = {"named": Fact(lambda: _named(named, root, home, environ, login), 2 * SECONDS), **facts}
    found, missing = gather(facts)
    if named is not None and "named" in missing:
        raise _unusable(named, missing["named"])
    passed = [phrase("{origin}: {reason}", origin=name, reason=reason) for name, reason in missing.items()]
    distinct: dict[tuple[str, ...], dict[str, Any]] = {}
    for origin in facts:
        for interpreter in found.get(origin, ()):
            distinct.setdefault(_identity(interpreter), interpreter)
    able = sorted((one for one in distinct.values() if _rank(one)), key=_rank, reverse=True)
    chosen = found["named"][0] if named is not None else able[0] if able else None
    others = [one for one in able if chosen is None or _identity(one) != _identity(chosen)]
    return Look(chosen, others, passed)


def sources(root: str | None, home: str, environ: Mapping[str, str], login: Login) -> dict[str, Source]:
    """Where interpreters may be, by the source's name. Of two that are equally good the earlier source's is taken."""

    def folders(origin: str, *patterns: str) -> Source:
        return lambda: [Candidate(path, origin) for pattern in patterns for path in sorted(glob.glob(pattern))]

    def active() -> list[Candidate]:
        names = ("VIRTUAL_ENV", "CONDA_PREFIX")
        folders = [of[name] for of in (environ, login()) for name in names if of.get(name)]
        return [Candidate(folder, "active") for folder in folders if folder.startswith("/")]

    found: dict[str, Source] = {"active": active}
    if root is not None:
        inside = glob.escape(root)
        found["in-tree"] = folders("in-tree", f"{inside}/.venv", f"{inside}/venv")
    own, pyenv = glob.escape(home), f"{home}/.pyenv"
    found["home"] = folders("home", f"{own}/.venv", f"{own}/venv", f"{own}/venvs/*", f"{own}/.virtualenvs/*")
    found["/venv"] = folders("known place", "/venv", "/venv/*")
    found["/opt"] = folders("known place", "/opt/venv", "/opt/venv*", "/opt/*/.venv")
    found["/workspace"] = folders("known place", "/workspace/.venv", "/workspace/venv*", "/workspace/*/.venv")
    found["conda"] = lambda: [Candidate(path, "conda") for path in conda_environments(home, environ, login)]
    found["pyenv"] = lambda: folders("pyenv", f"{glob.escape(login().get('PYENV_ROOT') or pyenv)}/versions/*")()
    found["path"] = lambda: [Candidate(path, "path") for path in _on_paths(environ, login)]
    return found


def conda_environments(home: str, environ: Mapping[str, str], login: Login) -> list[str]:
    """Folders of conda environments: in the usual places, and those that conda has noted; base environments last.

    conda notes each environment that it makes in `~/.conda/environments.txt`, wherever it lies.
    """
    roots = [f"{home}/{name}" for name in _CONDAS] + [f"/opt/{name}" for name in ("conda", *_CONDAS)]
    for of in (environ, login()):
        if of.get("CONDA_EXE"):
            roots.insert(0, os.path.dirname(os.path.dirname(of["CONDA_EXE"])))
        if of.get("MAMBA_ROOT_PREFIX"):
            roots.insert(0, of["MAMBA_ROOT_PREFIX"])
    try:
        path = f"{home}/.conda/environments.txt"
        text = files.read_text(path, files.SETTINGS_BYTES, errors="surrogateescape", follow=True)
        listed = [line.strip() for line in text.splitlines() if line.startswith("/")]
    except OSError:
        listed = []
    inside = [path for root in (f"{home}/.conda", *roots) for path in sorted(glob.glob(f"{glob.escape(root)}/envs/*"))]
    bases = [root for root in roots if os.path.isdir(f"{root}/conda-meta")]
    return list(dict.fromkeys(path for path in (*inside, *listed, *bases) if os.path.isdir(path)))


def inspect(candidate: Candidate, run: bool = True) -> dict[str, Any]:
    """An interpreter as `described` gives it. It is started only where it may be `run`. Raises Unusable."""
    python = executable(Path(candidate.path))
    if not os.access(python, os.X_OK):
        raise Unusable(phrase("cannot use {path}", path=python), phrase("it is not there, or may not be run"))
    return described(read(python, _ASK_SECONDS if run else None), candidate.origin)


def described(interpreter: Interpreter, origin: str) -> dict[str, Any]:
    """An interpreter and its packages as values for JSON; `patcher.remote.survey.parse_interpreter` reads them."""
    packages, problems = packages_of(interpreter)
    return {
        "python": str(interpreter.python),
        "version": interpreter.version,
        "origin": origin,
        "site": [os.path.realpath(folder) for folder in interpreter.site],
        "problems": problems,
        "packages": {
            name: {
                "version": found.version,
                "distribution": found.distribution,
                "location": str(found.location) if found.location is not None else None,
                "origin": found.origin,
                "note": found.note,
                "renamed": found.renamed,
            }
            for name, found in packages.items()
        },
    }


def _reader(source: Source, origin: str, inside: str | None, in_tree: str) -> Callable[[], list[dict[str, Any]]]:
    """A function that inspects the candidates of one source, without those that are no usable interpreter.

    What lies in the folder `inside` is treated as `in_tree` says (see `look`), unless the user has activated it.
    """

    def find() -> list[dict[str, Any]]:
        found = []
        for candidate in list(source())[:_MOST]:
            theirs = inside is not None and origin != "active" and lies_in(candidate.path, inside)
            if theirs and in_tree == "left":
                continue
            try:
                found.append(inspect(candidate, run=not theirs and origin not in _ANYBODYS))
            except Unusable:
                continue
        return found

    return find


def _named(named: str, root: str | None, home: str, environ: Mapping[str, str], login: Login) -> list[dict[str, Any]]:
    for path in readings(named, root, home, environ, login):
        if os.path.lexists(path):
            try:
                return [inspect(Candidate(path, "named"))]
            except Unusable as error:
                cause = phrase("{title}: {cause}", title=error.title, cause=error.cause)
                raise _unusable(named, cause) from error
    names = ", ".join(sorted(os.path.basename(path) for path in conda_environments(home, environ, login)))
    advice = phrase("Its conda environments are {names}.", names=names) if names else None
    raise _unusable(named, phrase("there is no such file, environment folder or conda environment"), advice)


def readings(named: str, root: str | None, home: str, environ: Mapping[str, str], login: Login) -> list[str]:
    """Paths that the user's word for an interpreter can mean, in order of preference.

    `~/env` and `/opt/env` are paths; `envs/train` lies in the tree or the home; `train` is a conda environment, else a
    command in PATH, else a folder in the tree or the home.
    """
    if named == "~" or named.startswith("~/"):
        return [home + named[1:]]
    if named.startswith("/"):
        return [named]
    below = [os.path.join(folder, named) for folder in (root, home) if folder is not None]
    if "/" in named:
        return below
    known = conda_environments(home, environ, login)
    condas = [path for path in known if os.path.basename(path) == named]
    command = shutil.which(named, path=search(environ.get("PATH", ""), login().get("PATH", "")))
    return [*condas, *([command] if command else []), *below]


def _on_paths(environ: Mapping[str, str], login: Login) -> list[str]:
    found = []
    for of in (environ, login()):
        path = shutil.which("python3", path=search(of.get("PATH", "")))
        path = path or shutil.which("python", path=search(of.get("PATH", "")))
        found += [path] if path else []
    return list(dict.fromkeys(found))


def _identity(interpreter: Mapping[str, Any]) -> tuple[str, ...]:
    """Equal for two names of one environment, as `bin/python` and `bin/python3`, which share site-packages."""
    return tuple(interpreter["site"]) or (interpreter["python"],)


def _rank(interpreter: Mapping[str, Any]) -> int:
    """3: vllm, torch and ray; 2: vllm; 1: torch; 0: nothing to train with."""
    has = {name for name in ("vllm", "torch", "ray") if name in interpreter["packages"]}
    return 3 if len(has) == 3 else 2 if "vllm" in has else 1 if "torch" in has else 0


def _unusable(named: str, cause: Message, advice: Message | None = None) -> Refusal:
    usual = phrase("Name an interpreter, the folder of an environment, or a conda environment with --python.")
    title = phrase("there is no usable Python {python} on the host", python=named)
    return Refusal("python", title, cause, advice or usual)
