"""How much a broken use matters, on small trees."""

from __future__ import annotations

import textwrap
from pathlib import Path

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import check_pair

SERVER = "verl/workers/rollout/vllm_rollout/vllm_async_server.py"
YAML = "rollout:\n  mode: async\n  quantization: null\n  cudagraph_capture_sizes: null\n  free_cache_engine: True\n"


def severities(root: Path, server: str, **others: str) -> dict[int, str]:
    """By line of the server's file, on a vLLM 0.20.2 that has `vllm.there` alone, with the class `Engine`."""
    files = {
        SERVER: server,
        "vllm/__init__.py": "__version__ = '0.20.2'\n",
        "verl/trainer/config/ppo_trainer.yaml": YAML,
    }
    files["vllm/there.py"] = "class Engine:\n    def __init__(self, model): ...\n    def run(self): ...\n"
    files |= {f"verl/{name}.py": text for name, text in others.items()}
    for name, text in files.items():
        path = root / name
        for folder in path.relative_to(root).parents:
            if str(folder).startswith("verl") and not str(folder).endswith("config"):
                (root / folder).mkdir(parents=True, exist_ok=True)
                (root / folder / "__init__.py").touch()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(root / "vllm")}, {"vllm": "0.20.2"})
    findings = check_pair(Project(root), target, verl="0.7.0").findings
    return {finding.line: finding.severity for finding in findings if finding.file == SERVER}


def test_an_import_of_the_module_breaks(tmp_path: Path) -> None:
    assert severities(tmp_path, "from vllm.gone import X\n") == {1: "break"}


def test_an_import_that_is_caught_is_guarded_and_its_replacement_counts(tmp_path: Path) -> None:
    text = "try:\n    from vllm.gone import X\nexcept ImportError:\n    from vllm.lost import X\n"
    assert severities(tmp_path, text) == {2: "guarded", 4: "break"}


def test_a_replacement_that_is_not_needed_is_guarded(tmp_path: Path) -> None:
    text = "try:\n    from vllm.there import Engine\nexcept ImportError:\n    from vllm.gone import Engine\n"
    assert severities(tmp_path, text) == {4: "guarded"}


def test_an_error_that_is_raised_again_is_no_guard(tmp_path: Path) -> None:
    text = "try:\n    from vllm.gone import X\nexcept ImportError as e:\n    raise ImportError('no') from e\n"
    assert severities(tmp_path, text) == {2: "break"}


def test_a_version_test_guards(tmp_path: Path) -> None:
    text = """\
    import vllm
    from packaging import version
    if version.parse(vllm.__version__) < version.parse("0.12.0"):
        from vllm.gone import X
    else:
        from vllm.lost import X
    """
    assert severities(tmp_path, text) == {4: "guarded", 6: "break"}


def test_a_version_test_of_the_caller_guards(tmp_path: Path) -> None:
    text = """\
    from verl.helpers import is_version_ge

    class vLLMReplica:
        def launch_servers(self):
            if is_version_ge("vllm", "0.21"):
                self.newer()
            else:
                self.older()

        def newer(self):
            from vllm.gone import X

        def older(self):
            from vllm.lost import X

        def __init__(self):
            self.launch_servers()
    """
    helpers = """\
    from importlib.metadata import version
    from packaging.version import parse
    def is_version_ge(pkg, minver):
        return parse(version(pkg)) >= parse(minver)
    """
    assert severities(tmp_path, text, helpers=helpers) == {11: "guarded", 14: "break"}


def test_what_the_defaults_leave_out_is_optional(tmp_path: Path) -> None:
    text = """\
    class vLLMReplica:
        def __init__(self, config, lora_request=None):
            if config.quantization is not None:
                from vllm.gone import A
            if config.cudagraph_capture_sizes:
                from vllm.gone import B
            if config.free_cache_engine:
                from vllm.gone import C
            if lora_request:
                from vllm.gone import D
            if self.node_rank == 0:
                from vllm.gone import E
            else:
                from vllm.gone import F
            if config.something_of_the_fork:
                from vllm.gone import G

        def never_called(self):
            from vllm.gone import H
    """
    assert severities(tmp_path, text) == {
        4: "optional", 6: "optional", 8: "break", 10: "optional", 12: "break", 14: "optional", 16: "optional",
        19: "optional",
    }  # fmt: skip


def test_what_other_kinds_of_model_need_is_optional(tmp_path: Path) -> None:
    text = """\
    class vLLMReplica:
        def __init__(self, model):
            patch(model)

    def patch(model):
        if model.config.model_type == "glm4v":
            of_glm4v()
        elif model.config.model_type == "llama":
            of_llama()

    def of_glm4v():
        from vllm.gone import A

    def of_llama():
        from vllm.gone import B
    """
    assert severities(tmp_path, text) == {12: "optional", 15: "break"}


def test_a_test_for_the_missing_name_guards(tmp_path: Path) -> None:
    text = """\
    import inspect
    from vllm.there import Engine

    class vLLMReplica:
        def __init__(self, config):
            if "old" in inspect.signature(Engine).parameters:
                Engine("m", old=1)
            Engine("m", new=1)
            try:
                Engine("m", old=1)
            except Exception:
                pass
    """
    assert severities(tmp_path, text) == {7: "guarded", 8: "break", 10: "guarded"}


def test_a_test_for_an_attribute_that_the_release_lacks_guards_all_below_it(tmp_path: Path) -> None:
    text = """\
    from vllm.there import Engine

    class vLLMReplica:
        def __init__(self, config):
            engine = Engine("m")
            if hasattr(engine, "old_mode"):
                Engine("m", old=1)
            if not hasattr(engine, "old_mode"):
                Engine("m", new=1)
            if getattr(engine, "old_size", 0) > 0:
                Engine("m", old=1)
            if hasattr(config, "old_mode"):
                Engine("m", other=1)
            if hasattr(engine, "run"):
                Engine("m", old=1)
    """
    assert severities(tmp_path, text) == {
        7: "guarded",
        9: "break",
        11: "guarded",
        13: "optional",
        15: "break",
    }


def test_a_method_that_is_called_by_its_name_as_text_is_on_the_path(tmp_path: Path) -> None:
    text = """\
    class vLLMHttpServer:
        def __init__(self):
            self.collective_rpc(method="update_weights_from_ipc")

    class Extension:
        def update_weights_from_ipc(self):
            from vllm.gone import X

        def another(self):
            from vllm.gone import Y

    ARGS = {"worker_extension_cls": "verl.workers.rollout.vllm_rollout.vllm_async_server.Extension"}
    """
    assert severities(tmp_path, text) == {7: "break", 10: "optional"}


def test_a_tree_that_cannot_roll_out_asynchronously_is_judged_by_how_it_does(tmp_path: Path) -> None:
    files = {
        "verl/trainer/main_ppo.py": "from verl.workers.fsdp_workers import OwnWorker\n\ndef main():\n    OwnWorker()\n",
        "verl/trainer/config/ppo_trainer.yaml": "actor_rollout_ref:\n  rollout:\n    mode: sync\n    name: vllm\n",
        "verl/workers/fsdp_workers.py": """\
            class OwnWorker:
                def __init__(self, config):
                    if config.rollout.mode == "sync":
                        from vllm import Gone
                    else:
                        raise NotImplementedError
            """,
        SERVER: "from vllm.gone import X\n",
        "vllm/__init__.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    for folder in ("verl", *(f"verl/{name}" for name in ("trainer", "workers", "workers/rollout"))):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / SERVER).parent.joinpath("__init__.py").touch()
    target = Target({"vllm": "0.20.2"}, {"vllm": Symbols(tmp_path / "vllm")}, {"vllm": "0.20.2"})
    told = {one.symbol: one.severity for one in check_pair(Project(tmp_path), target, verl="0.4.0").findings}
    assert told == {"vllm.Gone": "break", "vllm.gone.X": "optional"}
    worker = tmp_path / "verl/workers/fsdp_workers.py"
    worker.write_text(worker.read_text() + "\n\nclass AsyncActorRolloutRefWorker(OwnWorker): ...\n")
    told = {one.symbol: one.severity for one in check_pair(Project(tmp_path), target, verl="0.4.0").findings}
    assert told == {"vllm.Gone": "optional", "vllm.gone.X": "break"}
