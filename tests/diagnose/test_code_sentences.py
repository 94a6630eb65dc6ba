"""What the line of code that failed adds to the message of an exception."""

from __future__ import annotations

import pytest

from patcher.diagnose.code_sentences import values_of
from patcher.diagnose.failed_code import mapping_with, statement_of, unpacked
from patcher.diagnose.tensor_code import assigned, indexed, joined, operands, reshaped
from tests.diagnose.test_explaining import HEAD, diagnosed, explained

OWN = '  File "/app/beds/train.py", line 8, in main\n    run()\n'
WHO = "/app/beds/train.py:8"


def at_own(message: str, code: str, marks: str = "") -> str:
    frames = OWN.replace("run()", code) + (f"    {marks}\n" if marks else "")
    return str(explained(message, frames).sentence)


SIZES = "RuntimeError: The size of tensor a (7) must match the size of tensor b (9) at non-singleton dimension 1"


@pytest.mark.parametrize(
    ("code", "marks", "says"),
    [
        ("loss = new - old", "", "in dimension 1, new has size 7 and old has 9"),
        ("loss = 2 * new - old if flag == 'x' else new", "", "in dimension 1, 2 * new has size 7 and old has 9"),
        (
            "y = (a * b) + (c(a) * d)",
            "     ~~^~~",
            "in dimension 1, a has size 7 and b has 9",
        ),
        (
            "y = (a * b) + (c(a) * d)",
            "",
            "sizes do not fit, 7 of the first and 9 of the second of one of these pairs: "
            "a, b; c(a), d; a * b, c(a) * d",
        ),
        ("loss = torch.add(new, old)", "", "in dimension 1, new has size 7 and old has 9"),
        ("scores += old", "", "in dimension 1, scores has size 7 and old has 9"),
        ("return step(new)", "", "shapes do not fit, 7 against 9"),
    ],
)
def test_sizes_that_do_not_fit_are_put_to_the_operands(code: str, marks: str, says: str) -> None:
    assert at_own(SIZES, code, marks) == f"{WHO}: {says}"


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (
            "RuntimeError: shape '[3, 5]' is invalid for input of size 0",
            "rows = rows.view(self.wide)",
            "rows is empty (0 elements) and cannot take the shape [3, 5] (self.wide)",
        ),
        (
            "RuntimeError: shape '[3, 5]' is invalid for input of size 8",
            "rows = torch.reshape(rows, wide)",
            "rows has 8 elements and cannot take the shape [3, 5] (wide)",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x2)",
            "return F.linear(input, self.weight, self.bias)",
            "input has shape 4x8 and self.weight.T has 16x2, which do not fit",
        ),
        (
            "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got size 5 for "
            "tensor number 1 in the list.",
            "x = torch.cat([prompts, answers], dim=1)",
            "answers has size 5 where the first tensor that is joined has 4",
        ),
        (
            "RuntimeError: Tensors must have same number of dimensions: got 2 and 1",
            "x = torch.cat((prompts, answers), dim=1)",
            "what is joined (prompts, answers) has 2 and 1 dimensions",
        ),
        (
            "RuntimeError: shape mismatch: value tensor of shape [3, 7] cannot be broadcast to indexing result of "
            "shape [3, 5]",
            "hidden[mask] = parts",
            "hidden[mask] has room for [3, 5], and parts has [3, 7]",
        ),
        (
            "IndexError: The shape of the mask [6] at index 0 does not match the shape of the indexed tensor [5] at "
            "index 0",
            "kept = rows[mask]",
            "the mask mask has shape [6], and rows has [5]",
        ),
        (
            "RuntimeError: The expanded size of the tensor (4) must match the existing size (6) at non-singleton "
            "dimension 0.  Target sizes: [4].  Tensor sizes: [6]",
            "out[i, :n] = ids",
            "out[i, :n] has room for 4, and ids has 6",
        ),
    ],
)
def test_shapes_are_put_to_the_names_in_the_code(message: str, code: str, says: str) -> None:
    assert at_own(message, code) == f"{WHO}: {says}"


def test_an_empty_tensor_is_called_empty_also_where_only_the_line_of_code_is_left() -> None:
    code = "[rank1]:     rows = rows.view(self.wide)\n"
    log = f"{code}[rank1]: RuntimeError: shape '[3, 5]' is invalid for input of size 0\n"
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert "rows is empty" in str(root.explanation.sentence)
    assert "of size 0 is empty" in str(root.explanation.often)


@pytest.mark.parametrize(
    ("size", "code", "hints"),
    [
        (126, "position_ids = position_ids.view(-1, length).long()", True),
        (250, "position_ids = position_ids.view(-1, length).long()", False),
        (126, "rows = rows.view(-1, length)", False),
    ],
)
def test_a_mask_of_another_length_than_its_sequence_is_told(size: int, code: str, hints: bool) -> None:
    frames = OWN.replace("run()", code)
    often = explained(f"RuntimeError: shape '[-1, 125]' is invalid for input of size {size}", frames).often
    assert (often is not None and f"{size} elements are no multiple of 125" in str(often)) is hints


@pytest.mark.parametrize(("other", "weight"), [(14336, True), (4096, True), (37, False), (1001, False)])
def test_an_empty_tensor_that_meets_a_width_is_a_weight_put_away(other: int, weight: bool) -> None:
    said = (
        f"RuntimeError: The size of tensor a (0) must match the size of tensor b ({other}) at non-singleton dimension 1"
    )
    often = str(explained(said, OWN.replace("run()", "step(new)")).often)
    assert ("ZeRO-3" in often) is weight
    assert ("this rank, or this batch, got no tokens" in often) is not weight


def test_the_path_of_a_parameter_is_no_attribute_of_a_class() -> None:
    told = explained("AttributeError: 'BedModel' object has no attribute 'model.rows.0.soil.inv_freq'", OWN)
    assert str(told.sentence).endswith(
        "asks an object of BedModel for model.rows.0.soil.inv_freq, which it does not have"
    )
    assert "is the path of a parameter" in str(told.often)


def test_what_a_function_looked_for_first_is_named_with_what_it_took_instead() -> None:
    asked = OWN.replace("run()", "n = state['iteration']")
    first = f"{HEAD}{asked}KeyError: 'iteration'\n"
    handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
    second = f"{HEAD}{OWN.replace('run()', 'n = state[key]')}KeyError: 'total_iters'\n"
    library = '  File "/opt/venv/lib/python3.12/site-packages/shears/cut.py", line 9, in load\n'
    root = diagnosed(f"{first}{handling}{second}{handling}{HEAD}{OWN}{library}").root
    assert root is not None
    assert root.explanation is not None
    said = (
        "looks for the key 'total_iters' in state, which lacks it; before that it looked for 'iteration', which was not"
    )
    assert said in str(root.explanation.sentence)
    assert root.explanation.caller is not None
    assert root.explanation.caller.shown == "shears/cut.py:9"
    other = first.replace("in main", "in elsewhere")
    alone = diagnosed(f"{other}{handling}{second}").root
    assert alone is not None
    assert "before that" not in str(alone.explanation.sentence if alone.explanation else "")


def test_values_of_tokens_hint_at_sequences_that_were_cut_in_different_ways() -> None:
    found = explained(SIZES, OWN.replace("run()", "ratio = log_prob - ref_log_prob"))
    assert "sequences of different lengths" in str(found.often)
    assert explained(SIZES, OWN.replace("run()", "ratio = width - height")).often is None


UNPACKED = "ValueError: too many values to unpack (expected 2)"
LOADER = '  File "/env/lib/python3.12/site-packages/garden/beds/run.py", line 3, in wrapper\n    return main()\n'


@pytest.mark.parametrize(
    ("code", "frames", "says", "often"),
    [
        (
            "for name, bed in garden.rows(1):",
            LOADER + OWN,
            "of what garden.rows() gives",
            "garden.rows of garden returns something else in another release",
        ),
        (
            "for name, bed in beds.rows(1):",
            LOADER + OWN,
            "of what beds.rows() gives",
            "beds.rows of garden.beds returns something else in another release",
        ),
        ("name, bed = find(1)", OWN, "of what find() gives", "where find is of an installed package"),
        ("name, bed = self.find(1)", OWN, "of what self.find() gives", ""),
        ("name, bed = super().find(1)", OWN, "of what super().find() gives", "where super().find is of an installed"),
        ("for i, (a, b) in enumerate(pairs):", OWN, "of what pairs gives", ""),
        ("a, b = x.shape", OWN, "x does not have 2 dimensions", ""),
    ],
)
def test_what_is_unpacked_is_named(code: str, frames: str, says: str, often: str) -> None:
    found = explained(UNPACKED, frames.replace("run()", code))
    assert says in str(found.sentence)
    assert str(found.often or "").startswith(often)
    assert often or found.often is None


def test_dimensions_that_are_unpacked_are_counted() -> None:
    said = at_own("ValueError: not enough values to unpack (expected 4, got 3)", "b, n, s, d = q.shape")
    assert said == f"{WHO}: q has 3 dimensions, and 4 are expected"


@pytest.mark.parametrize(
    ("message", "code", "values"),
    [
        ("(torch.Size([]), 7)", "assert a.shape == (n,), (a.shape, n)", "a.shape = torch.Size([]), n = 7"),
        ("(torch.Size([]), 7)", "assert a.shape == (n,), (", "a.shape = torch.Size([]), 7"),
        ("3 5", 'assert a == b, f"{a} {b}"', "3 5"),
        ("5", "assert a in b, a", "a = 5"),
        ("assert 3 == 4", "assert a == b", ""),
        ("", "assert a", ""),
    ],
)
def test_the_values_that_an_assertion_gives(message: str, code: str, values: str) -> None:
    assert values_of(message, code) == values


def test_an_assertion_is_told_with_its_values() -> None:
    said = at_own("AssertionError: (torch.Size([]), 0, 7)", "assert a.shape == (b,), (")
    assert said == f"{WHO} asserts a.shape == (b,), which does not hold: a.shape = torch.Size([]), 0, 7"


@pytest.mark.parametrize(
    ("code", "whole"),
    [
        ("x = f(", True),
        ("x = f(a,", True),
        ("for a in b:", True),
        ("elif a == b:", True),
        ("return f(**x)  # why", True),
        ("x = f(\n    a,\n    ...<3 lines>...\n)", True),
        ("beds.sizes.shape[0]))", False),
        ("", False),
    ],
)
def test_the_beginning_of_a_statement_is_closed(code: str, whole: bool) -> None:
    assert (statement_of(code) is not None) is whole


def test_code_that_shows_nothing_of_the_kind_tells_nothing() -> None:
    assert mapping_with("f(**x, a=1)", "a") == ""
    assert mapping_with("f(**x, **y)", "a") == ""
    assert unpacked("a = f()") == ("", False)
    assert operands("a = f(b)", "") == []
    assert reshaped("a.view(b) + c.view(d)") == ("", "")
    assert joined("torch.cat(parts)") == []
    assert indexed("a[0] + b[1:2]") == ("", "")
    assert assigned("a = b") == ("", "")


def test_a_printed_line_that_something_is_not_there_is_the_root_of_an_error_about_none() -> None:
    error = (
        f"{HEAD}{OWN.replace('run()', 'print(beds.size)')}AttributeError: 'NoneType' object has no attribute 'size'\n"
    )
    root = diagnosed(f"The file of beds does not exist: /data/beds\nGive a path.\n{error}").root
    assert root is not None
    assert root.explanation is not None
    assert root.place.number == 1
    said = "the program says: The file of beds does not exist: /data/beds; then "
    assert str(root.explanation.sentence) == f"{said}{WHO} asks beds for size: beds is None"


@pytest.mark.parametrize(
    "before",
    [
        "beds.json was not found, using the default\n",
        "Some weights were not found: ['rose.weight']\n",
        'INFO: 10.0.0.4:5 - "GET /beds/size HTTP/1.1" 404 Not Found\n',
        "DEBUG 01-02 10:00:00 [a.py:1] beds.json not found\n",
        "beds.json not found\n" + "planting\n" * 9,
        "FileNotFoundError: beds.json not found\n",
        "planting\n",
    ],
)
def test_what_the_program_does_without_is_no_root(before: str) -> None:
    error = f"{HEAD}{OWN}AttributeError: 'NoneType' object has no attribute 'size'\n"
    found = diagnosed(before + error).root
    assert found is not None
    assert "; then " not in str(found.explanation.sentence if found.explanation else "")


def test_an_error_about_another_matter_has_no_such_root() -> None:
    error = f"{HEAD}{OWN}KeyError: 'size'\n"
    root = diagnosed(f"The file of beds does not exist: /data/beds\n{error}").root
    assert root is not None
    assert root.place.text == "KeyError: 'size'"


def test_the_answer_of_a_server_is_quoted_to_its_end() -> None:
    inner = f"the bed was not dug: {'it is said again ' * 30}\\n[ERROR] the soil is harder than a spade"
    said = at_own(
        f'AssertionError: {{"object":"error","message":"{inner}","code":500}}', "assert answer.ok, answer.text"
    )
    assert said.startswith(f"{WHO} says: the bed was not dug: it is said")
    assert said.endswith("[ERROR] the soil is harder than a spade")


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (
            "TypeError: 'module' object is not subscriptable",
            'rank = int(os["RANK"])',
            "os is of type module, which is not subscriptable",
        ),
        (
            "TypeError: argument of type 'bool' is not iterable",
            "if Option.OVERFLOW in self.args.debug:",
            "self.args.debug is of type bool, which is not iterable",
        ),
        ("TypeError: 'int' object is not iterable", "for row in rows:", "rows is of type int, which is not iterable"),
        (
            "TypeError: 'int' object is not subscriptable",
            "a = rows[0] + beds[0]",
            "a value of type int is not subscriptable",
        ),
    ],
)
def test_value_of_a_wrong_type_is_called_by_its_name(message: str, code: str, says: str) -> None:
    assert at_own(message, code) == f"{WHO}: {says}"


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        (
            "TypeError: list indices must be integers or slices, not str",
            "images = sample['img'].cuda()",
            "takes 'img' from sample, a list, which takes whole numbers there and no str",
        ),
        (
            "TypeError: string indices must be integers, not 'str'",
            "row = rows[0]['name']",
            ": types of values do not fit, str against string indices",
        ),
    ],
)
def test_what_is_no_mapping_is_called_by_its_name(message: str, code: str, says: str) -> None:
    assert at_own(message, code).removeprefix(WHO).strip() == says


@pytest.mark.parametrize(
    ("given", "takes", "says"),
    [
        (
            "(DataContainer, Parameter, NoneType, tuple, int)",
            ["(Tensor input, Tensor weight, Tensor bias, tuple of ints stride, int groups)"],
            "passes input of type DataContainer to dig, which takes Tensor there",
        ),
        (
            "(NoneType, dim=int)",
            ["(tuple of Tensors tensors, int dim, *, Tensor out)", "(tuple of Tensors tensors, name dim)"],
            "passes tensors of type NoneType to dig, which takes tuple of Tensors there",
        ),
        ("(str, float)", ["(Tensor input, int dim)"], None),
        ("(Tensor, str)", ["(Tensor input, int dim)", "(Tensor input, float depth)"], None),
    ],
)
def test_the_argument_that_a_compiled_function_refuses(given: str, takes: list[str], says: str | None) -> None:
    """It is told where the signatures leave one alone."""
    message = f"TypeError: dig() received an invalid combination of arguments - got {given}, but expected one of:\n"
    said = at_own(message + "\n".join(f" * {one}" for one in takes), "dig(a, b)")
    assert said == f"{WHO} {says}" if says is not None else "of type" not in said


def test_lines_that_others_print_are_no_part_of_a_message() -> None:
    message = "TypeError: argument of type 'bool' is not iterable\n"
    for other in ("[WARNING] fields: no seeds are left in the shed", "scontrol show job 81", "JobId=81 JobName=beds"):
        found = diagnosed(HEAD + OWN.replace("run()", "if a in f(b):") + message + other + "\n")
        assert found.root is not None
        assert found.root.explanation is not None
        assert str(found.root.explanation.sentence) == f"{WHO}: a value of type bool is not iterable"


def test_quotes_within_a_quoted_message_are_read_as_quotes() -> None:
    said = r"TypeError: sow(): argument \'seed\' (position 1) must be Tensor, not tuple"
    sentence = at_own(f"RuntimeError: ('The worker failed', '{said}", "run()")
    assert sentence == f"{WHO} passes seed of type tuple to sow, which takes Tensor there"


def test_value_that_a_choice_was_given_is_told() -> None:
    refused = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Bed\n"
        "soil\n  Input should be 'loam' [type=literal_error, input_value='sand', input_type=str]"
    )
    assert at_own(refused, "run()") == f"{WHO}: Bed.soil is refused: Input should be 'loam', not 'sand'"


def test_dimension_that_a_tensor_does_not_have() -> None:
    message = "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)"
    said = at_own(message, "rows = weight.size(2)")
    assert said == f"{WHO} asks for dimension 2 of weight, which has 2, counted from 0"
    said = at_own(message, "y = torch.cat([a, b], dim=2)")
    assert said == f"{WHO} asks for dimension 2 of a tensor that has 2, counted from 0"
