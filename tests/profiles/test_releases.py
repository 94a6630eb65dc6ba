"""Every run script holds on every verl release and on vLLM releases: nothing in it is unknown, or has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from patcher.analysis.findings import Broken, Undecided
from patcher.analysis.meaning import Program
from patcher.analysis.project import Project
from patcher.analysis.symbols import Symbols
from patcher.analysis.target import Target
from patcher.check.pair import judge
from patcher.check.rules.engine_flags import options_of
from patcher.check.scripts.files import script_uses
from patcher.packages.releases import sources
from patcher.profiles.rendered_file import NAMES, Rendered
from patcher.profiles.rendering import render_all
from patcher.remote.host import Host
from tests.profiles.hosts import survey

pytestmark = pytest.mark.network
VERL = ("0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
VLLM = ("0.10.0", "0.12.0", "0.14.0", "0.20.2", "0.33.0")
BACKEND = "actor_rollout_ref.rollout.engine_kwargs.vllm.attention_backend"


@lru_cache(maxsize=1)
def tree(verl: str) -> Path:
    return sources("verl", verl)


@lru_cache(maxsize=len(VLLM))
def vllm_symbols(version: str) -> Symbols:
    return Symbols(sources("vllm", version) / "vllm")


def scripts(verl: str, vllm: str, *, gpus: int = 1, **more: str) -> dict[str, Rendered]:
    versions = {"verl": verl, "vllm": vllm, "torch": "2.9.0", "triton": "3.6.0", **more}
    files = render_all(Host("h", "h"), survey(gpus=gpus, cpus=192), versions, tree(verl))
    return {file.path: file for file in files}


@pytest.mark.parametrize("verl", VERL)
def test_check_finds_nothing_in_them(verl: str) -> None:
    project = Project(tree(verl))
    for vllm in VLLM:
        program = Program(project, Target({"vllm": vllm}, {"vllm": vllm_symbols(vllm)}, {"vllm": vllm}), judge)
        for name, file in scripts(verl, vllm).items():
            if not name.endswith(".sh"):
                continue
            uses, notes = script_uses(name, file.text)
            assert not notes
            assert len(uses) > 40
            for use in uses:
                verdict = judge(use, program, None)
                assert not isinstance(verdict, Broken | Undecided), (verl, vllm, name, use, verdict)


@pytest.mark.parametrize("vllm", [*VLLM, "0.15.0"])
def test_attention_backend_is_given_in_the_form_that_the_release_reads(vllm: str) -> None:
    for name in NAMES[1:]:
        file = scripts("0.7.0", vllm)[name]
        variable = "\nexport VLLM_ATTENTION_BACKEND=FLASH_ATTN\n" in file.text
        override = f" +{BACKEND}=FLASH_ATTN " in file.text
        later = vllm in ("0.15.0", "0.20.2", "0.33.0")
        assert (variable, override) == (not later, later)
    options = options_of(vllm_symbols(vllm))
    assert options is not None
    assert "attention_backend" in options.fields or not override


def test_what_is_left_out_is_said_once() -> None:
    notes = [str(note) for file in scripts("0.7.0", "0.20.2").values() for note in file.notes]
    assert notes.count("VLLM_ATTENTION_BACKEND left out: vllm 0.20.2 ignores it") == 1
    assert not [note for note in notes if "left out" in note and "VLLM" not in note]


def lines(file: Rendered) -> Iterator[str]:
    yield from (line.strip().removesuffix(" \\") for line in file.text.splitlines())


@pytest.mark.parametrize(
    ("verl", "expected", "unexpected"),
    [
        ("0.5.0", ["ray_init.num_cpus=16"], ["actor_rollout_ref.rollout.mode=async", "data.return_raw_chat=True"]),
        ("0.6.1", ["ray_kwargs.ray_init.num_cpus=16", "data.return_raw_chat=True"], ["ray_init.num_cpus=16"]),
        ("0.7.0", ["actor_rollout_ref.rollout.mode=async"], ["data.return_raw_chat=True"]),
    ],
)
def test_overrides_follow_the_release(verl: str, expected: list[str], unexpected: list[str]) -> None:
    found = list(lines(scripts(verl, "0.11.0")["run_debug.sh"]))
    assert not [line for line in expected if line not in found]
    assert not [line for line in unexpected if line in found]


def test_attention_falls_back_only_where_flash_attn_is_absent() -> None:
    sdpa = "+actor_rollout_ref.model.override_config.attn_implementation=sdpa"
    assert sdpa in lines(scripts("0.8.0", "0.20.2")["run_standard.sh"])
    assert sdpa not in lines(scripts("0.8.0", "0.20.2", **{"flash-attn": "2.8.3"})["run_standard.sh"])


@pytest.mark.parametrize("version", ["0.7.0.dev0", "0.6.2"])
def test_a_tree_between_releases_is_asked_for_its_keys(version: str) -> None:
    """The version says one thing and the tree another: no key is given that the tree does not have."""
    versions = {"verl": version, "vllm": "0.12.0"}
    for root, there, gone in (
        (tree("0.5.0"), "ray_init", "ray_kwargs.ray_init"),
        (tree("0.7.0"), "ray_kwargs.ray_init", "ray_init"),
    ):
        for file in render_all(Host("h", "h"), survey(cpus=192), versions, root)[1:]:
            assert f"{gone}.num_cpus=16" not in lines(file), (there, file.path)
