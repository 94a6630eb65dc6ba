"""What tests of versions and features come to on a target."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.names import EvalContext, summaries_of
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.expressions import expression
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import judge

PACKAGE = """
from dataclasses import dataclass

@dataclass
class Args:
    model: str
    enable_log_requests: bool = False

def build(args, *, kind=None): ...
"""

HELPERS = """
import importlib.metadata
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from packaging import version as vs
import vllm

LEVEL = 1
if vs.parse(vllm.__version__) >= vs.parse("0.8.5"):
    LEVEL = 2

def get_version(pkg):
    try:
        return version(pkg)
    except PackageNotFoundError:
        return None

def is_version_ge(pkg: str = "vllm", minver: str = "0.7.3"):
    return vs.parse(get_version(pkg)) >= vs.parse(minver)

@lru_cache
def in_range(min_version=None, max_version=None):
    try:
        text = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError as e:
        raise ModuleNotFoundError("transformers") from e
    found = vs.parse(text)
    lower = True
    if min_version is not None:
        lower = vs.parse(min_version) <= found
    upper = True
    if max_version is not None:
        upper = found <= vs.parse(max_version)
    return lower and upper

def has_flash():
    try:
        import flash_attn
    except ImportError:
        return False
    return True
"""

FILE = """
import inspect
import importlib.util
import dataclasses
import vllm
import packaging.version
from packaging import version
from packaging.version import Version as V, parse as parse_version
from importlib.metadata import version as installed
from verl.helpers import LEVEL, get_version, is_version_ge, in_range, has_flash
from verl import helpers
from vllm.engine import Args, build

_VLLM_VERSION = version.parse(vllm.__version__)
_NEW = _VLLM_VERSION >= version.parse("0.12.0")

def place(unknown):
    fn_args = set(dict(inspect.signature(build).parameters).keys())
    current = get_version("vllm")
    minver = "0.11.0"
    pass
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {"verl/__init__.py": "", "verl/helpers.py": HELPERS, "verl/file.py": FILE}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm/__init__.py").write_text("")
    (tmp_path / "vllm/engine.py").write_text(PACKAGE)
    return tmp_path


def holds(root: Path, test: str, version: str = "0.12.0", **others: str | None) -> bool | None:
    project = Project(root)
    versions = {"vllm": version, "transformers": "4.57.6", "flash-attn": None, **others}
    target = Target({"vllm": version}, {"vllm": Symbols(root / "vllm")}, versions)
    program = Program(project, target, judge)
    summary = summaries_of(project).file("verl/file.py")
    assert summary is not None
    evaluator = Evaluator(summaries_of(project), TargetQueries(program))
    return evaluator.holds(expression(ast.parse(test, mode="eval").body), EvalContext(summary, "place"))


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("_VLLM_VERSION >= version.parse('0.12.0')", True),
        ("_VLLM_VERSION > version.parse('0.12.0')", False),
        ("_NEW", True),
        ("not _NEW", False),
        ("V(vllm.__version__) < V('0.12.0')", False),
        ("packaging.version.parse(vllm.__version__) == parse_version('0.12')", True),
        ("version.parse('0.11.0') < _VLLM_VERSION <= version.parse('0.12.0')", True),
        ("parse_version(installed('vllm')) in [parse_version('0.5.4'), parse_version('0.6.3')]", False),
        ("_VLLM_VERSION.release >= (0, 12)", True),
        ("(_VLLM_VERSION.major, _VLLM_VERSION.minor) < (0, 11)", False),
        ("_VLLM_VERSION.base_version == '0.12.0'", True),
        ("tuple(int(x) for x in vllm.__version__.split('.')[:2]) >= (0, 12)", True),
        ("tuple(map(int, vllm.__version__.split('.')[:2])) < (0, 12)", False),
        ("vllm.__version__.startswith('0.12')", True),
        ("LEVEL == 2", True),
        ("is_version_ge(pkg='vllm', minver='0.7.3')", True),
        ("is_version_ge(minver='0.25.0')", False),
        ("helpers.is_version_ge('vllm', '0.25.0')", False),
        ("in_range(min_version='4.52.0')", True),
        ("in_range(max_version='4.53.3')", False),
        ("get_version('flash-attn') is None", True),
        ("not current", False),
        ("version.parse(current) >= version.parse(minver)", True),
        ("has_flash()", False),
        ("importlib.util.find_spec('flash_attn') is not None", False),
        ("importlib.util.find_spec('vllm') is None", False),
        ("importlib.util.find_spec('vllm.gone') is not None", False),
        ("hasattr(vllm, 'engine')", True),
        ("hasattr(Args, 'gone')", False),
        ("'kind' in inspect.signature(build).parameters", True),
        ("'kind' in fn_args", True),
        ("len(inspect.signature(build).parameters) == 2", True),
        ("len(inspect.signature(build).parameters) > 2", False),
        ("'config' in fn_args", False),
        ("'enable_log_requests' in Args.__dataclass_fields__", True),
        ("'disable_log_requests' in {f.name for f in dataclasses.fields(Args)}", False),
        ("unknown or _NEW", True),
        ("unknown and not _NEW", False),
    ],
)
def test_is_told(tree: Path, test: str, told: bool) -> None:
    assert holds(tree, test) is told


@pytest.mark.parametrize(
    "test",
    [
        "unknown",
        "unknown and _NEW",
        "unknown or not _NEW",
        "installed('nowhere') > '1'",
        "len(unknown) > 2",
        "len(inspect.signature(Args).parameters) == 1",
    ],
)
def test_is_left_open(tree: Path, test: str) -> None:
    assert holds(tree, test) is None


def test_a_release_candidate_comes_before_its_release(tree: Path) -> None:
    assert holds(tree, "_VLLM_VERSION >= version.parse('0.12.0')", "0.12.0rc1") is False
    assert holds(tree, "_VLLM_VERSION.release >= (0, 12)", "0.12.0rc1") is True
    assert holds(tree, "_VLLM_VERSION >= version.parse('0.12.0')", "0.12.1.dev3+g1a2b3c4.cu129") is True


def test_a_package_that_is_not_installed_fails_the_helper(tree: Path) -> None:
    assert holds(tree, "in_range(min_version='4')", transformers=None) is False
