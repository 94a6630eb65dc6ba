"""Options that every command shares (`--root`, `--python`, `--assume`, `--patches`, `--format`), and the Session made
of them.

Each is taken before the command's name and after it: `uky-patch --root fork status` and `uky-patch status --root fork`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from patcher.errors import UsageError
from patcher.i18n import phrase
from patcher.session.session import Session

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


class GivenPath(click.Path):
    """A path that was given. An empty one is a mistake (`--root "$UNSET"`) and not the current folder."""

    def __init__(self, *, dir_okay: bool = True, file_okay: bool = True) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay, file_okay=file_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            raise UsageError(phrase("{option} is empty", option=_name(param)))
        return super().convert(value, param, ctx)


class Once(click.Option):
    """An option of one text ("" where it is not given) that is a mistake to give twice: `--verl 0.6.1 --verl 0.7.0`.

    It is declared with `multiple=True`: by itself click keeps the last one without a word.
    """

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        found = super().type_cast_value(ctx, value)
        if len(found) > 1:
            raise UsageError(phrase("{option} is given twice: {names}", option=_name(self), names=", ".join(found)))
        return found[0] if found else ""


_OPTIONS = (
    click.option("--root", metavar="DIR", type=GivenPath(), help="A fork's checkout, or any folder that holds verl/."),
    click.option("--python", metavar="EXE", type=GivenPath(), help="The interpreter whose packages count."),
    click.option(
        "--assume", metavar="PKG==VER", multiple=True, help="Take this version for installed; PKG==none for absent."
    ),
    click.option("--patches", metavar="DIR", multiple=True, type=GivenPath(), help="A further folder of records."),
    click.option("--format", "output", type=click.Choice(["text", "json"]), help="Text for people (default), or JSON."),
)


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to the group; what they say goes into the Session of the context."""

    @wraps(function)
    def wrapper(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in ("root", "python", "assume", "patches", "output")}
        context = click.get_current_context()
        context.obj = _merge(context.obj, **given)
        return function(*args, **values)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper


def with_session(function: Callable[Concatenate[Session, P], T]) -> Callable[P, T]:
    """Add the shared options to a command and hand it the Session as its first argument."""

    @wraps(function)
    def inner(*args: P.args, **values: P.kwargs) -> T:
        session = click.get_current_context().obj
        assert isinstance(session, Session)
        return function(session, *args, **values)

    return shared(inner)


def new_files(text: str) -> Callable[[F], F]:
    """The option by which files count that were added; `text` says which these are."""
    return click.option("--new", is_flag=True, help=text)


NEW_THERE = "Also files that are new there and that git does not ignore here."
"""Of a command about a host."""


def _name(param: click.Parameter | None) -> str:
    if param is None:
        return "a path"
    return param.opts[-1] if isinstance(param, click.Option) else param.make_metavar(click.Context(click.Command("")))


def _merge(
    session: Session | None,
    root: Path | None,
    python: Path | None,
    assume: tuple[str, ...],
    patches: tuple[Path, ...],
    output: str | None,
) -> Session:
    base = session or Session()
    return Session(
        root_option=root or base.root_option,
        python=python or base.python,
        assume={**base.assume, **dict(_pair(item) for item in assume)},
        folders=(*base.folders, *patches),
        output="json" if (output or base.output) == "json" else "text",
    )


def _pair(item: str) -> tuple[str, str]:
    name, separator, version = item.partition("==")
    if not (name.strip() and separator and version.strip()):
        raise UsageError(
            phrase("--assume {item!r} cannot be read", item=item),
            advice=phrase("Write it as PACKAGE==VERSION, for example vllm==0.20.2."),
        )
    return name.strip().lower().replace("_", "-"), version.strip()
