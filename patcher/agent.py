"""The agent: the program that does this tool's work on the machine that trains, with nothing to install there.

Its sources are sent over the connection and run from memory (`patcher.remote.agent_program`), on this machine as on any
other: this module, each room's own `agent` package, and the rooms below them. All of it runs on the standard library of
Python 3.8 alone, and imports nothing else of `patcher`.
"""

from __future__ import annotations

import os
import signal

from patcher.remote.agent import frames
from patcher.remote.agent.environs import search
from patcher.remote.agent.serving import Server

VERBS: dict[str, str] = {
    "survey": "patcher.remote.agent.surveying:survey",
    "compare": "patcher.migrate.agent.comparing:compare",
    "prepare": "patcher.migrate.agent.receiving:prepare",
    "unpack": "patcher.migrate.agent.receiving:unpack",
    "discard": "patcher.migrate.agent.receiving:discard",
    "receive": "patcher.migrate.agent.receiving:receive",
    "list_edits": "patcher.migrate.agent.host_edits:list_edits",
    "read_files": "patcher.migrate.agent.host_edits:read_files",
    "list_stored": "patcher.migrate.agent.pruning:list_stored",
    "remove_stored": "patcher.migrate.agent.pruning:remove_stored",
    "sources": "patcher.remote.agent.sources:sources",
    "verify": "patcher.migrate.agent.verifying:verify",
    "begin": "patcher.remote.agent.place:begin",
    "relay": "patcher.remote.agent.relaying:relay",
    "write_files": "patcher.profiles.agent.write_files:write_files",
    "data-report": "patcher.assets.agent.datasets:report",
    "data-tiny": "patcher.assets.agent.datasets:tiny",
    "model-newest": "patcher.assets.agent.models:newest",
    "model-warm": "patcher.assets.agent.models:warm",
    "job_start": "patcher.jobs.agent.starting:start",
    "job_check": "patcher.jobs.agent.starting:check",
    "job_list": "patcher.jobs.agent.log_reading:jobs",
    "job_look": "patcher.jobs.agent.log_reading:look",
    "job_follow": "patcher.jobs.agent.log_reading:follow",
    "job_tail": "patcher.jobs.agent.log_reading:tail",
    "job_scan": "patcher.jobs.agent.log_reading:scan",
    "job_stop": "patcher.jobs.agent.stopping:stop",
    "job_keep": "patcher.jobs.agent.folder:keep_working_configuration",
    "job_log": "patcher.jobs.agent.log_reading:send_log",
    "bundle_state": "patcher.bundle.agent.run_state:run_state",
    "clean_look": "patcher.jobs.agent.cleaning:list_leftovers",
    "clean_do": "patcher.jobs.agent.cleaning:take_away",
    "stacks": "patcher.watch.agent.stacks:stacks",
    "pulse": "patcher.watch.agent.sampler:pulse",
    "preflight": "patcher.preflight.agent.stages:preflight",
}
"""Each verb and the function that answers it: `function(request) -> dict`. The protocol: `patcher.remote.channel`."""
FOLLOWING = {"survey": "compare"}
"""In a migration, a plan is made between these two."""


def main(nonce: str) -> None:
    """Greet, then serve on standard input and output, which are moved out of the way of everything else here.

    Ctrl-C and hang-ups that reach the whole process group do not end a request half done: the client's end does.
    """
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    _go_home()
    os.environ["PATH"] = search(os.environ.get("PATH", os.defpath))
    server = Server(source, sink, VERBS, FOLLOWING)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: server.hang_up())
    os.write(sink, frames.GREETING + nonce.encode("ascii") + b"\n")
    server.run()


def _go_home() -> None:
    """Hold no other folder: the one that the agent was started in may be removed, or its disk taken away."""
    for folder in (os.path.expanduser("~"), "/"):
        try:
            os.chdir(folder)
            return
        except OSError:
            continue
