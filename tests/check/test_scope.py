"""What of a checkout `check` judges beside verl/, and which program runs it, on small trees."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from patcher.analysis.findings import Finding
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.enclosing import enclosing
from patcher.check.entries import open_project
from patcher.check.pair import check_pair

if TYPE_CHECKING:
    import pytest

GONE = "from vllm.gone import X\n"
RECIPE = "import hydra\nfrom recipe.x.trainer import T\n\ndef main(config):\n    T().fit()\n"
STARTS = "if __name__ == '__main__':\n    main()\n"


def findings(root: Path, against: str = "vllm", **others: str) -> dict[str, Finding]:
    """By file, on a vLLM that has `vllm.there` alone. `a__b.py` is `a/b.py`, and `a/__init__.py` stays as it is."""
    files = {
        "verl/__init__.py": "",
        "verl/trainer/__init__.py": "",
        "verl/trainer/main_ppo.py": "def main():\n    pass\n",
        "verl/trainer/config/ppo_trainer.yaml": "trainer:\n  nnodes: 1\n",
    }
    files |= {name if "/" in name else name.replace("__", "/"): text for name, text in others.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    package = root.parent / "sources/vllm"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "there.py").write_text("class Engine: ...\n")
    target = Target({"vllm": "1"}, {"vllm": Symbols(package)}, {"vllm": "1"})
    project, _ = open_project(root, target.against, target.words, around=enclosing(root))
    return {finding.file: finding for finding in check_pair(project, target, verl="0.7.0").findings}


def test_a_recipe_that_a_run_script_starts_breaks_and_is_told_with_its_program(tmp_path: Path) -> None:
    scripts = {"recipe__x__run.sh": "python3 -m recipe.x.main_x \\\n  trainer.nnodes=1\n"}
    files = {"recipe__x__main_x.py": RECIPE + STARTS, "recipe__x__trainer.py": GONE}
    found = findings(tmp_path / "fork", **files, **scripts)["recipe/x/trainer.py"]
    assert found.severity == "break"
    assert found.entry == "recipe/x/main_x.py (recipe/x/run.sh)"


def test_a_recipe_that_no_run_script_starts_is_optional(tmp_path: Path) -> None:
    found = findings(tmp_path / "fork", **{"recipe__x__main_x.py": RECIPE + STARTS, "recipe__x__trainer.py": GONE})
    assert (found["recipe/x/trainer.py"].severity, found["recipe/x/trainer.py"].entry) == ("optional", "")


def test_a_method_that_a_program_calls_by_its_name_runs(tmp_path: Path) -> None:
    for call, severity in (('method_name="build"', "break"), ('label="build"', "optional")):
        files = {
            "recipe__x__main_x.py": f"from recipe.x.trainer import T\n\ndef main():\n    group(T).map({call})\n"
            + STARTS,
            "recipe__x__trainer.py": f"class T:\n    def build(self):\n        {GONE}",
            "recipe__x__run.sh": "python3 -m recipe.x.main_x\n",
        }
        assert findings(tmp_path / severity / "fork", **files)["recipe/x/trainer.py"].severity == severity


def test_programs_are_read_however_a_script_starts_them(tmp_path: Path) -> None:
    ways = [
        "python3 recipe/x/main_x.py trainer.nnodes=1",
        "python recipe/x/main_x.py",
        "torchrun --nproc_per_node=8 -m recipe.x.main_x",
        "torchrun --nproc_per_node=8 $HOME/fork/recipe/x/main_x.py",
        "ray job submit --working-dir . -- python3 -m recipe.x.main_x",
        "PYTHONUNBUFFERED=1 nohup python -u -m recipe.x.main_x > log 2>&1 &",
        "cd recipe/x; python main_x.py",
    ]
    for number, way in enumerate(ways):
        files = {"recipe__x__main_x.py": RECIPE, "recipe__x__trainer.py": GONE, "recipe__x__run.sh": f"{way}\n"}
        found = findings(tmp_path / str(number) / "fork", **files)
        assert found["recipe/x/trainer.py"].severity == "break", way


def test_a_script_in_tests_or_documents_starts_nothing(tmp_path: Path) -> None:
    files = {"recipe__x__main_x.py": GONE, "tests__run.sh": "python3 -m recipe.x.main_x\n"}
    assert findings(tmp_path / "fork", **files)["recipe/x/main_x.py"].severity == "optional"


def test_the_plain_job_keeps_its_own_path_and_names_no_program(tmp_path: Path) -> None:
    files = {
        "verl__trainer__main_ppo.py": "from recipe.own.reward import score\n\ndef main():\n    score()\n",
        "recipe__own__reward.py": GONE,
        "examples__run.sh": "python3 -m verl.trainer.main_ppo\n",
    }
    found = findings(tmp_path / "fork", **files)["recipe/own/reward.py"]
    assert (found.severity, found.entry) == ("break", "")


def test_another_program_of_the_package_counts_where_a_script_starts_it(tmp_path: Path) -> None:
    files = {"verl__trainer__main_eval.py": GONE}
    assert findings(tmp_path / "a" / "fork", **files)["verl/trainer/main_eval.py"].severity == "optional"
    files["examples__eval.sh"] = "python3 -m verl.trainer.main_eval data.path=x\n"
    found = findings(tmp_path / "b" / "fork", **files)["verl/trainer/main_eval.py"]
    assert (found.severity, found.entry) == ("break", "verl/trainer/main_eval.py (examples/eval.sh)")


def test_what_stands_under_main_of_a_module_that_is_only_imported_does_not_run(tmp_path: Path) -> None:
    trainer = "class T: ...\n\nif __name__ == '__main__':\n    from vllm.gone import X\n"
    files = {"recipe__x__main_x.py": RECIPE, "recipe__x__trainer.py": trainer}
    files["recipe__x__run.sh"] = "python3 -m recipe.x.main_x\n"
    assert findings(tmp_path / "a" / "fork", **files)["recipe/x/trainer.py"].severity == "optional"
    files["recipe__x__demo.sh"] = "python3 recipe/x/trainer.py\n"
    assert findings(tmp_path / "b" / "fork", **files)["recipe/x/trainer.py"].severity == "break"


def test_a_program_imports_modules_beside_it_by_their_bare_names(tmp_path: Path) -> None:
    files = {
        "recipe__x__main_x.py": "from engine import E\n\nif __name__ == '__main__':\n    E().run()\n",
        "recipe__x__engine.py": "class E:\n    def run(self):\n        from vllm.gone import X\n",
        "recipe__x__start.sh": "python main_x.py\n",
    }
    found = findings(tmp_path / "fork", **files)["recipe/x/engine.py"]
    assert (found.severity, found.line) == ("break", 3)


def test_a_name_is_followed_through_packages_beside_verl(tmp_path: Path) -> None:
    files = {
        "serve__engine.py": "from vllm.there import Engine\n",
        "scripts__serve.py": "import vllm\nfrom serve.engine import Engine\nEngine().lost\n",
    }
    assert findings(tmp_path / "fork", **files)["scripts/serve.py"].kind == "attribute-removed"


def test_configuration_that_names_a_class_selects_it(tmp_path: Path) -> None:
    agent = "class Agent:\n    def __init__(self):\n        from vllm.gone import X\n"
    main = "python -m verl.trainer.main_ppo"
    ways = [
        (
            f"{main} rollout.agent.config=recipe/own/agent.yaml",
            "- name: own\n  _target_: recipe.own.agent.Agent\n",
        ),
        (f"{main} tools.config=recipe/own/agent.yaml", "tools:\n  - class_name: 'recipe.own.agent.Agent'\n"),
        (f"{main} data.config=recipe/own/agent.yaml", "data:\n  cls: {path: recipe/own/agent.py, name: Agent}\n"),
        (f"{main} data.custom_cls.path=recipe/own/agent.py data.custom_cls.name=Agent", ""),
        (f"{main} +rollout.cls=recipe.own.agent.Agent", ""),
    ]
    for number, (way, settings) in enumerate(ways):
        files = {"recipe__own__agent.py": agent, "examples__run.sh": f"{way}\n", "recipe__own__agent.yaml": settings}
        found = findings(tmp_path / str(number) / "fork", **files)["recipe/own/agent.py"]
        assert (found.severity, found.entry) == ("break", "examples/run.sh"), way


MAIN_WITH_MODES = """
    import hydra

    @hydra.main(config_path="config", config_name="ppo_trainer")
    def main(config):
        TaskRunner().run(config)

    class TaskRunner:
        def run(self, config):
            if config.actor_rollout_ref.rollout.mode == "sync":
                pass
            elif config.actor_rollout_ref.rollout.mode == "with_tools":
                from verl.workers.with_tools import Rollout
                Rollout().generate()
"""
WITH_TOOLS = """
    class Rollout:
        def generate(self):
            waiting = []
            waiting.append(1)
            while waiting:
                from vllm.gone import X
"""


def test_a_mode_of_the_rollout_that_only_the_fork_has_runs_where_its_scripts_give_it(tmp_path: Path) -> None:
    """ARPO adds `sync_with_tool`, with a class of its own. What fills a list before its test is not followed."""
    files = {"verl__trainer__main_ppo.py": MAIN_WITH_MODES, "verl__workers__with_tools.py": WITH_TOOLS}
    main, mode = "python3 -m verl.trainer.main_ppo", "actor_rollout_ref.rollout.mode"
    ways = {
        "a": (f"{main} {mode}=with_tools", "break", "own.sh"),
        "b": (f"MODE=with_tools\n{main} {mode}=$MODE", "break", "own.sh"),
        "c": (f"{main} {mode}=sync", "optional", ""),
        "d": (main, "optional", ""),
    }
    for folder, (script, severity, entry) in ways.items():
        found = findings(tmp_path / folder / "fork", **files, **{"own.sh": f"{script}\n"})["verl/workers/with_tools.py"]
        assert (found.severity, found.entry) == (severity, entry), script


def test_a_recipes_own_configuration_selects_classes(tmp_path: Path) -> None:
    main = "import hydra\n\n@hydra.main(config_path='config', config_name='own')\ndef main(config): ...\n"
    files = {
        "recipe__x__main_x.py": main,
        "recipe__x__config__own.yaml": "data:\n  _target_: recipe.x.data.Dataset\n",
        "recipe__x__data.py": "class Dataset:\n    def __init__(self):\n        from vllm.gone import X\n",
        "recipe__x__run.sh": "python3 -m recipe.x.main_x\n",
    }
    assert findings(tmp_path / "fork", **files)["recipe/x/data.py"].severity == "break"


def test_tests_environments_builds_and_copies_of_packages_are_not_judged(tmp_path: Path) -> None:
    not_judged = {
        "tests__test_x.py": GONE,
        "recipe__x__tests__y.py": GONE,
        "docs__conf.py": GONE,
        "build__lib__x.py": GONE,
        ".venv__lib__x.py": GONE,
        "myenv__pyvenv.cfg": "",
        "myenv__lib__x.py": GONE,
        "setup.py": GONE,
        "test_quick.py": GONE,
        "third_party__vllm__setup.py": "",
        "third_party__vllm__vllm__init__.py": GONE,
        "third_party__Megatron-LM__setup.py": "",
        "third_party__Megatron-LM__megatron__core.py": GONE,
        "other__verl__init__.py": "",
        "other__verl__x.py": GONE,
    }
    not_judged = {name.replace("__init__", "//init//"): text for name, text in not_judged.items()}
    named = {name.replace("__", "/").replace("//init//", "/__init__"): text for name, text in not_judged.items()}
    named["third_party/Megatron-LM/megatron/__init__.py"] = ""
    root = tmp_path / "fork"
    for name, text in named.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert set(findings(root, **{"judged.py": GONE})) == {"judged.py"}
    _, around = open_project(root, ("vllm",), ("vllm",))
    assert around.copies == ("third_party/Megatron-LM", "third_party/vllm")
    assert around.trees == ("other",)


def test_what_a_package_has_of_its_own_for_another_one_is_no_copy_of_that(tmp_path: Path) -> None:
    files = {
        "verl_ascend/__init__.py": "",
        "verl_ascend/utils/__init__.py": "",
        "verl_ascend/utils/vllm/__init__.py": "from .patch import use\n",
        "verl_ascend/utils/vllm/patch.py": GONE,
        "verl_ascend/utils/ray/__init__.py": "__version__ = '2.0'\n",
        "verl_ascend/utils/ray/x.py": GONE,
        "verl_ascend/utils/sglang/__init__.py": "",
        "verl_ascend/utils/sglang/version.py": "",
        "verl_ascend/utils/sglang/x.py": GONE,
        "verl_ascend/third_party/__init__.py": "",
        "verl_ascend/third_party/vllm/__init__.py": "",
        "verl_ascend/third_party/vllm/x.py": GONE,
    }
    root = tmp_path / "fork"
    assert set(findings(root, **files)) == {"verl_ascend/utils/vllm/patch.py"}
    _, around = open_project(root, ("vllm",), ("vllm",))
    copies = ("verl_ascend/third_party/vllm", "verl_ascend/utils/ray", "verl_ascend/utils/sglang")
    assert around.copies == copies


def test_a_package_under_another_name_has_the_same_plain_job(tmp_path: Path) -> None:
    root = tmp_path / "fork"
    files = {
        "uky-patch.toml": 'marker = "Own"\npackage = "myrl"\n[pins]\nvllm = "1"\n',
        "myrl/__init__.py": "",
        "myrl/trainer/main_ppo.py": "def main():\n    from myrl.engine import run\n    run()\n",
        "myrl/engine.py": "def run():\n    from vllm.gone import X\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = findings(root)
    assert (found["myrl/engine.py"].severity, found["myrl/engine.py"].entry) == ("break", "")


def project_around(folder: Path, files: dict[str, str]) -> Path:
    """A git repository of a project at `folder`, and where a tree two levels down is to be put."""
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder / "third_party/verl"


def test_the_project_around_a_tree_is_judged_where_it_uses_the_tree(tmp_path: Path) -> None:
    tree = project_around(
        tmp_path / "project",
        {
            "agents/main.py": "from agents.helper import H\nimport verl.trainer\n\nH().run()\n",
            "agents/helper.py": "import tools\n\nclass H:\n    def run(self):\n        from vllm.gone import X\n",
            "tools.py": GONE,
            "jobs/run.sh": "python -m agents.main\n",
            "another/x.py": GONE,
            "tests/test_x.py": f"import verl\n{GONE}",
        },
    )
    found = findings(tree)
    assert {file: one.severity for file, one in found.items()} == {
        "../../agents/helper.py": "break",
        "../../tools.py": "break",
    }
    assert found["../../tools.py"].entry == "../../agents/main.py (../../jobs/run.sh)"


def test_a_script_of_the_project_starts_programs_of_the_tree(tmp_path: Path) -> None:
    ways = ["cd third_party/verl && python -m recipe.x.main_x", "python third_party/verl/recipe/x/main_x.py"]
    for number, way in enumerate(ways):
        tree = project_around(tmp_path / str(number), {"train.py": "import verl\n", "jobs/run.sh": f"{way}\n"})
        found = findings(tree, **{"recipe__x__main_x.py": GONE})
        assert found["recipe/x/main_x.py"].entry == "recipe/x/main_x.py (../../jobs/run.sh)", way


def test_of_two_modules_with_one_name_the_trees_own_counts(tmp_path: Path) -> None:
    files = {"scripts/a.py": f"import verl\n{GONE}", "scripts/b.py": f"import scripts.a\n{GONE}"}
    tree = project_around(tmp_path / "project", files)
    assert set(findings(tree, **{"scripts__a.py": ""})) == {"../../scripts/b.py"}


def test_a_submodule_has_a_project_around_it_and_a_clone_has_none(tmp_path: Path) -> None:
    project = tmp_path / "project"
    tree = project_around(project, {"train.py": f"import verl\n{GONE}"})
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    upstream = tmp_path / "upstream"
    findings(upstream)  # Writes the tree.
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "verl"]):
        subprocess.run([*git, *words], cwd=upstream, check=True)
    subprocess.run([*git, "submodule", "--quiet", "add", str(upstream), "third_party/verl"], cwd=project, check=True)
    assert set(findings(tree)) == {"../../train.py"}
    subprocess.run([*git, "clone", "-q", str(upstream), "clone"], cwd=project, check=True)
    assert findings(project / "clone") == {}


def test_a_cache_and_a_home_are_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    tree = project_around(project, {"train.py": f"import verl\n{GONE}"})
    assert findings(project / ".cache/verl") == {}
    monkeypatch.setenv("HOME", str(project))
    assert findings(tree) == {}


def test_file_without_a_use_that_the_job_imports_and_that_is_no_python_is_named(tmp_path: Path) -> None:
    root = tmp_path / "fork"
    main = "from verl.trainer.rows import rows\nfrom vllm.gone import X\ndef main():\n    rows()\n"
    files = {
        "verl/trainer/main_ppo.py": main,
        "verl/trainer/rows.py": "def rows(:\n",
        "verl/trainer/other.py": "def other(:\n",
    }
    assert findings(root, **files)["verl/trainer/main_ppo.py"].severity == "break"
    package = tmp_path / "sources/vllm"
    target = Target({"vllm": "1"}, {"vllm": Symbols(package)}, {"vllm": "1"})
    project, _ = open_project(root, target.against, target.words)
    assert [file for file, _ in check_pair(project, target, verl="0.7.0").unreadable] == ["verl/trainer/rows.py"]
