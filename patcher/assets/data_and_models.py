"""The entry of `data` and `model`: ask a host, or this machine, about data sets and models, copy a few rows, warm a
model up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from patcher.errors import HostError
from patcher.i18n import phrase
from patcher.profiles.layout import TRAIN, Layout, layout
from patcher.remote.channel import Answer
from patcher.session.hosts import ReachedHost, host_for_session, reach_host
from patcher.session.session import Session

OnRead = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes to read."""


def report_data(session: Session, host: str | None, file: str | None) -> Mapping[str, Any]:
    """Rows, columns and first row of a data set; of the host's train.parquet where `file` is None.

    Raises HostError where the host cannot be reached, or has no Python that reads data; RefusedError for a file that is
    not there or is no data set.
    """
    with reach_host(session, host_for_session(session, host)) as found:
        return _ask(found, "data-report", file).values


def write_tiny_data(
    session: Session, host: str | None, file: str | None, rows: int, to: str | None, *, force: bool
) -> Mapping[str, Any]:
    """Write the first rows of a data set to a file beside it. Raises as `report_data` does, and where `to` is taken."""
    with reach_host(session, host_for_session(session, host)) as found:
        return _ask(found, "data-tiny", file, rows=rows, to=to, force=force).values


def find_newest_model(session: Session, host: str | None, folder: str | None) -> Mapping[str, Any]:
    """The newest model in a folder; where the host's profile says, without one.

    Raises HostError where the host cannot be reached, RefusedError where there is no model.
    """
    with reach_host(session, host_for_session(session, host)) as found:
        return found.connection.channel.ask("model-newest", bases=_bases(found, folder)).values


def warm_model(session: Session, host: str | None, folder: str | None, on_read: OnRead) -> Mapping[str, Any]:
    """Read that model's weights into the page cache. Raises as `find_newest_model` does."""

    def on_event(event: Mapping[str, Any], _: bytes) -> None:
        on_read(event["read"], event["total"])

    with reach_host(session, host_for_session(session, host)) as found:
        return found.connection.channel.ask("model-warm", bases=_bases(found, folder), on_event=on_event).values


def _ask(found: ReachedHost, verb: str, file: str | None, **args: Any) -> Answer:
    if found.python is None:
        raise HostError(
            phrase("{host}: there is no Python to read data with", host=found.host.name),
            advice=phrase("Name one with --python: an interpreter or an environment."),
        )
    folder = str(Path.cwd()) if found.host.here and file is not None else _layout(found).data
    return found.connection.channel.ask(verb, file=file or TRAIN, folder=folder, python=found.python, **args)


def _bases(found: ReachedHost, folder: str | None) -> list[str]:
    if folder is None:
        where = _layout(found)
        return [where.paths["QWEN_VL_3B_BASE"], where.models]
    return [str(Path.cwd() / folder) if found.host.here and not folder.startswith("~") else folder]


def _layout(found: ReachedHost) -> Layout:
    return layout(found.host, found.survey.home, found.survey.folder.path)
