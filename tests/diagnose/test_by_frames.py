"""Exceptions whose message says too little: the innermost frames and their code tell what they are about."""

from __future__ import annotations

import pytest

from patcher.diagnose.diagnosis import Finding
from tests.diagnose.diagnosed import symptom
from tests.diagnose.test_explaining import HEAD, diagnosed, explained
from tests.diagnose.test_parties import SITE, frame


def root(log: str) -> Finding:
    found = diagnosed(log).root
    assert found is not None
    return found


def said(log: str) -> str:
    found = root(log).explanation
    assert found is not None
    return str(found.sentence)


def test_the_marks_of_python_show_which_operand_is_none_and_the_frame_above_who_gave_it() -> None:
    above = frame("soil.py", "dig", "soil.turn(bed, water)")
    code = "    assert bed.is_wet and water.is_wet\n                          ^^^^^^^^^^^^\n"
    frames = f'{above}  File "bed.py", line 3, in turn\n{code}'
    found = explained("AttributeError: 'NoneType' object has no attribute 'is_wet'", frames)
    assert str(found.sentence) == "bed.py:3 asks water for is_wet: water is None"
    assert found.caller is not None
    assert (found.caller.shown, found.calls) == ("soil.py:3", "soil.turn(bed, water)")


GARDEN = f"{SITE}/garden/plan.py"


@pytest.mark.parametrize(
    ("message", "frames", "sentence", "often"),
    [
        (
            "NotImplementedError",
            frame(GARDEN, "dig", "bed.available()")
            + frame(f"{SITE}/garden/bed.py", "available", "raise NotImplementedError()"),
            "garden (garden/plan.py:3) calls available, which the class in use does not implement",
            "both sides are of garden: a case",
        ),
        (
            "IndexError: list index out of range",
            frame(GARDEN, "dig", 'last = text.split("/")[-2]'),
            "garden (garden/plan.py:3) takes place -2 of text.split('/'), which has fewer",
            "",
        ),
        (
            "IndexError: _Map_base::at",
            frame(GARDEN, "dig", "rows, beds = _ext.dig_rows("),
            "garden (garden/plan.py:3) calls _ext.dig_rows of a compiled extension",
            "the compiled part and the Python part of garden",
        ),
        (
            "KeyError: 'daisy9'",
            frame(
                f"{SITE}/transformers/models/auto/configuration_auto.py",
                "from_pretrained",
                'x = CONFIG_MAPPING[config["model_type"]]',
            )
            + frame(f"{SITE}/transformers/models/auto/configuration_auto.py", "__getitem__", "raise KeyError(key)"),
            "transformers (transformers/models/auto/configuration_auto.py:3) does not know the type of this model",
            "the model is newer",
        ),
        (
            "KeyError: 'SLURM_NODEID'",
            frame(GARDEN, "rank", 'return int(os.environ["SLURM_NODEID"])')
            + frame("/env/lib/python3.12/os.py", "__getitem__", "raise KeyError(key) from None"),
            "garden (garden/plan.py:3) reads the environment variable SLURM_NODEID, which is not set",
            "Slurm sets it",
        ),
        (
            "KeyError: 'soil'",
            frame(GARDEN, "dig", "bed.soil") + frame(f"{SITE}/spade/bed.py", "__getattr__", "return self._state[key]"),
            "garden (garden/plan.py:3) asks an object for soil, which it does not have",
            "the object keeps its attributes in a dict",
        ),
        (
            "TypeError: __init__() got an unexpected keyword argument 'dispatch_batches'",
            frame(GARDEN, "dig", "self.accelerator = Accelerator("),
            "garden (garden/plan.py:3) passes dispatch_batches to Accelerator.__init__ of accelerate",
            "the code that asks and the installed accelerate",
        ),
        (
            "AssertionError",
            frame(GARDEN, "dig", "self.beds.turn()") + frame(f"{SITE}/garden/bed.py", "turn", "assert self.rows == 1"),
            "garden (garden/bed.py:3) asserts self.rows == 1, which does not hold",
            "an internal error of garden",
        ),
        (
            "AssertionError",
            frame(GARDEN, "dig", "self.beds.turn()")
            + frame(f"{SITE}/garden/bed.py", "turn", "assert self.config.rows == 1"),
            "garden (garden/bed.py:3) asserts self.config.rows == 1, which does not hold",
            "",
        ),
    ],
)
def test_what_a_bare_exception_is_about(message: str, frames: str, sentence: str, often: str) -> None:
    found = explained(message, frames)
    assert str(found.sentence).startswith(sentence)
    assert str(found.often or "").startswith(often)
    assert bool(found.often) == bool(often)


def test_code_that_raises_again_what_it_caught_is_not_the_asker() -> None:
    again = frame(f"{SITE}/garden/run.py", "call", "raise TypeError(f'{e} in {hook}') from e")
    found = explained(
        "TypeError: dig() got an unexpected keyword argument 'deep' in <spade.hooks.Turn object at 0x7f00>", again
    )
    assert str(found.sentence) == "spade.hooks.Turn or what it calls passes deep to dig, which does not take it"
    assert found.at is None
    found = explained("TypeError: dig() got an unexpected keyword argument 'deep'", again)
    assert str(found.sentence).startswith("garden (garden/run.py:3) or what it calls passes deep")


@pytest.mark.parametrize(
    ("kind", "name", "code", "often"),
    [
        ("Bed", "soil", "if self.soil:", "the object asks itself for it: this release of garden"),
        ("Namespace", "soil", "args.soil", "the program that was started does not define this option"),
        ("DeepSpeedDataLoader", "sampler", "loader.sampler", "a DeepSpeedDataLoader holds another object"),
        ("RowLinear", "weight", "rows.append(layer.weight)", "a layer of a quantized model"),
    ],
)
def test_why_an_object_lacks_an_attribute_where_no_releases_clash(kind: str, name: str, code: str, often: str) -> None:
    found = explained(f"AttributeError: '{kind}' object has no attribute '{name}'", frame(GARDEN, "dig", code))
    assert str(found.often).startswith(often)


def test_an_object_is_of_the_package_that_all_frames_are_of() -> None:
    frames = frame(GARDEN) + frame(GARDEN) + frame(GARDEN, "dig", "bed.args.soil")
    assert str(explained("AttributeError: 'BedArguments' object has no attribute 'soil'", frames).often).startswith(
        "both sides"
    )
    assert "do not fit" in str(explained("AttributeError: 'BedConfig' object has no attribute 'soil'", frames).often)


def test_a_keyword_that_a_package_may_only_hand_on_is_its_callers() -> None:
    frames = frame("dig.py", "main", "Garden(") + frame(f"{SITE}/vllm/llm.py", "__init__", "args = EngineArgs(")
    found = explained("TypeError: __init__() got an unexpected keyword argument 'deep'", frames)
    assert str(found.often).startswith("where vllm only hands on what dig.py:3 gives it")
    written = frame("dig.py", "main", "Garden(") + frame(f"{SITE}/vllm/llm.py", "__init__", "args = EngineArgs(deep=1)")
    found = explained("TypeError: __init__() got an unexpected keyword argument 'deep'", written)
    assert str(found.often).startswith("both sides are of vllm")


def test_a_getter_that_refuses_names_who_asked() -> None:
    frames = frame("/home/g/torchtitan/torchtitan/beds.py", "plan", 'row = dims.get_row("tp")')
    frames += frame("/home/g/torchtitan/torchtitan/dims.py", "get_row", "raise ValueError(")
    found = explained("ValueError: Row 'tp' is not there, so switch it on before.", frames)
    assert found.caller is not None
    assert found.caller.shown == "/home/g/torchtitan/torchtitan/beds.py:3"
    assert str(found.often).startswith("torchtitan itself asks for it")


def test_a_message_that_tells_to_install_what_has_called_it() -> None:
    frames = frame(f"{SITE}/garden/__init__.py", "<module>", "import spade") + frame(
        f"{SITE}/spade/__init__.py", "<module>", "raise ImportError("
    )
    found = explained("ImportError: Please install Garden by `pip install garden` first", frames)
    assert str(found.often).startswith("garden is installed and has called spade itself")


HANDLING = "\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("first", "text", "line"),
    [
        ("RuntimeError: the lock of the shed is broken", 'raise ImportError("please install the shed")', 6),
        ("RuntimeError: the lock of the shed is broken", 'raise ImportError(f"please install {name}")', 13),
        ("KeyError: 'shed'", 'raise ImportError("please install the shed")', 13),
    ],
)
def test_a_fixed_text_that_is_raised_for_anything_hides_what_came(first: str, text: str, line: int) -> None:
    second = HEAD + frame(GARDEN, "dig", text) + "ImportError: please install the shed\n"
    caught = frame(GARDEN, "dig", "spade.open()") + frame(f"{SITE}/spade/x.py")
    found = root(HEAD + caught + f"{first}\n" + HANDLING + second)
    assert found.place.number == line


def test_what_was_tried_instead_hides_nothing_with_its_fixed_text() -> None:
    """llama.cpp's converter reads the vocabulary in one form, else in another."""
    first = HEAD + frame(GARDEN, "dig", "read()") + "FileNotFoundError: no vocabulary of that form\n" + HANDLING
    tried = frame(GARDEN, "dig", "read_other()") + frame(GARDEN, "read_other", 'raise NotImplementedError("no form")')
    assert root(first + HEAD + tried + "NotImplementedError: no form\n").place.number > 8


TASK = (
    "Task exception was never retrieved\n"
    "future: <Task finished name='Task-3' coro=<dig() done, "
    "defined at /env/lib/python3.12/site-packages/garden/run.py:31> "
    "exception=AttributeError(\"'Bed' object has no attribute 'soil'\")>\n"
)


def test_the_exception_of_a_task_is_told_without_its_traceback_and_completes_one_that_is_cut() -> None:
    sentence = "garden (garden/run.py:31) asks an object of Bed for soil, which it does not have"
    assert said(TASK) == sentence
    cut = (
        HEAD + frame(f"{SITE}/spade/bed.py", "__getattr__", "return self._state[key]") + "KeyError: 'soil'\n" + HANDLING
    )
    assert said(TASK + cut) == sentence
    whole = cut + HEAD + frame(f"{SITE}/garden/run.py") + "AttributeError: 'Bed' object has no attribute 'soil'\n"
    assert "garden/run.py:3)" in said(TASK + whole)


@pytest.mark.parametrize("begin", ["libc++abi: ", "libc++abi.dylib: ", ""])
def test_an_exception_that_nothing_caught_is_told(begin: str) -> None:
    log = f"start\n{begin}terminating with uncaught exception of type std::range_error: no row of that name\n"
    assert "no row of that name" in said(f"{log}*** SIGABRT (@0x7f00) received by PID 7 (TID 0x1) stack trace: ***\n")
    assert diagnosed("*** SIGABRT (@0x7f00) received by PID 7 (TID 0x1) stack trace: ***\n").verdict == "failed"


def test_lines_of_other_ranks_are_none_of_a_message() -> None:
    log = (
        '[default5]:  File "garden/run.py", line 7, in dig\n[default4]:    rows == 1\n[default5]:    dig(rows=rows)\n'
        "[default4]:AssertionError: There has to be a single row in this bed\n[default6]:    dig(rows=rows)\n"
        '[default7]:  File "garden/run.py", line 9\n'
    )
    assert said(log) == "the program says: There has to be a single row in this bed"


def test_what_the_memory_was_for_is_told_with_the_record() -> None:
    log = (
        HEAD
        + frame("/app/garden/loss.py", "dig", "rows = beds.clone()")
        + "torch.OutOfMemoryError: CUDA out of memory. Tried\n"
    )
    found = diagnosed(log, symptom("memory", "CUDA out of memory")).root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence) == "the memory is asked for at /app/garden/loss.py:3: rows = beds.clone()"


FLOW = "".join(f"INFO 09-03 16:28:1{at} [x.py:{at}] A line of the start, number {at}\n" for at in range(4))


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        ("INFO 09-03 16:28:15 [core.py:6] waiting at the barrier\n", "running"),
        ("INFO 09-03 16:29:15 [core.py:6] waiting at the barrier\n", "stalled"),
        ("INFO 09-03 16:28:15 [core.py:6] waiting at the barrier\n" * 2, "stalled"),
        ("waiting at the barrier\n", "stalled"),
    ],
)
def test_a_piece_that_flows_on_to_its_last_line_is_not_stalled(last: str, verdict: str) -> None:
    barrier = symptom("barrier", "[[wait]]\nline = 'waiting at the barrier'", kind="stall")
    assert diagnosed(FLOW + last, barrier).verdict == verdict
