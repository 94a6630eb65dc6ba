"""Overrides of verl's own config, as hydra takes and refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import pytest

from patcher.analysis.configuration import below, compose, load
from patcher.analysis.findings import Broken, Fine, Undecided, Unrelated, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.uses import ConfigKey, Use
from patcher.check.rules.config_keys import judge_key
from patcher.packages.releases import sources

pytestmark = pytest.mark.network
Make = Callable[[str, str], Program]
PPO = "verl.trainer.main_ppo"
ROLLOUT = "actor_rollout_ref.rollout"


@pytest.fixture
def judged(program: Make) -> Callable[..., Verdict]:
    def judge(
        verl: str,
        key: str,
        sign: Literal["", "+", "++", "~"] = "",
        value: str = "1",
        entry: str = PPO,
        config: str = "",
        groups: tuple[tuple[str, str], ...] = (),
    ) -> Verdict:
        need = ConfigKey(key, value, sign, entry, config, groups)
        return judge_key(Use("run.sh", 3, need), program(verl, "0.20.2"))

    return judge


def moved(verdict: Verdict) -> str:
    assert isinstance(verdict, Broken), verdict
    assert verdict.problems[0].kind == "key-removed"
    return verdict.problems[0].moved_to


@pytest.mark.parametrize(
    ("old", "new", "key", "place"),
    [
        ("0.5.0", "0.6.0", "ray_init.num_cpus", "ray_kwargs.ray_init.num_cpus"),
        (
            "0.7.0",
            "0.7.1",
            f"{ROLLOUT}.update_weights_bucket_megabytes",
            f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes",
        ),
    ],
)
def test_a_moved_key_is_found_with_its_new_place(
    judged: Callable[..., Verdict], old: str, new: str, key: str, place: str
) -> None:
    assert judged(old, key) == Fine(key)
    assert moved(judged(new, key)) == place
    assert judged(new, place) == Fine(place)


def test_children_of_the_engine_arguments_need_a_plus_from_0_6_0(judged: Callable[..., Verdict]) -> None:
    key = f"{ROLLOUT}.engine_kwargs.vllm.swap_space"
    assert judged("0.5.0", key) == Fine(key)
    verdict = judged("0.6.0", key)
    assert isinstance(verdict, Broken)
    assert f"+{key}" in str(verdict.problems[0].suggestion)
    assert judged("0.6.0", key, "+") == Fine(key)


def test_a_legacy_key_that_the_release_still_takes_is_fine(judged: Callable[..., Verdict]) -> None:
    for verl in ("0.7.0", "0.7.1", "0.8.0", "0.9.1"):
        assert isinstance(judged(verl, "custom_reward_function.path"), Fine), verl
    assert isinstance(judged("0.7.1", "reward.custom_reward_function.path"), Fine)
    assert isinstance(judged("0.7.0", "reward.custom_reward_function.path"), Broken)


@pytest.mark.parametrize("verl", ["0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"])
@pytest.mark.parametrize(
    "name",
    [
        "load_format",
        "enforce_eager",
        "gpu_memory_utilization",
        "tensor_model_parallel_size",
        "n",
        "free_cache_engine",
        "max_num_seqs",
        "max_model_len",
    ],
)
def test_keys_that_every_release_has(judged: Callable[..., Verdict], verl: str, name: str) -> None:
    assert judged(verl, f"{ROLLOUT}.{name}") == Fine(f"{ROLLOUT}.{name}")


def test_signs_are_held_to_hydras_rules(judged: Callable[..., Verdict]) -> None:
    def held(key: str, sign: Literal["", "+", "++", "~"], value: str = "1") -> bool:
        return isinstance(judged("0.7.0", key, sign, value), Fine)

    assert not held("trainer.total_epochs", "+")
    assert held("trainer.total_training_steps", "+")  # is null
    assert held("trainer.new_one", "+")
    assert not held("trainer.new_one", "")
    assert held("trainer.new_one", "++")
    assert held("trainer.total_epochs", "++")
    assert held("trainer.total_epochs", "~")
    assert not held("trainer.new_one", "~")
    assert not held("trainer.total_epochs.deeper", "")
    assert held("trainer.logger.0", "")
    assert not held(f"{ROLLOUT}.engine_kwargs.vllm", "", "{swap_space: 4}")
    assert held(f"{ROLLOUT}.engine_kwargs.vllm", "+", "{swap_space: 4}")


def test_an_added_key_must_be_a_field_of_the_class_that_it_becomes(judged: Callable[..., Verdict]) -> None:
    key = "actor_rollout_ref.actor.no_such_field"
    verdict = judged("0.7.0", key, "+")
    assert isinstance(verdict, Broken)
    assert "has no no_such_field" in str(verdict.problems[0].detail)


def test_the_config_and_its_groups_are_those_of_the_command(judged: Callable[..., Verdict]) -> None:
    key = "actor_rollout_ref.actor.megatron.param_offload"
    assert isinstance(judged("0.9.1", key), Broken)
    assert isinstance(judged("0.9.1", key, config="ppo_megatron_trainer"), Fine)
    assert isinstance(judged("0.9.1", key, groups=(("model_engine", "megatron"),)), Fine)
    assert isinstance(judged("0.9.1", "model_engine", value="megatron", groups=(("model_engine", "megatron"),)), Fine)
    assert isinstance(judged("0.9.1", "model_engine", value="nix", groups=(("model_engine", "nix"),)), Broken)
    assert isinstance(judged("0.9.1", "engine.strategy", entry="verl.trainer.sft_trainer"), Fine)


def test_group_is_chosen_by_its_name_where_its_values_go_there_anyhow(judged: Callable[..., Verdict]) -> None:
    """`engine=megatron` of a config whose defaults say `engine@engine: fsdp`."""
    entry, key = "verl.trainer.sft_trainer", "engine.tensor_model_parallel_size"
    assert isinstance(judged("0.9.1", key, entry=entry), Broken)
    for group in ("engine", "engine@engine"):
        chosen = ((group, "megatron"),)
        assert isinstance(judged("0.9.1", key, entry=entry, groups=chosen), Fine)
        assert isinstance(judged("0.9.1", group, value="megatron", entry=entry, groups=chosen), Fine)


def test_config_that_the_script_is_given_is_not_known(judged: Callable[..., Verdict]) -> None:
    assert isinstance(judged("0.9.1", "", entry="verl.trainer.main_ppo", config="${1}"), Undecided)


def test_an_entry_point_that_is_gone_is_told_once(judged: Callable[..., Verdict]) -> None:
    entry = "verl.trainer.fsdp_sft_trainer"
    assert isinstance(judged("0.7.0", "", entry=entry), Fine)
    verdict = judged("0.7.1", "", entry=entry)
    assert isinstance(verdict, Broken)
    assert (verdict.problems[0].kind, verdict.problems[0].symbol) == ("module-removed", entry)
    assert judged("0.7.1", "data.train_batch_size", entry=entry) == Unrelated()


def test_a_program_outside_of_the_tree_is_held_only_to_what_verl_has(judged: Callable[..., Verdict]) -> None:
    assert isinstance(judged("0.7.0", "trainer.total_epochs", entry="recipe.dapo.main_dapo"), Fine)
    assert isinstance(judged("0.7.0", "algorithm.filter_groups.enable", entry="recipe.dapo.main_dapo"), Undecided)


@pytest.mark.parametrize("verl", ["0.5.0", "0.6.1", "0.7.1", "0.9.1"])
@pytest.mark.parametrize("name", ["ppo_trainer", "ppo_megatron_trainer"])
def test_the_composition_is_the_one_that_the_release_ships_as_a_reference(verl: str, name: str) -> None:
    folder = sources("verl", verl) / "verl/trainer/config"
    made = compose(below(folder), name, {})
    assert made is not None
    assert not made.missing
    shipped = load((folder / f"_generated_{name}.yaml").read_text())
    assert set(_keys(made.config)) - {"model_engine"} == set(_keys(shipped)) - {"model_engine"}


def _keys(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in config.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{name}.")
