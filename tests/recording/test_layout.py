"""A fork that a formatter went over: what counts as its edits is what it changed, and not how it is laid out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patcher.packages.releases import wheel
from patcher.recording.hunks import line_hunks
from patcher.recording.proof import edits_of_file
from patcher.rewrite.layout import Relaid, relaid
from patcher.rewrite.marker import split
from patcher.rewrite.texts import same

BASE = '''\
import os

os.environ['NCCL_DEBUG'] = 'WARN'  # quiet


class Server:

    def start(self, port, nodes):
        """Start it.\x20

          port: where it listens
        """
        if port: return None
        x = 1; y = 2
        # where it runs
        for node in nodes:
            launch(node, port, self.options, timeout=600)
            wait(node, port, self.options, self.patience)
        else:
            stop('all')
        return {'port': port,
                'nodes': nodes}
'''
FORK = '''\
import os

os.environ["NCCL_DEBUG"] = "WARN"  # quiet


class Server:
    def start(self, port, nodes):
        """Start it.

        port: where it listens
        """
        if port:
            return None
        x = 1
        y = 2
        # where it runs
        for node in nodes:
            launch(
                node, port, self.options, timeout=900
            )
            wait(
                node, port, self.options, self.patience
            )
        else:
            stop("all")
        return {"port": port, "nodes": nodes}
'''


def formatted(text: str, *, line_length: int = 60) -> str:
    settings = ["--line-length", str(line_length), "--config", 'format.quote-style="single"']
    command = [sys.executable, "-m", "ruff", "format", "--isolated", *settings, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_what_was_changed_is_all_that_is_left() -> None:
    found = relaid(BASE, FORK)
    edits = edits_of_file("verl/server.py", BASE, found.text)
    assert not edits.refused
    assert [one.edits[0].about for one in edits.made if one.specific] == [edits.made[0].edits[0].about]
    assert "900" in "".join(split(found.text)[slice(*edits.made[0].hunk.new)])
    assert same(found.text, FORK, ".py")


def test_each_line_knows_its_line_in_the_fork() -> None:
    found = relaid(BASE, FORK)
    lines = split(found.text)
    assert len(found.places) == len(lines)
    assert list(found.places) == sorted(found.places)
    changed = next(index for index, line in enumerate(lines) if "900" in line)
    assert "900" in split(FORK)[found.places[changed]]


def test_white_space_behind_a_comment_is_layout() -> None:
    assert same("start(1)  # one \n", "start( 1 )  # one\n", ".py")
    assert relaid("start(1)  # one\n", "start( 1 )  # one \n").text == "start(1)  # one\n"


def test_a_changed_comment_stays_the_forks() -> None:
    found = relaid("start(1)  # one\nstop( 1 )\n", "start( 1 )  # two\nstop(1)\n")
    assert found.text == "start( 1 )  # two\nstop( 1 )\n"


@pytest.mark.parametrize("text", ["def broken(:\n", "", "x = 1", "\n\n", "a; b\n", "if a: b\nelse: c\n"])
def test_any_text_is_taken(text: str) -> None:
    assert same(relaid(BASE, text).text, text)
    assert relaid(text, text) == Relaid.unchanged(text)


@pytest.mark.network
@pytest.mark.parametrize("name", ["ray_trainer.py", "core_algos.py", "reward.py"])
def test_a_release_that_a_formatter_went_over(name: str) -> None:
    base = Path(wheel("verl", "0.6.1") / "verl/trainer/ppo" / name).read_text()
    fork = formatted(base)
    assert fork != base
    found = relaid(base, fork)
    assert same(found.text, fork, ".py")
    lines = sum(hunk.new[1] - hunk.new[0] for hunk in line_hunks(split(base), split(fork)))
    left = sum(hunk.new[1] - hunk.new[0] for hunk in line_hunks(split(base), split(found.text)))
    assert left < lines / 20
