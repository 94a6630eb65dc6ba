"""Ask a verb where a job would run: on a compute node for a host with Slurm, whose login node has no GPUs.

The agent on the login node starts a second one on the compute node by srun, and passes request, events and answer on
(`patcher.remote.agent.relaying`). The protocol is that of `patcher.remote.channel`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from patcher.remote import agent_program
from patcher.remote.slurm import queue_of

if TYPE_CHECKING:
    from patcher.i18n import Phrase
    from patcher.remote.channel import Answer, OnEvent
    from patcher.remote.connection import Connection
    from patcher.remote.host import Host
    from patcher.remote.survey import Survey


def ask_where_it_trains(
    connection: Connection,
    host: Host,
    survey: Survey,
    verb: str,
    args: Mapping[str, Any],
    *,
    minutes: int,
    on_event: OnEvent,
    on_queue: Callable[[Phrase], object],
) -> Answer:
    """The answer of the machine that a job of this host would run on; the tree must be open on the connection.

    For a host with Slurm that is a compute node, which is asked for for `minutes` at most. While it is waited for,
    `on_queue` gets a sentence each time that Slurm's reason to wait changes.

    Raises what `Channel.ask` raises; RefusedError also of kind `slurm` where srun gives no node, and `shared` where the
    tree is not visible on the node.
    """
    if host.slurm is None or survey.interpreter is None:
        return connection.channel.ask(verb, on_event=on_event, **args)
    nonce = secrets.token_hex(8)

    def on_relayed(event: Mapping[str, Any], body: bytes) -> None:
        if "queue" in event:
            on_queue(queue_of(event["queue"]).sentence)
        else:
            on_event(event, body)

    return connection.channel.ask(
        "relay",
        body=agent_program.program(nonce),
        on_event=on_relayed,
        passed=verb,
        args=dict(args),
        nonce=nonce,
        options=[f"--time={minutes}", *host.slurm.check_options],
        command=[survey.interpreter.python, *agent_program.OPTIONS, agent_program.BOOTSTRAP],
    )
