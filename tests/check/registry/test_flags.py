"""Engine arguments of released versions of vLLM."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from patcher.analysis.findings import Broken, Fine, Verdict
from patcher.analysis.meaning import Program
from patcher.analysis.uses import EngineFlag, Use
from patcher.check.rules.engine_flags import judge_flag

pytestmark = pytest.mark.network
Make = Callable[[str, str], Program]


def asked(program: Program, name: str, *, option: bool = True) -> Verdict:
    return judge_flag(Use("run.sh", 3, EngineFlag(name, option)), program)


@pytest.mark.parametrize(
    ("name", "last", "first_without"),
    [
        ("cuda_graph_sizes", "0.12.0", "0.13.0"),
        ("disable_mm_preprocessor_cache", "0.12.0", "0.13.0"),
        ("swap_space", "0.17.1", "0.18.0"),
        ("max_seq_len_to_capture", "0.10.2", "0.11.0"),
        ("preemption_mode", "0.10.2", "0.11.0"),
        ("guided_decoding_backend", "0.11.2", "0.12.0"),
    ],
)
@pytest.mark.parametrize("option", [True, False])
def test_a_removed_argument_is_found_from_the_release_that_dropped_it(
    program: Make, name: str, last: str, first_without: str, option: bool
) -> None:
    symbol = f"vllm.engine.arg_utils.AsyncEngineArgs({name})"
    assert asked(program("0.7.0", last), name, option=option) == Fine(symbol)
    verdict = asked(program("0.7.0", first_without), name, option=option)
    assert isinstance(verdict, Broken)
    assert (verdict.problems[0].kind, verdict.problems[0].symbol) == ("flag-removed", symbol)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("cuda_graph_sizes", "there is cudagraph_capture_sizes"),
        ("disable_mm_preprocessor_cache", "there is mm_processor_cache_gb, mm_processor_cache_type"),
        ("disable_log_requests", "there is enable_log_requests, whose sense is the opposite"),
        ("swap_space", "None"),
    ],
)
def test_the_argument_that_took_its_place_is_named(program: Make, name: str, suggested: str) -> None:
    verdict = asked(program("0.7.0", "0.20.2"), name)
    assert isinstance(verdict, Broken)
    assert str(verdict.problems[0].suggestion) == suggested


@pytest.mark.parametrize(
    "name",
    [
        "tensor-parallel-size",
        "tp",  # -tp
        "no_enable_prefix_caching",
        "no-enable-log-requests",
        "compilation_config.cudagraph_mode",
        "port",
        "api_server_count",
        "headless",
        "disable_uvicorn_access_log",
        "gpu-memory-util",  # argparse takes a beginning that only one option has
    ],
)
def test_spellings_that_the_command_line_takes(program: Make, name: str) -> None:
    for version in ("0.9.2", "0.20.2", "0.33.0"):
        if name == "no-enable-log-requests" and version == "0.9.2":
            continue
        assert isinstance(asked(program("0.7.0", version), name), Fine), version


@pytest.mark.parametrize("name", ["no_headless", "no_such_thing", "max"])
def test_spellings_that_it_refuses(program: Make, name: str) -> None:
    assert isinstance(asked(program("0.7.0", "0.20.2"), name), Broken)


def test_a_deprecated_option_that_is_no_field_any_more_is_still_taken_on_the_command_line(program: Make) -> None:
    target = program("0.7.0", "0.12.0")
    assert isinstance(asked(target, "disable_log_requests"), Fine)


def test_a_field_without_an_option_is_refused_on_the_command_line_alone(program: Make) -> None:
    target = program("0.7.0", "0.20.2")
    assert isinstance(asked(target, "model_weights", option=False), Fine)
    assert isinstance(asked(target, "model_weights", option=True), Broken)
