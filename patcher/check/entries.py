"""The programs of a tree that its own run scripts start, and the classes that their configuration selects by name."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from patcher.analysis.conditions.job import ENTRIES, MODE
from patcher.analysis.configuration import load
from patcher.analysis.kept_readings import KeptReadings
from patcher.analysis.project import Entry, Project, ReadingCache, Scope
from patcher.analysis.syntax import module_name
from patcher.check.enclosing import Enclosing
from patcher.check.rules.config_keys import hydra_main
from patcher.check.scripts.command_lines import CommandLine
from patcher.check.scripts.shell import Command, Field, commands
from patcher.worktree import files
from patcher.worktree.verl_tree import Beside, beside, package_of

_MODULE = re.compile(r"-m\s+([\w.]+)")
_NAMES_A_FILE = re.compile(r"\.py\b|\.ya?ml\b|--config-name|=[\"']?[a-z]\w+(?:\.\w+)+\.[A-Z]")
"""A file of Python or of settings, a configuration, or a class: `+agent.cls=recipe.x.Agent`."""
_OWN_MODE = re.compile(rf"{re.escape(MODE)}=[\"']?(?!(?:a?sync)\b)\S")
"""A rollout in another mode than verl's two, or in that of a variable: `actor_rollout_ref.rollout.mode=${MODE}`."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MOST_ENTRIES = 200
"""Programs of one tree. Checkouts of verl start 5 to 30; each takes some milliseconds."""
_DEEPEST = 40
"""How deep a configuration is searched for names; those of verl nest 6 deep."""


def open_project(
    root: Path,
    against: Collection[str],
    words: Collection[str],
    known: ReadingCache | None = None,
    around: Enclosing | None = None,
) -> tuple[Project, Beside]:
    """The tree at `root` with what lies beside its package and what its run scripts start, and what was found there.

    `against` are the import names of the packages in question: a folder of such a name is none of the tree. `around`
    is the project that the tree lies in, whose files are judged and whose scripts start programs as the tree's own do.
    """
    found = beside(root)
    python, scripts, above = (around.python, around.scripts, around.above) if around is not None else ((), (), "")
    scope = Scope.of(found.python, above, python, without=against)
    known = known if known is not None else ReadingCache(kept=KeptReadings([root]))
    project = Project(root, known=known, top=package_of(root), words=words, scope=scope)
    project.scope = replace(scope, entries=entries_of(project, (*found.scripts, *scripts)))
    return project, found


def entries_of(project: Project, scripts: Iterable[str]) -> tuple[Entry, ...]:
    """What the scripts (paths below the root) start, each program once, with the first script that starts it.

    A script that starts the plain job counts where it gives it code of its own by name, such as a reward function.
    """
    found: dict[str, tuple[str, dict[str, None], str, str]] = {}
    plain = {project.renamed(module) for module, _ in ENTRIES[:1]}
    for script in scripts:
        for module, names, mode in _started(project, script, {*plain, *found}):
            if module not in plain:
                shown = f"{_file_of(project, module)} ({script})"
                found.setdefault(module, (module, {}, shown, ""))[1].update(dict.fromkeys(names))
            elif names or mode:
                # Each choice of its own: that two scripts choose different functions is told with the script.
                found.setdefault(" ".join((*names, mode)), ("", dict.fromkeys(names), script, mode))
    entries = (Entry(module, tuple(names), shown, mode) for module, names, shown, mode in found.values())
    return tuple(islice(entries, _MOST_ENTRIES))


def _started(project: Project, script: str, known: AbstractSet[str]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The modules that a script starts, what is selected for each, and the fork's own mode of the rollout, if it gives
    one. `known`: of these only the latter two are of use."""
    try:
        text = files.read_text(
            files.inside(project.folder_of(script), project.root / script), files.SETTINGS_BYTES, errors="replace"
        )
    except OSError:
        return
    # Taking a script apart takes a hundred times as long as this search, and most start the plain job and name no file.
    telling = _NAMES_A_FILE.search(text) is not None or _OWN_MODE.search(text) is not None
    if not telling and known >= set(_MODULE.findall(text)):
        return
    for command in commands(text):
        found = CommandLine(script, command.words).started() if isinstance(command, Command) else None
        if found is None:
            continue
        module = _module(project, script, found[0])
        if module is not None:
            given = _given(found[1])
            mode = given.get(MODE, "").strip("\"'")
            own = mode if mode.isidentifier() and mode not in ("sync", "async") else ""
            yield module, tuple(dict.fromkeys(_selected(project, script, module, given))), own


def _given(words: Sequence[Field]) -> dict[str, str]:
    """The values on a command line by their keys, `a.b` of `+a.b=1`."""
    return {key.lstrip("+"): value for key, _, value in (field.text.partition("=") for field in words) if value}


def _module(project: Project, script: str, written: str) -> str | None:
    """The tree's module that `-m written` or a path starts; None if it is none of the tree."""
    if not written.endswith(".py"):
        if not project.owns(written) or not _DOTTED.fullmatch(written):
            return None
        if project.content(_file_of(project, f"{written}.__main__")) is not None:
            return f"{written}.__main__"
        return written if _file_of(project, written) else None
    file = _in_tree(project, script, written)
    return module_name(file) if file is not None else None


def _file_of(project: Project, module: str) -> str:
    return next((file for file in project.files_of(module) if project.content(file) is not None), "")


def _in_tree(project: Project, script: str, written: str) -> str | None:
    """The file of the tree that a path in a script means.

    Most scripts are started in the root, some in their own folder. Of `${HOME}/fork/recipe/x/main.py` the longest end
    that is in the tree counts, where a folder is part of it: a mere `main.py` may lie anywhere. A script of the
    project around the tree is started in that project's root.
    """
    path = written.rpartition("}")[2].rpartition(")")[2].rpartition("$")[2].strip("\"'")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    own = posixpath.normpath(posixpath.join(posixpath.dirname(script), *parts))
    ends = ["/".join(parts[start:]) for start in range(max(len(parts) - 1, 1)) if ".." not in parts[start:]]
    above = project.scope.above
    if above and script.startswith(above):
        ends = [above + ends[0], *ends]
    return next((one for one in (*ends[:1], own, *ends[1:]) if one and _is_file(project, one)), None)


def _is_file(project: Project, path: str) -> bool:
    """Whether there is such a file in the tree, or in the project around it."""
    place = os.path.normpath(project.root / path)
    # `../../third_party/verl/recipe/x.py` of a script is the tree's own `recipe/x.py`, and told by that name.
    if path.startswith("../") and files.lies_in(place, project.root):
        return False
    return files.lies_in(place, project.folder_of(path)) and Path(place).is_file()


def _selected(project: Project, script: str, module: str, given: Mapping[str, str]) -> Iterator[str]:
    """The tree's classes and functions that a command line and the configuration that it names select."""
    for key, value in given.items():
        # `custom_reward_function.path=recipe/x/reward.py custom_reward_function.name=score`
        if value.endswith(".py") and (file := _in_tree(project, script, value)) is not None:
            name = given.get(f"{key.removesuffix('path')}name", "")
            yield f"{module_name(file)}.{name}" if name else module_name(file)
        elif value.endswith((".yaml", ".yml")) and (file := _in_tree(project, script, value)) is not None:
            yield from _selected_in(project, script, file)
        else:
            yield from _names(project, value)
    content = project.content(_file_of(project, module))
    main = hydra_main(content) if content is not None and b"hydra" in content else None
    # The configuration in the package is the plain job's, which its own values tell.
    if main is not None and not module.startswith(f"{project.top}."):
        folder = posixpath.dirname(_file_of(project, module))
        name = given.get("--config-name", main[1]).removesuffix(".yaml")
        yield from _selected_in(project, script, posixpath.normpath(f"{folder}/{main[0].as_posix()}/{name}.yaml"))


def _selected_in(project: Project, script: str, file: str) -> Iterator[str]:
    content = project.content(file) if _is_file(project, file) else None
    if content is not None:
        yield from _in_values(project, script, load(content.decode(errors="replace")), 0)


def _in_values(project: Project, script: str, value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        path = value.get("path")
        # `custom_cls: {path: recipe/x/dataset.py, name: Dataset}`
        if isinstance(path, str) and path.endswith(".py") and (file := _in_tree(project, script, path)) is not None:
            name = value.get("name")
            yield f"{module_name(file)}.{name}" if isinstance(name, str) else module_name(file)
        for inner in value.values():
            yield from _in_values(project, script, inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _in_values(project, script, inner, depth + 1)
    elif isinstance(value, str):
        yield from _names(project, value)


def _names(project: Project, value: str) -> Iterator[str]:
    """`_target_: recipe.x.agent.Agent`, `class_name: verl.tools.own.Tool`."""
    if _DOTTED.fullmatch(value) and project.owns(value):
        yield value
