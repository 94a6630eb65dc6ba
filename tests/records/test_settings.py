"""Settings are parsed as strictly as patches, and the shipped ones are in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from patcher.errors import RecordError
from patcher.records.settings import Setting, load_settings, parse_setting

GOOD = """\
id = "one"
variable = "VLLM_ONE"
value = "1"
profiles = ["standard"]
reader = "vllm"
reason = "why"

[when]
vllm = "<0.15"
"""

OVERRIDE = """
[[override]]
key = "a.b"
value = "x"
profiles = ["debug"]
when = { vllm = ">=2", absent = ["flash-attn"] }
"""

ALONE = """\
id = "one"
reader = "verl"
reason = "why"
"""

MISTAKES = {
    "unknown key": (GOOD.replace("\n\n[when]", '\ninsted = "x"\n\n[when]'), 7, "insted", "did you mean instead"),
    "id is not the file's name": (GOOD.replace('"one"', '"two"'), 1, "id", "'one'"),
    "reader": (GOOD.replace('"vllm"\nreason', '"vlm"\nreason'), 5, "reader", "vllm, torch, triton"),
    "variable": (GOOD.replace("VLLM_ONE", "VLLM ONE; rm"), 2, "variable", "no name"),
    "profile": (GOOD.replace("standard", "fast"), 4, "profiles", "fast-load"),
    "value without a profile": (GOOD.replace('profiles = ["standard"]\n', ""), 1, "profiles", "goes with a value"),
    "specifier": (GOOD.replace("<0.15", "0.15"), 9, "when.vllm", "no version specifier"),
    "distribution": (GOOD.replace("\nvllm =", "\nvlm ="), 9, "when.vlm", "did you mean vllm"),
    "read by nothing, and set": (GOOD.replace('reader = "vllm"', 'reader = "nothing"'), 5, "reader", "leaves neither"),
    "no reason": (GOOD.replace('reason = "why"\n', ""), 1, "reason", "is missing"),
    "zh with a stranger": (GOOD + '\n[zh]\nreason = "x"\ntitle = "y"\n', 13, "zh.title", "unknown key"),
    "no TOML": ("id = ", 0, "", "is no TOML"),
    "override: key": (GOOD + OVERRIDE.replace("a.b", "a b"), 12, "override[1].key", "no key"),
    "override: sign in the key": (GOOD + OVERRIDE.replace("a.b", "+a.b"), 12, "override[1].key", "no key"),
    "override: value": (GOOD + OVERRIDE.replace('"x"', '"$(id)"'), 13, "override[1].value", "{ray_cpus}"),
    "override: place": (GOOD + OVERRIDE.replace('"x"', '"{root}"'), 13, "override[1].value", "{ray_cpus}"),
    "override: no profile": (
        GOOD + OVERRIDE.replace('profiles = ["debug"]\n', ""),
        11,
        "override[1].profiles",
        "missing",
    ),
    "override: stranger": (GOOD + OVERRIDE + "sign = '+'\n", 16, "override[1].sign", "unknown key"),
    "override: specifier": (GOOD + OVERRIDE.replace(">=2", "2"), 15, "override[1].when.vllm", "no version specifier"),
    "value without a variable": (
        ALONE + 'value = "1"\nprofiles = ["debug"]\n' + OVERRIDE,
        4,
        "value",
        "goes with a variable",
    ),
}


def test_a_good_setting() -> None:
    setting = parse_setting(GOOD, Path("one.toml"))
    assert isinstance(setting, Setting)
    assert (setting.variable, setting.value, setting.when) == ("VLLM_ONE", "1", {"vllm": "<0.15"})


def test_overrides_stand_beside_a_variable_or_alone() -> None:
    for text in (GOOD + OVERRIDE, ALONE + OVERRIDE):
        setting = parse_setting(text, Path("one.toml"))
        assert isinstance(setting, Setting), setting
        (item,) = setting.overrides
        assert (item.key, item.value, item.add, item.profiles) == ("a.b", "x", False, ("debug",))
        assert (item.when, item.absent) == ({"vllm": ">=2"}, ("flash-attn",))
    assert setting.variable == ""


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_names_line_key_and_what_is_allowed(name: str) -> None:
    text, line, key, part = MISTAKES[name]
    mistakes = parse_setting(text, Path("one.toml"))
    assert not isinstance(mistakes, Setting)
    (mistake,) = mistakes
    assert (mistake.line, mistake.key) == (line, key)
    assert part in str(mistake)


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(GOOD.replace("value", "vlaue"), encoding="utf-8")
    (tmp_path / "two.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        load_settings(tmp_path)
    assert "one.toml:3" in str(caught.value)
    assert "two.toml:1" in str(caught.value)


def test_every_shipped_setting_has_its_chinese() -> None:
    settings = load_settings()
    assert settings
    for setting in settings:
        assert setting.zh is not None, setting.id
        assert bool(setting.zh.instead) == bool(setting.reasons.instead), setting.id
