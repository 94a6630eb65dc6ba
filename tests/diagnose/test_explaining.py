"""What a failure itself says, where no record covers it or only a generic one does."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.check.targets import release_folder
from patcher.cli.app import run
from patcher.data import shipped
from patcher.diagnose import asking_releases, directions
from patcher.diagnose.asking_code import argument_of_model_part, asked_symbol, still_asks
from patcher.diagnose.diagnosis import Diagnosis, Explanation
from patcher.diagnose.directions import _direction, refusals
from patcher.diagnose.exception_message import MessageParts, parse_message
from patcher.diagnose.fetch_limit import in_time, limited_to, still_to_fetch
from patcher.diagnose.fixes import FixContext
from patcher.diagnose.frame import Frame, frame_of
from patcher.diagnose.known_issues import FILE, known_issues, normalised, read
from patcher.diagnose.message_words import remedy_in, to_search_for
from patcher.diagnose.nearest_keys import nearest_keys
from patcher.diagnose.release_search import first
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.errors import ReleaseError
from tests.diagnose.diagnosed import symptom

HEAD = "Traceback (most recent call last):\n"
OWN = '  File "/app/fork/verl/trainer/main_ppo.py", line 30, in run\n    start()\n'
LIBRARY = '  File "/opt/venv/lib/python3.12/site-packages/mbridge/core/util.py", line 83, in get_model\n    x\n'


def diagnosed(log: str, *symptoms: object, **versions: str) -> Diagnosis:
    evidence = Scanner(symptoms).scan([("run.log", io.BytesIO(log.encode()))])  # type: ignore[arg-type]
    return diagnosis_of(evidence, FixContext(versions))


def explained(message: str, frames: str = OWN + LIBRARY, **versions: str) -> Explanation:
    root = diagnosed(HEAD + frames + message + "\n", **versions).root
    assert root is not None
    assert root.explanation is not None
    return root.explanation


WHO = "mbridge (mbridge/core/util.py:83)"


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "ImportError: cannot import name 'A' from 'megatron.core' (/x/__init__.py)",
            f"{WHO} asks for megatron.core.A, which megatron-core 0.18.0 does not have",
        ),
        (
            "TypeError: Loop._postprocess() got multiple values for argument 'output'",
            f"{WHO} passes output to Loop._postprocess twice: by its place and by name, or by name and within **",
        ),
        ("ModuleNotFoundError: No module named 'flash_attn'", f"{WHO} imports flash_attn, which is not installed"),
        (
            "ModuleNotFoundError: No module named 'megatron.core.x'",
            f"{WHO} imports megatron.core.x, which megatron-core 0.18.0 does not have",
        ),
        (
            "AttributeError: module 'megatron.core' has no attribute 'b'",
            f"{WHO} asks for megatron.core.b, which megatron-core 0.18.0 does not have",
        ),
        (
            "AttributeError: 'ModelType' object has no attribute 'encoder'",
            f"{WHO} asks an object of ModelType for encoder, which it does not have",
        ),
        (
            "AttributeError: 'numpy.ndarray' object has no attribute 'extend'",
            f"{WHO} expects a list, which has extend, and is given a value of type numpy.ndarray",
        ),
        (
            "AttributeError: 'str' object has no attribute 'items'",
            f"{WHO} expects a dict, which has items, and is given a value of type str",
        ),
        (
            "AttributeError: 'Tensor' object has no attribute 'untyped'",
            f"{WHO} asks an object of Tensor for untyped, which it does not have",
        ),
        (
            "AttributeError: type object 'ModelType' has no attribute 'encoder'",
            f"{WHO} asks an object of ModelType for encoder, which it does not have",
        ),
        (
            "TypeError: Engine.start() got an unexpected keyword argument 'log'",
            f"{WHO} passes log to Engine.start, which does not take it",
        ),
        (
            "TypeError: build() missing 2 required positional arguments: 'args' and 'tasks'",
            f"{WHO} calls build without args, tasks",
        ),
        (
            "TypeError: build() takes from 1 to 2 positional arguments but 3 were given",
            f"{WHO} passes 3 positional arguments to build, which takes from 1 to 2",
        ),
        (
            "ImportError: tokenizers>=0.19,<0.20 is required for a normal functioning of this module, but found "
            "tokenizers==0.20.1.",
            f"{WHO} needs tokenizers >=0.19,<0.20, and 0.20.1 is installed",
        ),
        ("TypeError: Unexpected keyword argument 'prompt'", f"{WHO} passes prompt, which is not taken"),
        (
            "ImportError: This modeling file requires the following packages that were not found in your environment: "
            "flash_attn. Run `pip install flash_attn`",
            f"{WHO} imports flash_attn, which is not installed",
        ),
        (
            "hydra.errors.InstantiationException: Error locating target 'megatron.core.X', set env var",
            f"{WHO} asks for megatron.core.X, which megatron-core 0.18.0 does not have",
        ),
        (
            "AttributeError: 'NoneType' object has no attribute 'generate'",
            f"{WHO} asks None for generate: what should be there is not",
        ),
        ("TypeError: 'NoneType' object is not subscriptable", f"{WHO} gets None where it needs a value"),
        ("ValueError: not enough values to unpack (expected 3, got 2)", f"{WHO} expects 3 values and gets 2"),
        ("ValueError: too many values to unpack (expected 2)", f"{WHO} expects 2 values and gets more"),
        (
            "IndexError: index 5 is out of bounds for dimension 0 with size 4",
            f"{WHO} asks for place 5 of dimension 0, which has 4",
        ),
        ("NameError: name 'Version' is not defined", f"{WHO} uses Version, which nothing has defined there"),
        (
            "UnboundLocalError: cannot access local variable 'x' where it is not associated with a value",
            f"{WHO} uses x, which nothing has defined there",
        ),
        (
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, no such "
            "task [type=value_error, input_value=1]",
            f"{WHO}: ModelConfig is refused: no such task",
        ),
        (
            "ValidationError: 2 validation errors for ZeroConfig\nleaf\nextra fields not permitted "
            "(type=value_error.extra)\nstem -> bark\nextra fields not permitted (type=value_error.extra)",
            f"{WHO}: ZeroConfig.leaf, stem.bark are refused: extra fields not permitted",
        ),
        (
            "ValidationError: 2 validation errors for ZeroConfig\nleaf\n  value is not a valid dict "
            "(type=type_error.dict)\nstem\n  extra fields not permitted (type=value_error.extra)",
            f"{WHO}: ZeroConfig.leaf is refused: value is not a valid dict; stem: extra fields not permitted",
        ),
        (
            "ValueError: remaining_argv: ['--leaf_type', 'oak']",
            "the program is given --leaf_type, which it does not take",
        ),
        (
            "pkg.Conflict: vllm 0.8 requires torch==2.6.0, but you have torch 2.5.1 which is incompatible.",
            f"{WHO} needs torch ==2.6.0, and 2.5.1 is installed",
        ),
        (
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
            f"{WHO} looks for libcudart.so.12, which is not there",
        ),
        ("KeyError: 5", f"{WHO} looks for the key '5', which is not there"),
        ("KeyError: 'response_mask'", f"{WHO} looks for the key 'response_mask', which is not there"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.parquet'",
            f"{WHO} looks for /data/train.parquet, which is not there",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)",
            f"{WHO}: shapes do not fit, 4x8 against 16x2",
        ),
        (
            "RuntimeError: expected mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16",
            f"{WHO}: types of tensors do not fit, float against c10::BFloat16",
        ),
        (
            "RuntimeError: expected dtype double for `end` but got dtype c10::Half",
            f"{WHO}: types of tensors do not fit, c10::Half against double",
        ),
        (
            "RuntimeError: Index put requires the source and destination dtypes match, got Half for the destination "
            "and Float for the source.",
            f"{WHO}: types of tensors do not fit, Float against Half",
        ),
        (
            "RuntimeError: shape mismatch: value tensor of shape [3, 7] cannot be broadcast to indexing result of "
            "shape [3, 5]",
            f"{WHO}: shapes do not fit, [3, 7] against [3, 5]",
        ),
        (
            "TypeError: unsupported operand type(s) for +: 'int' and 'Path'",
            f"{WHO}: types of values do not fit, int against Path",
        ),
        (
            "TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'",
            f"{WHO} gets None where it needs a value",
        ),
        (
            'TypeError: can only concatenate str (not "dict") to str',
            f"{WHO}: types of values do not fit, dict against str",
        ),
        (
            "AttributeError: OddTokenizerFast has no attribute frame_token",
            f"{WHO} asks an object of OddTokenizerFast for frame_token, which it does not have",
        ),
        (
            "ValueError: Some keys are not used by the HfArgumentParser: ['save_strat', 'warm_up']",
            "the program is given save_strat, warm_up, which it does not take",
        ),
        (
            "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--rate', '2']",
            "the program is given --rate, which it does not take",
        ),
        (
            "x.DistBackendError: NCCL error in: x.cpp:9, internal error\nncclInternalError: Internal check failed.\n"
            "Last error:\nno socket interface is left",
            "NCCL tells: no socket interface is left",
        ),
        ("RuntimeError: CUDA error: the stream is odd\nCompile with X", f"{WHO}: CUDA tells: the stream is odd"),
        ("ValueError: 777 is not in list", f"{WHO} looks for 777, which is not there"),
        (
            "x.StrictError: Validation error for field 'ties':\n    TypeError: Field 'ties' expected int, got str",
            f"{WHO}: ties is refused: TypeError: Field 'ties' expected int, got str",
        ),
        (
            "TypeError: OddFailure.__init__() missing 1 required positional argument: 'inner'",
            "OddFailure was lost between two processes: what it said is above, or in that process's own log",
        ),
        (
            "RuntimeError: Expected all tensors on one device, but found at least two devices, cuda:0 and cpu!",
            f"{WHO}: tensors are on two devices, cuda:0 and cpu",
        ),
    ],
)
def test_a_message_of_a_known_shape_becomes_a_sentence(message: str, sentence: str) -> None:
    found = explained(message, **{"megatron-core": "0.18.0"})
    assert str(found.sentence) == sentence
    assert found.at is not None
    assert found.at.shown == "mbridge/core/util.py:83"
    assert found.own == "verl/trainer/main_ppo.py:30"


def test_what_is_searched_for_is_without_what_only_this_run_has() -> None:
    said = (
        "2025-04-04T16:57:57.71Z [2025-04-04 16:57:39] node1:95:99 [0] init.cc:416 NCCL WARN Cuda failure 'no' at 0x7f"
    )
    assert to_search_for(said) == "init.cc:416 NCCL WARN Cuda failure 'no' at"


def test_what_counts_may_stand_on_a_later_line_of_the_message() -> None:
    found = explained(
        "RuntimeError: Failed to import transformers.models.x because of the following error (look up to see its "
        "traceback):\ncannot import name 'A' from 'megatron.core' (/x/__init__.py)"
    )
    assert "asks for megatron.core.A" in str(found.sentence)
    config = (
        "omegaconf.errors.ConfigAttributeError: Key 'b' is not in struct\n    full_key: trainer.b\n    object_type=dict"
    )
    assert str(explained(config).sentence) == "the configuration has no key trainer.b"


@pytest.mark.parametrize(
    "label", ["(Worker pid=12, ip=10.0.0.1) ", "[rank3]: ", "ERROR 01-02 10:00:00 [worker.py:7] ", ""]
)
def test_frames_without_the_header_of_their_traceback_are_read(label: str) -> None:
    said = f"start\n{OWN}{LIBRARY}TypeError: Engine.start() got an unexpected keyword argument 'log'\n"
    root = diagnosed("".join(label + line for line in said.splitlines(keepends=True))).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == f"{WHO} passes log to Engine.start, which does not take it"
    assert root.explanation.own == "verl/trainer/main_ppo.py:30"


def test_an_exception_that_pickle_could_not_make_anew_is_not_the_root_of_another() -> None:
    lost = HEAD + LIBRARY + "TypeError: OddFailure.__init__() missing 1 required positional argument: 'inner'\n"
    root = diagnosed(f"{lost}rank 1\n{HEAD}{OWN}ValueError: bad\n").root
    assert root is not None
    assert root.place.text == "ValueError: bad"


def test_the_lines_below_a_generic_sign_belong_to_its_message() -> None:
    generic = symptom("unknown-key", "^Key .b. not in", more="generic = true")
    root = diagnosed("Key 'b' not in 'Save'\n    full_key: save.b\n", generic).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == "the configuration has no key save.b"


@pytest.mark.parametrize(
    ("code", "claim"),
    [
        ("assert a.b is not None, (", "a.b is not None"),
        ("assert a in {1, 2}, 'not so'", "a in {1, 2}"),
        ("assert (a", "a"),
        ("assert all(", "all()"),
    ],
)
def test_what_an_assertion_without_a_message_claims_is_said(code: str, claim: str) -> None:
    found = explained("AssertionError", OWN + LIBRARY.replace("    x", f"    {code}"))
    call = "verl/trainer/main_ppo.py:30"
    assert str(found.sentence) == f"{WHO} asserts {claim}, which does not hold for the call at {call}"
    alone = explained("AssertionError", LIBRARY.replace("    x", f"    {code}"))
    assert str(alone.sentence) == f"{WHO} asserts {claim}, which does not hold"


def test_the_link_searches_for_the_code_of_an_exception_without_a_message() -> None:
    cut = '  File ".../peft_tools/loss.py", line 9, in compute\n    ce(x)\n  File ".../ce/ops.py", line 4, in ce\n    '
    found = explained("AssertionError", cut + "assert x.size() == y.size()\n")
    assert str(found.sentence) == (
        ".../ce/ops.py:4 asserts x.size() == y.size(), which does not hold for the call at .../peft_tools/loss.py:9"
    )
    assert found.search.endswith("q=AssertionError+x.size%28%29+%3D%3D+y.size%28%29")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("path = next(folder.glob('*.so'))", f"{WHO} takes the first of folder.glob('*.so'), which has none"),
        ("next(self", "StopIteration, raised at mbridge/core/util.py:83"),
        ("advance(steps)", "StopIteration, raised at mbridge/core/util.py:83"),
    ],
)
def test_a_next_that_finds_nothing_is_told_by_its_code(code: str, says: str) -> None:
    assert str(explained("StopIteration", LIBRARY.replace("    x", f"    {code}")).sentence) == says


@pytest.mark.parametrize(
    ("message", "code", "symbol", "cut"),
    [
        ("ModuleNotFoundError: No module named 'name.o", "from name.ops.perf import a", "name.ops.perf", False),
        ("ModuleNotFoundError: No module named 'nam", "from name.ops.perf import a", "name", False),
        ("ModuleNotFoundError: No module named 'name.ops...", "import name.ops.perf", "name.ops.perf", False),
        ("ImportError: cannot import name 'Mo", "from name.core import Model, Other", "name.core.Model", False),
        ("ImportError: cannot import name 'Model", "from name.core import (", "name.core.Model", True),
        ("ImportError: cannot import name 'M", "from name.core import Model, More", "name.core.M", True),
    ],
)
def test_a_name_that_is_cut_off_is_told_by_the_line_of_code(message: str, code: str, symbol: str, cut: bool) -> None:
    found = explained(message, LIBRARY.replace("    x", f"    {code}"))
    assert found.parts is not None
    assert (found.parts.symbol, found.parts.cut) == (symbol, cut)
    assert symbol.rpartition(".")[2] in found.search


@pytest.mark.parametrize("code", ["from .core import Model", "from other import Model", "Model = load("])
def test_a_name_that_is_cut_off_is_not_guessed(code: str) -> None:
    found = explained("ModuleNotFoundError: No module named 'name.o", LIBRARY.replace("    x", f"    {code}"))
    assert found.parts is None or found.parts.matter == "words"


def test_two_collectives_that_do_not_fit_are_named_with_their_shapes() -> None:
    fingerprint = "is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType="
    parts = parse_message(
        [
            f"RuntimeError: Detected mismatch between collectives on ranks. Rank 3 {fingerprint}ALLREDUCE, "
            f"TensorShape=[2, 64], TensorDtypes=Float), but Rank 0 {fingerprint}BARRIER).Collectives differ"
        ]
    )
    assert parts is not None
    assert (parts.wanted, parts.found) == ("rank 3: ALLREDUCE [2, 64]", "rank 0: BARRIER")


def test_a_version_of_no_package_is_none() -> None:
    said = "Cannot use version 4 is not supported due to: only GPUs of capability >= 9 have it"
    assert parse_message([f"RuntimeError: {said}"]) is None
    assert parse_message(["ImportError: odd-tool 4 is installed but odd-tool >= 9 is needed"]) is not None


def test_code_that_only_hands_an_attribute_on_does_not_ask_for_it() -> None:
    torch = (
        '  File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 9, in __getattr__\n    x\n'
    )
    found = explained("AttributeError: 'Odd' object has no attribute 'y'", OWN + LIBRARY + torch)
    assert str(found.sentence) == f"{WHO} asks an object of Odd for y, which it does not have"


@pytest.mark.parametrize(
    ("label", "verdict"),
    [
        ("2026-01-02 10:00:00,123 - launcher - INFO - [rank7]: ", "failed"),
        ("2026-01-02 10:00:00,123 - launcher - INFO - [2026-01-02 10:00:00 TP0] Scheduler hit it: ", "failed"),
        ("2026-01-02 10:00:00,123 - launcher - INFO - ", "running"),
    ],
)
def test_the_level_of_one_who_passes_lines_on_is_not_that_of_a_traceback(label: str, verdict: str) -> None:
    rest = label.partition("Scheduler")[0] if "TP0" not in label else label.partition("[")[0]
    log = label + HEAD + "".join(rest + line for line in f"{OWN}ValueError: bad\n".splitlines(keepends=True))
    assert diagnosed(log).verdict == verdict


def test_the_lines_of_a_log_behind_an_exception_are_no_message_of_it() -> None:
    log = HEAD + OWN + "ValueError: bad\nINFO 01-01 10:00:00 [x.py:1] cannot import name 'A' from 'b'\n"
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert root.explanation.parts is None


def test_a_message_of_no_known_shape_is_not_explained_away() -> None:
    found = explained("ValueError: something is odd")
    assert (found.parts, str(found.sentence)) == (None, "ValueError, raised at mbridge/core/util.py:83")


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("ValueError: No dtype. Please set dtype to float16. Bye.", "Please set dtype to float16."),
        ("AttributeError: 'A' object has no attribute 'b'. Did you mean: 'c'?", "Did you mean: 'c'?"),
        ("ValueError: Unsupported. Supported versions are 0.10 and 0.11", "Supported versions are 0.10 and 0.11"),
        (
            "ImportError: x is missing.\nYou can install it with `pip install x`.",
            "You can install it with `pip install x`.",
        ),
        ("ValueError: please see the log above", ""),
        ("Key 'x' is odd\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.", ""),
        ("ValueError: bad value", ""),
    ],
)
def test_the_sentence_that_says_what_to_do_is_quoted(message: str, remedy: str) -> None:
    assert remedy_in(message.split("\n")) == remedy


def test_the_link_searches_for_the_message_without_what_differs_from_run_to_run() -> None:
    found = explained("ValueError: no /home/me/x.bin at 0x7f00aa for pid=12, host 10.0.0.1:80")
    assert found.search == "https://github.com/search?type=issues&q=ValueError%3A+no+at+for+host"


def test_no_secret_goes_into_the_link() -> None:
    found = explained("ValueError: cannot log in with password=pa$$w0rd/123 and hf_" + "Ab1" * 12)
    assert "w0rd" not in found.search
    assert "Ab1" not in found.search


def test_a_specific_cause_goes_before_a_generic_one_whatever_their_order() -> None:
    generic = symptom("drift", "cannot import name", more="generic = true")
    specific = symptom("memory", "CUDA out of memory")
    log = f"{HEAD}{OWN}ImportError: cannot import name 'A' from 'b'\nCUDA out of memory\n"
    found = diagnosed(log, generic, specific)
    assert [(one.id, one.role) for one in found.findings] == [("memory", "root"), ("drift", "cascade")]
    alone = diagnosed(f"{HEAD}{OWN}ImportError: cannot import name 'A' from 'b'\n", generic, specific).root
    assert alone is not None
    assert (alone.id, alone.explanation is not None) == ("drift", True)


RELEASES = ["1.0", "1.1", "1.2", "2.0", "2.1"]


@pytest.mark.parametrize(
    ("there", "version", "expected"),
    [
        ({"1.0", "1.1"}, "2.0", ("1.2", "", "name<1.2")),
        ({"2.0", "2.1"}, "1.1", ("", "2.0", "name>=2.0")),
        ({"2.1"}, "1.0", ("", "2.1", "name>=2.1")),
        (set(), "2.0", ("", "", "")),
    ],
)
def test_the_releases_tell_which_one_has_the_name(
    there: set[str], version: str, expected: tuple[str, str, str]
) -> None:
    found = _direction("name", "name.x", version, RELEASES, lambda release: release in there)
    assert found is not None
    assert (found.removed_in, found.added_in, found.requirement) == expected


def test_nothing_is_said_of_a_name_that_the_version_has_or_that_nobody_can_decide() -> None:
    assert _direction("name", "name.x", "2.0", RELEASES, lambda _: True) is None
    undecided = _direction("name", "name.x", "2.0", RELEASES, lambda _: None)
    assert undecided is not None
    assert (undecided.requirement, bool(undecided.unknown)) == ("", True)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"1.1", "1.2"}, ("2.0", "1.1", "name>=1.1,<2.0")),  # Too old or too new: the log does not say which.
        ({"1.0", "1.1"}, ("1.2", "", "name<1.2")),
        ({"1.2", "2.0", "2.1"}, ("", "1.2", "name>=1.2")),
        ({"1.0", "1.2", "2.0", "2.1"}, ("", "1.2", "name>=1.2")),  # It was there before, and came back.
    ],
)
def test_where_the_release_is_not_known_an_older_one_may_lack_the_name_too(
    there: set[str], expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for release in RELEASES:
        place = tmp_path / release / "name"
        place.mkdir(parents=True)
        (place / "__init__.py").write_text("x = 1\n" if release in there else "")
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, release: tmp_path / release)
    parts = parse_message(["ImportError: cannot import name 'x' from 'name' (/env/site-packages/name/__init__.py)"])
    assert parts is not None
    found = directions.direction_of(parts, {})
    assert found is not None
    assert (found.removed_in, found.added_in, found.requirement) == expected
    assert found.again == ({"1.0", "2.1"} <= there)
    if "1.2" in there:
        has_it = directions.direction_of(parts, {"name": "1.2"})
        assert has_it is not None
        assert str(has_it.unknown).startswith("name 1.2 has name.x: its files are of several releases or incomplete")


def test_of_a_name_that_all_releases_have_it_is_said_what_hides_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for release in RELEASES:
        (tmp_path / release / "name").mkdir(parents=True)
        (tmp_path / release / "name/__init__.py").write_text("def x(): ...\n")
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, release: tmp_path / release)
    parts = parse_message(["AttributeError: module 'name' has no attribute 'x'"])
    assert parts is not None
    found = directions.direction_of(parts, {})
    assert found is not None
    assert found.requirement == ""
    assert "another name, a file, a folder or a package, is imported in their place" in str(found.unknown)


@pytest.mark.parametrize(("asked", "near"), [("LamaModel", "LlamaModel"), ("Qwen4Config", ""), ("Gone", "")])
def test_a_name_that_no_release_has_may_be_a_misspelling(
    asked: str, near: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "name").mkdir()
    (tmp_path / "name/__init__.py").write_text("class LlamaModel: pass\nclass Qwen3Config: pass\n")
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, __: tmp_path)
    said = f"ImportError: cannot import name '{asked}' from 'name' (/env/site-packages/name/__init__.py)"
    parts = parse_message([said])
    assert parts is not None
    found = directions.direction_of(parts, {"name": "1.2"})
    assert found is not None
    assert (f"a misspelling of {near}" in str(found.unknown)) is bool(near)


@pytest.mark.parametrize(
    ("knowing", "expected"),
    [({"2.0", "2.1"}, "transformers>=2.0"), ({"1.0", "1.1", "1.2", "2.0", "2.1"}, ""), (set(), "")],
)
def test_a_type_of_model_is_looked_up_in_the_releases(
    knowing: set[str], expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for release in RELEASES:
        auto = tmp_path / release / "transformers/models/auto"
        auto.mkdir(parents=True)
        (auto.parents[1] / "__init__.py").write_text("")
        (auto / "configuration_auto.py").write_text('NAMES = {"bed": "BedConfig"}\n' if release in knowing else "")
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, release: tmp_path / release)
    monkeypatch.setattr(directions, "_installed_folders", lambda _: [])
    found = directions.direction_of_model(None, "bed", {})  # type: ignore[arg-type]
    assert (found.requirement if found is not None else "") == expected
    if not knowing:
        assert found is not None
        assert "comes with code of its own" in str(found.unknown)


ASKER = Frame("asker/core.py", 2, "asker", installed=True)


@pytest.fixture
def release_asker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[set[str], str, str], None]:
    """Make releases of a package: in some of them its file asks for a name, in the others it does not."""

    def release(asking: set[str], asks: str, other: str) -> None:
        for one in RELEASES:
            place = tmp_path / one / "asker"
            place.mkdir(parents=True)
            (place / "core.py").write_text(asks if one in asking else other)

    monkeypatch.setattr(asking_releases, "versions", lambda _: RELEASES)
    monkeypatch.setattr(asking_releases, "release_folder", lambda _, one: tmp_path / one)
    return release


@pytest.mark.parametrize(("asking", "until"), [({"1.0", "1.1"}, "1.2"), (set(), "")])
def test_code_that_asks_by_a_name_it_was_given_is_not_told_to_be_newer(
    asking: set[str], until: str, release_asker: Callable[[set[str], str, str], None]
) -> None:
    """`getattr(module, name)`: no release of the asking package has the name in that file, and none ever had."""
    release_asker(asking, "import name\nname.x\n", "getattr(module, word)\n")
    found = directions.Direction("name", "name.x", removed_in="2.0")
    assert asking_releases._asks_until(ASKER, found, MessageParts("missing-name"), {"asker": "1.1"}) == until


@pytest.mark.parametrize(("near_in", "added"), [({"1.2", "2.0", "2.1"}, ""), ({"1.0", "1.1", "1.2", "2.0"}, "1.2")])
def test_a_release_that_lacks_what_python_guesses_is_not_the_one_at_hand(
    near_in: set[str], added: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`cannot import name 'main_a' … Did you mean: 'main_b'?`: the installed release has `main_b`."""
    for release in RELEASES:
        place = tmp_path / release / "name"
        place.mkdir(parents=True)
        names = ["main_a"] * (release in {"1.2", "2.0", "2.1"}) + ["main_b"] * (release in near_in)
        (place / "__init__.py").write_text("".join(f"{name} = 1\n" for name in names))
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, release: tmp_path / release)
    said = "ImportError: cannot import name 'main_a' from 'name' (/env/site-packages/name/__init__.py)"
    parts = parse_message([f"{said}. Did you mean: 'main_b'?"])
    assert parts is not None
    found = directions.direction_of(parts, {})
    assert found is not None
    assert (found.added_in, bool(found.unknown)) == (added, not added)
    # Where no import has hidden anything, the release at hand may be one between two that were published.
    parts = parse_message(["AttributeError: module 'name' has no attribute 'main_a'. Did you mean: 'main_b'?"])
    assert parts is not None
    found = directions.direction_of(parts, {})
    assert found is not None
    assert (found.added_in, bool(found.unknown)) == ("1.2", False)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("if is_available():\n    from name.ops.perf import a\n", True),
        ("import name.ops\n", True),
        ("try:\n    from name.ops import a\nexcept ImportError:\n    a = None\n", False),
        ("if VERSION < (3, 2):\n    from name.ops import a\n", False),
        ("from name.opset import a  # not name.ops\n", False),
    ],
)
def test_a_module_within_a_package_is_asked_for_also_where_the_package_may_be_missing(
    tmp_path: Path, text: str, asks: bool
) -> None:
    (tmp_path / "asker").mkdir()
    (tmp_path / "asker/__init__.py").write_text("")
    (tmp_path / "asker/core.py").write_text(text)
    assert still_asks(tmp_path, "asker/core.py", "name.ops") is asks


def install(folder: Path, name: str, version: str, requires: str) -> None:
    place = folder / f"{name}-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: {requires}\n"
    )


def test_what_pip_would_refuse_is_said(tmp_path: Path) -> None:
    install(tmp_path, "engine", "0.20", "transformers>=5.1")
    install(tmp_path, "other", "1.0", "transformers>=4,<6; extra == 'all'")
    assert refusals([str(tmp_path)], "transformers<5.0.0", {}) == ("engine 0.20: transformers>=5.1",)
    assert refusals([str(tmp_path)], "transformers<5.0.0", {"engine": "0.19"}) == ()
    install(tmp_path, "odd", "1.0", "transformers in (5,6)")
    assert refusals([str(tmp_path)], "transformers<5.0.0", {}) == ("engine 0.20: transformers>=5.1",)
    assert refusals([str(tmp_path)], "transformers>=5.2.0", {}) == ()
    assert refusals([str(tmp_path)], "transformers>=4.56,<5.0.0", {}) == ("engine 0.20: transformers>=5.1",)


@pytest.mark.parametrize(
    ("message", "symbol"),
    [
        ("AttributeError: type object 'ModelType' has no attribute 'both'", "megatron.core.enums.ModelType.both"),
        ("TypeError: Args.__init__() got an unexpected keyword argument 'log'", "vllm.args.EngineArgs.__init__(log)"),
        ("AttributeError: 'Other' object has no attribute 'x'", ""),
        ("KeyError: 'x'", ""),
    ],
)
def test_what_an_attribute_or_an_argument_is_of_is_read_from_the_imports(message: str, symbol: str) -> None:
    source = (
        "from megatron.core.enums import ModelType\nfrom vllm.args import EngineArgs as Args\nfrom .x import Other\n"
    )
    parts = parse_message([message])
    assert parts is not None
    assert asked_symbol(parts, source) == symbol


@pytest.mark.parametrize(
    ("message", "symbol"),
    [
        (
            "TypeError: MistralRotaryEmbedding.__init__() got an unexpected keyword argument 'base'",
            "transformers.models.mistral.modeling_mistral.MistralRotaryEmbedding.__init__(base)",
        ),
        ("TypeError: ShelfRotaryEmbedding.__init__() got an unexpected keyword argument 'base'", ""),
        ("TypeError: LlamaRMSNorm.forward() got an unexpected keyword argument 'base'", ""),
    ],
)
def test_a_part_of_a_known_model_is_found_by_its_name(message: str, symbol: str) -> None:
    parts = parse_message([message])
    assert parts is not None
    assert argument_of_model_part(parts) == symbol


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("from lib import Cache\n", True),
        ("def f(kind):\n    if kind == Kind.Cache:\n        pass\n", True),
        ("try:\n    from lib import Cache\nexcept ImportError:\n    Cache = None\n", False),
        ("def f():\n    if lib_lt_5:\n        from lib import Cache\n        return Cache()\n", False),
        ("if hasattr(Kind, 'Cache'):\n    Kind.Cache\n", False),
        ("# Cache is gone\n", False),
    ],
)
def test_a_release_asks_no_more_where_it_asks_only_after_a_question(tmp_path: Path, text: str, asks: bool) -> None:
    (tmp_path / "peft").mkdir()
    (tmp_path / "peft/__init__.py").touch()
    (tmp_path / "peft/model.py").write_text(text)
    assert still_asks(tmp_path, "peft/model.py", "Cache") is asks
    (tmp_path / "peft/model.py").rename(tmp_path / "peft/moved.py")
    assert still_asks(tmp_path, "peft/model.py", "Cache") is asks
    assert still_asks(tmp_path, "other/model.py", "Cache") is None


def test_public_threads_are_found_by_exception_message_and_frame() -> None:
    said = "ImportError: cannot import name 'HybridCache' from 'transformers' (/opt/env/transformers/__init__.py)"
    first = known_issues(said, ["verl/trainer/main_ppo.py", "peft/peft_model.py"])[0]
    assert (first.thread, first.frame) == ("huggingface/peft#3333", "peft/peft_model.py")
    assert first.url == "https://github.com/huggingface/peft/issues/3333"
    logged = "ERROR 07-18 10:29:26 [core.py:58] RuntimeError: CUDA Error: out of memory at /w/cumem_allocator.cpp:9"
    assert "verl-project/verl#302" in [one.thread for one in known_issues(logged)]
    assert known_issues("KeyError: 'type'") == ()
    assert [one.frame for one in known_issues("KeyError: 'type'", ["vllm/config.py"])] == ["vllm/config.py"]
    assert known_issues("ImportError: cannot import name 'HybridCacheX' from 'transformers'") == ()
    shapes = "RuntimeError: The size of tensor a (7) must match the size of tensor b (9) at non-singleton dimension 0"
    assert known_issues(shapes, ["other/code.py"]) == ()


def test_a_message_that_any_code_may_cause_needs_its_file() -> None:
    assert known_issues("IndexError: tuple index out of range", ["other/code.py"]) == ()
    ambiguous = "ValueError: The truth value of an array with more than one element is ambiguous. "
    ambiguous += "Use a.any() or a.all()"
    assert known_issues(ambiguous, ["other/code.py"]) == ()
    assert known_issues(ambiguous, ["verl/utils/dataset/multiturn_sft_dataset.py"]) != ()
    assert known_issues("ZeroDivisionError: integer division or modulo by zero", ["other/code.py"]) == ()
    assert known_issues("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)") == ()
    assert known_issues("TypeError: cannot pickle '_thread.lock' object", ["other/code.py"]) == ()
    assert {one.frame for one in known_issues("IndexError: list index out of range", ["vllm/config.py"])} <= {
        "vllm/config.py"
    }
    meta = "NotImplementedError: Cannot copy out of meta tensor; no data!"
    assert known_issues(meta, ["other/code.py"]) == ()  # Seven files of five projects say so.
    assert known_issues(meta, ["peft/peft_model.py", "accelerate/hooks.py", "torch/nn/modules/module.py"])


def test_threads_of_pydantic_are_found_by_the_reason_and_not_by_the_heading() -> None:
    heading = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
    frames = ["vllm/engine/arg_utils.py"]
    empty = ["  Value error, Expecting value: line 1 column 1 (char 0) [type=value_error]"]
    assert known_issues(heading, frames) == ()
    assert known_issues(heading, frames, ["  Value error, no kettle is named [type=value_error]"]) == ()
    assert "vllm-project/vllm#26161" in [one.thread for one in known_issues(heading, frames, empty)]
    zero = "pydantic_core._pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig"
    field = ["stage3_prefetch_bucket_size", "  Input should be a valid integer [type=int_from_float]"]
    assert known_issues(zero, (), field) != ()
    assert known_issues(zero, (), ["kettle_size", *field[1:]]) == ()


def test_the_index_of_threads_holds_each_once_in_its_normal_form() -> None:
    rows = read((shipped("symptoms") / FILE).read_text(encoding="utf-8").splitlines())
    assert len({one.thread for one in rows}) >= 400
    assert len({(one.exception, one.message, one.thread) for one in rows}) == len(rows)
    line = "{0.exception}: {0.message}"
    assert [one for one in rows if one.exception and normalised(line.format(one)) != (one.exception, one.message)] == []
    assert [one for one in rows if not re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", one.thread) or not one.about] == []


def test_a_failure_with_a_thread_shows_it_instead_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.log"
    log.write_text(HEAD + OWN + LIBRARY + "ValueError: <object object at 0x7fa70eca36e0> is not a valid Sentinel\n")
    assert run(["diagnose", str(log)]) == 1
    said = capsys.readouterr().out
    assert "https://github.com/ray-project/ray/issues/56747  click 8.3" in said
    assert "search?type=issues" not in said


def test_a_key_that_is_not_there_names_the_nearest_of_the_tree_s_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "verl/trainer/config"
    folder.mkdir(parents=True)
    (folder / "ppo_trainer.yaml").write_text("trainer:\n  total_epochs: 30\nactor:\n  kl_loss_coef: 0.1\n")
    assert nearest_keys(tmp_path, "verl", "trainer.total_epoch") == ("trainer.total_epochs",)
    assert nearest_keys(tmp_path, "verl", "+kl_loss_coef") == ("actor.kl_loss_coef",)
    assert nearest_keys(tmp_path, "verl", "trainer.total_epochs") == ()
    assert nearest_keys(tmp_path, "verl", "trainer.quite_another") == ()


def test_a_package_that_lacks_a_name_of_its_own_is_not_told_by_its_releases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for release, text in (("1.0", "x = 1\n"), ("2.0", "")):
        (tmp_path / release / "name").mkdir(parents=True)
        (tmp_path / release / "name/__init__.py").write_text(text)
    monkeypatch.setattr(directions, "versions", lambda _: ["1.0", "2.0"])
    monkeypatch.setattr(directions, "release_folder", lambda _, release: tmp_path / release)
    monkeypatch.setattr(directions, "_installed_folders", lambda _: [])
    parts = parse_message(["ImportError: cannot import name 'x' from 'name' (/env/site-packages/name/__init__.py)"])
    assert parts is not None
    own, other = Frame("name/a.py", 3, "name", True), Frame("own/a.py", 3, "", False)
    assert directions.direction_at(None, parts, {"name": "2.0"}, own) is None  # type: ignore[arg-type]
    found = directions.direction_at(None, parts, {"name": "2.0"}, other)  # type: ignore[arg-type]
    assert found is not None
    assert found.removed_in == "2.0"


@pytest.mark.network
def test_the_command_says_in_which_release_a_name_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    log.write_text(HEAD + OWN + "ImportError: cannot import name 'cdiv' from 'vllm.utils' (/x/vllm/utils.py)\n")
    assert run(["--assume", "vllm==0.20.2", "--format", "json", "diagnose", str(log)]) == 1
    (root,) = [one for one in json.loads(capsys.readouterr().out)["symptoms"] if one["role"] == "root"]
    direction = root["explanation"]["direction"]
    assert (direction["removed_in"], direction["moved_to"]) == ("0.11.1", "vllm.utils.math_utils.cdiv")


def test_the_command_that_pip_has_made_is_no_code_of_one_s_own() -> None:
    command = '  File "/home/g/env/bin/garden", line 8, in <module>\n    sys.exit(run())\n'
    assert explained("KeyError: 'soil'", command + LIBRARY).own == ""
    assert explained("KeyError: 'soil'", command.replace("bin/garden", "bin/garden.py") + LIBRARY).own.endswith(".py:8")


def test_what_is_told_names_no_package_where_only_a_class_is_known() -> None:
    parts = parse_message(["AttributeError: 'LlamaConfig' object has no attribute 'x'"])
    assert parts is not None
    assert parts.package == ""


@pytest.mark.network
def test_the_command_says_in_which_release_a_key_went_and_what_came_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree").mkdir()
    shutil.copytree(release_folder("verl", "0.6.1") / "verl", tmp_path / "tree" / "verl")
    log = tmp_path / "run.log"
    key = "actor_rollout_ref.rollout.multi_turn.max_turns"
    log.write_text(
        f"Could not override '{key}'.\nTo append to your config use +{key}=3\n"
        f"Key 'max_turns' is not in struct\n    full_key: {key}\n    object_type=dict\n"
    )
    assert run(["--root", str(tmp_path / "tree"), "--format", "json", "diagnose", str(log)]) == 1
    (root,) = [one for one in json.loads(capsys.readouterr().out)["symptoms"] if one["role"] == "root"]
    told = root["explanation"]
    assert told["direction"]["removed_in"] == "0.4.1"
    assert told["nearest"][0] == "actor_rollout_ref.rollout.multi_turn.max_user_turns"
    assert told["remedy"] == ""  # To add the key anew, as Hydra advises, would set what nothing reads.


def test_a_message_of_no_known_shape_is_quoted_with_who_says_it() -> None:
    told = explained("NotImplementedError: GDN does not support packed sequence for now.")
    assert str(told.sentence) == f"{WHO} says: GDN does not support packed sequence for now."


def test_a_key_of_several_words_is_what_the_exception_says() -> None:
    told = explained("""KeyError: "Invalid keys in the example: {'messages', 'prompt'}"\n\"\"\"""")
    assert str(told.sentence) == f"""{WHO} says: "Invalid keys in the example: {{'messages', 'prompt'}}\""""


def test_the_exception_of_a_server_is_the_root_of_the_answer_that_holds_its_traceback() -> None:
    log = (
        "WARNING packaging.py:454 -- a.safetensors is very large; name it in excludes to skip it\n"
        f"{HEAD}{OWN}RuntimeError: Request failed with status code 500: Traceback (most recent call last):\n"
        '  File "/env/lib/python3.11/site-packages/aiohttp/web_request.py", line 678, in read\n'
        "    raise HTTPRequestEntityTooLarge(\n"
        "aiohttp.web_exceptions.HTTPRequestEntityTooLarge: Request Entity Too Large\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert (root.id, root.place.number) == ("unknown", 8)
    assert str(root.explanation.sentence) == "aiohttp (aiohttp/web_request.py:678) says: Request Entity Too Large"


def test_a_module_of_one_s_own_tree_is_not_looked_up_on_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def versions(name: str) -> list[str]:
        asked.append(name)
        raise ReleaseError("no index")

    monkeypatch.setattr(directions, "versions", versions)
    for path in ("/home/me/ragen/core.py", "/env/lib/python3.11/site-packages/mine/core.py"):
        name = path.split("/")[-2]
        parts = parse_message([f"ImportError: cannot import name 'agg_loss' from '{name}.core' ({path})"])
        assert parts is not None
        directions.direction_of(parts, {})
    assert asked == ["mine"]


def test_lines_of_others_below_a_message_are_no_part_of_it() -> None:
    """torch warns of the process group at each end, and says nothing of why the run failed."""
    warning = "[W309 02:06:18.188124679 ProcessGroupNCCL.cpp:1524] Warning: destroy_process_group() was not called\n"
    log = HEAD + OWN + LIBRARY + "NotImplementedError: Unsupported parameter name: decoder.x\n" + warning
    log = "".join(f"[rank0]: {line}\n" for line in log.splitlines())
    notice = symptom("not-closed", "[[match]]\nline = 'destroy_process_group'\n", kind="notice")
    found = diagnosed(log, notice)
    assert found.verdict == "failed"
    assert found.root is not None
    assert found.root.explanation is not None
    assert str(found.root.explanation.sentence) == f"{WHO} says: Unsupported parameter name: decoder.x"


def test_frames_that_have_lost_their_indentation_are_read() -> None:
    log = "".join(f"[rank0]: {line.strip()}\n" for line in (HEAD + OWN + LIBRARY).splitlines())
    root = diagnosed(log + "[rank0]: TypeError: Trainer.step() takes 3 positional arguments but 4 were given\n").root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == f"{WHO} passes 4 positional arguments to Trainer.step, which takes 3"


def test_a_decorator_around_a_function_is_not_who_asks() -> None:
    wrapper = '  File "/opt/venv/lib/python3.12/site-packages/transformers/deprecation.py", line 165, in wrapped_func\n'
    told = explained("TypeError: T.__init__() got an unexpected keyword argument 'a'", OWN + wrapper + "    f()\n")
    assert str(told.sentence).startswith("verl (verl/trainer/main_ppo.py:30) passes a")


def test_releases_that_begin_no_series_are_looked_at() -> None:
    assert first(["0.5.0", "0.5.1", "0.5.2"], "0.5.2", lambda release: release != "0.5.0") == "0.5.1"


def test_a_log_that_begins_in_a_traceback_may_end_in_a_plain_exception() -> None:
    root = diagnosed(OWN + LIBRARY + "Exception: Installed CUDA version 11.0 does not match that of torch, 10.1\n").root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence).startswith(f"{WHO} says: Installed CUDA version 11.0")


def test_a_plugin_of_vllm_goes_with_one_release_of_it() -> None:
    message = "ImportError: cannot import name 'MLA' from 'vllm.attention' (/env/site-packages/vllm/attention/layer.py)"
    parts = parse_message([message])
    assert parts is not None
    at = frame_of('  File "/home/me/vllm-ascend/vllm_ascend/models/layers/mla.py", line 42, in <module>')
    found = directions.direction_at(None, parts, {}, at)  # type: ignore[arg-type]
    assert found is not None
    assert found.requirement == ""
    assert str(found.unknown).startswith("vllm-ascend is made for one release of vllm")


@pytest.mark.parametrize(
    ("init", "told"),
    [
        ("", "write import name.config before"),
        ("from .config import config\n", "is imported in their place, or it is defined only under a condition"),
    ],
)
def test_a_module_that_nothing_has_imported_is_no_broken_installation(
    init: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "name").mkdir()
    (tmp_path / "name/__init__.py").write_text(init)
    (tmp_path / "name/config.py").touch()
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr(directions, "release_folder", lambda _, __: tmp_path)
    parts = parse_message(["AttributeError: module 'name' has no attribute 'config'"])
    assert parts is not None
    found = directions.direction_of(parts, {})
    assert found is not None
    assert str(found.unknown).endswith(told)


@pytest.mark.parametrize(
    ("asking", "known", "since"),
    [
        ({"1.2", "2.0", "2.1"}, {}, "1.2"),
        ({"1.2", "2.0", "2.1"}, {"asker": "1.2"}, "1.2"),
        (set(RELEASES), {}, ""),  # All ask, so another release of what is asked is the only way.
        ({"1.2"}, {"asker": "2.0"}, ""),  # The one that ran does not have the name in that file.
    ],
)
def test_where_a_name_came_later_the_releases_that_do_not_ask_yet_are_the_other_way(
    asking: set[str], known: dict[str, str], since: str, release_asker: Callable[[set[str], str, str], None]
) -> None:
    release_asker(asking, "from name import x\n", "import name\n")
    found = directions.Direction("name", "name.x", added_in="2.0")
    assert asking_releases._asks_since(ASKER, found, MessageParts("missing-name"), known) == since
    whole = directions.Direction("name", "name.x", added_in="2.0", asker="asker", asks_since=since)
    assert whole.asker_requirement == (f"asker<{since}" if since else "")


def test_a_search_that_takes_too_long_says_so_and_goes_on_the_next_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is fetched any more; what is in the cache is read."""
    cached = {"2.1"}

    def folder(name: str, release: str, *, offline: bool = False) -> Path:
        if offline and release not in cached:
            raise ReleaseError("it is not in the cache")
        cached.add(release)
        return tmp_path / release

    for release in RELEASES:
        (tmp_path / release / "name").mkdir(parents=True)
        (tmp_path / release / "name/__init__.py").write_text("x = 1\n" if release < "2" else "")
    monkeypatch.setattr(directions, "versions", lambda _: RELEASES)
    monkeypatch.setattr("patcher.check.targets.release_folder", folder)
    parts = parse_message(["ImportError: cannot import name 'x' from 'name' (/env/site-packages/name/__init__.py)"])
    assert parts is not None
    with limited_to(-1) as limit:
        assert in_time(directions.direction_of, parts, {"name": "2.1"}) is None
    (note,) = map(str, still_to_fetch(limit))
    assert note.startswith("name 1.")
    assert note.endswith("the same command, given again, goes on from there")
    found = directions.direction_of(parts, {"name": "2.1"})
    assert found is not None
    assert found.removed_in == "2.0"
    with limited_to(-1) as limit:
        assert directions.direction_of(parts, {"name": "2.1"}) == found
    assert still_to_fetch(limit) == ()


def test_of_the_asking_package_a_dozen_releases_are_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ray has 150, of 18 MB each."""
    releases, asked = [f"1.{number}.0" for number in range(100)], []

    def folder(_: str, release: str) -> Path:
        asked.append(release)
        place = tmp_path / release / "asker"
        place.mkdir(parents=True, exist_ok=True)
        (place / "core.py").write_text("name.x\n" if int(release.split(".")[1]) < 70 else "")
        return tmp_path / release

    monkeypatch.setattr(asking_releases, "versions", lambda _: releases)
    monkeypatch.setattr(asking_releases, "release_folder", folder)
    found = directions.Direction("name", "name.x", removed_in="2.0")
    until = asking_releases._asks_until(ASKER, found, MessageParts("missing-name"), {"asker": "1.3.0"})
    assert until == "1.70.0"
    assert len(asked) <= 13
