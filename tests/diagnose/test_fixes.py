"""Fixes as they are offered: with the words of the line that they are for."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from patcher.diagnose.diagnosis import Diagnosis, Finding
from patcher.diagnose.fixes import FixContext, fixes_for
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms
from tests.diagnose.diagnosed import symptom

SYMPTOMS = load_symptoms()


def diagnosed(log: str) -> Diagnosis:
    return diagnosis_of(Scanner(SYMPTOMS).scan([("run.log", io.BytesIO(log.encode()))]), FixContext({}))


def root(log: str) -> Finding:
    found = diagnosed(log).root
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("module", "package"),
    [("qwen_vl_utils", "qwen-vl-utils"), ("cv2", "opencv-python-headless"), ("google.protobuf", "PACKAGE")],
)
def test_a_command_names_the_package_that_the_line_names(module: str, package: str) -> None:
    found = root(f"ModuleNotFoundError: No module named '{module}'\n")
    assert found.id == "module-missing"
    assert found.fixes[0].commands == (f"python3 -m pip install {package}",)


def test_a_command_takes_the_range_that_the_line_names() -> None:
    found = root(
        "ImportError: transformers>=4.41.2,<=4.45.0 is required for a normal functioning of this module, but found "
        "transformers==4.45.2.\n"
    )
    assert found.fixes[0].commands == ("python3 -m pip install 'transformers>=4.41.2,<=4.45.0'",)


def test_without_a_line_the_word_stands_for_itself() -> None:
    missing = next(one for one in SYMPTOMS if one.id == "module-missing")
    assert fixes_for(missing, FixContext({}))[0].commands == ("python3 -m pip install PACKAGE",)


def test_what_a_line_holds_is_quoted_for_the_shell() -> None:
    missing = next(one for one in SYMPTOMS if one.id == "module-missing")
    (command,) = fixes_for(missing, FixContext({}), "ModuleNotFoundError: No module named 'pkg_resources'")[0].commands
    assert command == "python3 -m pip install 'setuptools<81'"


def test_a_known_failure_says_too_who_asks_for_what() -> None:
    frame = '  File "/env/lib/python3.11/site-packages/vllm/v1/executor/gpu.py", line 4, in <module>\n    from x\n'
    head = "Traceback (most recent call last):\n"
    found = root(f"{head}{frame}ImportError: cannot import name 'Old' from 'vllm.config' (/env/vllm/config.py)\n")
    assert found.id == "package-half-upgraded"
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith("vllm (vllm/v1/executor/gpu.py:4) asks for vllm.config.Old")
    assert (found.explanation.remedy, found.explanation.search, found.needs_more) == ("", "", False)


def test_a_known_failure_whose_message_tells_no_more_says_no_more() -> None:
    assert root("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n").explanation is None


@pytest.mark.parametrize(("taken", "command"), [("a-b", "make a-b"), ("$(reboot)", "make NAME"), ("a b", "make NAME")])
def test_what_means_something_to_a_shell_is_not_put_into_a_command(taken: str, command: str) -> None:
    asked = symptom("asked", "lacks (?P<name>.+)$")
    fix = replace(asked.fixes[0], run="make NAME")
    (offer,) = fixes_for(replace(asked, fixes=(fix,)), FixContext({}), f"it lacks {taken}")
    assert offer.commands == (command,)


def test_the_log_of_another_trainer_gets_no_settings_of_verl() -> None:
    asked = symptom("asked", "it is too slow")
    plain, keyed = asked.fixes[0], replace(asked.fixes[0], text="Save less often", set={"trainer.save_freq": "10"})
    said = replace(keyed, text="Keep fewer; in verl:", zh="少保留；verl 中：", when={"verl": ">=0.7"})
    own = replace(keyed, text="verl's own loop: switch it off")
    newer = replace(plain, text="Take a later one", run="python3 -m pip install 'verl>=0.7'")
    record = replace(asked, fixes=(keyed, said, own, newer, plain))
    assert [one.text for one in fixes_for(record, FixContext({}))] == [one.text for one in record.fixes]
    found = fixes_for(record, FixContext({}, foreign=True))
    assert [one.text for one in found] == ["Keep fewer", plain.text, "Save less often"]
    assert not any(one.commands for one in found)
    assert found[0].zh == "少保留"
    variable = replace(plain, env={"CUDA_LAUNCH_BLOCKING": "1"}, setting="cuda-launch-blocking")
    kept = fixes_for(replace(asked, fixes=(variable,)), FixContext({}, foreign=True))
    assert [(one.commands, one.setting) for one in kept] == [(("export CUDA_LAUNCH_BLOCKING=1",), None)]
    only = fixes_for(replace(asked, fixes=(own,)), FixContext({}, foreign=True))
    assert [one.commands for one in only] == [("trainer.save_freq=10",)]


def test_a_log_that_shows_no_trainer_is_told_which_settings_are_of_verl() -> None:
    asked = symptom("asked", "it is too slow")
    keyed = replace(asked.fixes[0], text="Save less often", set={"trainer.save_freq": "10"})
    other = replace(keyed, set={"zero_optimization.stage": "3"})
    found = fixes_for(replace(asked, fixes=(keyed, other)), FixContext({}, unsigned=True))
    assert [one.text for one in found] == ["Save less often; in verl:", "Save less often"]
    assert found[0].commands == ("trainer.save_freq=10",)


@pytest.mark.parametrize(
    ("sign", "text"),
    [("", "Save less often; in verl:"), ("VLM-R1 1.0\n", "Save less often"), ("verl/x.py\n", "Save less often")],
)
def test_what_the_log_shows_decides_how_settings_are_offered(sign: str, text: str) -> None:
    asked = symptom("asked", "it is too slow")
    keyed = replace(asked.fixes[0], text="Save less often", set={"trainer.save_freq": "10"})
    scanned = Scanner((replace(asked, fixes=(keyed,)),)).scan(
        [("run.log", io.BytesIO(f"{sign}it is too slow\n".encode()))]
    )
    found = diagnosis_of(scanned, FixContext({})).root
    assert found is not None
    assert found.fixes[0].text == text


def test_commands_of_vllm_are_not_for_a_log_of_sglang() -> None:
    option = "error: unrecognized arguments: --most-beds 1\n"
    found = root(f"launch_server.py: {option}")
    assert not any("vllm" in one for fix in found.fixes for one in fix.commands)
    assert found.fixes[0].text.endswith("--help")
    assert any("vllm serve" in one for fix in root(f"train.py: {option}").fixes for one in fix.commands)
    assert any(
        "vllm serve" in one
        for fix in root(f"INFO vllm and sglang are here\nx.py: {option}").fixes
        for one in fix.commands
    )


def test_a_case_that_the_line_would_show_comes_last_where_it_does_not() -> None:
    entry = "[[match]]\nline = 'spade is bent'\n[[fix]]\ntext = 'Of wood'\nzh = 'x'\nwhere = 'wooden spade'\n"
    for line, first in (("the wooden spade is bent", "Of wood"), ("the spade is bent", "Do something")):
        scanner = Scanner((symptom("spade", entry),))
        found = diagnosis_of(scanner.scan([("a.log", io.BytesIO(f"ValueError: {line}\n".encode()))]), FixContext()).root
        assert found is not None
        assert found.fixes[0].text.startswith(first)


BY_CASE = """[[match]]
line = 'spade is bent'
[[fix]]
text = "In any case"
zh = "x"
[[fix]]
text = "A package bends it"
zh = "x"
where = '^last frame: (?!own )'
[[fix]]
text = "Your own code bends it"
zh = "x"
where = '^last frame: own'
"""
"""And the fix that `symptom` adds."""


@pytest.mark.parametrize(
    ("path", "order"),
    [
        ("/env/lib/python3.11/site-packages/garden/bed.py", ["A package", "In any", "Do something", "Your own"]),
        ("/app/run.py", ["Your own", "In any", "Do something", "A package"]),
        ("", ["In any", "A package", "Your own", "Do something"]),
    ],
)
def test_the_fix_for_the_case_that_the_log_shows_comes_first(path: str, order: list[str]) -> None:
    frame = f'Traceback (most recent call last):\n  File "{path}", line 3, in dig\n    dig()\n' if path else ""
    log = f"{frame}ValueError: the spade is bent\n".encode()
    root = diagnosis_of(Scanner((symptom("spade", BY_CASE),)).scan([("a.log", io.BytesIO(log))]), FixContext()).root
    assert root is not None
    assert [next(one for one in order if fix.text.startswith(one)) for fix in root.fixes] == order


NO_WHEEL = (
    "error: Distribution `torch==2.8.0{build} @ registry+https://host/simple` can't be installed because it doesn't "
    "have a source distribution or wheel for the current platform\n"
)
HINT = "hint: You're on macOS (`macosx_14_0_x86_64`), but `torch` (v2.8.0) only has wheels for others\n"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (NO_WHEEL.format(build="+cpu"), "A build such as +cpu"),
        (NO_WHEEL.format(build="") + HINT, "macosx and x86_64"),
        (NO_WHEEL.format(build=""), "Lock for this platform too"),
        (
            "sbatch: error: you may not submit a job not requesting GPUs in a GPU partition\n"
            "sbatch: error: Batch job submission failed: Unspecified error\n",
            "The line above says that no GPU is asked for",
        ),
        ("0/1 nodes are available: 1 Insufficient cpu.\n", "Insufficient cpu, memory"),
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\n", "Insufficient nvidia.com/gpu"),
        (
            "$ uv pip install torch==2.4.1 --extra-index-url https://host/simple\n"
            "  Because there is no version of cudnn==9.1 and torch==2.4.1 depends on cudnn==9.1, it cannot be used.\n",
            "uv takes only the first index",
        ),
        (
            'Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/datasets/arrow_dataset.py", '
            "line 4101, in _select\n    os.chmod(name, mode)\nOSError: [Errno 116] Stale file handle: 'x'\n",
            "Frames of datasets or filelock",
        ),
        (
            'Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/transformers/trainer.py", '
            "line 4575, in init_hf_repo\n    repo_url = create_repo(name)\nrequests.exceptions.ConnectionError: "
            "(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded\"))\n",
            "A folder on the Hub is made",
        ),
    ],
)
def test_the_shipped_fix_for_the_case_comes_first(log: str, first: str) -> None:
    assert root(log).fixes[0].text.startswith(first)
