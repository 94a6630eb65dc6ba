"""`python -m bench.self_control --python PYTHON`: does `check` call anything missing that is there?

Every package that is installed under an interpreter is what the packages around it were written for, and they run. So
each is taken for a target, and the installed packages that import it for trees; what `check` then calls missing is
looked for in that interpreter: the module is imported, the attribute read, the signature inspected. A finding that this
refutes is false. Exit code 1 where there is one.

The judging side uses `check`'s own functions. The looking side runs in the other interpreter and uses nothing of this
project.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair

_LISTING = """
import importlib.metadata as metadata, json
found = {}
for one in metadata.distributions():
    tops = {str(file).split("/")[0] for file in one.files or () if str(file).endswith("/__init__.py")}
    for top in tops:
        folder = one.locate_file(top)
        if (folder / "__init__.py").is_file():
            found[top] = [one.metadata["Name"].lower().replace("_", "-"), one.version, str(folder)]
print(json.dumps(found))
"""
"""Import name -> distribution, version and folder of every package that has an `__init__.py`."""

_LOOKING = '''
import contextlib, importlib, inspect, io, json, sys, warnings
warnings.simplefilter("ignore")

def reach(dotted):
    """What a dotted name leads to; None where the way there fails for another reason than that something is missing."""
    parts = dotted.split(".")
    here = importlib.import_module(parts[0])
    for at, name in enumerate(parts[1:], 2):
        try:
            here = getattr(here, name)
        except AttributeError:
            here = importlib.import_module(".".join(parts[:at]))
    return here

def look(kind, symbol):
    dotted, _, parameter = symbol.rstrip(")").partition("(")
    try:
        if kind in ("module-removed", "module-moved"):
            try:
                importlib.import_module(dotted)
                return "there"
            except ModuleNotFoundError:
                pass
        found = reach(dotted)
    except (AttributeError, ModuleNotFoundError) as error:
        missing = getattr(error, "name", None)
        # A module of another package that is not installed says nothing of the symbol.
        if isinstance(error, ModuleNotFoundError) and missing and missing.split(".")[0] != dotted.split(".")[0]:
            return "unknown"
        return "missing"
    except BaseException:
        return "unknown"
    if not parameter:
        return "there"
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return "unknown"
    if kind == "argument-required":
        one = parameters.get(parameter)
        return "missing" if one is not None and one.default is one.empty else "there"
    if kind != "argument-removed":
        return "unknown"
    taken = parameter in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return "there" if taken else "missing"

def imports(module):
    try:
        importlib.import_module(module)
        return "there"
    except BaseException:
        return "unknown"

for line in sys.stdin:
    kind, symbol = json.loads(line)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answer = imports(symbol) if kind == "imports" else look(kind, symbol)
    print(json.dumps(answer), flush=True)
'''
"""Reads `[kind, symbol]` a line and answers `there`, `missing` or `unknown`."""

_SECONDS = 120
"""How long one question may take. Importing transformers with all of torch takes 20 s on a busy machine."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A package under the interpreter, by its import name."""

    module: str
    name: str
    version: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one target."""

    package: str
    version: str
    users: int
    uses: int
    undecided: int
    seconds: float
    false: tuple[tuple[str, Finding], ...]
    """Findings that the interpreter refutes, each with the package that it is about."""
    misjudged: tuple[tuple[str, Finding], ...]
    """The thing is missing, but the finding says `break` of a module that can be imported."""
    true: tuple[tuple[str, Finding], ...]
    unknown: tuple[tuple[str, Finding], ...]


class Interpreter:
    """Questions to a Python of its own. One that ends it (a crash of C code) is answered `unknown`."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[tuple[str, str], str] = {}

    def installed(self) -> dict[str, Installed]:
        done = subprocess.run([self._python, "-c", _LISTING], capture_output=True, text=True, check=True, cwd="/")
        return {
            module: Installed(module, name, version, Path(folder))
            for module, (name, version, folder) in json.loads(done.stdout).items()
        }

    def ask(self, kind: str, symbol: str) -> str:
        key = (kind, symbol)
        if key not in self._known:
            self._known[key] = self._asked(key)
        return self._known[key]

    def _asked(self, key: tuple[str, str]) -> str:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [self._python, "-c", _LOOKING],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd="/",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(key), file=self._process.stdin, flush=True)
            return str(json.loads(self._process.stdout.readline()))
        except (OSError, ValueError):
            self.close()
            return "unknown"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def users_of(installed: Iterable[Installed], target: str) -> Iterator[tuple[Installed, list[str]]]:
    """The other packages that import the target, each with its files that do."""
    imports = re.compile(rb"^[ \t]*(?:from|import)[ \t]+%b\b" % target.encode(), re.MULTILINE)
    for one in installed:
        if one.module != target:
            files = [path for path in sorted(one.folder.rglob("*.py")) if imports.search(path.read_bytes())]
            if files:
                yield one, [path.relative_to(one.folder.parent).as_posix() for path in files]


def judged(target: Installed, installed: Collection[Installed], interpreter: Interpreter) -> Row:
    """Check every user of a package against it as it is installed, and look for what is called missing."""
    started = time.monotonic()
    symbols = Symbols(target.folder)
    versions: dict[str, str | None] = {one.name: one.version for one in installed}
    against = Target({target.module: target.version}, {target.module: symbols}, versions)
    users = uses = undecided = 0
    found: dict[str, list[tuple[str, Finding]]] = {"there": [], "missing": [], "unknown": [], "misjudged": []}
    for user, files in users_of(installed, target.module):
        project = Project(user.folder.parent, top=user.module, words=against.words)
        report = check_pair(project, against, verl="", files=files)
        users, uses, undecided = users + 1, uses + report.uses, undecided + len(report.unresolved)
        for finding in report.findings:
            if finding.kind.startswith(("module-", "symbol-", "argument-", "attribute-")):
                found[_answer(finding, interpreter)].append((user.module, finding))
    return Row(
        target.module,
        target.version,
        users,
        uses,
        undecided,
        time.monotonic() - started,
        tuple(found["there"]),
        tuple(found["misjudged"]),
        tuple(found["missing"]),
        tuple(found["unknown"]),
    )


def _answer(finding: Finding, interpreter: Interpreter) -> str:
    answer = interpreter.ask(finding.kind, finding.symbol)
    # What fails while a module is imported, and is called a break, must keep the module from being imported.
    if answer == "missing" and finding.severity == "break" and not finding.function:
        module = finding.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if interpreter.ask("imports", module) == "there":
            return "misjudged"
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.self_control", description=__doc__)
    parser.add_argument("names", nargs="*", help="import names of targets (default: every installed package)")
    parser.add_argument("--python", required=True, help="the interpreter of a training environment")
    parser.add_argument("--list", action="store_true", help="name the findings")
    given = parser.parse_args()
    interpreter = Interpreter(given.python)
    false = 0
    try:
        installed = interpreter.installed()
        if lacking := set(given.names) - set(installed):
            parser.error(f"not installed under {given.python}: {', '.join(sorted(lacking))}")
        print(
            f"{'package':<28}{'users':>6}{'uses':>8}{'undecided':>11}{'false':>7}{'severity':>9}{'true':>6}{'?':>5}{'s':>7}"
        )
        for name in given.names or sorted(installed):
            row = judged(installed[name], installed.values(), interpreter)
            if not row.users:
                continue
            false += len(row.false) + len(row.misjudged)
            print(
                f"{row.package + ' ' + row.version:<28}{row.users:>6}{row.uses:>8}{row.undecided:>11}"
                f"{len(row.false):>7}"
                f"{len(row.misjudged):>9}{len(row.true):>6}{len(row.unknown):>5}{row.seconds:>7.1f}",
                flush=True,
            )
            if given.list:
                _list(row)
    finally:
        interpreter.close()
    return 1 if false else 0


def _list(row: Row) -> None:
    for what in ("false", "misjudged", "true", "unknown"):
        for _, finding in getattr(row, what):
            print(
                f"  {what:<10}{finding.severity:<9}{finding.kind:<18}{finding.symbol:<60}{finding.file}:{finding.line}"
            )
        kinds = Counter(f"{one.kind} {one.severity}" for _, one in getattr(row, what))
        if kinds:
            print(f"  {what}: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}")


if __name__ == "__main__":
    sys.exit(main())
