"""The web server of verl's rollout on the uvicorn that is installed: closed at once as released, open after `apply`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.lane.running import apply, copied

pytestmark = [pytest.mark.runtime, pytest.mark.network]

ASK = """
import asyncio, importlib.util, sys, urllib.error, urllib.request
from fastapi import FastAPI

spec = importlib.util.spec_from_file_location("utils", sys.argv[1])
utils = importlib.util.module_from_spec(spec)
spec.loader.exec_module(utils)
app = FastAPI()
app.get("/")(lambda: "served")

def asked(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read().decode()
    except urllib.error.URLError as error:
        return str(error.reason)

async def main():
    port, _ = await utils.run_unvicorn(app, None, "127.0.0.1")
    print("ANSWER", await asyncio.to_thread(asked, port))

asyncio.run(main())
"""


def answer(python: Path, tree: Path) -> str:
    utils = tree / "verl/workers/rollout/utils.py"
    done = subprocess.run([python, "-c", ASK, utils], capture_output=True, text=True, timeout=120, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert told, done.stderr
    return told[0].removeprefix("ANSWER ")


def test_it_listens_once_the_record_is_applied(python: Callable[[str], Path], tmp_path: Path) -> None:
    interpreter = python("0.28.0")
    assert "refused" in answer(interpreter, copied("0.7.0", tmp_path / "untouched"))
    tree, _ = apply("0.7.0", "0.28.0", interpreter, tmp_path)
    assert answer(interpreter, tree) == '"served"'
