"""Jinja2 as profiles use it: sandboxed, no undefined names, and nothing is printed that a filter has not made safe."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from patcher.errors import RecordError
from patcher.i18n import phrase
from patcher.templating import environment

if TYPE_CHECKING:
    from jinja2 import Environment


class _Safe(str):
    """Text that a filter has made for its place."""

    __slots__ = ()


def fill(template: str, **values: object) -> str:
    """The text of `templates/<template>` with these values. Raises RecordError for a template that is wrong."""
    from jinja2 import TemplateError  # Takes 40 ms to import; it is needed only where something is rendered.

    try:
        return _environment().get_template(template).render(**values)
    except TemplateError as error:
        title = phrase("{file}: cannot be rendered", file=template)
        raise RecordError(title, cause=str(error)) from error


@lru_cache(maxsize=1)
def _environment() -> Environment:
    engine = environment(finalize=_checked)
    engine.filters |= FILTERS
    return engine


def _checked(value: object) -> object:
    if not isinstance(value, _Safe):
        raise TypeError(f"a template prints {value!r} without a filter that makes it safe")
    return value


def _name(text: str) -> _Safe:
    if not (text.isascii() and text.isidentifier()):
        raise ValueError(f"{text!r} is no name")
    return _Safe(text)


FILTERS: dict[str, Callable[[Any], str]] = {
    "literal": lambda value: _Safe(ascii(value) if not str(value).isprintable() else repr(value)),
    "shell": lambda text: _Safe(shlex.quote(text)),
    "comment": lambda text: _Safe("".join(c if c.isprintable() else "?" for c in text)),
    "name": _name,
    "code": _Safe,
}
"""literal: as Python; shell: as one word of bash; comment: on one line; name: checked; code: our own source text."""
