"""git_ignore.py as scripts import it: run by Python 3.8, with the names that the fork's own scripts expect."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patcher.profiles.rendered_file import Rendered
from patcher.profiles.rendering import render_all
from patcher.remote.agent.snapshots import newest_snapshot
from patcher.remote.host import HERE, Host
from tests.profiles.hosts import VERSIONS, survey

EXAMPLE = '''\
"""Paths; copy to git_ignore.py."""
import json
import os
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parent
USER_DATA_BASE = Path("/root/autodl-tmp")
MODEL_BASE = USER_DATA_BASE / "hf" / "hub"
DATA_OUTPUT_DIR = USER_DATA_BASE / "processed"
QWEN_VL_3B_BASE = MODEL_BASE / "models--Qwen--Qwen2.5-VL-3B-Instruct" / "snapshots"
QWEN_VL_7B_BASE = Path(f"{MODEL_BASE}/models--Qwen--Qwen2.5-VL-7B-Instruct/snapshots")
CHECKPOINT_DIR = Path("/root/autodl-tmp/ckpt")
RAW_JSON = os.path.join(USER_DATA_BASE, "raw.json")
TRAIN_FILE: Path = DATA_OUTPUT_DIR / "train.parquet"
SEED = 42
PROJECT_NAME = "mcq"
STARTED = os.getpid()

PROJECT_ROOT_STR = str(PROJECT_ROOT)
DATA_OUTPUT_DIR_STR = str(DATA_OUTPUT_DIR)
MODEL_BASE_STR = str(MODEL_BASE)
QWEN_VL_3B_BASE_STR = str(QWEN_VL_3B_BASE)

print("the example must not run")


def get_latest_snapshot(base_path):
    snapshots = sorted(os.listdir(base_path))
    return os.path.join(base_path, snapshots[-1])


def load_splits(path=None):
    with open(path or RAW_JSON) as file:
        return json.load(file)


def needs_more():
    return SOMEWHERE_ELSE


def validate_paths():
    """As the fork has it."""
    return [str(p) for p in (PROJECT_ROOT, DATA_OUTPUT_DIR) if not p.exists()]
'''


def rendered(tmp_path: Path, host: Host, home: str = "/home/u") -> Rendered:
    return render_all(host, survey(home=home, root=str(tmp_path / "fork")), VERSIONS, tmp_path)[0]


def imported(file: Rendered, tmp_path: Path, program: str, python: str = sys.executable) -> Any:
    """What a script in the fork sees: `program` prints JSON with git_ignore imported as g."""
    folder = tmp_path / "fork"
    folder.mkdir(exist_ok=True)
    (folder / file.path).write_bytes(file.text.encode("utf-8", "surrogateescape"))
    command = [python, "-c", f"import json, git_ignore as g\nprint(json.dumps({program}))"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ALL = "{n: v for n, v in vars(g).items() if n.isupper() and isinstance(v, str)}"


def test_a_host_of_which_nothing_is_known_but_its_home(tmp_path: Path) -> None:
    found = imported(rendered(tmp_path, Host(HERE, HERE)), tmp_path, ALL)
    assert found["PROJECT_ROOT_STR"] == str(tmp_path / "fork")
    assert found["DATA_OUTPUT_DIR_STR"] == "/home/u/data"
    assert found["MODEL_BASE_STR"] == "/home/u/.cache/huggingface/hub"
    assert found["QWEN_VL_3B_BASE_STR"].startswith("/home/u/.cache/huggingface/hub/models--Qwen--Qwen2.5-VL-3B")


def test_what_the_profile_says(tmp_path: Path) -> None:
    host = Host(
        HERE, HERE, data="~/d", models="/m/", output="/o", constants={"LLAMA_BASE": "~", "DATA_OUTPUT_DIR": "/p"}
    )
    found = imported(rendered(tmp_path, host), tmp_path, ALL)
    assert found["USER_DATA_BASE_STR"] == "/home/u/d"
    assert found["DATA_OUTPUT_DIR_STR"] == "/p"
    assert found["MODEL_BASE_STR"] == "/m"
    assert found["LLAMA_BASE_STR"] == "/home/u"
    assert found["OUTPUT_BASE_STR"] == "/o"


def test_names_of_the_forks_own_example_are_all_there(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py.example").write_text(EXAMPLE)
    file = rendered(tmp_path, Host(HERE, HERE, data="/data", models="/models"))
    found = imported(file, tmp_path, ALL)
    assert found["QWEN_VL_7B_BASE_STR"] == "/models/models--Qwen--Qwen2.5-VL-7B-Instruct/snapshots"
    assert found["QWEN_VL_3B_BASE_STR"] == "/models/models--Qwen--Qwen2.5-VL-3B-Instruct/snapshots"
    assert found["RAW_JSON_STR"] == "/data/raw.json"
    assert found["CHECKPOINT_DIR_STR"] == str(tmp_path / "fork/outputs/ckpt")
    assert found["DATA_OUTPUT_DIR_STR"] == "/data"
    assert found["TRAIN_FILE_STR"] == "/data/train.parquet"
    assert found["PROJECT_NAME"] == "mcq"
    assert imported(file, tmp_path, "g.SEED") == 42
    assert imported(file, tmp_path, "g.validate_paths()") == [found["PROJECT_ROOT_STR"], "/data"][1:]
    assert imported(file, tmp_path, "g.load_splits.__name__") == "load_splits"
    told = "\n".join(str(note) for note in file.notes)
    assert "CHECKPOINT_DIR" in told
    assert "STARTED" in told
    assert "needs_more() of the fork's own file is left out: there is no SOMEWHERE_ELSE" in told
    assert "PROJECT_ROOT" not in told


def test_relations_of_the_example_hold_for_what_the_profile_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py.example").write_text(EXAMPLE)
    host = Host(HERE, HERE, constants={"USER_DATA_BASE": "/big"})
    found = imported(rendered(tmp_path, host), tmp_path, ALL)
    assert found["DATA_OUTPUT_DIR_STR"] == "/big/processed"
    assert found["MODEL_BASE_STR"] == "/big/hf/hub"
    assert found["QWEN_VL_3B_BASE_STR"].startswith("/big/hf/hub/models--Qwen")


def test_a_function_of_the_forks_that_finds_the_newest_follows_the_one_rule(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py.example").write_text(EXAMPLE)
    models = tmp_path / "models/models--Qwen--Qwen2.5-VL-3B-Instruct/snapshots"
    for name, at in (("zzz", 1), ("aaa", 2)):
        (models / name).mkdir(parents=True)
        (models / name / "config.json").touch()
        os.utime(models / name, (at, at))
    file = rendered(tmp_path, Host(HERE, HERE, models=str(tmp_path / "models")))
    assert imported(file, tmp_path, "g.get_latest_snapshot(g.QWEN_VL_3B_BASE_STR)") == str(models / "aaa")
    assert imported(file, tmp_path, "str(g.newest_model())") == str(models / "aaa")


@pytest.mark.parametrize("text", ["x = (", "\0", "PROJECT_ROOT = 1\n" + "(" * 5000, ""])
def test_an_example_that_is_no_python_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "git_ignore.py.example").write_text(text)
    assert imported(rendered(tmp_path, Host(HERE, HERE)), tmp_path, "g.DATA_OUTPUT_DIR_STR") == "/home/u/data"


def test_a_file_that_was_rendered_here_is_no_example(tmp_path: Path) -> None:
    first = rendered(tmp_path, Host(HERE, HERE, constants={"EXTRA": "/x"}))
    (tmp_path / "git_ignore.py").write_text(first.text)
    again = rendered(tmp_path, Host(HERE, HERE))
    assert not again.notes
    assert "EXTRA" not in again.text


def test_names_that_were_added_by_hand_to_the_file_here_are_kept(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py.example").write_text(EXAMPLE)
    text = rendered(tmp_path, Host(HERE, HERE)).text
    (tmp_path / "git_ignore.py").write_text(text + 'MINE = PROJECT_ROOT / "mine"\n')
    file = rendered(tmp_path, Host(HERE, HERE))
    assert imported(file, tmp_path, "g.MINE_STR") == str(tmp_path / "fork/mine")
    assert imported(file, tmp_path, "g.SEED") == 42


HOSTILE = [
    "/it's", '/say "hi"', "/a\nb", "/{{ 7 * 7 }}", "/{% for %}", "/\\", "/\\n", "/数据", "/')\nimport os #",
    "/$(id)", "/a b",
    "/\u2028x", "/a\udcffb", "/#", "/%s", "/\x1b[31m",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_path_is_carried_literally(tmp_path: Path, value: str) -> None:
    from patcher.profiles.git_ignore import git_ignore
    from patcher.profiles.layout import layout

    host = Host(HERE, HERE, constants={"HOSTILE": value})
    file = git_ignore(host, layout(host, "/home/u", "/r"), tmp_path)
    ast.parse(file.text)
    assert imported(file, tmp_path, "g.HOSTILE_STR") == value


def test_missing_folders_are_named(tmp_path: Path) -> None:
    file = rendered(tmp_path, Host(HERE, HERE, data=str(tmp_path), models="/not/there"))
    (tmp_path / "fork").mkdir()
    (tmp_path / "fork/git_ignore.py").write_text(file.text)
    done = subprocess.run([sys.executable, "git_ignore.py"], cwd=tmp_path / "fork", capture_output=True, text=True)
    assert done.returncode == 1
    assert "MODEL_BASE = /not/there" in done.stderr
    assert "USER_DATA_BASE" not in done.stderr.splitlines()[-1]
    fine = rendered(tmp_path, Host(HERE, HERE, data=str(tmp_path), models=str(tmp_path)))
    assert imported(fine, tmp_path, "g.validate_paths()") is True


def test_python_3_8_takes_it(tmp_path: Path, old_python: str) -> None:
    (tmp_path / "git_ignore.py.example").write_text(EXAMPLE)
    found = imported(rendered(tmp_path, Host(HERE, HERE)), tmp_path, "g.SEED", old_python)
    assert found == 42


def model(folder: Path, at: int) -> str:
    folder.mkdir(parents=True)
    (folder / "config.json").touch()
    os.utime(folder, (at, at))
    return str(folder)


def test_newest_snapshot_by_refs_main(tmp_path: Path) -> None:
    repo = tmp_path / "models--a--b"
    old = model(repo / "snapshots/abc", 1)
    new = model(repo / "snapshots/def", 2)
    for base in (repo, repo / "snapshots", tmp_path, f"{repo}/snapshots/"):
        assert newest_snapshot(str(base)) == new
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text("abc\n")
    for base in (repo, repo / "snapshots", tmp_path):
        assert newest_snapshot(str(base)) == old
    (repo / "refs/main").write_text("../../../../etc")
    assert newest_snapshot(str(repo)) == new
    (repo / "refs/main").write_bytes(b"\xff\xff")
    assert newest_snapshot(str(repo)) == new


def test_newest_by_time_then_by_name(tmp_path: Path) -> None:
    model(tmp_path / "z", 1)
    model(tmp_path / "a", 2)
    later = model(tmp_path / "b", 2)
    (tmp_path / "unfinished").mkdir()
    assert newest_snapshot(str(tmp_path)) == later
    assert newest_snapshot(str(tmp_path / "z")) == str(tmp_path / "z")
    nested = model(tmp_path / "org/model", 9)
    assert newest_snapshot(str(tmp_path)) == nested


@pytest.mark.parametrize("name", ["nothing", "empty", "file"])
def test_no_model_is_an_error_that_names_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty/x").mkdir(parents=True)
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=name):
        newest_snapshot(str(tmp_path / name))


TYPED = """\
import os
from pathlib import Path

BASE = "/share/models"
MODEL_BASE = BASE + "/hub"
LLAMA = os.path.join(MODEL_BASE, "llama")
WEIGHTS = Path(MODEL_BASE) / "weights"
MODEL_ID = "Qwen/Qwen2.5-VL-3B-Instruct"
MIRROR = "https://hf-mirror.com"
CONFIG = Path("configs") / "ppo.yaml"
RUN = f"{MODEL_BASE}/runs/mcq"
SHARDS = ["/share/a.parquet", "/share/b.parquet"]
DATA_OUTPUT_DIR = os.environ.get("DATA", "/share/data")
"""


def test_a_value_keeps_its_type_and_what_is_no_place_its_text(tmp_path: Path) -> None:
    """Scripts do `MODEL_BASE + "/x"` with a str and `WEIGHTS / "x"` with a Path."""
    (tmp_path / "git_ignore.py").write_text(TYPED)
    file = rendered(tmp_path, Host(HERE, HERE, models="/models"))
    found = imported(file, tmp_path, "{n: [type(v).__name__, str(v)] for n, v in vars(g).items() if n.isupper()}")
    kinds = {name: kind.replace("PosixPath", "Path") for name, (kind, _) in found.items()}
    texts = ("BASE", "MODEL_BASE", "LLAMA", "MODEL_ID", "MIRROR", "RUN", "DATA_OUTPUT_DIR", "DATA_OUTPUT_DIR_STR")
    assert {name for name in (*texts, "WEIGHTS", "CONFIG", "OUTPUT_BASE") if kinds[name] == "str"} == set(texts)
    values = {name: value for name, (_, value) in found.items()}
    assert (values["MODEL_BASE"], values["LLAMA"]) == ("/models", "/models/llama")
    assert (values["MODEL_ID"], values["MIRROR"]) == ("Qwen/Qwen2.5-VL-3B-Instruct", "https://hf-mirror.com")
    assert (values["CONFIG"], values["RUN"]) == ("configs/ppo.yaml", "/models/runs/mcq")
    assert imported(file, tmp_path, "g.SHARDS") == ["/share/a.parquet", "/share/b.parquet"]
    assert imported(file, tmp_path, "[g.MODEL_BASE + '/x', str(g.WEIGHTS / 'x')]") == ["/models/x", "/models/weights/x"]


def test_what_is_not_as_the_fork_derives_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "git_ignore.py").write_text(TYPED)
    told = [str(note) for note in rendered(tmp_path, Host(HERE, HERE, models="/models")).notes]
    assert any("sets MODEL_BASE to /models; by the fork's own file it would be" in note for note in told)
    assert any("SHARDS is as in the fork's own file" in note for note in told)
    assert any("gives no DATA_OUTPUT_DIR; it is set to /home/u/data" in note for note in told)
