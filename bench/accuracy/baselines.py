"""Other tools on the same labels: type checkers run on the tree with the release's sources, and a library diff.

A tool's diagnostic counts for a label if it stands on one of the label's lines and is of the label's kind; for the
diff, if a broken symbol is one that the line uses.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.accuracy.environments import base
from bench.accuracy.environments import cache as folder_of_cache
from bench.accuracy.labels import FOLDER, WORKS_WITH, Label, labels
from bench.accuracy.ours import Judged
from patcher.packages.releases import sources

PAIRS = (
    ("0.6.1", "vllm", "0.12.0"),
    ("0.6.1", "vllm", "0.20.2"),
    ("0.7.0", "vllm", "0.20.2"),
    ("0.8.0", "vllm", "0.28.0"),
    ("0.9.1", "vllm", "0.20.2"),
    ("0.9.1", "vllm", "0.28.0"),
)
"""The tools take minutes a pair, so they are run on these; the table gives `check` on the same labels beside them."""
_KEPT = FOLDER.parent / "baselines.json"
_PLACE = dict[str, list[list[Any]]]

_RULES = {
    "import": {"unresolved-import", "import-not-found", "missing-attribute", "possibly-missing-submodule"}
    | {"reportMissingImports", "reportAttributeAccessIssue"},
    "attribute": {"unresolved-attribute", "missing-attribute", "possibly-missing-submodule", "unresolved-import"}
    | {"reportAttributeAccessIssue", "reportFunctionMemberAccess"},
    "keyword": {"unknown-argument", "no-matching-overload", "reportCallIssue"},
    "positional": {"missing-argument", "too-many-positional-arguments", "no-matching-overload", "reportCallIssue"},
    "override": {"invalid-method-override", "incompatible-method-override", "reportIncompatibleMethodOverride"},
}
"""What the type checkers call a name that is not there and arguments that do not bind; wrong types are no breaks."""


def kept() -> dict[str, list[Judged]]:
    """What the tools said when they were last run."""
    if not _KEPT.is_file():
        return {}
    return _judged(json.loads(_KEPT.read_text())["said"])


def run() -> dict[str, list[Judged]]:
    """Run them, keep what they say on the lines of labels, with their versions."""
    said: dict[str, dict[str, _PLACE]] = defaultdict(dict)
    for verl, package, version in PAIRS:
        lines = {(label.file, line) for label in labels(verl, package, version) for line in label.lines}
        for tool, places in (("ty", _ty), ("basedpyright", _pyright)):
            said[tool][f"{verl} {package} {version}"] = _on(places(verl, package, version), lines)
        said["griffe"][f"{verl} {package} {version}"] = _on(_griffe(verl, package, version), lines)
        print(verl, package, version, file=sys.stderr)
    versions = {tool: _version(tool) for tool in said}
    _KEPT.write_text(json.dumps({"versions": versions, "said": said}, separators=(",", ":")) + "\n")
    return _judged(said)


def _on(found: Iterator[tuple[str, int, str]], lines: set[tuple[str, int]]) -> _PLACE:
    places: _PLACE = defaultdict(list)
    for file, line, rule in found:
        if (file, line) in lines and [line, rule] not in places[file]:
            places[file].append([line, rule])
    return {file: sorted(rows) for file, rows in places.items() if rows}


def _judged(said: dict[str, dict[str, _PLACE]]) -> dict[str, list[Judged]]:
    judged: dict[str, list[Judged]] = {}
    for tool, by_pair in said.items():
        name = f"{tool} {_kept_version(tool)}".strip()
        judged[name] = []
        for pair, places in by_pair.items():
            verl, package, version = pair.split()
            for label in labels(verl, package, version):
                judged[name].append(Judged(label, "broken" if _hit(label, places) else "silent"))
    return judged


def _hit(label: Label, places: _PLACE) -> bool:
    for line, rule in places.get(label.file, ()):
        if line in label.lines:
            kind, _, name = rule.partition(" ")
            if label.symbol == name or (not name and kind in _RULES[label.kind]):
                return True
    return False


@cache
def _kept_version(tool: str) -> str:
    return str(json.loads(_KEPT.read_text())["versions"].get(tool, "")) if _KEPT.is_file() else ""


def _tool(name: str) -> str:
    """The tool's command, from an environment of its own."""
    folder = folder_of_cache() / "baselines"
    if not (folder / "bin" / name).is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "ty", "basedpyright", "griffe"], check=True)
    return str(folder / "bin" / name)


def _version(tool: str) -> str:
    done = subprocess.run([_tool(tool), "--version"], capture_output=True, text=True, check=False)
    words = [word for word in (done.stdout + done.stderr).split() if word[:1].isdigit()]
    return words[0] if words else ""


def _ty(verl: str, package: str, version: str) -> Iterator[tuple[str, int, str]]:
    root = sources("verl", verl)
    command = [
        _tool("ty"),
        "check",
        "--output-format",
        "gitlab",
        "--exit-zero",
        "--python",
        str(base()),
        "--project",
        str(root),
    ]
    command += ["--extra-search-path", str(sources(package, version)), *_files(verl, package, version)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    for each in json.loads(done.stdout or "[]"):
        place = each["location"]
        yield _relative(place["path"], root), place["positions"]["begin"]["line"], each["check_name"]


def _pyright(verl: str, package: str, version: str) -> Iterator[tuple[str, int, str]]:
    root = sources("verl", verl)
    with TemporaryDirectory() as folder:
        settings = {
            "include": _files(verl, package, version),
            "extraPaths": [str(sources(package, version)), str(root)],
            "pythonVersion": "3.11",
            "typeCheckingMode": "standard",
        }
        project = Path(folder) / "pyrightconfig.json"
        project.write_text(json.dumps(settings))
        command = [_tool("basedpyright"), "--outputjson", "--project", str(project), "--pythonpath", str(base())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        if each.get("severity") == "error" and each.get("rule"):
            yield _relative(each["file"], root), each["range"]["start"]["line"] + 1, each["rule"]


def _griffe(verl: str, package: str, version: str) -> Iterator[tuple[str, int, str]]:
    """Symbols that the diff from the release that verl was made for calls broken, where verl imports them."""
    broken = _breakages(package, WORKS_WITH[verl][package], version)
    for label in labels(verl, package, version):
        symbol = label.symbol.partition("(")[0]
        for line in label.lines:
            if label.kind in ("import", "attribute") and _within(symbol, broken["removed"]):
                yield label.file, line, f"import {symbol}"
            if label.kind in ("keyword", "positional") and label.symbol in broken["arguments"]:
                yield label.file, line, f"argument {label.symbol}"


def _within(symbol: str, gone: set[str]) -> bool:
    return any(symbol == each or symbol.startswith(f"{each}.") for each in gone)


@cache
def _breakages(package: str, old: str, new: str) -> dict[str, set[str]]:
    script = (
        "import sys,json,griffe\n"
        "load=lambda p:griffe.load(sys.argv[1],search_paths=[p],allow_inspection=False,resolve_aliases=False)\n"
        "found=[(type(b).__name__,b.obj.path,str(getattr(b.old_value,'name',''))) "
        "for b in griffe.find_breaking_changes(load(sys.argv[2]),load(sys.argv[3]))]\n"
        "print(json.dumps(found))\n"
    )
    python = str(Path(_tool("griffe")).parent / "python")
    command = [python, "-c", script, package, str(sources(package, old)), str(sources(package, new))]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    removed = {path for kind, path, _ in found if kind == "ObjectRemovedBreakage"}
    changed = {(path.removesuffix(".__init__"), name) for kind, path, name in found if kind.startswith("Parameter")}
    return {
        "removed": removed,
        "arguments": {f"{path}({name})" for path, name in changed} | {path for path, _ in changed},
    }


def _files(verl: str, package: str, version: str) -> list[str]:
    """The files that have labels."""
    root = sources("verl", verl)
    return sorted({str(root / label.file) for label in labels(verl, package, version)})


def _relative(path: str, root: Path) -> str:
    found = Path(path)
    return found.relative_to(root).as_posix() if found.is_absolute() else found.as_posix()
