"""Drafts on small packages: what a witness supports is offered and works; what none supports is not."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.drafts.drafting import draft_records
from patcher.check.drafts.inputs import Draft, DraftInputs, Releases
from patcher.check.drafts.writing import write_drafts
from patcher.check.pair import check_pair
from patcher.plan.replay import Workspace
from patcher.records.model import Record
from patcher.records.parse import parse

OLD, NEW = "0.9.0", "0.10.0"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        for above in path.relative_to(folder).parents[:-1]:
            (folder / above / "__init__.py").touch()
    return folder


def drafts(tmp_path: Path, old: dict[str, str], new: dict[str, str], tree: dict[str, str]) -> tuple[Draft, ...]:
    """The drafts for a tree on the new release of a package, with the old one as witness."""
    folders = {version: write(tmp_path / version, files) / "vllm" for version, files in ((OLD, old), (NEW, new))}
    for folder in folders.values():
        (folder / "__init__.py").touch()
    project = Project(write(tmp_path / "tree", {f"verl/{name}": text for name, text in tree.items()}))
    target = Target({"vllm": NEW}, {"vllm": Symbols(folders[NEW])}, {"vllm": NEW})
    report = check_pair(project, target, verl="0.7.0")
    releases = Releases({"vllm": [NEW, OLD]}, lambda _package, version: Symbols(folders[version]))
    assert report.findings
    return draft_records(report.findings, DraftInputs(project, target, "0.7.0", releases))


def applied(draft: Draft, tree: dict[str, str], file: str) -> str:
    workspace = Workspace({f"verl/{name}": dedent(text) for name, text in tree.items()}, "Uky", "clean")
    workspace.replay(draft.record, lambda _edit: True)
    return workspace.texts[f"verl/{file}"].replace(f"  # Uky[{draft.id}]", "")


def test_one_module_that_moved_makes_one_draft_for_all_files(tmp_path: Path) -> None:
    tree = {
        "a.py": "from vllm.lora.models import Model\n",
        "b.py": "def f():\n    from vllm.lora.models import Model\n",
    }
    code = "class Model:\n    def load(self): ...\n"
    found = drafts(tmp_path, {"vllm/lora/models.py": code}, {"vllm/lora/model.py": code}, tree)
    assert [draft.id for draft in found] == ["draft-vllm-lora-models-moved"]
    assert {finding.file for finding in found[0].repairs} == {"verl/a.py", "verl/b.py"}
    assert applied(found[0], tree, "b.py") == "def f():\n    from vllm.lora.model import Model\n"
    record = found[0].record
    assert record.when.versions == {"verl": "==0.7.0", "vllm": f">={NEW}"}
    assert record.when.has == ("vllm.lora.model.Model",)
    assert {example.file for example in record.examples} == {"verl/a.py", "verl/b.py"}


def test_names_of_one_statement_that_went_to_different_places(tmp_path: Path) -> None:
    tree = {"a.py": "from vllm.utils import kept, parser_of, uri_of\n"}
    old = {"vllm/utils.py": "def kept(): ...\ndef parser_of(text): ...\ndef uri_of(host, port): ...\n"}
    new = {
        "vllm/utils/__init__.py": "def kept(): ...\n",
        "vllm/utils/parsing.py": "def parser_of(text): ...\n",
        "vllm/utils/network.py": "def uri_of(host, port): ...\n",
    }
    (draft,) = drafts(tmp_path, old, new, tree)
    assert set(applied(draft, tree, "a.py").splitlines()) == {
        "from vllm.utils import kept",
        "from vllm.utils.parsing import parser_of",
        "from vllm.utils.network import uri_of",
    }


def test_the_public_path_that_re_exports_is_preferred(tmp_path: Path) -> None:
    tree = {"a.py": "from vllm.engine import Engine\n"}
    new = {
        "vllm/v1/__init__.py": "from vllm.v1._inner.core import Engine\n",
        "vllm/v1/_inner/core.py": "class Engine:\n    def run(self): ...\n",
    }
    (draft,) = drafts(tmp_path, {"vllm/engine.py": "class Engine:\n    def run(self): ...\n"}, new, tree)
    assert applied(draft, tree, "a.py") == "from vllm.v1 import Engine\n"


@pytest.mark.parametrize(
    "new",
    [
        {"vllm/b.py": "class Thing:\n    def run(self): ...\n", "vllm/c.py": "class Thing:\n    def run(self): ...\n"},
        {"vllm/b.py": "class Thing:\n    def quite(self): ...\n    def other(self): ...\n"},
        {"vllm/b.py": "def Thing(): ...\n"},
        {"vllm/b.py": "class OtherThing:\n    def run(self): ...\n"},
    ],
    ids=["two places", "other members", "a function", "another name"],
)
def test_what_is_not_clearly_the_same_thing_is_not_offered(tmp_path: Path, new: dict[str, str]) -> None:
    old = {"vllm/a.py": "class Thing:\n    def run(self): ...\n"}
    assert not drafts(tmp_path, old, new, {"a.py": "from vllm.a import Thing\n"})


LEVEL = "class Level:\n    NONE = 0\n    ONCE = 2\n    PIECEWISE = 3\n"
MODE = "import enum\nclass Mode(enum.IntEnum):\n    'How it compiles.'\n    NONE = 0\n    ONCE = 2\n    WHOLE = 3\n"


@pytest.mark.parametrize("name", ["Level", "Level as L"])
def test_a_class_of_constants_is_known_by_its_values(tmp_path: Path, name: str) -> None:
    used = name.rpartition(" ")[2]
    tree = {"a.py": f"from vllm.config import {name}\nused = [{used}.NONE, {used}.PIECEWISE]\n"}
    (draft,) = drafts(tmp_path, {"vllm/config.py": LEVEL}, {"vllm/config.py": MODE}, tree)
    changed = [line for line in applied(draft, tree, "a.py").splitlines() if not line.startswith("#")]
    assert changed == [f"from vllm.config import Mode as {used}", f"used = [{used}.NONE, {used}.WHOLE]"]


def test_a_class_of_that_name_from_elsewhere_is_left_alone(tmp_path: Path) -> None:
    imports = "from logs import Level as L\nfrom vllm.config import Level\n"
    tree = {"a.py": f"{imports}used = Level.PIECEWISE\nother = L.PIECEWISE\n"}
    (draft,) = drafts(tmp_path, {"vllm/config.py": LEVEL}, {"vllm/config.py": MODE}, tree)
    assert applied(draft, tree, "a.py").splitlines()[-2:] == ["used = Level.WHOLE", "other = L.PIECEWISE"]


@pytest.mark.parametrize(
    "new",
    [
        MODE.replace("WHOLE = 3", "WHOLE = 4"),
        MODE.replace("WHOLE = 3", "WHOLE = True"),
        MODE + MODE.replace("Mode", "Kind"),
        MODE + "    def __getattr__(self, name): ...\n    LATE = make()\n",
        LEVEL.replace("Level", "Kept"),
    ],
    ids=["another value", "another type", "two of them", "not constants alone", "there before"],
)
def test_a_class_of_other_values_is_not_taken_for_it(tmp_path: Path, new: str) -> None:
    tree = {"a.py": "from vllm.config import Level\nused = Level.PIECEWISE\n"}
    old = LEVEL + LEVEL.replace("Level", "Kept")
    assert not drafts(tmp_path, {"vllm/config.py": old}, {"vllm/config.py": new}, tree)


def test_a_renamed_class_needs_words_that_say_so(tmp_path: Path) -> None:
    told = 'class Old:\n    def run(self):\n        warn("`Old` is deprecated. Please use `New` instead.")\n'
    new = {"vllm/a.py": "class New:\n    def run(self): ...\n"}
    tree = {"a.py": "from vllm.a import Old\n"}
    (draft,) = drafts(tmp_path, {"vllm/a.py": told}, new, tree)
    assert applied(draft, tree, "a.py") == "from vllm.a import New as Old\n"


CALL = {"a.py": "from vllm.a import build\n\n\ndef main(x):\n    return build(x, {argument})\n"}


def call(argument: str) -> dict[str, str]:
    return {name: text.format(argument=argument) for name, text in CALL.items()}


def after_call(tmp_path: Path, old: str, new: str, argument: str) -> str | None:
    """The call's arguments behind `x` after the draft, None without one."""
    tree = call(argument)
    found = drafts(tmp_path, {"vllm/a.py": old}, {"vllm/a.py": new}, tree)
    if not found:
        return None
    line = applied(found[0], tree, "a.py").splitlines()[-1]
    return line.strip().removeprefix("return build(x").removesuffix(")").removeprefix(", ")


PLAIN = "def build(x): ...\n"


@pytest.mark.parametrize(
    ("old", "new", "argument", "expected"),
    [
        ("def build(x, level: int = 0): use(level)", PLAIN, "level=0", ""),
        ("def build(x, level: int = 0): use(level)", PLAIN, "level=1", None),
        ("def build(x, level=None): pass", PLAIN, "level=x.level", ""),
        ('def build(x, level=1):\n    """level: ignored."""\n    use(level)', PLAIN, "level=2", ""),
        ("def build(x, wait=None):\n    if wait: stop()", PLAIN, "wait=False", ""),
        ("def build(x, wait=None):\n    if wait: stop()", PLAIN, "wait=True", None),
        ("def build(x, wait=None): stop(wait)", PLAIN, "wait=False", None),
        ("def build(x, conf): use(conf)", "def build(x):\n    conf = x.conf", "conf=x.conf", ""),
    ],
)
def test_an_argument_is_left_out_only_where_that_changes_nothing(
    tmp_path: Path, old: str, new: str, argument: str, expected: str | None
) -> None:
    assert after_call(tmp_path, old, new, argument) == expected


BOTH = """
def build(x, enable_log: bool = False, disable_log: bool = True):
    warn("disable_log: use `enable_log`")
    log(enable_log, disable_log)
"""


@pytest.mark.parametrize(
    ("old", "new", "argument", "expected"),
    [
        (BOTH, "def build(x, enable_log: bool = False): ...", "disable_log=x.quiet", "enable_log=not x.quiet"),
        (BOTH, "def build(x, enable_log: bool = False): ...", "disable_log=not x.loud", "enable_log=x.loud"),
        (BOTH, "def build(x, enable_log: str = ''): ...", "disable_log=x.quiet", None),
        (
            "def build(x, disable_log: bool = False): use(disable_log)",
            "def build(x, enable_log: bool = True): ...",
            "disable_log=x.quiet",
            "enable_log=not x.quiet",
        ),
        (
            "def build(x, disable_log: bool = False): use(disable_log)",
            "def build(x, enable_log: bool = False): ...",
            "disable_log=x.quiet",
            None,
        ),
        (
            "def build(x, max_tokens: int = 1): use(max_tokens)",
            "def build(x, max_token: int = 1): ...",
            "max_tokens=x.n",
            "max_token=x.n",
        ),
        (
            "def build(x, max_tokens: int = 1): use(max_tokens)",
            "def build(x, max_token: str = ''): ...",
            "max_tokens=x.n",
            None,
        ),
        (
            'def build(x, wait=None, mode: str = "a"):\n    if wait: warn("wait: use mode")\n    go(mode, wait)',
            'def build(x, mode: str = "a"): ...',
            "wait=x.wait",
            None,
        ),
    ],
)
def test_a_parameter_is_renamed_only_on_a_witness_and_a_flag_with_its_sense(
    tmp_path: Path, old: str, new: str, argument: str, expected: str | None
) -> None:
    assert after_call(tmp_path, old, new, argument) == expected


def test_a_method_that_only_passed_on_is_put_in_other_words(tmp_path: Path) -> None:
    common = {"vllm/calls.py": "def run_method(obj, method, args, kwargs): ...\n"}
    shim = """
        from vllm.calls import run_method
        class Worker:
            def execute(self, method, *args, **kwargs):
                try:
                    return run_method(self, method, args, kwargs)
                except Exception as error:
                    log(error)
                    raise error
    """
    tree = {
        "a.py": """
        import os
        from vllm.worker import Worker
        class Mine:
            def __init__(self):
                self.worker = Worker()
            def go(self, method, *args, **kwargs):
                return self.worker.execute(method, *args, **kwargs)
        """
    }
    new = {**common, "vllm/worker.py": "class Worker:\n    def other(self): ...\n"}
    (draft,) = drafts(tmp_path, {**common, "vllm/worker.py": shim}, new, tree)
    result = applied(draft, tree, "a.py")
    assert "return run_method(self.worker, method, args, kwargs)\n" in result
    assert "from vllm.calls import run_method\n" in result


def test_a_property_that_only_passed_on(tmp_path: Path) -> None:
    old = """
        class Engine:
            def __init__(self):
                self.input_processor = object()
            @property
            def processor(self):
                return self.input_processor
    """
    new = "class Engine:\n    def __init__(self):\n        self.input_processor = object()\n"
    tree = {"a.py": "from vllm.e import Engine\n\n\ndef f():\n    engine = Engine()\n    return engine.processor\n"}
    (draft,) = drafts(tmp_path, {"vllm/e.py": old}, {"vllm/e.py": new}, tree)
    assert applied(draft, tree, "a.py").endswith("return engine.input_processor\n")


GROUPS = """
def group(): ...

@deprecated("`old_group` has been replaced with `group` and may be removed.")
def old_group():
    return group()
"""


@pytest.mark.parametrize("new", ["def group(): ...\n", "def other(): ...\n"], ids=["it is there", "it is gone too"])
def test_a_function_that_is_asked_of_its_module_goes_by_the_name_that_its_last_words_gave(
    tmp_path: Path, new: str
) -> None:
    tree = {"a.py": "from vllm import state as vs\n\n\ndef f():\n    return vs.old_group().size\n"}
    found = drafts(tmp_path, {"vllm/state.py": GROUPS}, {"vllm/state.py": new}, tree)
    assert [applied(one, tree, "a.py").splitlines()[-1] for one in found] == (
        ["    return vs.group().size"] if "group" in new else []
    )


SERVER = """
class Base:
    def __init__(self, engine):
        self.engine = engine
        self.config = {source}

class Server(Base):
    def __init__(self, {parameters}, *, log=None):
        super().__init__(engine)
        self.log = {kept}
"""


@pytest.mark.parametrize(
    ("source", "helped"), [("self.engine.config", True), ("engine.config", True), ("make_config()", False)]
)
def test_one_argument_too_many_by_position_is_the_one_that_another_brings_along(
    tmp_path: Path, source: str, *, helped: bool
) -> None:
    old = SERVER.format(source="None", parameters="engine, config, models", kept="log, config")
    new = SERVER.format(source=source, parameters="engine, models", kept="log")
    tree = {
        "a.py": "from vllm.server import Server\n\n\ndef f(engine, models):\n"
        "    config = engine.config\n    return Server(engine, config, models, log=1)\n"
    }
    found = drafts(tmp_path, {"vllm/server.py": old}, {"vllm/server.py": new}, tree)
    assert [applied(one, tree, "a.py").splitlines()[-1] for one in found] == (
        ["    return Server(engine, models, log=1)"] if helped else []
    )


def test_what_a_failing_import_has_hidden_does_not_speak_against_its_repair(tmp_path: Path) -> None:
    tree = {"workers/rollout/a.py": "from vllm.old import Reply\n\n\ndef f(reply: Reply):\n    return reply.code\n"}
    tree["trainer/main_ppo.py"] = "import verl.workers.rollout.a\n"
    old = {"vllm/old.py": "class Reply:\n    code: int = 0\n    text: str = ''\n"}
    new = {"vllm/new.py": "class Reply:\n    text: str = ''\n    error: str = ''\n"}
    (draft,) = drafts(tmp_path, old, new, tree)
    assert [(one.severity, one.symbol) for one in draft.repairs] == [("break", "vllm.old.Reply")]


def test_a_draft_is_a_whole_record_that_says_it_is_one(tmp_path: Path) -> None:
    code = "class Model:\n    def load(self): ...\n"
    tree = {"a.py": "from vllm.lora.models import Model\n"}
    (draft,) = drafts(tmp_path, {"vllm/lora/models.py": code}, {"vllm/lora/model.py": code}, tree)
    assert draft.text.startswith("# A draft")
    assert "draft" in draft.record.tags
    assert draft.record.zh is not None
    assert isinstance(parse(draft.text, Path(f"{draft.id}.toml")), Record)
    kinds = [(example.after is not None, example.untouched, example.fails) for example in draft.record.examples]
    assert kinds == [(True, False, None), (False, True, None), (False, False, "anchor-missing")]


def test_drafts_are_written_whole_and_overwrite_nothing_that_differs(tmp_path: Path) -> None:
    code = "class Model:\n    def load(self): ...\n"
    tree = {"a.py": "from vllm.lora.models import Model\n"}
    found = drafts(tmp_path, {"vllm/lora/models.py": code}, {"vllm/lora/model.py": code}, tree)
    folder = tmp_path / "out" / "drafts"
    first = write_drafts(found, folder)
    assert [path.read_text() for path in first.written] == [found[0].text]
    assert write_drafts(found, folder).unchanged == first.written
    first.written[0].write_text("mine\n")
    assert write_drafts(found, folder).differing == first.written
    assert [path.read_text() for path in folder.iterdir()] == ["mine\n"]


def test_versions_that_are_compared_as_text_are_compared_as_versions(tmp_path: Path) -> None:
    tree = {
        "a.py": """\
            from importlib.metadata import version

            found = version("vllm")
            if found <= '0.6.3':
                MODE = "old"
            """
    }
    found = drafts(tmp_path, {"vllm/a.py": ""}, {"vllm/a.py": ""}, tree)
    assert [draft.id for draft in found] == ["draft-vllm-version-compared"]
    text = applied(found[0], tree, "a.py")
    assert "import packaging.version\n" in text
    assert "if packaging.version.Version(found) <= packaging.version.Version('0.6.3'):" in text
    assert [finding.kind for finding in found[0].repairs] == ["version-compared-as-text"]


def test_a_comparison_in_an_elif_is_repaired_too(tmp_path: Path) -> None:
    tree = {
        "a.py": """\
            from importlib.metadata import version

            found = version("vllm")
            if found == "0.6.3+cu124":
                MODE = "older"
            elif found <= "0.6.3":
                MODE = "old"
            """
    }
    (draft,) = drafts(tmp_path, {"vllm/a.py": ""}, {"vllm/a.py": ""}, tree)
    assert 'elif packaging.version.Version(found) <= packaging.version.Version("0.6.3"):' in applied(
        draft, tree, "a.py"
    )


def test_an_import_is_repaired_though_something_behind_it_breaks_too(tmp_path: Path) -> None:
    tree = {"a.py": "from vllm.lora.models import LoraModel\n\n\ndef load():\n    return LoraModel(1, extra=2)\n"}
    old = {"vllm/lora/models.py": "class LoraModel:\n    def __init__(self, x, extra=None): ...\n"}
    new = {"vllm/lora/model.py": "class LoraModel:\n    def __init__(self, x): ...\n"}
    assert [draft.id for draft in drafts(tmp_path, old, new, tree)] == ["draft-vllm-lora-models-moved"]
