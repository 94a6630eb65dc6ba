"""The demo's steps as they run, for people and for programs."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from patcher.demo import ROUND, Done, fingerprint, options, scratch, take
from patcher.errors import ExitCode
from patcher.i18n import language, phrase
from patcher.report.commands import options_shown_above
from patcher.terminal.answers import show_json
from patcher.terminal.document import Output
from patcher.terminal.printing import say
from patcher.terminal.progress import progress
from patcher.terminal.sequences import style


def show_demo(verl: str, vllm: str, keep: Path | None, *, output: Output) -> int:
    """Go the round, printing each command above its output. The exit code is 0 if every step was in order."""
    with scratch(verl, keep, progress) as root:
        before = fingerprint(root)
        if output == "text":
            _introduce(verl, vllm, root)
        done: list[Done] = []
        outputs: list[Any] = []
        for step in ROUND:
            if output == "text":
                command = style(f"$ uky-patch {' '.join(step.arguments)}", bold=True)
                say("", f"{command}    # {step.shows.render(language())}")
            arguments = ["--root", str(root), "--python", sys.executable, *options(vllm), *step.arguments]
            done.append(take(step, root, partial(_run, arguments, output, outputs)))
            if not done[-1].in_order:
                break
        restored = fingerprint(root) == before
        if output == "json":
            show_json(_as_json(verl, vllm, root, done, outputs, restored))
        else:
            _conclude(done, restored, root)
    last = done[-1]
    if not last.in_order:
        return last.exit_code or ExitCode.FINDINGS
    return ExitCode.CLEAN if restored else ExitCode.FINDINGS


def _run(arguments: list[str], output: str, outputs: list[Any]) -> int:
    """Run a command line as a user's program would, and read the object that it prints."""
    from patcher.cli.app import run

    if output == "text":
        with options_shown_above():
            return run(arguments)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = run(["--format", "json", *arguments])
    outputs.append(json.loads(text.getvalue()) if text.getvalue() else None)
    return code


def _introduce(verl: str, vllm: str, root: Path) -> None:
    text = phrase("verl {verl}, fetched and unpacked to {root}", verl=verl, root=root)
    given = phrase("each command is given: {options}", options=" ".join(options(vllm)))
    say(text, given)


def _conclude(done: list[Done], restored: bool, root: Path) -> None:
    tongue = language()
    files = sum(path.is_file() for path in root.rglob("*"))
    if not done[-1].in_order:
        name = " ".join(done[-1].step.arguments)
        text = phrase("stopped: `{command}` did not end as it should", command=f"uky-patch {name}")
    elif restored:
        text = phrase("all {count} files are as released, byte for byte, and nothing is left beside them", count=files)
    else:
        text = phrase("the tree is not as released: this is a bug")
    seconds = f"{sum(item.seconds for item in done):.1f}"
    say("", f"{text.render(tongue)} ({phrase('{seconds} s', seconds=seconds).render(tongue)})")
    if restored:
        say(phrase("On a fork of yours: cd to it, and: uky-patch status"))


def _as_json(verl: str, vllm: str, root: Path, done: list[Done], outputs: list[Any], restored: bool) -> dict[str, Any]:
    steps = [
        {
            "command": " ".join(item.step.arguments),
            "exit_code": int(item.exit_code),
            "status": "ok" if item.in_order else "fail",
            "seconds": round(item.seconds, 4),
            "output": output,
        }
        for item, output in zip(done, outputs, strict=True)
    ]
    return {"root": str(root), "verl": verl, "vllm": vllm, "steps": steps, "restored": restored}
