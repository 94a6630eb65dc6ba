"""Settings, records, YAML, JSON, archives and what a host answers: any text ends in the contract."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patcher.analysis.configuration import below, compose, documents, load
from patcher.check.scripts.files import script_uses
from patcher.errors import HostError, ReleaseError
from patcher.packages.releases import unpack
from patcher.remote.agent.frames import MOST_LINE, Splitter
from patcher.remote.channel import understood
from patcher.remote.survey import parse_survey, parse_tree_folder
from patcher.worktree.json_text import parse_json
from tests.bounds.conftest import Done
from tests.lanes import one_in

Uky = Callable[..., Done]
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
_NAMES = st.sampled_from(
    ["found", "place", "path", "hostname", "user", "home", "python", "version", "at", "gpus", "interpreters", "disk",
     "missing", "cpus", "chosen", "others", "nested", "entries", "limits", "x"]
)  # fmt: skip
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=25,
)
_KEYS = ("marker", "style", "patches", "symptoms", "enable", "disable", "accept", "pins", "hosts", "x")


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_NAMES, _TREES, max_size=12))
def test_what_a_host_tells_is_understood_or_refused(told: dict[str, Any]) -> None:
    for read in (parse_survey, parse_tree_folder):
        try:
            understood(lambda read=read: read(told))  # type: ignore[misc]
        except HostError:
            continue


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60) | _TREES.map(lambda one: json.dumps(one).encode() + b"\n"), max_size=6))
def test_messages_of_any_bytes(pieces: list[bytes]) -> None:
    splitter = Splitter()
    try:
        for piece in pieces:
            splitter.feed(piece)
            while (found := splitter.next()) is not None:
                assert isinstance(found[0], dict)
    except ValueError:
        pass


@pytest.mark.parametrize("body", [-1, 1 << 40, True, "7", None, 1.5])
def test_a_body_of_no_possible_size(body: object) -> None:
    splitter = Splitter()
    splitter.feed(json.dumps({"body": body}).encode() + b"\n")
    with pytest.raises(ValueError, match=r"message|size"):
        splitter.next()


def test_a_line_without_end() -> None:
    splitter = Splitter()
    splitter.feed(b"x" * (MOST_LINE + 1))
    with pytest.raises(ValueError, match="without end"):
        splitter.next()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "[" * 150 + "]" * 150, "1" * 10_000, "", "\0", "[1,", b"\xff\xfe[", "{"],
)
def test_json_that_is_none(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the kind alone counts
        parse_json(text)


def _mutated(text: str) -> st.SearchStrategy[str]:
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, 12), st.text("[]{}=.\"'#\n\\,a1\0é", max_size=6))
    return st.lists(cut, max_size=4).map(lambda cuts: _edited(text, cuts))


def _edited(text: str, cuts: list[tuple[int, int, str]]) -> str:
    for at, length, new in cuts:
        text = text[:at] + new + text[at + length :]
    return text


_SETTINGS = """\
marker = "Uky"
style = "comment"
patches = ["own"]
enable = ["tag:x"]
[[accept]]
symbol = "vllm.*"
reason = "r"
[pins]
vllm = "==0.20.2"
[hosts.a]
path = "~/verl"
"""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_mutated(_SETTINGS))
def test_any_settings(uky: Uky, tree: Path, text: str) -> None:
    (tree / "uky-patch.toml").write_text(text, encoding="utf-8", errors="replace")
    assert uky("--assume", "vllm==0.20.2", "status").code in (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    "text",
    one_in(
        3,
        [
            "x = " + "[" * 100_000,
            "x = " + "{a=" * 5_000,
            "pins = " + "[" * 300 + "]" * 300,
            "marker = " + "9" * 10_000,
            ".".join("a" * 20_000) + " = 1",
            "[" + ".".join("a" * 20_000) + "]",
            "marker = '" + "a" * 400_000 + "'",
            "[[accept]]\nsymbol = '*'\nreason = 'r'\n" * 5_000,
            "a" * 500_000 + " = 1",
            "x" * 600_000,
        ],
    ),
    ids=range(10),
)
def test_settings_that_nest_or_are_large(uky: Uky, tree: Path, text: str) -> None:
    (tree / "uky-patch.toml").write_text(text)
    done = uky("--assume", "vllm==0.20.2", "status")
    assert done.code in (0, 1, 2, 3, 4)
    assert len(done.err) < 20_000


def test_aliases_that_stand_for_a_thousand_million_nodes() -> None:
    import yaml

    rows = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    with pytest.raises(yaml.YAMLError, match="aliases"):
        documents("\n".join(rows))
    assert load("\n".join(rows)) is None
    assert load("a: &a {b: 1}\nc: *a\nd: {<<: *a}") == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1}}


@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, "a: &a\n  - *a", "a: &a\n  <<: *a", "&a a: [" + "*a, " * 300_000 + "]", "a: " + "9" * 50_000,
     "a: !!python/object/apply:os.system [x]", "? [a]\n: b", "x: !!int " + "1:" * 3_000 + "1", "\0", "{" * 70],
    ids=range(10),
)  # fmt: skip
def test_yaml_that_is_not_looked_at(text: str) -> None:
    assert load(text) is None
    script_uses("a.yaml", text)


def test_configs_that_name_one_another(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("defaults: [b, b]\nx: 1\n")
    (tmp_path / "b.yaml").write_text("defaults: [a, a]\ny: 1\n")
    assert compose(below(tmp_path), "a", {}) is not None


@settings(max_examples=200, deadline=None)
@given(st.text("$`{}()[]'\"\\ \n\t;&|<>A=:-@*#a1", max_size=300))
def test_any_shell(text: str) -> None:
    script_uses("a.sh", text)


@pytest.mark.parametrize(
    "text",
    [
        "A=" + "${A:-" * 5_000 + "x" + "}" * 5_000,
        "A=aaaaaaaa\n" + "A=$A$A\n" * 64 + "export VLLM_X=$A",
        "A=a\n" + "A+=$A\n" * 64 + "export VLLM_X=$A",
        "A=(1 2)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 64 + 'python3 -m verl.trainer.main_ppo "${A[@]}"',
        "A=$B\nB=$A\nexport VLLM_X=$A",
        "".join(f"cat > x{n}.sh << E{n}\n" for n in range(1_500)) + "".join(f"E{n}\n" for n in range(1_499, -1, -1)),
        "export VLLM_X=" + "$%" * 100_000,
        "echo {1..1000000000}",
        "$(" * 5_000 + ")" * 5_000,
    ],
    ids=range(9),
)
def test_shell_expansions(text: str) -> None:
    uses, _ = script_uses("a.sh", text)
    assert sum(len(str(one.need)) for one in uses) < 1_000_000


def test_an_archive_that_lies_about_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/x.py", b"x" * 1_000_000)
    content = path.read_bytes()
    real, said = (1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    path.write_bytes(content.replace(real, said))
    with pytest.raises(ReleaseError):
        unpack.unpack_zip(path, tmp_path / "to", unpack.wheel_sources)


def test_archives_of_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MOST_MEMBERS", 20)
    zipped, tarred = tmp_path / "a.whl", tmp_path / "a.tar"
    with zipfile.ZipFile(zipped, "w") as archive, tarfile.open(tarred, "w") as tar:
        for number in range(30):
            archive.writestr(f"a/m{number}.py", "")
            tar.addfile(tarfile.TarInfo(f"a-1/a/m{number}.py"), io.BytesIO())
    with pytest.raises(ReleaseError, match="more than 20 files"):
        unpack.unpack_zip(zipped, tmp_path / "to", unpack.wheel_sources)
    with pytest.raises(ReleaseError, match="more than 20 files"):
        unpack.unpack_tar(tarred, tmp_path / "to", unpack.sdist_sources("a", "a"))
