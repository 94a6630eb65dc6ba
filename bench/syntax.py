"""`python -m bench.syntax`: what libcst's means and our own take on one file of verl, in milliseconds of CPU."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, QualifiedNameProvider

from bench.trees import release
from patcher.rewrite.source import Source, Trace
from patcher.worktree.python import require_shallow

FILE = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
_IMPORT = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def taken(work: Callable[[], object], rounds: int = 9) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return median(times) * 1000


def imported(module: str) -> float:
    """What importing a module takes in a process of its own."""
    command = [sys.executable, "-c", _IMPORT.format(module)]
    runs = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return median(runs) * 1000


def main() -> None:
    text = (release() / FILE).read_text(encoding="utf-8")
    module = cst.parse_module(text)
    keyword = m.Arg(keyword=m.Name("disable_log_requests"))
    call = m.Call(args=[m.ZeroOrMore(), keyword, m.ZeroOrMore()])
    name = next(name for name in Source(text, module, {}).everything if isinstance(name, cst.Name))
    providers = (PositionProvider, ParentNodeProvider, QualifiedNameProvider)
    print(f"{FILE}, {len(text.splitlines())} lines, libcst {cst.LIBCST_VERSION}, Python {sys.version.split()[0]}")
    figures: dict[str, Callable[[], object]] = {
        "ast.parse": lambda: ast.parse(text),
        "whether it is too deep": lambda: require_shallow(text),
        "parse_module": lambda: cst.parse_module(text),
        "Module.code": lambda: module.code,
        "code with spans": lambda: Trace(module).run([module]),
        "our index of nodes and parents": lambda: Source(text, module, {}).parents,
        "a visitor": lambda: module.visit(cst.CSTVisitor()),
        "Module.deep_replace": lambda: module.deep_replace(name, cst.Name("x")),
        "matchers.findall": lambda: m.findall(module, call),
        "providers": lambda: MetadataWrapper(module, unsafe_skip_copy=True).resolve_many(providers),
    }
    for what, work in figures.items():
        print(f"{what:<32}{taken(work):8.1f}")
    for package in ("libcst", "libcst.matchers"):
        print(f"{'import ' + package:<32}{imported(package):8.1f}")


if __name__ == "__main__":
    main()
