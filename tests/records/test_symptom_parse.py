"""A symptom's file: what it must hold, and every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.errors import RecordError
from patcher.records import load, symptom_parse
from patcher.records.symptom_parse import load_symptoms, parse_symptom
from patcher.records.symptoms import Fix, Match, Symptom, Trend

WHOLE = """\
id = "engine-gone"
title = "The engine is gone"
cause = "It was ended."
kind = "failure"
topic = "engine"
part = "effect"
phase = ["rollout", "loop"]
follows = ["other"]
source = "vllm 0.20, engine.py"
note = "n"
[zh]
title = "引擎不在了"
cause = "它被结束了。"
[when]
vllm = ">=0.8"
[[match]]
line = 'engine is (?:gone|dead)'
near = ['core \\d+']
within = 5
after-steps = 2
[[wait]]
line = 'waiting for the engine'
[[trend]]
metric = 'actor/loss'
test = "above"
value = 3
steps = 4
also = ['critic/.*']
[[stack]]
frames = ['core\\.py:wait']
main = false
[[fix]]
text = "Start it"
zh = "启动它"
run = "start"
set = { "+a.b" = "1", "c.d" = "x" }
env = { A_B = "1" }
patch = "p"
setting = "s"
when = { vllm = "<0.15" }
[[example]]
name = "one"
log = "engine is gone"
line = 1
[[near-miss]]
name = "two"
log = "engine is up"
"""


def parsed(text: str, name: str = "engine-gone.toml") -> Symptom | list[str]:
    found = parse_symptom(text, Path(name))
    return found if isinstance(found, Symptom) else [str(mistake) for mistake in found]


def test_every_key_is_taken() -> None:
    found = parsed(WHOLE)
    assert isinstance(found, Symptom), found
    assert (found.id, found.kind, found.part, found.phase, found.follows) == (
        "engine-gone",
        "failure",
        "effect",
        ("rollout", "loop"),
        ("other",),
    )
    assert found.matches == (Match("engine is (?:gone|dead)", (r"core \d+",), 5, 2),)
    assert found.trends == (Trend("actor/loss", "above", 3.0, 4, ("critic/.*",)),)
    assert found.fixes == (
        Fix("Start it", "启动它", "start", {"+a.b": "1", "c.d": "x"}, {"A_B": "1"}, "p", "s", {"vllm": "<0.15"}),
    )
    assert [(one.name, one.line) for one in found.examples] == [("one", 1), ("two", None)]
    assert (found.waits[0].line, found.stacks[0].main, found.zh.title) == (
        "waiting for the engine",
        False,
        "引擎不在了",
    )


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        ('kind = "failure"', 'kind = "fail"', "kind"),
        ('topic = "engine"', 'topic = "engines"', "topic"),
        ('part = "effect"', 'part = "root"', "part"),
        ('"rollout", "loop"', '"rolout"', "'rolout' is none of"),
        ('id = "engine-gone"', 'id = "Engine"', "must be lower-case"),
        ('id = "engine-gone"', 'id = "engine-dead"', "must be the file's name"),
        ("line = 'engine is (?:gone|dead)'", "line = 'engine is (?:gone'", "is no regular expression"),
        ("line = 'engine is (?:gone|dead)'", "line = '(?:engine)?'", "matches the empty line"),
        ("line = 'engine is (?:gone|dead)'", "line = '\\d+ [ab]'", "without any word of three letters"),
        ("near = ['core \\d+']", "near = ['(']", "is no regular expression"),
        ("value = 3", 'value = "3"', "must be a number"),
        ('test = "above"', 'test = "nan"', "goes with the tests"),
        ("frames = ['core\\.py:wait']", "frames = []", "frames"),
        ('"+a.b" = "1"', '"--a" = "1"', "'--a' is no key of a config"),
        ('A_B = "1"', '"A B" = "1"', "'A B' is no name of a variable"),
        ('vllm = ">=0.8"', 'vllm = "0.8 or so"', "is no version specifier"),
        ('note = "n"', 'notes = "n"', "did you mean note?"),
    ],
)
def test_a_mistake_is_named(old: str, new: str, mistake: str) -> None:
    assert old in WHOLE
    found = parsed(WHOLE.replace(old, new, 1))
    assert isinstance(found, list)
    assert any(mistake in told for told in found), found


def test_what_must_be_there() -> None:
    found = parsed('id = "engine-gone"\n')
    assert isinstance(found, list)
    for key in ("title", "cause", "kind", "topic", "zh.title", "match", "fix"):
        assert any(f": {key}: " in told for told in found), (key, found)
    found = parsed(WHOLE.replace("[[example]]", "[[near-miss]]").replace("line = 1\n", ""))
    assert isinstance(found, list)
    assert any("needs an [[example]]" in told for told in found)


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "shipped", lambda _: tmp_path / "none")
    (tmp_path / "none").mkdir()
    (tmp_path / "engine-gone.toml").write_text(WHOLE.replace('follows = ["other"]', 'follows = ["absent"]'))
    with pytest.raises(RecordError, match="no symptom 'absent'"):
        load_symptoms([tmp_path])
    (tmp_path / "engine-gone.toml").write_text(WHOLE.replace('follows = ["other"]\n', ""))
    assert [found.id for found in load_symptoms([tmp_path])] == ["engine-gone"]
    (tmp_path / "other.toml").write_text("id = 3\n")
    (tmp_path / "third.toml").write_text("not toml")
    with pytest.raises(RecordError) as caught:
        load_symptoms([tmp_path])
    assert "other.toml" in str(caught.value)
    assert "third.toml" in str(caught.value)


@pytest.fixture
def kept_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UKY_PATCH_CACHE", str(tmp_path / "cache"))
    symptom_parse._shipped_symptoms.cache_clear()
    return tmp_path / "cache/symptoms"


def _again(monkeypatch: pytest.MonkeyPatch) -> tuple[Symptom, ...]:
    """What another process gets that may not parse anything."""
    symptom_parse._shipped_symptoms.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(symptom_parse, "parse_symptom", lambda *_: pytest.fail("parsed again"))
        return load_symptoms()


def test_the_shipped_symptoms_are_parsed_once(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_symptoms()
    assert _again(monkeypatch) == first
    assert len(list(kept_folder.iterdir())) == 1


def test_a_damaged_cache_and_one_that_cannot_be_written_are_no_error(
    kept_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_symptoms()
    (place,) = kept_folder.iterdir()
    place.write_bytes(b"\x80\x05cos\nsystem\n.")
    symptom_parse._shipped_symptoms.cache_clear()
    assert load_symptoms() == first
    for odd in ("/dev/null", "~nobody-of-that-name/x"):
        monkeypatch.setenv("UKY_PATCH_CACHE", odd)
        symptom_parse._shipped_symptoms.cache_clear()
        assert load_symptoms() == first


def test_a_symptom_of_the_fork_s_own_replaces_a_kept_one(kept_folder: Path, tmp_path: Path) -> None:
    shipped_one = load_symptoms()[0]
    assert shipped_one.path is not None
    (tmp_path / "own").mkdir()
    text = shipped_one.path.read_text(encoding="utf-8").replace(shipped_one.title, "Ours")
    (tmp_path / "own" / shipped_one.path.name).write_text(text, encoding="utf-8")
    assert next(one for one in load_symptoms([tmp_path / "own"]) if one.id == shipped_one.id).title == "Ours"
