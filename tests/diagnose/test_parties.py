"""Who asks, who is asked, and who only passes a call on."""

from __future__ import annotations

import pytest

from patcher.diagnose.directions import direction_at
from patcher.diagnose.evidence import Call
from patcher.diagnose.frame import frame_of
from patcher.diagnose.parties import hands_on, owner_of, party
from tests.diagnose.diagnosed import symptom
from tests.diagnose.test_explaining import HEAD, diagnosed, explained

SITE = "/env/lib/python3.12/site-packages"


def frame(path: str, function: str = "f", code: str = "x") -> str:
    return f'  File "{path}", line 3, in {function}\n    {code}\n'


MISSING = "AttributeError: 'Bed' object has no attribute 'soil'"


def test_the_asker_is_the_frame_above_getattr_and_one_package_has_no_clash_of_releases() -> None:
    frames = frame("/app/run.py") + frame(f"{SITE}/garden/plan.py") + frame(f"{SITE}/garden/bed.py", "__getattr__")
    found = explained(MISSING, frames)
    assert str(found.sentence) == "garden (garden/plan.py:3) asks an object of Bed for soil, which it does not have"
    assert str(found.often).startswith("both sides are of garden: the object is not set up")


@pytest.mark.parametrize("asked", ["spade/bed.py", "torch/nn/modules/module.py"])
def test_another_package_or_the_getattr_of_all_modules_may_be_of_another_release(asked: str) -> None:
    found = explained(MISSING, frame(f"{SITE}/garden/plan.py") + frame(f"{SITE}/{asked}", "__getattr__"))
    assert "garden (garden/plan.py:3) asks" in str(found.sentence)
    assert "do not fit" in str(found.often)


def test_a_space_before_the_label_of_a_line_does_not_hide_a_frame() -> None:
    log = HEAD + frame(f"{SITE}/garden/plan.py") + MISSING + "\n"
    shifted = "".join(f"{' ' if 'plan.py' in one else ''}[rank0]: {one}" for one in log.splitlines(keepends=True))
    root = diagnosed(shifted).root
    assert root is not None
    assert root.explanation is not None
    assert root.explanation.at is not None
    assert root.explanation.at.package == "garden"


def test_a_function_within_another_of_the_same_checkout_is_of_the_same_party() -> None:
    tree = "/home/gardener/sglang/python/sglang/srt"
    frames = frame(f"{tree}/models/rose.py", "__init__") + frame(f"{tree}/utils.py", "make", "layer(idx=1)")
    found = explained("TypeError: Rose.__init__.<locals>.<lambda>() got an unexpected keyword argument 'idx'", frames)
    assert str(found.often).startswith("both sides are of sglang: this release has a mistake")


def test_a_checkout_that_lacks_its_own_name_is_not_sent_to_other_releases() -> None:
    frames = frame("/code/vllm/vllm/engine/llm_engine.py", "<module>", "from vllm.engine.ray_utils import RayWorker")
    found = explained("ImportError: cannot import name 'RayWorker' from 'vllm.engine.ray_utils'", frames)
    assert str(found.often).startswith("both sides are of vllm: it defines the name only where an optional package")
    assert found.parts is not None
    assert direction_at(None, found.parts, {"vllm": "0.2.6"}, found.at) is None  # type: ignore[arg-type]


def test_a_project_in_a_folder_called_verl_is_not_verl() -> None:
    assert party(frame_of('File "/workspace/verl/agent-lightning/agentlightning/trainer.py", line 1, in f')) == ""
    assert party(frame_of('File "/workspace/verl/verl/trainer/main_ppo.py", line 1, in f')) == "verl"


def test_a_model_of_another_class_is_told_by_the_code_that_asks() -> None:
    missing = "AttributeError: 'Qwen2VLForConditionalGeneration' object has no attribute 'policy_head'"
    found = explained(missing, frame("/app/load.py", "load", "model.policy_head.load_state_dict(x)"))
    assert str(found.often).startswith("the model that was loaded is of another class than this code is written for")
    inside = frame(f"{SITE}/garden/load.py", "load", "model.policy_head.load_state_dict(x)")
    assert "of another class" not in str(explained(missing, inside).often)


def test_an_engines_object_in_another_packages_hands_is_its_callers() -> None:
    frames = frame("/app/eval.py", "f", "model.generate(x, params)")
    frames += frame(f"{SITE}/transformers/generation/utils.py", "generate", "model_kwargs = config.update(**kwargs)")
    found = explained("AttributeError: 'SamplingParams' object has no attribute 'update'", frames)
    said = "an object of vllm was handed to transformers, which expects one of its own: look at the caller"
    assert str(found.often) == said


def test_what_a_batch_gives_is_told_by_its_names() -> None:
    lacking = "TypeError: Bed.forward() missing 1 required positional argument: "
    frames = frame(f"{SITE}/torch/distributed/fsdp/wrap.py", "forward", "return self.module(*args, **kwargs)")
    assert str(explained(f"{lacking}'pixel_values'", frames).often).startswith("these come from the batch")
    assert not str(explained(f"{lacking}'soil'", frames).often).startswith("these come from the batch")


def test_what_fsdp_builds_on_the_meta_device_wants_reset_parameters() -> None:
    frames = frame(f"{SITE}/torch/distributed/fsdp/_wrap_utils.py", "_auto_wrap", "module.reset_parameters()")
    found = explained("AttributeError: 'RoseNorm' object has no attribute 'reset_parameters'", frames)
    assert str(found.often).endswith("which RoseNorm does not have: define it there, or give FSDP a param_init_fn")


REFUSED = "TypeError: Bed.__init__() got an unexpected keyword argument 'soil'"


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        (
            frame(f"{SITE}/spade/cli.py", "main", "load(args.config_file)")
            + frame(f"{SITE}/spade/args.py", "load", "return Args.from_yaml_file(yaml_file=config_file)")
            + frame(f"{SITE}/spade/args.py", "from_yaml_file", "return cls(**config_dict)"),
            "soil is a key of the configuration args.config_file (spade/cli.py:3), which spade (spade/args.py:3)",
        ),
        (
            frame("/app/plan.py", "plan", "return BEDS.build(bed_cfg)")
            + frame(f"{SITE}/registry/registry.py", "build", "return self.make(cfg, *args, **kwargs)")
            + frame(f"{SITE}/registry/build.py", "build_from_cfg", "obj = obj_cls(**args)  # type: ignore"),
            "soil is a key of the configuration bed_cfg (/app/plan.py:3), which registry (registry/build.py:3)",
        ),
        (
            frame("/app/plan.py", "plan", "bed = instantiate(cfg.bed)")
            + frame(f"{SITE}/hydra/_internal/instantiate/_instantiate2.py", "instantiate", "return node(config, *args)")
            + frame(
                f"{SITE}/hydra/_internal/instantiate/_instantiate2.py", "_call_target", "return _(*args, **kwargs)"
            ),
            "soil is a key of the configuration cfg.bed (/app/plan.py:3)",
        ),
        (frame("/app/plan.py", "plan", "Bed(**config)"), "soil is a key of the configuration, which /app/plan.py:3"),
    ],
)
def test_a_key_that_is_only_handed_on_stands_in_the_configuration(frames: str, says: str) -> None:
    found = explained(REFUSED, frames)
    assert str(found.sentence).startswith(says)
    assert "misspelled" in str(found.often)


@pytest.mark.parametrize(
    "code", ["Bed(soil=1, **config)", "Bed(soil=1)", "Bed(config, *args, **model_kwargs)", "Bed(**config, **more)"]
)
def test_a_keyword_that_code_may_have_written_is_passed_by_that_code(code: str) -> None:
    found = explained(REFUSED, frame("/app/plan.py", "from_pretrained", code))
    assert str(found.sentence) == "/app/plan.py:3 passes soil to Bed.__init__, which does not take it"


def test_the_package_that_called_what_refuses_is_named() -> None:
    frames = frame("/app/run.py") + frame(f"{SITE}/spade/engine.py", "place", "self.bed.move(here)")
    frames += frame(f"{SITE}/torch/nn/modules/module.py", "_call_impl") + frame(f"{SITE}/garden/bed.py", "move")
    found = explained("ValueError: `move` is not supported for beds of stone.", frames)
    assert found.caller is not None
    assert (found.caller.shown, found.calls) == ("spade/engine.py:3", "self.bed.move(here)")
    assert found.own == "/app/run.py:3"


def test_own_code_that_called_it_is_not_named_twice() -> None:
    found = explained("ValueError: no such bed is known here", frame("/app/run.py") + frame(f"{SITE}/garden/bed.py"))
    assert (found.caller, found.own) == (None, "/app/run.py:3")


def test_a_class_that_is_of_one_package_is_told_with_it() -> None:
    found = explained(
        "TypeError: FastLayerNormFN.forward() missing 1 required positional argument: 'x'", frame("/app/run.py")
    )
    assert "FastLayerNormFN.forward of apex" in str(found.sentence)
    assert "installed apex" in str(found.often)
    assert owner_of("Bed.__init__") == ""


def test_the_frames_behind_an_error_that_has_none_are_those_of_the_asker() -> None:
    log = "TypeError: dig() missing 1 required positional argument: 'depth'\n" + frame("/app/run.py", "plan", "go(")
    root = diagnosed(log).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == "/app/run.py:3 or what it calls calls dig without depth"


def test_frames_behind_it_that_have_their_own_error_do_not_count() -> None:
    log = "TypeError: dig() missing 1 required positional argument: 'depth'\n" + HEAD + frame("/app/run.py")
    root = diagnosed(f"{log}ValueError: no\n").root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence) == "the program calls dig without depth"


@pytest.mark.parametrize(
    ("path", "package", "shown"),
    [
        ("python3.9/site-packages/garden/bed.py", "garden", "garden/bed.py:3"),
        ("C:\\envs\\g\\lib\\site-packages\\garden\\bed.py", "garden", "garden/bed.py:3"),
        ("C:\\Python311\\Lib\\threading.py", "", "C:\\Python311\\Lib\\threading.py:3"),
        ("C:\\work\\run.py", "", "C:\\work\\run.py:3"),
    ],
)
def test_the_package_of_a_path_without_a_root_or_of_windows(path: str, package: str, shown: str) -> None:
    found = frame_of(frame(path).splitlines()[0])
    assert found is not None
    assert (found.package, found.shown) == (package, shown)


def test_a_frame_without_indentation_is_read() -> None:
    root = diagnosed(
        'File "python3.9/site-packages/garden/bed.py", line 3, in f\n    kept.soil(1)\n'
        f"{MISSING.replace('Bed', 'list')}\n"
    ).root
    assert root is not None
    assert root.explanation is not None
    assert str(root.explanation.sentence).startswith("garden (garden/bed.py:3) asks an object of list")
    assert str(root.explanation.often).startswith("what calls garden passes a plain list")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/app/sglang/python/sglang/srt/utils.py", "sglang"),
        ("/app/Megatron-LM/megatron/core/a.py", "megatron-core"),
        ("/app/vllm/examples/run.py", ""),
        ("/app/run.py", ""),
    ],
)
def test_the_party_of_a_checkout(path: str, name: str) -> None:
    assert party(frame_of(frame(path))) == name


def test_a_kill_after_an_error_is_its_consequence() -> None:
    killed = symptom("killed", "^Killed$", part="end")
    access = '[2026-01-02 10:00:00] INFO:     127.0.0.1:4 - "POST /v1/beds HTTP/1.1" 500 Internal Server Error\n'
    error = HEAD + frame("/app/run.py") + "AssertionError: the bed is not ready for seeds\n"
    head = "[2026-01-02 10:00:00] Start-up failed. warm-up error: "
    root = diagnosed(f"{access}{head}{error}\nKilled\n", killed).root
    assert root is not None
    assert root.place.text.startswith("AssertionError")


def test_a_kill_after_an_error_of_many_causes_is_its_consequence() -> None:
    killed = symptom("killed", "^Killed$", part="end")
    generic = symptom("odd", "the bed is odd", more="generic = true")
    root = diagnosed(HEAD + frame("/app/run.py") + "ValueError: the bed is odd\n\nKilled\n", killed, generic).root
    assert root is not None
    assert root.id == "odd"


def test_a_kill_after_an_error_that_was_only_warned_of_is_the_root() -> None:
    killed = symptom("killed", "^Killed$", part="end")
    log = f"WARNING:root:Could not plant\n{HEAD}{frame('/app/run.py')}ValueError: odd\nKilled\n"
    root = diagnosed(log, killed).root
    assert root is not None
    assert root.id == "killed"


@pytest.mark.parametrize(
    ("code", "hands"),
    [
        ("return convert_to_fp32(self.model_forward(*args, **kwargs))", True),
        ("return self.module(*inputs, **kwargs)  # type: ignore[index]", True),
        ("else self._run_ddp_forward(*inputs, **kwargs)", True),
        ("return plant(row(*args, **kwargs), 3)", False),
        ("return self.module(*inputs, soil=soil)", False),
    ],
)
def test_what_a_wrapper_of_accelerate_or_ddp_was_given_it_hands_on(code: str, *, hands: bool) -> None:
    assert hands_on(Call(f'File "{SITE}/accelerate/utils/operations.py", line 811, in forward', code)) is hands
