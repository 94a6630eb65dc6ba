"""Events of the driver -> nodes, and sentences across."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from patcher.checks import Check
from patcher.cluster.model import facts_of, failed_node, node_of, replies_of
from patcher.errors import UsageError
from patcher.i18n import Phrases, phrase, show
from patcher.i18n.codec import decode, encode
from patcher.remote.agent import frames
from patcher.remote.channel import RefusedError

ASKED = {
    "id": "ab12",
    "label": "n1",
    "name": "box",
    "address": "10.0.0.2",
    "head": False,
    "resources": {"CPU": 8.0, "GPU": 2.0},
    "added": True,
}
ANSWER: dict[str, Any] = {
    "hostname": "inside",
    "root": "/fork",
    "imported": None,
    "python": {"version": "3.11.7", "executable": "/env/bin/python"},
    "variables": {"NCCL_DEBUG": "WARN"},
    "gpus": [{"name": "H200", "memory": 1, "driver": "580.1"}] * 2,
    "disks": {"tree": {"free": 5, "size": 9}, "tmp": None},
    "seconds": 1.5,
    "tree": {
        "contents": {"verl/a.py": "12"},
        "identity": {"boot": "k", "device": 1, "inode": 2, "born": 3, "kind": "nfs4"},
    },
}


def answer(*messages: dict[str, Any], failed: str = "", python: str = "3.12.1") -> dict[str, Any]:
    """The driver's event for a node that said this."""
    said = base64.b64encode(b"".join(frames.head(message, 0) for message in messages)).decode()
    return {"event": "answer", "answers": said, "failed": failed, "python": python, "clock": [0.5, 0.01]}


def test_an_answer() -> None:
    found, (reply,) = replies_of(node_of(ASKED), answer({"id": 0, "result": ANSWER}), ["node_look"])
    assert (found.state, found.label, found.hostname, found.gpus, found.added) == ("answered", "n1", "box", 2, True)
    assert found.clock is not None
    assert (found.clock.ahead, found.clock.uncertain) == (0.5, 0.01)
    there = facts_of(reply.answer().values)
    assert there.hostname == "inside"
    assert not there.failed
    assert there.files == {"verl/a.py": "12"}
    assert (there.gpus, there.driver) == (("H200", "H200"), "580.1")
    assert {name: room.free for name, room in there.disks.items()} == {"tree": 5}
    assert there.identity is not None
    assert there.identity.kind == "nfs4"


def test_an_answer_without_a_usable_tree_has_its_reason_in_both_languages() -> None:
    error = UsageError(phrase("no interpreter in {path}", path="/x"), cause="there is no such file", advice="name one")
    told = {name: ANSWER[name] for name in ("hostname", "root", "imported", "python", "variables", "gpus", "disks")}
    said = {"title": encode(error.title), "cause": encode(error.cause), "advice": encode(error.advice)}
    there = facts_of({**told, "seconds": 0.1, "error": said})
    assert there.failed
    assert str(there.error) == "no interpreter in /x; there is no such file"
    assert show(there.error, "zh") != str(there.error)
    assert str(there.fix) == "name one"
    assert there.files == {}


@pytest.mark.parametrize(
    ("why", "state"), [("died", "died"), ("late", "late"), ("failed", "failed"), ("something new", "failed")]
)
def test_a_lost_one(why: str, state: str) -> None:
    found = failed_node(node_of(ASKED), {"event": "lost", "id": "ab12", "why": why, "text": "its reason"})
    assert (found.state, str(found.detail), found.facts) == (state, "its reason", None)


@pytest.mark.parametrize(
    ("python", "crashed", "told"),
    [
        ("3.9.18", "SyntaxError: x", "its workers run Python 3.9.18; 3.10 or later is needed"),
        ("3.12.1", "Traceback\n  File\nKeyError: 'x'", "KeyError: 'x'"),
    ],
)
def test_a_crash(python: str, crashed: str, told: str) -> None:
    for event in (answer(failed=crashed, python=python), answer({"id": 0, "bug": crashed}, python=python)):
        found, replies = replies_of(node_of(ASKED), event, ["node_look"])
        assert (found.state, str(found.detail), replies) == ("failed", told, ())


def test_events_come_before_their_answer_and_a_refusal_is_an_error() -> None:
    refusal = {"kind": "TreeError", "title": encode(phrase("{path}: locked", path="/x")), "cause": None, "advice": None}
    messages = [{"id": 0, "event": {"n": 1}}, {"id": 0, "result": {"n": 2}}, {"id": 1, "refusal": refusal}]
    _, (first, second) = replies_of(node_of(ASKED), answer(*messages), ["preflight", "node_commit"])
    seen: list[Any] = []
    assert first.answer(lambda event, _: seen.append(event))["n"] == 2
    assert seen == [{"n": 1}]
    with pytest.raises(RefusedError, match="/x: locked"):
        second.answer()


def test_sentences_cross_whole() -> None:
    inner = phrase("not installed: {names}", names="torch")
    sentence = phrase("{nodes}: {files}", nodes="n1", files=Phrases((inner, "as it is", "")))
    back = decode(encode(sentence))
    assert str(back) == str(sentence) == "n1: not installed: torch; as it is"
    assert show(back, "zh") == show(sentence, "zh")
    check = Check("x", "env", "fail", 0.5, inner, "mend it")
    assert Check.decode(check.encode()) == check
