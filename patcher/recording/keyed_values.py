"""Lines that differ in YAML, TOML, shell scripts and lists of requirements -> edits of values and requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from patcher.recording.hunks import Hunk
from patcher.rewrite.edits import Edit, SetRequirement, SetValue
from patcher.rewrite.keyed import TOML, YAML, Form, UnreadableValueError
from patcher.rewrite.marker import split
from patcher.rewrite.outcome import EOL
from patcher.rewrite.requirements import requirements_form
from patcher.rewrite.values import form_of

_VALUES = re.compile(r"\.(ya?ml|toml|sh|bash)$")
_REQUIREMENTS = re.compile(r"(^|/)(requirements[\w.-]*\.(txt|in)|setup\.py|pyproject\.toml)$")


def edits_for_lines(file: str, base: str, fork: str, hunk: Hunk) -> Iterator[tuple[Edit, ...]]:
    """The ways to say a hunk as values of keys; whether they do is for `patcher.recording.proof` to see."""
    try:
        if _REQUIREMENTS.search(file) and (found := _requirements(file, base, fork, hunk)):
            yield found
        if _VALUES.search(file) and (found := _values(file, form_of(file), base, fork, hunk)):
            yield found
    except UnreadableValueError:
        return


def _found(form: Form, text: str, lines: tuple[int, int]) -> dict[str, str]:
    """The keys whose values begin on these lines of a text, with the values."""
    starts = [0, *(match.end() for match in EOL.finditer(text)), len(text)]
    first, last = starts[lines[0]], starts[min(lines[1], len(starts) - 1)]
    return {key: spot.value for key, spot in form.spots(text) if spot and first <= spot.start < last}


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The keys of `old` that have another value in `new`, and then those that are not in it."""
    return [key for key in sorted(old, key=lambda key: key not in new) if new.get(key) != old[key]]


def _values(file: str, form: Form, base: str, fork: str, hunk: Hunk) -> tuple[Edit, ...]:
    old, new = _found(form, base, hunk.old), _found(form, fork, hunk.new)
    found: list[Edit] = [SetValue(file=file, key=key, old=old[key], new=new.get(key)) for key in _changed(old, new)]
    dotted = form is YAML or form is TOML
    keys = form.keys(fork) if any(key not in old for key in new) else []
    comments = _comments(split(fork)[slice(*hunk.new)]) if dotted else {}
    for key in new:
        if key in old:
            continue
        parent, _, last = key.rpartition(".") if dotted else ("", "", key)
        before = keys[: keys.index(key)]
        beside = [one for one in before if not dotted or one.rpartition(".")[0] == parent]
        behind = (beside[-1].rpartition(".")[2] if dotted else beside[-1]) if beside else None
        found.append(SetValue(file=file, key=key, new=new[key], behind=behind, comment=comments.get(last)))
    return tuple(found)


def _comments(lines: Sequence[str]) -> dict[str, str]:
    """The comments right above each key of some lines, by the last part of the key."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            above.append(text)
        elif text:
            if above:
                found[re.split(r"[:=]", text)[0].strip()] = "\n".join(above)
            above = []
    return found


def _requirements(file: str, base: str, fork: str, hunk: Hunk) -> tuple[Edit, ...]:
    form = requirements_form(file)
    old, new = _found(form, base, hunk.old), _found(form, fork, hunk.new)
    found: list[Edit] = [SetRequirement(file=file, old=old[key], new=new.get(key)) for key in _changed(old, new)]
    keys = form.keys(fork)
    for key, value in new.items():
        if key not in old:
            index = keys.index(key)
            last = index == len(keys) - 1 and not file.endswith((".py", ".toml"))
            behind = form.find(fork, keys[index - 1])[0].value if index and not last else None
            found.append(SetRequirement(file=file, new=value, behind=behind))
    return tuple(found)
