"""A message that a log cuts off within a name, or that says nothing, completed from the line of code that failed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patcher.diagnose.exception_message import DOTTED, NAME, UNREADABLE_CODE, MessageParts
from patcher.diagnose.frame import distribution
from patcher.records.rules import DISTRIBUTIONS

_CUT = re.compile(
    rf"(?:No module named '(?P<module>{DOTTED}\.?)(?:\.\.\.|…)?"
    rf"|cannot import name '(?P<name>{DOTTED}\.?)(?:\.\.\.|…|')?)$"
)


def parse_cut_import(line: str, code: str) -> MessageParts | None:
    """Parse a message that is cut off within a name, as logs and titles often are, or that does not say from where a
    name was to be imported, as Python's up to 3.6 does not; the line of code completes it:

      from triton.ops.matmul_perf_model import early_config_prune
    ModuleNotFoundError: No module named 'triton.o              ▶ triton.ops.matmul_perf_model
    """
    found = _CUT.search(line.rstrip())
    imported = _imports(code) if found is not None else None
    if found is None or imported is None:
        return None
    cut, (module, names) = found["module"] or found["name"], imported
    if found["module"]:
        if not module.startswith(cut):
            return None
        # A package that is not there, or one whose release lacks the module, as far as the code names it.
        return MessageParts("missing-module", module if "." in cut else module.partition(".")[0])
    whole = [name for name in names if name.startswith(cut)]
    name = whole[0] if len(whole) == 1 else cut
    return MessageParts("missing-name", f"{module}.{name}", cut=len(whole) != 1)


_CUT_MODULE = re.compile(rf"cannot import name '(?P<name>{NAME})' from '(?P<cut>{DOTTED}\.?)(?:\.\.\.|…)?$")
_CUT_ATTRIBUTE = re.compile(
    rf"'(?P<kind>{DOTTED})' object has no attribute '(?P<cut>{NAME})(?:\.\.\.|…)?$"
    rf"|module '(?P<module>{DOTTED})' has no attribute '(?P<of>{NAME})(?:\.\.\.|…)?$"
)


def parse_cut_name(line: str, codes: Sequence[str]) -> MessageParts | None:
    """Parse a message that is cut off within the module of an import, or within the name of an attribute. The lines of
    code, innermost last, complete it; of the name of an attribute the code has to show only one that begins so. A
    module that they do not show is taken as it stands, once its package is whole: `'kettle.lids.sp`."""
    line = line.rstrip()
    if (found := _CUT_MODULE.search(line)) is not None:
        for code in reversed(codes):
            imported = _imports(code)
            if imported is not None and imported[0].startswith(found["cut"]) and found["name"] in imported[1]:
                return MessageParts("missing-name", f"{imported[0]}.{found['name']}")
        module = found["cut"].rstrip(".")
        if "." not in found["cut"] and distribution(module) not in DISTRIBUTIONS:
            return None
        return MessageParts("missing-name", f"{module}.{found['name']}", cut=True)
    if (found := _CUT_ATTRIBUTE.search(line)) is None:
        return None
    cut = found["cut"] or found["of"]
    for code in reversed(codes):
        whole = set(re.findall(rf"\.({re.escape(cut)}\w*)", code))
        if len(whole) == 1:
            (name,) = whole
            if found["module"]:
                return MessageParts("missing-name", f"{found['module']}.{name}")
            return MessageParts("missing-attribute", found["kind"], (name,))
    return None


_OF_TASK = re.compile(rf"\b(?:RayTaskError\((?P<name>{NAME})\): |raised in its creation task, )ray::")


def parse_cut_task(line: str) -> MessageParts | None:
    """Parse the line in which Ray names a task above its frames, where the log ends within these:

    ray.exceptions.RayTaskError(NotImplementedError): ray::TaskRunner.run() (pid=2991, ip=10.0.0.1)
    """
    found = _OF_TASK.search(line)
    return MessageParts("cut", names=(found["name"],) if found["name"] else ()) if found is not None else None


def completed(line: str, parts: MessageParts) -> str:
    """The line that is cut off within a name, with the whole name, as other people's logs have it."""
    module, _, name = parts.symbol.rpartition(".")
    whole = f"No module named '{parts.symbol}'"
    if parts.matter == "missing-name":
        whole = f"cannot import name '{name}' from '{module}'"
    return _CUT.sub(lambda _: whole, line.rstrip())


def _imports(code: str) -> tuple[str, list[str]] | None:
    """The module of an import statement, and the names imported from it; no names where they follow on further
    lines."""
    try:
        (node,) = ast.parse(re.sub(r"\($", "(_)", code.strip())).body
    except UNREADABLE_CODE:
        return None
    match node:
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return module, [one.name for one in names]
        case ast.Import(names=[ast.alias(name=module)]):
            return module, []
    return None


_REQUIRES = re.compile(
    r"\brequire_version(?:_core)?\([\"'](?P<name>[\w.-]+)\s*(?P<wanted>[<>=!~][^\"']*)[\"']", re.IGNORECASE
)


def parse_requirement(code: str) -> MessageParts | None:
    """What transformers' `require_version` has refused, where the log ends at the line that calls it:

    require_version("trl>=0.8,<=0.9.6", "To fix: pip install trl>=0.8,<=0.9.6")
    """
    found = _REQUIRES.search(code)
    return (
        MessageParts("version", names=(found["name"],), wanted=found["wanted"].strip()) if found is not None else None
    )


def parse_stopped(line: str, code: str) -> MessageParts | None:
    """What a StopIteration is about: the argument of `next(…)`, which had no first element."""
    if not re.fullmatch(r"StopIteration:?", line.strip()):
        return None
    try:
        asked = [
            ast.unparse(node.args[0])
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args
        ]
    except UNREADABLE_CODE:
        return None
    return MessageParts("empty", names=(asked[0],)) if len(asked) == 1 else None
