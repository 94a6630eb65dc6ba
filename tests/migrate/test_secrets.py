"""Secrets reach the job's process and nothing else: no file, no output, no process list, on either side."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.migrate import moving
from tests.migrate.cuts import WORDS
from tests.migrate.moving import Site, Told
from tests.migrate.test_end_to_end import job
from tests.remote.cutting import Fault, Line

pytestmark = [pytest.mark.network, pytest.mark.hosts]

TOKEN = "tok-9f31c77b"
KEY = "key-51d0aa2e"
PASSWORD = "pw-77e1bd04"
SECRETS = (TOKEN, KEY, PASSWORD)
TABLE = f"""\
[hosts.line]
script = "job.sh"
secrets = ["HF_TOKEN", "NOT_SET_TOKEN"]
[hosts.line.env]
WANDB_API_KEY = "{KEY}"
HTTPS_PROXY = "http://somebody:{PASSWORD}@proxy.example.org:3128"
PLAIN = "shown"
"""


@contextmanager
def watched() -> Iterator[set[str]]:
    """The command lines of all processes while it lasts, as far as they hold a secret."""
    found: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for process in Path("/proc").iterdir():
                try:
                    text = (process / "cmdline").read_bytes().decode(errors="replace")
                except OSError:
                    continue
                if any(secret in text for secret in SECRETS):
                    found.add(text)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def holding(root: Path) -> list[Path]:
    """Files below that hold a secret; the user's own table left out."""
    found = []
    for path in moving.walk(root):
        if path.is_file() and not path.is_symlink() and path.name != "uky-patch.toml":
            content = path.read_bytes()
            if any(secret.encode() in content for secret in SECRETS):
                found.append(path)
    return found


def test_secrets_reach_the_job_and_nothing_else(site: Site, line: Line) -> None:
    digest = 'printf "%s" "$1" | sha256sum'
    names = ("HF_TOKEN", "WANDB_API_KEY", "HTTPS_PROXY")
    job(site, f"sum() {{ {digest}; }}\n" + "".join(f'sum "${name}"\n' for name in names) + 'echo "PLAIN=$PLAIN"\n')
    (site.mover.tree / "uky-patch.toml").write_text(TABLE)
    with (site.mover.tree / ".git/info/exclude").open("a") as excluded:
        excluded.write("uky-patch.toml\n")
    site.mover.env["HF_TOKEN"] = TOKEN
    told: list[Told] = []
    with watched() as shown:
        for words in (("--dry-run",), WORDS, WORDS, ("--only", "environment"), ("--only", "job")):
            for fmt in ("json", "text"):
                line.set()
                told.append(site.mover.migrate("line", *words, fmt=fmt))
        line.set(Fault(after=60_000))
        told.append(site.mover.migrate("line", *WORDS))
    assert told[-2].code == 0, told[-2].text
    for one in told:
        assert not any(secret in one.text for secret in SECRETS), one.text
    assert shown == set()
    assert holding(site.machine.home) == []
    assert holding(site.mover.state) == []
    (log, *_) = (site.there / ".uky-patch/host/jobs").glob("*/log")
    proxy = f"http://somebody:{PASSWORD}@proxy.example.org:3128"
    for value in (TOKEN, KEY, proxy):
        assert hashlib.sha256(value.encode()).hexdigest() in log.read_text()
    assert "PLAIN=shown" in log.read_text()


def test_a_job_that_shows_a_secret_is_shown_without_it(site: Site, line: Line) -> None:
    job(site, 'echo "token is $HF_TOKEN"; echo "ValueError: bad token $HF_TOKEN"; exit 1\n')
    (site.mover.tree / "uky-patch.toml").write_text('[hosts.line]\nscript = "job.sh"\nsecrets = ["HF_TOKEN"]\n')
    site.mover.env["HF_TOKEN"] = TOKEN
    line.set()
    assert site.mover.migrate("line", *WORDS).code == 0
    for fmt in ("json", "text"):
        told = site.mover.migrate("line", "--only", "job", fmt=fmt)
        assert told.code == 1, told.text
        assert TOKEN not in told.text
    assert holding(site.mover.state) == []
