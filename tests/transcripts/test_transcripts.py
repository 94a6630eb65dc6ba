"""The documents show what the commands print; `python -m tests.transcripts --write` writes the sessions anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.documents import DOCUMENTS, ROOT, Session, anew, merged, name_of, sessions
from tests.transcripts.picture import PICTURES, drawn
from tests.transcripts.scenes import SCENES, stage

SESSIONS = [session for file in DOCUMENTS for session in sessions(file)]


def _lanes(session: Session) -> list[pytest.MarkDecorator]:
    # The twin's sessions are the same commands in Chinese; they run in the slow lane.
    lane = SCENES[session.scene].lane or ("slow" if ".zh-CN." in session.place else None)
    return [pytest.mark.network, *([getattr(pytest.mark, lane)] if lane else [])]


RUN = [
    pytest.param(session, id=session.place, marks=_lanes(session)) for session in SESSIONS if session.scene in SCENES
]


@pytest.mark.parametrize("session", RUN)
def test_a_session_is_what_its_commands_print(session: Session, tmp_path: Path) -> None:
    with stage(session, tmp_path) as run:
        assert "\n".join(session.lines) == "\n".join(anew(session, run))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.place)
def test_every_session_names_the_scene_in_which_it_is_run(session: Session) -> None:
    assert session.scene, f"{session.place}: write <!-- session: SCENE --> above it, or leave the output out"
    assert session.scene in SCENES


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_shows_the_session_of_its_document(picture: str) -> None:
    assert (ROOT / picture).read_text(encoding="utf-8") == drawn(picture), "make docs-sessions"


@pytest.mark.parametrize("file", DOCUMENTS, ids=name_of)
def test_both_languages_show_the_same_sessions(file: Path) -> None:
    twin = file.with_name(f"{file.stem}.zh-CN.md")
    if twin.exists():
        shown = [[(one.scene, one.commands) for one in sessions(each)] for each in (file, twin)]
        assert shown[0] == shown[1]


def test_what_is_left_out_is_left_out_again() -> None:
    shown = ["head", "  …", "a  0.3 s", "b", "  …", "end"]
    assert merged(shown, ["head", "x", "y", "a  0.7 s", "b", "z", "end"]) == shown
    changed = ["head", "x", "a  0.7 s", "c", "z", "z", "end"]
    assert merged(shown, changed) == ["head", "  …", "a  0.3 s", "c", "  …", "end"]
    assert merged(["a", "b"], ["a", "new", "b"]) == ["a", "new", "b"]
    assert merged([], ["all"]) == ["all"]
