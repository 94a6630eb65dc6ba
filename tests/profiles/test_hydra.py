"""The real hydra takes the run scripts' overrides on real releases, and reads back every value that we quote."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from patcher.packages.releases import sources
from patcher.profiles.hydra_overrides import hydra_text
from patcher.profiles.rendering import render_all
from patcher.remote.host import Host
from tests.lanes import one_in
from tests.profiles.hosts import survey
from tests.profiles.test_releases import VERL
from tests.profiles.test_run_script import run

pytestmark = pytest.mark.skipif(find_spec("hydra") is None, reason="hydra-core is in the group dev")

COMPOSE = """
import json, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
config, several = json.load(sys.stdin)
found = []
for overrides in several:
    with initialize_config_dir(config_dir=config, version_base=None):
        made = compose(config_name="ppo_trainer", overrides=overrides)
    OmegaConf.set_struct(made, False)
    made.plain = [OmegaConf.select(made, key) for key in sys.argv[1:]]
    found.append(OmegaConf.to_container(made.plain))
print(json.dumps(found))
"""

AWKWARD = [
    "/plain/path-1.2_x",
    "/a b/c",
    "/it's",
    "/a\\b",
    "/a\\'b",
    "/end\\",
    "/x=y,z",
    "/[a]",
    "/{b}",
    "/$HOME",
    "/数据",
    '/"q"',
    "/~x",
    "/a:b",
    "/\\\\'",
    " lead",
    "true",
    "1e3",
    "",
    "/a#b",
    "/%(x)s",
    "/@x",
    "/{{ x }}",
    "/;rm -rf x",
    "/$(id)",
    "/`id`",
]


def composed(root: Path, several: list[list[str]], *keys: str) -> list[list[object]]:
    """The values of `keys` in the config that each list of overrides makes."""
    text = json.dumps([str(root / "verl/trainer/config"), several])
    done = subprocess.run([sys.executable, "-c", COMPOSE, *keys], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.network
@pytest.mark.parametrize("verl", one_in(len(VERL), VERL[::-1]))
def test_hydra_composes_what_the_scripts_give(verl: str, tmp_path: Path) -> None:
    root = sources("verl", verl)
    several, expected = [], []
    for vllm in ("0.11.0", "0.20.2"):
        versions = {"verl": verl, "vllm": vllm, "triton": "3.6.0"}
        host = Host("h", "h", output="/o u't")
        for file in render_all(host, survey(root=str(root), cpus=192), versions, root)[1:]:
            given = {"MODEL_PATH": "/m o'd", "TRAIN_FILES": "/t.parquet", "VAL_FILES": "/v.parquet"}
            several.append(run(file, tmp_path, **given).arguments)
            profile = file.path.removeprefix("run_").removesuffix(".sh").replace("_", "-")
            expected.append(["/m o'd", f"/o u't/checkpoints/{profile}", ["console"]])
    keys = ("actor_rollout_ref.model.path", "trainer.default_local_dir", "trainer.logger")
    assert composed(root, several, *keys) == expected


@pytest.mark.network
def test_hydra_reads_back_what_is_quoted() -> None:
    root = sources("verl", "0.7.0")
    names = [f"n{index}" for index in range(len(AWKWARD))]
    overrides = [f"+x.{name}={hydra_text(text)}" for name, text in zip(names, AWKWARD, strict=True)]
    assert composed(root, [overrides], *(f"x.{name}" for name in names)) == [AWKWARD]


@pytest.mark.parametrize("text", ["/${oc.env:HOME}", "/a\nb", "/a\tb", "/\0"])
def test_what_hydra_would_resolve_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be given to hydra"):
        hydra_text(text)
