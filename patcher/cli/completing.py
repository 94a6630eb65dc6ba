"""Shell completion: what a shell may offer for an argument (ids of records and symptoms, names of hosts), and its
answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def record_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Ids of the shipped records, from their file names."""
    from patcher.records.load import record_files

    return [path.stem for path in record_files() if path.stem.startswith(incomplete)]


def symptom_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Ids of the shipped symptoms, from their file names."""
    from patcher.data import shipped

    return sorted(path.stem for path in shipped("symptoms").glob(f"{incomplete}*.toml"))


def host_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """The hosts of the fork's uky-patch.toml; none where there is no fork, or its file has mistakes."""
    from patcher.errors import UkyError
    from patcher.session.session import Session

    try:
        return [name for name in Session().config.hosts if name.startswith(incomplete)]
    except UkyError:
        return []


def complete(group: click.Group, variable: str) -> int:
    """Answer a shell that asks what may come next, or for its script; what it asks is in `variable`.

    Raises UsageError for what cannot be asked.
    """
    import os

    from click.shell_completion import shell_complete

    from patcher.errors import ExitCode, UsageError
    from patcher.i18n import phrase

    asked = os.environ[variable]
    if shell_complete(group, {}, "uky-patch", variable, asked) != 0:
        raise UsageError(phrase("{variable}={value} cannot be answered", variable=variable, value=asked))
    return ExitCode.CLEAN
