"""Tracebacks as IPython and pytest print them are read as Python's own are."""

from __future__ import annotations

import io

import pytest

from tests.diagnose.diagnosed import scanner
from tests.diagnose.test_cut_logs import diagnosed, sentence

RULE = "-" * 75 + "\n"
SITE = "/opt/venv/lib/python3.12/site-packages"


def header(name: str) -> str:
    return f"{RULE}{name:<42}Traceback (most recent call last)\n"


IPYTHON_9 = f"""\
{header("TypeError")}Cell In[4], line 2
      1 plan = Plan()
----> 2 plan.start(3)

File {SITE}/gardening/beds.py:41, in Plan.start(self, rows, **kwargs)
     39     # A bed for each row
     40     beds = []
---> 41     dig(rows, deep=True)
     42     return beds

File <frozen importlib._bootstrap>:241, in _call(f, *args)

TypeError: dig() got an unexpected keyword argument 'deep'
"""
IPYTHON_8 = f"""\
{header("TypeError")}Input In [4], in <cell line: 2>()
      1 plan = Plan()
----> 2 plan.start(3)

File {SITE}/gardening/beds.py:41, in Plan.start(self, rows)
     40     beds = []
---> 41     dig(rows, deep=True)

TypeError: dig() got an unexpected keyword argument 'deep'
"""
IPYTHON_7 = f"""\
{header("TypeError")}<ipython-input-4-0a1b2c3d4e5f> in <module>
      1 plan = Plan()
----> 2 plan.start(3)

{SITE}/gardening/beds.py in start(self, rows, *args)
     39
     40     beds = []
---> 41     dig(rows, deep=True)
     42     return beds

{SITE}/gardening/_fast.pyx in gardening._fast.dig()

TypeError: dig() got an unexpected keyword argument 'deep'
"""
COLAB = f"""\
{header("TypeError")}[/tmp/ipython-input-7.py](https://localhost:8080/#) in <cell line: 0>()
      1 plan = Plan()
----> 2 plan.start(3)

3 frames
[{SITE}/gardening/beds.py](https://localhost:8080/#) in start(self, rows)
     40     beds = []
---> 41     dig(rows, deep=True)

TypeError: dig() got an unexpected keyword argument 'deep'
"""
LINKED = f"""\
{header("TypeError")}Cell In[4], line 2
----> 2 plan.start(3)

File [{SITE}/gardening/beds.py:41](https://hub.example/lab/tree/gardening/beds.py#line=40), in Plan.start(self, rows)
---> 41     dig(rows, deep=True)

TypeError: dig() got an unexpected keyword argument 'deep'
"""
# VS Code links the numbers of the lines, too.
LINKED_LINES = LINKED.replace("---> 41 ", "---> [41](https://hub.example/gardening/beds.py:41) ").replace(
    "----> 2 ", "----> [2](vscode-notebook-cell:/beds.ipynb#W4) "
)
SAID = "gardening (gardening/beds.py:41) passes deep to dig, which does not take it"


@pytest.mark.parametrize(
    ("log", "own"),
    [
        (IPYTHON_9, "Cell In[4]:2"),
        (IPYTHON_8, "Input In [4]:2"),
        (IPYTHON_7, "<ipython-input-4-0a1b2c3d4e5f>:2"),
        (COLAB, "/tmp/ipython-input-7.py:2"),
        (LINKED, "Cell In[4]:2"),
        (LINKED_LINES, "Cell In[4]:2"),
    ],
)
def test_a_traceback_of_a_notebook(log: str, own: str) -> None:
    assert sentence(log) == SAID
    found = diagnosed(log).root
    assert found is not None
    assert found.explanation is not None
    assert found.explanation.own == own
    assert found.place.text == "TypeError: dig() got an unexpected keyword argument 'deep'"
    # Without the header the frames are found above the exception.
    assert sentence(log.split("last)\n")[1]) == SAID


def test_of_a_chain_in_a_notebook_the_root_is_that_of_the_last_one_for_which_it_was_handled() -> None:
    log = (
        f"{header('KeyError')}Cell In[1], line 3\n      2 try:\n----> 3     bed['rose']\n\nKeyError: 'rose'\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        f"{header('RuntimeError')}Cell In[1], line 5\n      4 except KeyError as error:\n"
        "----> 5     raise RuntimeError('nothing grows') from error\n\nRuntimeError: nothing grows\n"
    )
    assert sentence(log) == "Cell In[1]:3 looks for the key 'rose' in bed, which lacks it"


@pytest.mark.parametrize("log", [IPYTHON_9, IPYTHON_7, COLAB])
def test_the_header_of_a_notebook_tells_what_is_raised_where_the_rest_is_cut_off(log: str) -> None:
    cut = log[: log.index("dig(rows, deep=True)") + len("dig(rows, deep=True)\n")]
    assert sentence(cut) == "gardening (gardening/beds.py:41) raises TypeError; what it says is cut off"
    found = diagnosed(cut).root
    assert found is not None
    assert found.place.text == "    dig(rows, deep=True)"
    assert found.explanation is not None
    assert found.explanation.search.endswith("TypeError+gardening+beds.py")


def test_what_a_notebook_raised_is_found_within_what_ran_it() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\n    execute()\n'
        f'papermill.exceptions.PapermillExecutionError: \n{RULE}Exception encountered at "In [4]":\n{IPYTHON_9}'
    )
    assert sentence(log) == SAID


def test_a_line_that_only_looks_like_a_frame_is_none() -> None:
    for line in ("File saved to out.txt:12", "/data/part-1 in use", "File /data/rows.csv:12"):
        assert diagnosed(f"{line}\n").verdict == "running"


PYTEST_SHORT = f"""\
____________ ERROR collecting tests/test_beds.py ____________
tests/test_beds.py:3: in <module>
    from gardening import beds
{SITE}/gardening/beds.py:9: in <module>
    class Bed(soil.OldBed):
              ^^^^^^^^^^^
E   AttributeError: module 'soil' has no attribute 'OldBed'
=========================== short test summary info ===========================
ERROR tests/test_beds.py - AttributeError: module 'soil' has no attribute 'OldBed'
"""
PYTEST_LONG = f"""\
____________________________ test_rows ____________________________

    def test_rows():
>       Plan().start(3)

tests/test_beds.py:12:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

rows = 3

    def start(self, rows):
>       self.digger.dig(rows)
E       AttributeError: 'NoneType' object has no attribute 'dig'

{SITE}/gardening/beds.py:41: AttributeError
=========================== short test summary info ===========================
FAILED tests/test_beds.py::test_rows - AttributeError: 'NoneType' object has ...
"""
NO_OLD_BED = "asks for soil.OldBed, which soil does not have"


@pytest.mark.parametrize(
    ("log", "said", "number"),
    [
        (PYTEST_SHORT, f"gardening (gardening/beds.py:9) {NO_OLD_BED}", 7),
        (PYTEST_LONG, "gardening (gardening/beds.py:41) asks self.digger for dig: self.digger is None", 13),
        (PYTEST_SHORT.splitlines()[-1], f"the program {NO_OLD_BED}", 1),
        ("FAILED tests/test_beds.py::Test::test[3] - soil.OldError: the soil is much too old for it\n", "", 1),
        (
            "tests/test_beds.py:5: in test_rows\n    assert rows(2) == 4\nE   assert 3 == 4\n"
            "E    +  where 3 = rows(2)\n",
            "tests/test_beds.py:5 asserts rows(2) == 4, which does not hold",
            3,
        ),
        (
            "    def test_rows():\n>       assert rows(2) == 4\nE       assert 3 == 4\n\ntests/test_beds.py:5: "
            "AssertionError\n",
            "tests/test_beds.py:5 asserts rows(2) == 4, which does not hold",
            3,
        ),
    ],
)
def test_an_exception_as_pytest_tells_it(log: str, said: str, number: int) -> None:
    assert sentence(log) == (said or "the program says: the soil is much too old for it")
    found = diagnosed(log).root
    assert found is not None
    assert found.place.number == number


@pytest.mark.parametrize("prefix", ["2026-01-11 10:00:0{n},123::DEBUG: [stdout] ", "[1,3]<stdout>:", "node-3: "])
def test_what_pytest_prints_is_read_behind_the_prefix_of_what_passes_it_on(prefix: str) -> None:
    log = "".join(f"{prefix.format(n=number // 9)}{line}\n" for number, line in enumerate(PYTEST_LONG.splitlines()))
    assert sentence(log) == "gardening (gardening/beds.py:41) asks self.digger for dig: self.digger is None"


def test_tests_that_pass_tell_of_nothing() -> None:
    assert diagnosed("tests/test_beds.py ....   [100%]\n===== 4 passed in 0.3s =====\n").root is None


RICH = (
    "\u256d\u2500\u2500\u2500\u2500 Traceback (most recent call last) \u2500\u2500\u2500\u2500\u256e\n"
    "\u2502 /home/g/garden/a_very_long_name_of_a_ \u2502\n"
    "\u2502 folder/run.py:9 in main               \u2502\n"
    "\u2502                                       \u2502\n"
    "\u2502 \u2771  9 \u2502   dig(bed)                     \u2502\n"
    "\u2502   10 \u2502                                \u2502\n"
    "\u2502 /home/g/garden/bed.py:21 in dig       \u2502\n"
    "\u2502                                       \u2502\n"
    "\u2502   20 \u2502   \u2502   # turn it                 \u2502\n"
    "\u2502 \u2771 21 \u2502   \u2502   if self.soil:             \u2502\n"
    "\u2570\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u2500\u256f\n"
    "AttributeError: 'Bed' object has no attribute 'soil'\n"
)


@pytest.mark.parametrize("begin", [0, RICH.index("\u2502 /home/g/garden/bed.py"), RICH.index("/home/g/garden/bed.py")])
def test_a_traceback_in_a_box_of_rich(begin: int) -> None:
    found = diagnosed(RICH[begin:]).root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith("/home/g/garden/bed.py:21 asks an object of Bed for soil")
    assert str(found.explanation.often).startswith("the object asks itself")


def test_all_frames_of_a_box_of_rich_are_read() -> None:
    root = diagnosed(RICH).root
    assert root is not None
    shown = [place.text.strip() for place in diagnosed(RICH).telling]
    assert 'File "/home/g/garden/a_very_long_name_of_a_folder/run.py", line 9, in main' in shown
    assert "if self.soil:" in shown


@pytest.mark.parametrize(
    "begin",
    ["", 'ile "/env/lib/python3.12/', "e/g/.conda/lib/python3.12/", "{path_to_the_library}/", "<site-packages>/"],
)
def test_a_frame_whose_beginning_is_cut_off_or_hidden(begin: str) -> None:
    path = f"{begin}garden/run.py" if begin.endswith(("}/", ">/")) else f"{begin}site-packages/garden/run.py"
    line = (
        f'{path}", line 9, in dig\n'
        if '"' in begin or not begin.startswith(("{", "<"))
        else f'  File "{path}", line 9, in dig\n'
    )
    found = diagnosed(f"{line}    if bed.soil:\nAttributeError: 'Bed' object has no attribute 'soil'\n").root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith("garden (garden/run.py:9) asks")


def test_frames_that_have_lost_their_indentation() -> None:
    log = (
        '[rank0]: File "/env/lib/python3.12/site-packages/garden/run.py", line 9, in dig\n'
        "[rank0]: rows.append(bed.soil)\n"
        '[rank0]: File "/env/lib/python3.12/site-packages/torch/nn/modules/module.py", line 7, in __getattr__\n'
        "[rank0]: raise AttributeError(x)\n[rank0]: AttributeError: 'Bed' object has no attribute 'soil'\n"
    )
    found = diagnosed(log).root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith("garden (garden/run.py:9) asks")


def test_the_last_header_of_a_notebook_is_the_raiser_though_its_code_is_not_shown() -> None:
    log = (
        "NameError                                 Traceback (most recent call last)\n"
        "[/tmp/ipython-input-1.py](https://localhost:8080/#) in <cell line: 0>()\n"
        "----> 7     dig(\n      8         bed,\n\n3 frames\n"
        "{path} in __init__(self, rows, beds)\n\nNameError: name 'spade' is not defined\n"
    )
    sentence = "garden (garden/bed.py) uses spade, which nothing has defined there"
    for path, said in (("bed.py", sentence), ("bed.pyx", "/tmp/ipython-input-1.py:7 uses spade")):
        found = diagnosed(log.replace("{path}", f"/env/lib/python3.12/dist-packages/garden/{path}")).root
        assert found is not None
        assert found.explanation is not None
        assert str(found.explanation.sentence).startswith(said)


def test_a_table_in_a_box_is_no_part_of_a_traceback() -> None:
    table = "\u256d\u2500\u2500\u2500\u256e\n\u2502 a \u2502\n\u2570\u2500\u2500\u2500\u256f\n"
    found = diagnosed(
        f'  File "/g/run.py", line 9, in dig\n    dig()\n{table}ValueError: the bed has no soil in it\n'
    ).root
    assert found is not None
    assert found.explanation is not None
    assert str(found.explanation.sentence).startswith("the program says")


def test_a_getter_of_a_notebook_hands_on_for_its_caller() -> None:
    log = (
        f"{header('AttributeError')}File {SITE}/gardening/beds.py:41, in Plan.start(self)\n"
        "---> 41     self.model.soil\n\n"
        f"File {SITE}/torch/nn/modules/module.py:1931, in Module.__getattr__(self, name)\n"
        "-> 1931 raise AttributeError(\n\n"
        "AttributeError: 'Bed' object has no attribute 'soil'\n"
    )
    assert sentence(log) == "gardening (gardening/beds.py:41) asks an object of Bed for soil, which it does not have"


def test_a_listed_line_below_a_frame_is_no_error() -> None:
    log = (
        f"{header('RuntimeError')}File {SITE}/gardening/beds.py:41\n"
        '     38     raise MemoryError("CUDA out of memory")\n     39 pass\n---> 41 from .soil import *\n'
    )
    assert scanner().scan([("run.log", io.BytesIO(log.encode()))]).hits == []
