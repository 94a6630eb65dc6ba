"""What the frames show of a failure: a package alone, a file of a module's name, a row of data, a cut message."""

import io
import sys

import pytest

from patcher.diagnose.fixes import FixContext
from patcher.diagnose.scanner import Scanner
from patcher.diagnose.verdict import diagnosis_of
from patcher.records.symptom_parse import load_symptoms
from tests.diagnose.diagnosed import diagnosed

SITE = "/opt/env/lib/python3.11/site-packages"
HEAD = "Traceback (most recent call last):\n"


def frame(path: str, code: str, function: str = "run", line: int = 12) -> str:
    return f'  File "{path}", line {line}, in {function}\n    {code}\n'


def said(*lines: str) -> tuple[str, str]:
    """The sentence, and what is usual, of a log with this traceback."""
    root = diagnosed(HEAD + "".join(lines)).root
    assert root is not None
    assert root.explanation is not None
    return str(root.explanation.sentence), str(root.explanation.often or "")


def test_size_that_was_computed_as_zero_is_no_empty_tensor() -> None:
    code = "k = k.view(batch, length, heads, head_dim)"
    _, often = said(
        frame(f"{SITE}/fastnet/attention.py", code),
        "RuntimeError: shape '[2, 30, 8, 0]' is invalid for input of size 61440\n",
    )
    assert "head_dim came out as 0" in often
    _, often = said(
        frame(f"{SITE}/fastnet/attention.py", code),
        "RuntimeError: shape '[2, 0, 8, 64]' is invalid for input of size 0\n",
    )
    assert "is empty" in often


def test_attribute_that_is_set_on_itself_is_asked_of_another() -> None:
    line = "AttributeError: 'Meadow' object has no attribute 'fence'\n"
    _, often = said(frame("/app/farm.py", "self.fence = self.meadow.fence"), line)
    assert "asks itself" not in often
    _, often = said(frame("/app/farm.py", "height = self.fence.height"), line)
    assert "asks itself" in often


def test_tokenizer_in_place_of_a_processor() -> None:
    line = "AttributeError: 'GemmaTokenizerFast' object has no attribute 'image_processor'\n"
    _, often = said(frame("/app/farm.py", "images = self.processor.image_processor"), line)
    assert "AutoProcessor" in often


def test_package_that_fails_alone() -> None:
    line = "TypeError: object of type 'NoneType' has no len()\n"
    inner = frame(f"{SITE}/servo/loop.py", "self.admit()"), frame(f"{SITE}/servo/queue.py", "return len(self.waiting)")
    assert "are of servo" in said(*inner, line)[1]
    assert "are of servo" not in said(frame("/app/mine.py", "loop.step()"), *inner, line)[1]


def test_key_is_looked_for_in_what_the_code_names() -> None:
    key = "KeyError: 'layers.47.input_layernorm.weight'\n"
    sentence, _ = said(frame(f"{SITE}/fastnet/loader.py", "data = state_dict[name].data"), key)
    assert sentence.endswith("looks for the key 'layers.47.input_layernorm.weight' in state_dict, which lacks it")
    sentence, _ = said(frame(f"{SITE}/fastnet/loader.py", "data = json.loads(text)[name]"), key)
    assert sentence.endswith("looks for the key 'layers.47.input_layernorm.weight', which is not there")


def test_assertion_on_what_was_handed_down_is_its_callers() -> None:
    """`stage` came from the other package, through a function that only passes it on."""
    outer = frame("/opt/src/bridge-0.1/megatron/bridge/model.py", "spec = get_spec(config)")
    inner = frame(f"{SITE}/fastnet/spec.py", "if is_last(ignore=False, stage=stage):")
    own = frame(f"{SITE}/fastnet/spec.py", "if is_last(ignore=False, stage=self.stage):")
    last = frame(f"{SITE}/fastnet/state.py", "assert stage is not None"), "AssertionError\n"
    assert "internal error" not in said(outer, inner, *last)[1]
    assert "internal error of fastnet" in said(outer, own, *last)[1]


def test_division_by_zero_names_what_is_zero() -> None:
    line = "ZeroDivisionError: integer modulo by zero\n"
    sentence, _ = said(frame("/app/farm.py", "assert len(self.beds) % rows == 0"), line)
    assert sentence == "/app/farm.py:12 divides by rows, which is 0"
    sentence, _ = said(frame("/app/farm.py", "share = crop / beds / rows"), line)
    assert "divides" not in sentence


def test_division_by_what_the_caller_gave_names_it_too() -> None:
    line = "ZeroDivisionError: integer modulo by zero\n"
    inner = (
        frame("/app/tools.py", "check(numerator, denominator)", "divide"),
        frame("/app/tools.py", 'assert numerator % denominator == 0, f"{numerator} is odd"', "check", 40),
    )
    sentence, _ = said(frame("/app/farm.py", "self.rows = divide(self.beds, row_size)"), *inner, line)
    assert sentence == "/app/tools.py:40 divides by denominator, which is 0: /app/farm.py:12 gives row_size for it"
    sentence, _ = said(frame("/app/farm.py", "self.rows = divide(*sizes)"), *inner[1:], line)
    assert sentence == "/app/tools.py:40 divides by denominator, which is 0"


def test_size_that_a_message_gives_as_zero_is_named_as_the_code_does() -> None:
    code = 'raise ValueError(f"found MP={len(shards)} but world size is {world_size}")'
    frames = frame("/app/load.py", code)
    sentence, _ = said(frames, "ValueError: found MP=0 but world size is 2\n")
    assert sentence.endswith("found MP=0 but world size is 2; len(shards) is 0")
    assert said(frames, "ValueError: found MP=2 but world size is 0\n")[0].endswith("is 0; world_size is 0")
    assert said(frames, "ValueError: found MP=10 but world size is 2\n")[0].endswith("world size is 2")
    assert said(frames, "ValueError: found MP=0 but world size is 0\n")[0].endswith("world size is 0")


def test_what_cannot_be_pickled_is_of_the_frame_that_hands_it_over() -> None:
    line = "TypeError: cannot pickle '_thread.RLock' object\n"
    inner = (
        frame(f"{SITE}/ray/actor.py", "return self._remote(args, kwargs)", "remote"),
        frame(f"{SITE}/ray/cloudpickle/cloudpickle.py", "return super().dump(obj)", "dump"),
    )
    assert said(frame("/app/ray/farm.py", "bed.dig.remote(spade)"), *inner, line)[0].startswith("/app/ray/farm.py:12 ")
    spawned = (
        frame(f"{SITE}/soil/loader.py", "worker.start()"),
        frame("/opt/env/lib/python3.11/multiprocessing/process.py", "self._popen = self._Popen(self)", "start"),
    )
    assert said(frame("/app/farm.py", "iter(loader)"), *spawned, line)[0].startswith("soil (soil/loader.py:12) ")


def test_case_that_nothing_is_written_for() -> None:
    sentence, _ = said(frame("/app/farm.py", "raise NotImplementedError", "__init__"), "NotImplementedError\n")
    assert sentence.startswith("/app/farm.py:12 has nothing for this case")
    called = frame("/app/farm.py", "crop.water()"), frame("/app/crop.py", "raise NotImplementedError", "water")
    assert "does not implement" in said(*called, "NotImplementedError\n")[0]


def test_line_of_another_process_is_no_code_of_the_frame() -> None:
    sentence = diagnosed(
        HEAD
        + f'  File "{SITE}/farmlib/yard.py", line 8, in tend\n'
        + '    mark(crop, "_is_tended", True)\n'
        + "    self.rival = self.gardener.water(self.rival)\n"
        + frame(f"{SITE}/watering/can.py", 'mark(crop, "_is_tended", True)', "water")
        + "AttributeError: 'NoneType' object has no attribute '_is_tended'\n"
    ).root
    assert sentence is not None
    assert sentence.explanation is not None
    assert sentence.explanation.calls == "self.rival = self.gardener.water(self.rival)"


def test_operator_of_a_package_is_not_of_torch() -> None:
    sentence, _ = said(
        frame(f"{SITE}/gardening/beds.py", "return torch.ops.gardening.dig(bed)", "dig"),
        frame(f"{SITE}/torch/_ops.py", "return self._op(*args, **kwargs)", "__call__"),
        "RuntimeError: bed must have two dimensions, one for rows\n",
    )
    assert sentence.startswith("gardening (gardening/beds.py:12) says: bed must have")


def test_deleted_attribute() -> None:
    sentence, often = said(
        frame(f"{SITE}/servo/model.py", "del model._old_step"),
        frame(f"{SITE}/torch/nn/modules/module.py", "super().__delattr__(name)", "__delattr__"),
        "AttributeError: _old_step\n",
    )
    assert "deletes _old_step" in sentence
    assert "servo deletes it" in often


def test_file_of_the_name_of_a_module_of_python() -> None:
    pasted = (
        "Traceback (most recent call last):\nFile \u201c/opt/env/lib/python3.11/pdb.py\u201d, line 70, in\n"
        "import code\n"
        "File \u201c/home/kim/code.py\u201d, line 3, in\nimport wheel.inner\n"
        "AttributeError: module \u2018wheel\u2019 has no attribute \u2018inner\u2019\n"
    )
    root = diagnosed(pasted).root
    assert root is not None
    assert root.explanation is not None
    assert "/home/kim/code.py has the name of the module code" in str(root.explanation.often)


def test_column_of_a_dataset_and_command_that_is_unknown() -> None:
    _, often = said(frame(f"{SITE}/tuna/template.py", "x['rank'] = example['rank']", "encode"), "KeyError: 'rank'\n")
    assert "no column rank" in often
    _, often = said(frame(f"{SITE}/tuna/cli/main.py", "path = routes[method_name]", "cli_main"), "KeyError: 'dpa'\n")
    assert "sub-command" in often


def test_messages_that_are_cut() -> None:
    sentence, _ = said(
        frame("/app/farm.py", "from barn.store.shelf import Shelf, Jar"),
        "ImportError: cannot import name 'Shelf' from 'barn.store.sh\n",
    )
    assert "barn.store.shelf.Shelf" in sentence
    sentence, _ = said("", "ImportError: cannot import name 'Shelf' from 'barn.store.sh\n")
    assert sentence == "the program asks for barn.store.sh.Shelf, which barn does not have"
    sentence, _ = said("", "ImportError: cannot import name 'Shelf' from 'bar\n")
    assert "which bar does not have" not in sentence
    sentence, _ = said(
        frame("/app/farm.py", "model.vision_tower.freeze()"),
        "AttributeError: 'Meadow' object has no attribute 'vision_to\n",
    )
    assert "for vision_tower" in sentence


@pytest.mark.parametrize(
    ("asker", "file", "both"),
    [
        ("/tmp/pip-install-3/loom_7/setup.py", "/tmp/pip-install-3/loom_7/weave/narrow.py", True),
        ("/src/loom/weave/wide/all.py", "/src/loom/weave/narrow.py", True),
        ("/src/loom/setup.py", "/src/loom/weave/narrow.py", False),
        ("/src/wheel/weave.py", "/src/loom/weave/narrow.py", False),
    ],
)
def test_one_source_tree_has_no_two_releases(asker: str, file: str, both: bool) -> None:
    _, often = said(
        frame(asker, "from weave.narrow import Shuttle"),
        f"ImportError: cannot import name 'Shuttle' from 'weave.narrow' ({file})\n",
    )
    assert ("both sides are of weave" in often) == both
    assert ("releases that do not fit" in often) != both


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "`plan` must be an instance of `garden.plans.Plan`, got `<orchard.plans.TreePlan object at 0x7f00>`",
            "orchard.plans.TreePlan does not derive from this garden.plans.Plan",
        ),
        (
            "Expected the plan to be an instance of <class 'garden.plans.Plan'> but got <class 'orchard.plans.Plan'>",
            "orchard.plans.Plan does not derive from this garden.plans.Plan",
        ),
        (
            "the plan must be an instance of garden.plans.Plan, got an object of type garden.plans.Plan",
            "garden.plans.Plan is there twice",
        ),
        ("the plan must be an instance of garden.plans.Plan, got garden.plans.Sketch", ""),
        ("the plan must be an instance of garden.plans.Plan, got None", ""),
    ],
)
def test_object_of_another_class(words: str, told: str) -> None:
    _, often = said(frame("/app/farm.py", "draw(plan)"), f"TypeError: {words}\n")
    assert told in often
    assert bool(told) == bool(often)


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ("'/opt/bin/pack -x'", "exit status 127.", "a shell did not find pack"),
        ("'['/opt/bin/pack', '-x']'", "exit status 126.", "pack is there and may not be run"),
        (f"'pack {'-f soil.c ' * 35}'", "exit status 127.", "a shell did not find pack"),
        ("'pack -x'", "exit status 3.", ""),
    ],
)
def test_status_of_a_command_that_did_not_start(command: str, status: str, told: str) -> None:
    _, often = said(
        frame("/app/farm.py", "check_call(command)"),
        f"subprocess.CalledProcessError: Command {command} returned non-zero {status}\n",
    )
    assert told in often
    assert bool(told) == bool(often)


def test_reason_below_the_source_of_a_kernel() -> None:
    log = (
        "[rank0]: triton.compiler.errors.CompilationError: at 20:8:\n"
        + "".join(f"[rank0]:     x{number} = tl.load(p + {number})\n" for number in range(16))
        + "\n[rank0]:     y = tl._make_view(\n[rank0]:         ^\n"
        "[rank0]: AttributeError(\"module 'triton.language' has no attribute '_make_view'\")\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert "triton.language._make_view" in str(root.explanation.sentence)


KERNEL = (
    frame("/env/lib/python3.12/site-packages/triton/compiler/compiler.py", "return ast_to_ttir(self.fn, self)")
    + "triton.compiler.errors.CompilationError: at 7:11:\n"
)


def test_the_line_of_a_kernel_asks_and_not_the_compiler_that_reads_it() -> None:
    sentence, _ = said(
        KERNEL,
        "    rates = tl.softmax(scores, axis=1)  # by row\n            ^\n"
        "TypeError(\"softmax() got an unexpected keyword argument 'axis'\")\n",
    )
    assert "rates = tl.softmax(scores, axis=1), passes axis to softmax" in sentence
    assert "compiler.py" not in sentence


def test_a_kernel_that_inductor_wrote_wants_the_triton_of_its_torch() -> None:
    sentence, often = said(
        KERNEL,
        "def triton_poi_fused_add_0(...):\n^\n"
        "AttributeError(\"type object 'constexpr' has no attribute '_flatten'\")\n",
    )
    assert "Inductor" in sentence
    assert "another one is installed" in often


def test_a_log_that_begins_with_an_exception_set_in() -> None:
    root = diagnosed("    tiller.errors.DecodingError: plot.rows: '1 to 9' is not of a valid input for a list\n").root
    assert root is not None
    assert root.explanation is not None
    assert "plot.rows" in str(root.explanation.sentence)


def test_what_hydra_was_to_call_fails_although_the_training_before_it_went_well() -> None:
    root = diagnosed(
        "step:40 - loss:0.05\nError executing job with overrides: []\n"
        "Error in call to target 'farm.plough.open_gate':\n"
        "TypeError(\"open_gate() got an unexpected keyword argument 'colour'\")\nfull_key: gate\n"
    ).root
    assert root is not None
    assert root.explanation is not None
    assert "passes colour to open_gate" in str(root.explanation.sentence)


def test_a_warning_below_a_message_is_no_part_of_it() -> None:
    sentence, _ = said(
        frame("/app/farm.py", "raise ValueError('No gate has been built for this field.')"),
        "ValueError: No gate has been built for this field.\n"
        "/usr/lib/python3.9/tempfile.py:821: ResourceWarning: Implicitly cleaning up <TemporaryDirectory '/tmp/x'>\n",
    )
    assert "Implicitly" not in sentence


def test_arguments_that_keras_refuses_by_name() -> None:
    sentence, _ = said("ValueError: Unrecognized keyword arguments passed to Dense: {'weights': [array([[0., 0.]])]}\n")
    assert "passes weights to Dense" in sentence


@pytest.mark.parametrize(
    ("marks", "told"), [("          ^^^^^^^^^^^^^^^", ""), ("           ^^^^^^^^^^^^", "one.mean is of")]
)
def test_marks_below_no_expression_are_of_a_file_that_was_edited_since(marks: str, told: str) -> None:
    sentence, _ = said(
        f'  File "/app/farm.py", line 7, in sow\n    means = [one.mean(0) for one in rows]\n  {marks}\n',
        "TypeError: 'torch.Size' object is not callable\n",
    )
    assert told in sentence
    assert told or "one.mean" not in sentence


def test_who_only_hands_on_is_not_who_asks() -> None:
    sentence, _ = said(
        frame("/env/lib/python3.7/site-packages/plough/env_vars.py", "return fn(self, **kwargs)"),
        "TypeError: __init__() got an unexpected keyword argument 'blades'\n",
    )
    assert sentence.startswith("the program passes blades")


def test_extension_of_another_build() -> None:
    line = "RuntimeError: _my_C::fwd() expected at most 4 argument(s) but received 5 argument(s). Declaration: …\n"
    sentence, often = said(frame("/src/servo/ops.py", "return op(*args)"), line)
    assert "with 5 arguments" in sentence
    assert "different builds" in often


def test_summary_of_pytest_with_indentation() -> None:
    log = "  FAILED tests/test_a.py::test_b[x/y] - TypeError: A.f() got an unexpected keyword argument 'gate'\n"
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert "gate" in str(root.explanation.sentence)


def test_runs_that_live() -> None:
    for log in (
        "00:02 : 00030/01024 : loss = 7.51E-01 (lr=3.8E-06, s/sec=0.1)\n",
        "[INFO] - trainer -   ***** Running training *****\n",
        "[2026-01-02 10:00:00 TP0] Decode batch, #running-req: 5, #token: 9, gen throughput (token/s): 1.0\n",
    ):
        assert diagnosed(log).verdict == "running"


def test_operand_that_is_none() -> None:
    code = "rows = args.batch_size * ranks * args.steps"
    sentence, often = said(
        frame("/app/farm.py", code), "TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'\n"
    )
    assert sentence.endswith("args.batch_size is None")
    assert "nothing has set batch_size" in often
    sentence, _ = said(
        frame("/app/farm.py", code), "TypeError: unsupported operand type(s) for *: 'int' and 'NoneType'\n"
    )
    assert "is None" not in sentence  # It may be either of two.


@pytest.mark.parametrize(
    ("code", "column"),
    [
        ("show(train_dataset[0][RANK_KEY], names)", True),
        ('ranks = [self.data[i]["rank"] for i in range(3)]', True),
        ("labels = batch[RANK]", True),
        ('part = dataset["rank"]', False),
        ('part = dataset["train"]["rank"]', False),
        ("lr = settings[0][RANK]", False),
        ("put(batch[RANK], batch[ROW])", False),
        ("lr = data[name][0]", False),
    ],
)
def test_column_of_a_row_that_is_named_by_a_constant_or_a_number(code: str, column: bool) -> None:
    _, often = said(frame("/app/farm.py", code), "KeyError: 'rank'\n")
    assert ("no column rank" in often) == column


def test_column_of_the_data_on_a_line_that_reads_several() -> None:
    code = "for prompt, answer in zip(examples['prompt'], examples['answer']):"
    _, often = said(frame("/app/farm.py", code, "preprocess_function"), "KeyError: 'prompt'\n")
    assert "no column prompt" in often


def test_kernel_asks_where_triton_reads_its_code() -> None:
    sentence, _ = said(
        frame(f"{SITE}/triton/runtime/jit.py", "return getattr(lhs, node.attr)", "visit_Attribute"),
        "AttributeError: module 'triton.language' has no attribute 'barn'\n",
    )
    assert sentence == "the program asks for triton.language.barn, which triton does not have"


def test_frames_that_an_editor_shows_innermost_first() -> None:
    log = (
        "Exception has occurred: KeyError\n'hay'\n"
        + frame("/app/barn.py", "return stock['hay']", "find")
        + frame("/app/farm.py", "feed()", "<module>")
        + "KeyError: 'hay'\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence).startswith("/app/barn.py:12 looks for the key 'hay'")


def test_frames_between_which_others_are_left_out() -> None:
    log = "".join(
        f"...\n{frame(f'{SITE}/fastnet/{name}.py', code)}"
        for name, code in (("core", "step()"), ("plan", "assert rows"))
    )
    root = diagnosed(f"{log}AssertionError\n").root
    assert root is not None
    assert root.explanation is not None
    assert "an internal error of fastnet" in str(root.explanation.often)


def test_release_that_stands_in_the_path_of_an_egg() -> None:
    sentence, _ = said(
        frame(f"{SITE}/vllm-0.2.1-py3.10-linux-x86_64.egg/vllm/engine.py", "assert rows"), "AssertionError\n"
    )
    assert sentence.startswith("vllm 0.2.1 (vllm/engine.py:12)")


def test_frames_that_stand_on_one_line() -> None:
    log = (
        'File "/app/farm.py", line 4, in feed return barn.find() File "/app/barn.py", line 9, in find return hay[3:4]\n'
        "RuntimeError: hay is not cut\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == "/app/barn.py:9 says: hay is not cut"


def test_pydantic_only_passes_on_what_another_package_refuses() -> None:
    frames = (
        frame(f"{SITE}/vllm/arguments.py", "return Kettle("),
        frame(
            f"{SITE}/pydantic/_internal/_dataclasses.py", "validator.validate_python(args, self_instance=s)", "__init__"
        ),
    )
    refusal = "ValidationError: 1 validation error for Kettle\n  Value error, no water [type=value_error]\n"
    assert said(*frames, refusal)[0] == "vllm (vllm/arguments.py:12): Kettle is refused: no water"


def test_engine_that_runs_a_generating_model_for_another_task() -> None:
    asking = frame(f"{SITE}/vllm/worker/runner.py", "self.model.pooler(hidden)")
    line = "AttributeError: 'FernForCausalLM' object has no attribute 'pooler'\n"
    for name in ("__getattr__", "getattr"):  # The second has lost its underscores, as in pasted Markdown.
        getter = frame(f"{SITE}/torch/nn/modules/module.py", "raise AttributeError(name)", name)
        sentence, often = said(asking, getter, line)
        assert sentence.startswith("vllm (vllm/worker/runner.py:12) asks an object of FernForCausalLM for pooler")
        assert "FernForCausalLM is the class that generates text" in often


def test_code_of_hccl_is_told_alone() -> None:
    frames = frame(f"{SITE}/torch/distributed/distributed_c10d.py", "work = group.allreduce([tensor], opts)")
    for call, code, meaning, founds in (
        ("HcclCommInitRootInfo", 2, "a null pointer where a value is needed", True),
        ("HcclAllReduce", 9, "a timeout: a rank did not come, or the network does not carry", False),
    ):
        line = f"RuntimeError: create:group.cpp:81 HCCL function error: {call}(rank, &comm), error code is {code}\n"
        sentence, often = said(frames, line)
        assert sentence == f"{call} gives {code}: {meaning}"
        assert often.startswith("a group is founded here") == founds


def test_sides_of_two_types_are_named() -> None:
    frames = frame(f"{SITE}/servo/loop.py", "admit(rows)"), frame(f"{SITE}/servo/queue.py", "self.ids += rows[0][n:]")
    message = 'TypeError: can only extend array with array (not "list")\n'
    sentence, often = said(*frames, message)
    assert sentence.endswith("self.ids is of type array, rows[0][n:] of type list, and the two do not go together")
    assert "are of servo" in often
    sentence, often = said(frame("/app/mine.py", "loop.step()"), *frames, message)
    assert "are of servo" not in often
    minus = "TypeError: unsupported operand type(s) for -: 'str' and 'int'\n"
    assert "end is of type str, 1 of type int" in said(frame("/app/mine.py", "last = end - 1"), minus)[0]
    assert "types of values do not fit" in said(frame("/app/mine.py", "last = end - 1 - begin"), minus)[0]


def test_none_deep_in_a_package_is_its_own() -> None:
    own = frame("/app/mine.py", "convert(model)")
    deep = [frame(f"/src/Megatron-Bridge/src/megatron/bridge/{name}.py", "hook(model)") for name in ("a", "b")]
    line = "AttributeError: 'NoneType' object has no attribute 'module'\n"
    last = frame("/src/Megatron-Bridge/src/megatron/bridge/c.py", "if task.module is None:")
    assert "are of megatron-bridge" in said(own, *deep, last, line)[1]
    assert "are of" not in said(own, *deep[:1], last, line)[1]


def test_layer_that_peft_cannot_wrap() -> None:
    line = "AttributeError: 'NoneType' object has no attribute 'device'\n"
    wraps = frame(f"{SITE}/peft/tuners/lora/model.py", "module.to(weight.device)", "_replace_module")
    assert "no plain weight" in said(frame("/app/mine.py", "get_peft_model(model)"), wraps, line)[1]
    saves = frame(f"{SITE}/peft/utils/save.py", "module.to(weight.device)", "save")
    assert "no plain weight" not in said(frame("/app/mine.py", "get_peft_model(model)"), saves, line)[1]


def test_argument_of_another_type_is_told_without_the_bar_below_it() -> None:
    inner = frame(f"{SITE}/transformers/integrations/sdpa.py", "attend(query, mask)")
    line = "TypeError: attend(): argument 'attn_mask' must be Tensor, not {}\n"
    bar = "Planting:   0%|          | 0/900 [00:07<?, ?it/s]\n"
    sentence, often = said(inner, line.format("BlockMask"), bar)
    assert sentence.endswith("passes attn_mask of type BlockMask to attend, which takes Tensor there")
    assert "flex_attention" in often
    assert "flex_attention" not in said(inner, line.format("list"), bar)[1]
    assert "Planting" not in said(inner, "ValueError: no soil is left in the bed\n", bar)[0]


def test_unsloth_changes_functions_of_others() -> None:
    own = frame(f"{SITE}/unsloth/models/llama.py", "model = get_peft_model(model)")
    line = "TypeError: LoraLayer.reset() takes 2 positional arguments but 3 were given\n"
    _, often = said(own, frame(f"{SITE}/peft/tuners/layer.py", "self.reset(name, True)"), line)
    assert "unsloth puts functions of its own in the place of those of peft" in often
    _, often = said(frame(f"{SITE}/peft/tuners/layer.py", "self.reset(name, True)"), line)
    assert "unsloth" not in often


def test_class_of_a_compiled_extension_is_of_another_build() -> None:
    line = "AttributeError: '{}' object has no attribute 'sow'\n"
    _, often = said(frame("/app/farm.py", "self.bed.sow()"), line.format("_beds.Bed"))
    assert "compiled extension" in often
    for kind in ("Bed", "_io.TextIOWrapper", "farm._Bed.Row"):
        _, often = said(frame("/app/farm.py", "self.bed.sow()"), line.format(kind))
        assert "compiled extension" not in often


def test_tensor_without_values() -> None:
    _, often = said(
        frame(f"{SITE}/fastnet/attention.py", "y = f(x)"),
        "RuntimeError: Tensor on device cuda:0 is not on the expected device meta!\n",
    )
    assert "has no values" in often


def test_graph_that_was_kept_on_the_disk() -> None:
    path = "/root/.cache/vllm/torch_compile_cache/ab12/rank_0/inductor_cache/c7/c7a.py"
    _, often = said(frame(path, "arg0_1, arg1_1 = args"), "ValueError: too many values to unpack (expected 2)\n")
    assert "has kept on the disk" in often


def test_file_that_is_no_json() -> None:
    line = "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
    _, often = said(frame("/app/farm.py", "config = json.load(f)"), line)
    assert "is no JSON" in often


def test_compiled_code_asks_for_the_model_that_was_compiled() -> None:
    sentence, _ = said(
        frame(f"{SITE}/servo/model.py", "return self.layers(x)", "forward"),
        frame(f"{SITE}/torch/_dynamo/eval_frame.py", "return fn(*args)", "_fn"),
        frame(f"{SITE}/torch/_dynamo/utils.py", "return x.size(i)", "call_size"),
        "AttributeError: 'NoneType' object has no attribute 'size'\n",
    )
    assert sentence.startswith("servo (servo/model.py:12) asks None for size")


def test_form_of_syntax_that_triton_does_not_compile() -> None:
    _, often = said(
        frame(f"{SITE}/triton/compiler/compiler.py", "return to_ir(fn)", "make_ir"),
        "AttributeError: 'AnnAssign' object has no attribute 'targets'\n",
    )
    assert often.startswith("AnnAssign is a form of Python's syntax")


def test_frames_that_a_debugger_prints_innermost_first() -> None:
    sentence, often = said(
        frame("/app/run.py", "for text in zip(examples['seed']):", "preprocess", 34),
        frame("/app/run.py", "rows = rows.map(", "main", 57),
        frame("/app/run.py", "main()", "<module>", 61),
        "KeyError: 'seed'\n",
    )
    assert sentence.startswith("/app/run.py:34 looks for the key 'seed' in examples")
    assert "no column seed" in often


def test_name_that_python_itself_lacks() -> None:
    asks = frame(f"{SITE}/servo/queue.py", "pickle.dump_all(rows)")
    _, often = said(asks, "AttributeError: module 'pickle' has no attribute 'PickleBuffer'\n")
    assert "an older Python runs here" in often
    _, often = said(asks, "AttributeError: module 'pickle' has no attribute 'dump_all'\n")
    assert "written for another release of Python" in often
    _, often = said(frame("/app/x.py", "a.b"), "AttributeError: module 'idlelib.idle' has no attribute 'b'\n")
    assert "written for another release of Python" in often
    assert "idlelib.idle" not in sys.modules


def test_part_of_a_package_that_it_does_not_find_itself() -> None:
    line = "ModuleNotFoundError: No module named 'servo.core'\n"
    bundled = frame("/app/thirdparty/servo/__init__.py", "from servo.core import loop", "<module>")
    assert "the copy that was imported is incomplete" in said(bundled, line)[1]
    assert "incomplete" not in said(frame("/app/run.py", "from servo.core import loop", "<module>"), line)[1]


def test_name_that_an_old_python_tells_without_its_module() -> None:
    sentence, _ = said(
        frame(f"{SITE}/servo/loop.py", "from servo.queue import DEEP, WIDE", "<module>"),
        "ImportError: cannot import name 'DEEP'\n",
    )
    assert sentence.startswith("servo (servo/loop.py:12) asks for servo.queue.DEEP")


def test_weights_that_a_quantization_has_packed() -> None:
    multiplies = frame(f"{SITE}/servo/lora.py", "y = F.linear(x, weight)")
    message = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x8192 and {other})\n"
    assert "4 bits" in said(multiplies, message.format(other="1x18874368"))[1]
    for other in ("1x8192", "1x18874367", "2x18874368"):
        assert "4 bits" not in said(multiplies, message.format(other=other))[1]


def test_reward_function_that_wants_a_column() -> None:
    line = "TypeError: Cosine.__call__() missing 1 required positional argument: 'solution'\n"
    _, often = said(frame(f"{SITE}/servo/grpo.py", "out = reward_func(completions, **reward_kwargs)"), line)
    assert "has no column solution" in often
    _, often = said(frame(f"{SITE}/servo/grpo.py", "out = self.start(completions, **options)"), line)
    assert "column" not in often


def test_name_of_a_weight_that_a_checkpoint_does_not_have() -> None:
    sentence, often = said(
        frame(f"{SITE}/servo/convert.py", 'w = weights.pop(f"{prefix}.experts")'), "KeyError: 'model.0.experts'\n"
    )
    assert sentence.endswith("looks for the key 'model.0.experts' in weights, which lacks it")
    assert often.startswith("the checkpoint names its weights otherwise")


def test_nothing_in_the_place_of_rows_that_are_joined() -> None:
    code = "pairs = [a == b for a, b in zip(seeds, beds)]"
    marks = "    " + " " * code.index("zip") + "^" * len("zip(seeds, beds)") + "\n"
    sentence, _ = said(
        f'  File "/app/run.py", line 12, in run\n    {code}\n{marks}', "TypeError: 'NoneType' object is not iterable\n"
    )
    assert sentence == "/app/run.py:12 gets None where it needs a value: seeds / beds is None"


def test_log_that_ends_within_the_name_of_its_exception() -> None:
    root = diagnosed(
        frame(f"{SITE}/servo/names.py", 'raise NotImplementedError(f"No mapping of {name} is known")') + "NotImpl"
    ).root
    assert root is not None
    assert root.explanation is not None
    assert "No mapping of {name} is known" in str(root.explanation.sentence)


def test_graph_that_was_compiled_for_another_size() -> None:
    message = "AssertionError: expected size {found}==512, stride 64==64 at dim=0\n"
    asserts = frame("/tmp/x.py", "assert_size_stride(arg9_1, (512, 64), (64, 1))", "call")
    assert "made this graph for size 512 and stride 64" in said(asserts, message.format(found=8192))[1]


def test_process_that_only_waits_for_another_asks_for_nothing() -> None:
    sentence, _ = said(
        frame("/app/update.py", "data = ray.get(refs)", "update"),
        frame(f"{SITE}/ray/_private/worker.py", "values = worker.get_objects(refs)", "get"),
        "TypeError: Llm.update() takes 4 positional arguments but 5 were given\n",
    )
    assert sentence.startswith("/app/update.py:12 passes 5 positional arguments to Llm.update")


def test_setting_that_is_text_where_a_number_is_counted_with() -> None:
    sentence, _ = said(
        frame("/app/run.py", "pool = [config.gpus] * config.nodes"),
        "TypeError: can't multiply sequence by non-int of type 'str'\n",
    )
    assert "config.nodes of type str" in sentence


def test_what_a_process_removes_for_others_is_no_cause() -> None:
    root = diagnosed(
        HEAD
        + frame("/app/run.py", "load()")
        + "FileNotFoundError: [Errno 2] No such file or directory: 'a.pt'\n"
        + HEAD
        + frame("/usr/lib/python3.12/multiprocessing/resource_tracker.py", "cache[rtype].remove(name)", "main")
        + "KeyError: '/psm_790b75f7'\n"
    ).root
    assert root is not None
    assert "a.pt" in root.place.text


def test_pieces_that_are_cut_from_a_dimension_in_front() -> None:
    cuts = frame("/app/run.py", "parts = features.split(sizes)")
    message = "RuntimeError: split_with_sizes expects split_sizes to sum exactly to {has} (input size), "
    assert "one dimension too many" in said(cuts, message.format(has=1) + "but got split_sizes=[300]\n")[1]
    assert "one dimension too many" not in said(cuts, message.format(has=299) + "but got split_sizes=[300]\n")[1]


@pytest.mark.parametrize(
    ("code", "message", "none"),
    [
        ("options.update(self.args.options)", "'NoneType' object is not iterable", "self.args.options"),
        ("return len(self.rows)", "object of type 'NoneType' has no len()", "self.rows"),
    ],
)
def test_argument_that_is_nothing(code: str, message: str, none: str) -> None:
    assert said(frame("/app/run.py", code), f"TypeError: {message}\n")[0].endswith(f": {none} is None")


def test_key_that_only_some_rows_have() -> None:
    _, often = said(frame("/app/loop.py", "x = np.array([info[key] for info in infos])"), "KeyError: 'kind'\n")
    assert often.startswith("the key is taken from each of infos, and not each has it")


def test_class_that_refuses_an_option_is_named_by_the_line_of_code() -> None:
    sentence, _ = said(
        frame(f"{SITE}/servo/generate.py", "params = SamplingParams(**options)"),
        "TypeError: Unexpected keyword argument 'max_new_tokens'\n",
    )
    assert sentence.endswith("passes max_new_tokens to SamplingParams of vllm, which does not take it")


def test_weights_that_are_half_as_wide_in_an_engine() -> None:
    sizes = "The size of tensor a (6144) must match the size of tensor b (3072) at non-singleton dimension 1"
    message = f"RuntimeError: {sizes}\n"
    loads = frame(f"{SITE}/sglang/srt/layers/moe/layer.py", "data.copy_(loaded)", "_load_w13")
    assert "did not see that this layer is quantized" in said(loads, message)[1]
    assert "ranks" not in said(frame("/app/run.py", "weight.copy_(loaded)"), message)[1]


def test_extension_whose_import_was_caught() -> None:
    _, often = said(frame("/app/scan.py", "out = scan_cuda.fwd(x)"), "NameError: name 'scan_cuda' is not defined\n")
    assert "compiled extension" in often


def test_assertion_with_words_within_an_engine() -> None:
    inner = [
        frame(f"{SITE}/sglang/srt/{name}.py", code) for name, code in (("a", "b.run(x)"), ("b", "assert n > 0, ("))
    ]
    assert said(*inner, "AssertionError: length 805 is out of bounds\n")[1].startswith("an internal error of sglang")


def test_warning_of_python_is_no_failure() -> None:
    log = "/app/x/__init__.py:32: RuntimeWarning: no version: No module named 'x._version'\nUsing the version dev.\n"
    assert diagnosed(log).root is None


def test_rank_that_pasting_has_indented() -> None:
    log = HEAD + frame("/app/run.py", "free(param)") + "AssertionError: the bed is in use\n"
    root = diagnosed("".join(f"\t[rank1]: {line}\n" for line in log.splitlines())).root
    assert root is not None
    assert "the bed is in use" in root.place.text


def test_rewards_of_another_number_than_the_answers() -> None:
    sizes = "The expanded size of the tensor (10) must match the existing size (11) at non-singleton dimension 0."
    takes = frame(f"{SITE}/trl/trainer/grpo_trainer.py", "rewards_per_func[:, i] = torch.tensor(output)")
    assert "there are 10 answers, and it gave 11" in said(takes, f"RuntimeError: {sizes}\n")[1]


def test_mask_without_the_dimension_of_the_batch_in_a_broken_message() -> None:
    message = (
        "IndexError: The shape of the mask [378] at index 0 does not match the shape of\n",
        "the indexed tensor [1, 378] at index 0\n",
    )
    assert "a dimension of 1 in front" in said(frame("/app/run.py", "kinds = kinds[mask.bool()]"), *message)[1]


def test_choice_among_nothing() -> None:
    sentence, _ = said(
        frame("/app/run.py", "if NAME not in action.choices:"),
        "TypeError: argument of type 'NoneType' is not iterable\n",
    )
    assert sentence.endswith("action.choices is None")


def test_sides_that_a_function_compares() -> None:
    sentence, _ = said(
        frame("/app/run.py", "self.steps = max(2, steps)"),
        "TypeError: '>' not supported between instances of 'str' and 'int'\n",
    )
    assert "steps is of type str, 2 of type int" in sentence


def test_words_of_a_worker_are_not_asked_by_who_hands_them_on() -> None:
    sentence, _ = said(
        frame(f"{SITE}/vllm/v1/executor/multiproc_executor.py", "raise RuntimeError(", "get_response"),
        "RuntimeError: Worker failed with error 'Plan.run() got an unexpected keyword argument 'n''\n",
    )
    assert "or what it calls" in sentence


@pytest.mark.parametrize("code", ["y = self.layer_norm(x, **kwargs)", "z = self.transform(row, **kwargs)"])
def test_function_whose_name_ends_alike_is_no_reward(code: str) -> None:
    line = "TypeError: Layer.forward() missing 1 required positional argument: 'residual'\n"
    assert "reward" not in said(frame(f"{SITE}/servo/layer.py", code), line)[1]


@pytest.mark.parametrize("name", ["use_cuda", "num_ext_rows"])
def test_setting_that_is_called_after_cuda_is_no_extension(name: str) -> None:
    assert "extension" not in said(frame("/app/run.py", f"x = {name}"), f"NameError: name '{name}' is not defined\n")[1]


def test_ray_that_fails_by_itself_is_named() -> None:
    sentence, _ = said(
        frame("/app/run.py", "ray.get(refs)"),
        frame(f"{SITE}/ray/_private/worker.py", "return self.core_worker.captures()", "should_capture"),
        "AttributeError: 'Worker' object has no attribute 'core_worker'\n",
    )
    assert sentence.startswith("ray (ray/_private/worker.py:12) asks an object of Worker for core_worker")


def test_code_that_unsloth_has_written_is_not_the_users_own() -> None:
    written = frame("/app/unsloth_compiled_cache/unsloth_compiled_module_x.py", "a.go()")
    root = diagnosed(f"{HEAD}{written}ValueError: the odd bed is here\n").root
    assert root is not None
    assert root.explanation is not None
    assert root.explanation.own == ""


def test_download_in_its_first_minute_does_not_stand_still() -> None:
    files = "Fetching 9 files:  33%|███▎      | 3/9 [00:06<00:13,  2.33s/it]\n"
    bars = files + "Downloading:   4%|▍         | 34.7M/892M [{at}<01:57, 7.29MB/s]\n"
    with_all = Scanner(load_symptoms())
    for at, verdict in (("00:04", "running"), ("09:40", "stalled")):
        evidence = with_all.scan([("a.log", io.BytesIO(bars.format(at=at).encode()))])
        assert diagnosis_of(evidence, FixContext()).verdict == verdict


def test_a_model_below_model_model_is_a_wrapped_one() -> None:
    lines = (
        frame("/home/me/train.py", "for p in model.model.vision_model.parameters():"),
        frame(f"{SITE}/torch/nn/modules/module.py", "raise AttributeError(", "__getattr__"),
        "AttributeError: 'SmolVLMForConditionalGeneration' object has no attribute 'vision_model'\n",
    )
    assert "get_base_model()" in said(*lines)[1]
    assert "get_base_model()" not in said(lines[0].replace("model.model", "model"), *lines[1:])[1]


def test_a_package_in_a_checkout_of_its_name_has_failed_by_itself() -> None:
    lines = (
        frame("/srv/farm/farm/engine/run.py", "self.assemble(steps)"),
        frame("/srv/farm/farm/engine/run.py", 'ids = step["completion_ids"]', "assemble"),
        "KeyError: 'completion_ids'\n",
    )
    assert "are of farm" in said(*lines)[1]
    assert "are of farm" not in said(*(one.replace("farm/farm", "farm/src") for one in lines))[1]
    assert "are of farm" not in said(*(one.replace('step["', 'batch["') for one in lines))[1]


def test_tensors_that_do_not_fit_in_code_that_only_a_package_calls() -> None:
    inner = frame(f"{SITE}/fastnet/linear.py", "return x.reshape(orig_shape)")
    error = "RuntimeError: shape '[21, 64]' is invalid for input of size 21\n"
    above = frame(f"{SITE}/fastnet/experts.py", "y = self.forward(x)"), frame(f"{SITE}/fastnet/layer.py", "y = run(x)")
    assert "are of fastnet: it may not provide for this model" in said(*above, inner, error)[1]
    assert "are of fastnet" not in said(above[0], frame("/home/me/train.py", "y = layer(x)"), inner, error)[1]


def test_an_exception_within_a_reward_function_is_of_one_answer() -> None:
    lines = (
        frame("/home/me/grpo.py", "reward = float(verify(answer, gold))", "accuracy_reward"),
        frame(f"{SITE}/sympy/core/relational.py", 'raise TypeError("Can only compare with Expr")', "is_ge"),
        "TypeError: Can only compare with Expr\n",
    )
    assert "within accuracy_reward, for one answer of the model" in said(*lines)[1]
    assert "one answer" not in said(lines[0].replace("accuracy_reward", "main"), *lines[1:])[1]


def test_a_name_of_an_optional_package_that_was_not_imported() -> None:
    line = frame("/home/me/lmms_eval/models/vllm.py", "self.client = LLM(", "__init__")
    root = diagnosed(f"{HEAD}{line}NameError: name 'LLM' is not defined. Did you mean: 'VLLM'?\n").root
    assert root is not None
    assert root.explanation is not None
    assert "what it imports is optional" in str(root.explanation.often)
    assert not root.explanation.remedy


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("TypeError: qwen2_5_vl isn't supported yet.", "qwen2_5_vl"),
        ("ValueError: Model type qwen3_next is not supported", "qwen3_next"),
        ("ValueError: this is not supported", ""),
        ("ValueError: bfloat16 is not supported on this device", ""),
    ],
)
def test_a_kind_of_model_that_a_package_refuses(message: str, kind: str) -> None:
    often = said(frame(f"{SITE}/gptqmodel/models/auto.py", "raise TypeError(text)", "check"), f"{message}\n")[1]
    assert (f"{kind} is not known to this release of gptqmodel" in often) == bool(kind)


def test_a_file_that_a_program_does_not_find_by_its_own_words() -> None:
    line = frame("/srv/factory/data/loader.py", 'raise ValueError(f"File {path} not found.")', "load")
    assert (
        "looks for data/rows.json, which is not there" in said(line, "ValueError: File data/rows.json not found.\n")[0]
    )


def test_frames_of_a_launcher_are_not_those_of_the_rank_below() -> None:
    log = (
        f'{HEAD}  File "{SITE}/torch/distributed/run.py", line 918, in main\n    run(args)\n'
        f'[rank1]:   File "{SITE}/torch/nn/modules/module.py", line 1739, in _wrapped_call_impl\n'
        "[rank1]:     return self._call_impl(*args, **kwargs)\n"
        "[rank1]: AttributeError: 'Linear' object has no attribute 'ds_grads_remaining'\n"
    )
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert "run.py" not in str(root.explanation.sentence)


def test_a_decorator_that_hands_on_all_that_it_was_given_is_not_who_asks() -> None:
    lines = (
        frame("/home/me/train.py", "trainer = pl.Trainer(resume_from_checkpoint=path)", "main"),
        frame(f"{SITE}/pytorch_lightning/utilities/argparse.py", "return fn(self, **kwargs)", "insert_env_defaults"),
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'resume_from_checkpoint'\n",
    )
    assert said(*lines)[0].startswith("/home/me/train.py:12 passes resume_from_checkpoint")
    changed = lines[1].replace("fn(self, **kwargs)", "fn(self, extra=1, **kwargs)")
    assert said(lines[0], changed, lines[2])[0].startswith("pytorch_lightning (pytorch_lightning/")


ASKED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 44.40 GiB. "
)
BESIDE = "Process 43 has {held} memory in use. Including non-PyTorch memory, this process has 17.05 GiB memory in use. "
HELD = "Of the allocated memory 11.97 GiB is allocated by PyTorch, and {held} is reserved by PyTorch but unallocated."


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (ASKED.format(asked="74.16 GiB"), "one tensor of 74.16 GiB is asked for, and the whole GPU has 44.40 GiB"),
        (ASKED.format(asked="30.10 GiB"), ""),
        (ASKED.format(asked="35.60 GiB") + HELD.format(held="40.69 GiB"), "torch holds 40.69 GiB that it does not use"),
        (ASKED.format(asked="35.60 GiB") + HELD.format(held="40.69 MiB"), ""),
        (
            ASKED.format(asked="35.60 GiB") + BESIDE.format(held="4.97 GiB") + HELD.format(held="40.69 GiB"),
            "another process, 43, holds 4.97 GiB of the 44.40 GiB of this GPU",
        ),
        (
            ASKED.format(asked="35.60 GiB") + BESIDE.format(held="480.00 MiB") + HELD.format(held="40.69 GiB"),
            "torch holds 40.69 GiB that it does not use",
        ),
        (
            ASKED.format(asked="12.00 MiB")
            + "Process 43 has 20.08 GiB memory in use. Process 81 has 8.23 GiB memory in use. ",
            "held by processes of which only one is this one: 20.08 GiB (43), 8.23 GiB (81)",
        ),
    ],
)
def test_what_the_numbers_of_an_allocation_say(log: str, told: str) -> None:
    root = diagnosed(f"{log}\n").root
    assert root is not None
    text = str(root.explanation.sentence) if root.explanation is not None else ""
    assert told in text
    assert bool(told) == bool(text)


def test_a_package_without_a_file_of_its_own_is_not_wholly_installed() -> None:
    line = frame(f"{SITE}/shelf/core/__init__.py", "with open(path) as stream:", "<module>")
    missing = "FileNotFoundError: [Errno 2] No such file or directory: '{0}/version'\n"
    assert "a file of shelf itself is not there" in said(line, missing.format(f"{SITE}/shelf/core"))[1]
    assert "itself is not there" not in said(line, missing.format("/data/shelf"))[1]


def test_a_file_that_asks_for_the_package_that_it_lies_in() -> None:
    own = frame("/home/me/garden/scripts/beds/plan.py", "from scripts.beds.rows import Row", "<module>")
    told = said(own, "ModuleNotFoundError: No module named 'scripts.beds'\n")[1]
    assert "the file that asks lies in scripts.beds itself" in told
    assert "set PYTHONPATH=/home/me/garden," in told
    other = frame("/home/me/garden/run/plan.py", "from scripts.beds.rows import Row", "<module>")
    assert "lies in" not in said(other, "ModuleNotFoundError: No module named 'scripts.beds'\n")[1]


def test_a_frame_that_hands_everything_on_is_not_named_as_the_one_that_asks() -> None:
    hands = frame(
        "/home/me/fork/verl/single_controller/ray/base.py", "return getattr(self.held[key], name)(*args, **kwargs)"
    )
    sentence, often = said(hands, "AttributeError: 'Tensor' object has no attribute 'offsets'\n")
    assert "or what it calls asks an object of Tensor for offsets" in sentence
    assert "offsets is of a nested tensor" in often
    asks = frame("/home/me/fork/verl/workers/actor.py", "lengths = values.offsets().diff()")
    assert (
        "or what it calls" not in said(hands, asks, "AttributeError: 'Tensor' object has no attribute 'offsets'\n")[0]
    )


def test_a_last_frame_without_its_line_may_not_be_the_one_that_passes_an_argument() -> None:
    above = frame("/home/me/garden/run.py", "return build(self, **given)")
    bare = '  File "/home/me/garden/beds.py", line 7, in build\n'
    message = "TypeError: Bed.forward() got an unexpected keyword argument 'rows'\n"
    assert said(above, bare, message)[0].startswith("/home/me/garden/beds.py:7 or what it calls passes rows")


def test_an_assertion_in_brackets_is_read() -> None:
    line = frame(f"{SITE}/shelf/core.py", "assert(type(rows) is list)")
    assert (
        "shelf (shelf/core.py:12) asserts type(rows) is list, which does not hold" in said(line, "AssertionError\n")[0]
    )


def test_a_class_is_named_across_a_decorator_where_python_only_says_init() -> None:
    calls = frame("/home/me/train.py", "trainer = PairTrainer(", "<module>")
    hands = frame(f"{SITE}/transformers/utils/deprecation.py", "return func(*args, **kwargs)", "wrapped_func")
    sentence, _ = said(calls, hands, "TypeError: __init__() got an unexpected keyword argument 'beta'\n")
    assert sentence == "/home/me/train.py:12 passes beta to PairTrainer.__init__, which does not take it"


def test_a_getter_that_refuses_what_is_there_does_not_ask_for_it() -> None:
    asks = frame("/home/g/torchtitan/torchtitan/beds.py", "new = get_key(key, table)", "plan")
    getter = frame("/home/g/torchtitan/torchtitan/keys.py", "raise ValueError(", "get_key")
    for message, told in (("Row a is not there", True), ("Found unexpected row: a", False)):
        assert ("itself asks for it" in said(asks, getter, f"ValueError: {message}, so look again.\n")[1]) is told


def test_a_program_that_fails_once_its_training_is_over_has_failed() -> None:
    over = "{'train_runtime': 45.5, 'train_loss': 2.3, 'epoch': 3.0}\n100%|##########| 77/77 [00:10<00:00, 7.7it/s]\n"
    failed = frame("/home/me/train.py", "metrics = results['eval_metrics']", "<module>") + "KeyError: 'eval_metrics'\n"
    assert diagnosed(over + HEAD + failed).verdict == "failed"
    ends = frame("<string>", "spawn_main()", "<module>") + "KeyError: '/mp-81'\n"
    assert diagnosed(over + HEAD + ends).verdict == "ok"
