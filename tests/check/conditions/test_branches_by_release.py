"""A fork with a copy of vLLM's classes for each old release: what the target's branch binds is what runs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from patcher.analysis.findings import Finding
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair

SHIMS = "verl/third_party/vllm/__init__.py"
ROLLOUT = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
OLD = "verl/third_party/vllm/vllm_v_0_5_4/llm.py"
VERSION = """
from importlib.metadata import PackageNotFoundError, version
from packaging import version as vs

def get_version(pkg):
    try:
        return version(pkg)
    except PackageNotFoundError:
        return None

package_version = get_version("vllm")
"""
BY_VERSION = """
if package_version == "0.5.4":
    from .vllm_v_0_5_4.llm import LLM
elif vs.parse(package_version) >= vs.parse("0.7.0"):
    from vllm import LLM
"""
LLM_0_5_4 = """
from vllm.engine.old import Engine
from vllm import LLM as Base

class LLM(Base):
    def generate(self, prompts):
        Engine.gone()

    def offload(self): ...
"""
USER = """
from verl.third_party.vllm import LLM

class vLLMReplica:
    def __init__(self):
        self.llm = LLM("model")
        self.llm.offload()
        self.llm.generate([], prompt_token_ids=[])
"""
VLLM = """
class LLM:
    def __init__(self, model): ...
    def generate(self, prompts): ...
"""


def findings(root: Path, files: dict[str, str], version: str = "0.20.2", vllm: str = VLLM) -> list[Finding]:
    packages = {"vllm/__init__.py": vllm, "vllm/engine/__init__.py": ""}
    for name, text in {**packages, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    for folder in [path.parent for path in root.rglob("verl/**/*.py")]:
        for above in (folder, *folder.parents):
            if above.is_relative_to(root / "verl"):
                (above / "__init__.py").touch()
    target = Target({"vllm": version}, {"vllm": Symbols(root / "vllm")}, {"vllm": version})
    return list(check_pair(Project(root), target, verl="0.3.0").findings)


def told(found: list[Finding]) -> list[tuple[str, int, str, str]]:
    return sorted((one.file.rpartition("/")[2], one.line, one.kind, one.severity) for one in found)


@pytest.mark.parametrize(
    "shims",
    [
        BY_VERSION,
        BY_VERSION.replace('package_version == "0.5.4"', 'package_version in ("0.5.4", "0.5.4+rocm624")'),
        BY_VERSION.replace('package_version == "0.5.4"', 'package_version.startswith("0.5.4")'),
    ],
)
def test_modules_for_other_releases_are_guarded_and_the_release_s_own_class_is_used(tmp_path: Path, shims: str) -> None:
    found = findings(tmp_path, {SHIMS: VERSION + shims, OLD: LLM_0_5_4, ROLLOUT: USER})
    assert told(found) == [
        ("llm.py", 2, "module-removed", "guarded"),
        ("vllm_async_server.py", 7, "attribute-removed", "break"),
        ("vllm_async_server.py", 8, "argument-removed", "break"),
    ]


def test_on_its_own_release_the_copy_runs(tmp_path: Path) -> None:
    found = findings(tmp_path, {SHIMS: VERSION + BY_VERSION, OLD: LLM_0_5_4, ROLLOUT: USER}, version="0.5.4")
    assert ("llm.py", 2, "module-removed", "break") in told(found)
    assert [one for one in found if one.file == ROLLOUT and one.kind == "attribute-removed"] == []


REFUSES = """
SHIMS = {"0.5.1": "0.5.4", "0.5.4": "0.5.4"}
known = SHIMS.get(package_version)
if known is None:
    raise ValueError(f"vLLM {package_version} is not supported")
if known == "0.5.4":
    from .vllm_v_0_5_4.llm import LLM
"""


def test_a_module_that_refuses_the_release_is_told_first(tmp_path: Path) -> None:
    found = findings(tmp_path, {SHIMS: VERSION + REFUSES, OLD: LLM_0_5_4, ROLLOUT: USER})
    assert (found[0].file, found[0].kind, found[0].severity) == (SHIMS, "import-raises", "break")
    assert "raises ValueError" in str(found[0].detail)
    assert {one.severity for one in found[1:]} <= {"guarded"}


def test_it_refuses_no_release_that_it_names(tmp_path: Path) -> None:
    found = findings(tmp_path, {SHIMS: VERSION + REFUSES, OLD: LLM_0_5_4, ROLLOUT: USER}, version="0.5.4")
    assert [one for one in found if one.kind == "import-raises"] == []


def test_a_raise_that_a_handler_catches_and_one_that_depends_on_no_release_are_not_told(tmp_path: Path) -> None:
    text = (
        VERSION
        + 'try:\n    if package_version != "1.0":\n        raise ValueError("no")\nexcept ValueError:\n    pass\n'
    )
    text += 'if len("a") > 2:\n    raise ValueError("no")\n'
    assert findings(tmp_path, {SHIMS: text, ROLLOUT: "import verl.third_party.vllm\n"}) == []


REASSIGNED = """
import os, re
if "ROCM_PATH" in os.environ:
    package_version = re.match(r"(\\\\d+)", package_version).group(1)
else:
    package_version = get_version("vllm")
if package_version <= "0.6.3":
    from .vllm_v_0_5_4.llm import LLM
else:
    from vllm import LLM
"""


def test_versions_compared_as_text_behind_a_name_that_is_assigned_again(tmp_path: Path) -> None:
    found = findings(tmp_path, {SHIMS: VERSION + REASSIGNED, OLD: LLM_0_5_4, ROLLOUT: USER})
    # "0.20.2" <= "0.6.3" is true, so that the old copy runs.
    assert ("__init__.py", 18, "version-compared-as-text", "break") in told(found)
    assert ("llm.py", 2, "module-removed", "break") in told(found)


def test_star_import_of_a_module_that_is_gone(tmp_path: Path) -> None:
    found = findings(tmp_path, {ROLLOUT: "from vllm.engine.gone import *\n"})
    assert told(found) == [("vllm_async_server.py", 1, "module-removed", "break")]


def test_an_executor_that_an_environment_variable_chooses(tmp_path: Path) -> None:
    server = """
    import os
    from vllm import Executor

    class Ray(Executor):
        def run(self): ...

    class Plain(Executor):
        def run(self): ...

    class vLLMReplica:
        def __init__(self):
            backend = os.environ.get("BACKEND", "plain")
            if backend == "ray":
                self.kind = Ray
            elif backend == "plain":
                self.kind = Plain
    """
    vllm = "class Executor:\n    def run(self, block): ...\n\ndef start(executor):\n    executor.run(block=True)\n"
    found = findings(tmp_path, {ROLLOUT: server}, vllm=vllm)
    assert [(line, severity) for _, line, _, severity in told(found)] == [(6, "optional"), (9, "break")]


def test_a_class_that_is_passed_in_may_be_the_tree_s_own(tmp_path: Path) -> None:
    server = """
    from vllm import Executor

    class Own(Executor):
        def __init__(self, model, port): ...
        def offload(self): ...

    class vLLMReplica:
        def __init__(self, kind: type[Executor]):
            self.executor = kind(1, 2)
            self.executor.offload()
            self.executor.vanish()
    """
    found = findings(tmp_path, {ROLLOUT: server}, vllm="class Executor:\n    def __init__(self, model): ...\n")
    assert [(one.line, one.symbol) for one in found] == [(12, "vllm.Executor.vanish")]


def test_what_an_inherited_method_gives_where_the_tree_overrides_its_parts(tmp_path: Path) -> None:
    vllm = """
    class Output:
        text = ""

    class LLM:
        def generate(self) -> Output:
            return self._run()
        def _run(self) -> Output: ...
    """
    server = """
    from vllm import LLM as Base

    class LLM(Base):
        def _run(self):
            return [1]

    class vLLMReplica:
        def __init__(self):
            LLM().generate().to("cuda")
            Base().generate().to("cuda")
    """
    found = findings(tmp_path, {ROLLOUT: server}, vllm=vllm)
    assert [(one.line, one.kind) for one in found] == [(11, "attribute-removed")]


def test_an_override_with_a_parameter_that_only_the_tree_passes(tmp_path: Path) -> None:
    vllm = """
    class Executor:
        def __init__(self):
            self._start()
        def _start(self): ...
    """
    server = """
    from vllm import Executor

    class Own(Executor):
        def __init__(self, model):
            self._start(model)
        def _start(self, model): ...

    class Inheriting(Executor):
        def _start(self, model): ...

    class vLLMReplica:
        def __init__(self):
            Own(1)
            Inheriting()
    """
    found = findings(tmp_path, {ROLLOUT: server}, vllm=vllm)
    assert {one.kind for one in found} == {"override-mismatch"}
    severities = {one.line: one.severity for one in found}
    assert severities.pop(7) == "guarded"
    assert severities.keys() == {10}
    assert severities[10] != "guarded"


@pytest.mark.parametrize(
    "chosen",
    [
        "    if at_least('0.14'):\n        fn = for_vllm14\n    else:\n        fn = for_vllm10\n",
        "    fn = for_vllm14 if at_least('0.14') else for_vllm10\n",
    ],
)
def test_a_function_that_a_test_of_versions_chooses_on_other_releases(tmp_path: Path, chosen: str) -> None:
    text = VERSION + "def at_least(minimum):\n    return vs.parse(package_version) >= vs.parse(minimum)\n\n"
    text += (
        "def for_vllm10(layer):\n    from vllm.gone import A\n\ndef for_vllm14(layer):\n    from vllm.gone import B\n\n"
    )
    text += f"def apply_fp8_patches():\n{chosen}    return fn\n"
    found = findings(tmp_path, {"verl/utils/fp8_patches.py": text, ROLLOUT: "import verl.utils.fp8_patches\n"})
    assert [(one.line, one.severity) for one in found] == [(16, "guarded"), (19, "optional")]
