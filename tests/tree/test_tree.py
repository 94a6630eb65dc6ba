"""Finding a tree, and what is scanned in it."""

from __future__ import annotations

import pytest

from patcher.errors import ExitCode, UsageError
from patcher.tree import Tree
from tests.tree.toys import FILES


def test_a_checkout_a_wheels_folder_and_a_bare_version_file_are_trees(tmp_path):
    for root, file in (
        ("fork", "verl/__init__.py"),
        ("site-packages", "verl/__init__.py"),
        ("old", "verl/version/version"),
    ):
        (tmp_path / root / file).parent.mkdir(parents=True)
        (tmp_path / root / file).touch()
        assert Tree.open(tmp_path / root).root == (tmp_path / root).resolve()


def test_the_tree_is_found_from_below_and_through_a_symlink(tree, tmp_path):
    (tmp_path / "link").symlink_to(tree.root)
    for start in (tree.root, tree.root / "verl", tree.root / "verl/part0", tmp_path / "link/verl"):
        assert Tree.find(start) == tree


@pytest.mark.parametrize(
    ("inside", "advice"), [("verl", "name the folder above it"), ("..", "There is one further down"), ("nowhere", "")]
)
def test_no_tree_is_a_mistake_of_usage_with_advice(tree, inside, advice):
    with pytest.raises(UsageError, match="no verl tree") as caught:
        Tree.open(tree.root / inside)
    assert caught.value.exit_code is ExitCode.USAGE
    assert advice in str(caught.value.advice)
    with pytest.raises(UsageError):
        Tree.find(tree.root.parent)


def test_a_checkout_in_a_checkout_is_named(tree):
    assert tree.nested() == ()
    for inner in ("fork/verl/__init__.py", "verl/verl/__init__.py", ".hidden/verl/__init__.py"):
        (tree.root / inner).parent.mkdir(parents=True)
        (tree.root / inner).touch()
    assert tree.nested() == ("fork", "verl")


def test_a_file_is_read_with_its_digest_and_mode(tree):
    source = tree.read("verl/__init__.py")
    assert source is not None
    assert source.content == FILES["verl/__init__.py"]
    assert len(source.sha256) == 64
    assert source.mode == 0o644


def test_the_scan_sees_sources_scripts_and_settings_and_nothing_else(tree):
    wanted = {"setup.py", "run.sh", "recipe/gkd/main.py", "examples/a/b.yaml", "scripts/x.py", "verl/config/ppo.yaml"}
    unwanted = {
        "verl/__pycache__/a.py",
        "verl/image.png",
        ".git/hook.py",
        ".uky-patch/originals/x.py",
        "verl/.hidden/x.py",
        "recipe/venv/lib/x.py",
        "examples/myenv/x.py",
        "outputs/x.py",
    }
    for path in wanted | unwanted | {"examples/myenv/pyvenv.cfg"}:
        (tree.root / path).parent.mkdir(parents=True, exist_ok=True)
        (tree.root / path).write_bytes(b"text")
    (tree.root / "verl/link.py").symlink_to("__init__.py")
    (tree.root / "verl/loop").symlink_to("..")
    (tree.root / "scripts/data.json").write_bytes(b" " * (5 << 20))
    assert {file.path for file in tree.text_files()} == set(FILES) | wanted
    assert {file.path: file.read() for file in tree.text_files() if file.path in FILES} == FILES
    assert [file.path for file in tree.text_files()] == [file.path for file in tree.text_files()]
