"""The one way in which the shipped templates are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patcher.data import shipped

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(**options: Any) -> Environment:
    """Jinja over the folder `templates`: sandboxed, a name that is not given is an error. `options` are Jinja's own."""
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    settings: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True, **options}
    return SandboxedEnvironment(loader=FileSystemLoader(shipped("templates")), undefined=StrictUndefined, **settings)
