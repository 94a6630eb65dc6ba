"""README and docs show what the commands print; `python -m tests.transcripts --write` writes the sessions anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.transcripts.documents import DOCUMENTS, Session, anew, merged, sessions
from tests.transcripts.scenes import SCENES, stage

SESSIONS = [session for file in DOCUMENTS for session in sessions(file)]


def _lanes(session: Session) -> list[pytest.MarkDecorator]:
    lane = SCENES[session.told].lane
    return [pytest.mark.network, *([getattr(pytest.mark, lane)] if lane else [])]


RUN = [
    pytest.param(session, id=session.place, marks=_lanes(session))
    for session in SESSIONS
    if session.kind == "session" and session.told in SCENES
]


@pytest.mark.parametrize("session", RUN)
def test_a_session_is_what_its_commands_print(session: Session, tmp_path: Path) -> None:
    with stage(session, tmp_path) as run:
        assert "\n".join(session.lines) == "\n".join(anew(session, run))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.place)
def test_every_session_names_its_scene_or_says_when_and_where_it_was_seen(session: Session) -> None:
    if session.kind == "illustration":
        assert re.match(r"20\d\d-\d\d-\d\d, \S", session.told)
    else:
        assert session.kind == "session", f"{session.place}: write <!-- session: SCENE --> above it"
        assert session.told in SCENES


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_both_languages_show_the_same_sessions(file: Path) -> None:
    twin = file.with_name(f"{file.stem}.zh-CN.md")
    if twin.exists():
        told = [[(one.kind, one.told, one.commands) for one in sessions(each)] for each in (file, twin)]
        assert told[0] == told[1]


def test_what_is_left_out_is_left_out_again() -> None:
    shown = ["head", "  …", "a  0.3 s", "b", "  …", "end"]
    assert merged(shown, ["head", "x", "y", "a  0.7 s", "b", "z", "end"]) == shown
    changed = ["head", "x", "a  0.7 s", "c", "z", "z", "end"]
    assert merged(shown, changed) == ["head", "  …", "a  0.3 s", "c", "  …", "end"]
    assert merged(["a", "b"], ["a", "new", "b"]) == ["a", "new", "b"]
    assert merged([], ["all"]) == ["all"]
