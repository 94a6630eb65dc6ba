"""Pages: single files in English and Chinese that fetch nothing, and where they may be written."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from patcher import __version__
from patcher.data import shipped
from patcher.errors import UsageError, message_of
from patcher.i18n import Language, language, phrase, show
from patcher.templating import environment
from patcher.terminal.report_file import write_whole
from patcher.visible import visible
from patcher.worktree import files

if TYPE_CHECKING:
    from markupsafe import Markup

Both: TypeAlias = tuple[str, str]
"""A text in English and in Chinese."""


def both(text: object) -> Both:
    return show(text, "en"), show(text, "zh")


def place_of(file: Path) -> Path:
    """Where a page that was asked for goes, absolute. Nothing is replaced there but an earlier page.

    Raises:
        UsageError: its folder is not there, or there is something else under that name.
    """
    folder = file.parent.resolve()
    if not folder.is_dir():
        raise UsageError(
            phrase("--html {file}: there is no folder {folder}", file=file, folder=folder),
            advice=phrase("Make the folder first, or name a file in one that is there."),
        )
    place = folder / file.name
    if place.is_symlink():
        raise UsageError(
            phrase("--html {file} is a symlink, and nothing is written through one", file=file),
            advice=phrase("Name the file itself, or another one."),
        )
    try:
        text = files.read(place, files.DATA_BYTES)
    except FileNotFoundError:
        return place
    except OSError as error:
        raise UsageError(
            phrase("--html {file} cannot be replaced", file=file),
            cause=message_of(error),
            advice=phrase("Name another file."),
        ) from error
    if text and not (text[:15].lower() == b"<!doctype html>" and b"uky-patch" in text):
        raise UsageError(
            phrase("--html {file} is there already, and is no page of uky-patch", file=file),
            advice=phrase("Name another file, or move that one away."),
        )
    return place


def write_page(place: Path, text: str) -> None:
    """Write a page to where `place_of` says. Raises TreeError where that cannot be done."""
    write_whole(place, text)


def render_page(name: str, *, heading: Both, command: str, date: str, lang: Language | None = None, **data: Any) -> str:
    """The page of `templates/<name>.html.j2`, without secrets, with the control characters of others' text shown."""
    from markupsafe import Markup

    from patcher.secrets.redacting import here

    folder = shipped("templates")
    script = "".join(_inline(folder / f"{part}.js") for part in ("page", name))
    style = _inline(folder / "page.css")
    engine = environment(autoescape=True)
    engine.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "sort_keys": False}
    chosen = lang or language()
    engine.filters["t"] = _in_both
    engine.filters["plain"] = lambda pair: pair[1 if chosen == "zh" else 0]
    engine.globals["both"] = both
    shown = _visible(here().value({"heading": heading, "command": command, "date": date, **data}))
    return engine.get_template(f"{name}.html.j2").render(
        **shown,
        lang="zh-CN" if chosen == "zh" else "en",
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        version=__version__,
        script=Markup(script),  # noqa: S704
        style=Markup(style),  # noqa: S704
    )


def _in_both(pair: Both) -> Markup | str:
    """A text in the page: once where its languages agree, else twice, and the style sheet shows one of them."""
    from markupsafe import Markup

    if pair[0] == pair[1]:
        return pair[0]
    return Markup('<span class="en" lang="en">{}</span><span class="zh" lang="zh-CN">{}</span>').format(*pair)


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {(visible(name) if isinstance(name, str) else name): _visible(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_visible(inner) for inner in value])
    return value


def _inline(path: Path) -> str:
    """A script or style sheet that stands inside the page, where it must not end its own element."""
    text = path.read_text(encoding="utf-8")
    assert "</" not in text, path
    return text


def _hash(text: str) -> str:
    """What a content security policy calls an inline script or style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
