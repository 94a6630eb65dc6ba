"""Rendering of HTML pages: one self-contained file in English and Chinese, and the coloured diffs of Python code in it.

A page loads nothing and its content security policy names its script and style sheet by hash. Texts have their secrets
taken out and control characters written out before the template sees them; Jinja2 escapes HTML.
"""

from __future__ import annotations

import base64
import hashlib
import io
import keyword
import tokenize
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from patcher import __version__
from patcher.data import shipped
from patcher.i18n import Language, language, show
from patcher.templating import environment
from patcher.visible import visible

if TYPE_CHECKING:
    from markupsafe import Markup

Both: TypeAlias = tuple[str, str]
"""A text in English and in Chinese."""


def both(text: object) -> Both:
    """A phrase, or a text of the catalogue, in both languages."""
    return show(text, "en"), show(text, "zh")


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


Parts = tuple[tuple[str, str], ...]
"""Stretches of a line, each with a class of the style sheet: k keyword, s string, c comment, n number, "" none."""


def diff_lines(path: str, before: str, after: str) -> list[dict[str, Any]]:
    """The lines of the diff, each with `kind`, `sign` and `parts`; none where the texts are equal."""
    old, new = _split(before), _split(after)
    groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3))
    if not groups:
        return []
    found = [_line("head", "--- ", f"a/{path}"), _line("head", "+++ ", f"b/{path}")]
    coloured = _coloured(before), _coloured(after)
    for group in groups:
        first, last = group[0], group[-1]
        found.append(_line("hunk", "@@ ", f"-{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"))
        for what, begin, end, there, until in group:
            if what == "equal":
                found += [_code("", " ", coloured[0], old, at) for at in range(begin, end)]
                continue
            found += [_code("removed", "-", coloured[0], old, at) for at in range(begin, end)]
            found += [_code("added", "+", coloured[1], new, at) for at in range(there, until)]
    return found


def _split(text: str) -> list[str]:
    """Lines as Python counts them: a form feed ends none."""
    return text.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _line(kind: str, sign: str, text: str) -> dict[str, Any]:
    return {"kind": kind, "sign": sign, "parts": (("", text),)}


def _code(kind: str, sign: str, coloured: Sequence[Parts], lines: Sequence[str], at: int) -> dict[str, Any]:
    return {"kind": kind, "sign": sign, "parts": coloured[at] if at < len(coloured) else (("", lines[at]),)}


def _range(begin: int, end: int) -> str:
    """As `diff -u` writes it: `12`, `12,3`, and `11,0` for no lines after the eleventh."""
    count = end - begin
    return str(begin + 1) if count == 1 else f"{begin + (count > 0)},{count}"


@lru_cache(maxsize=32)
def _coloured(text: str) -> tuple[Parts, ...]:
    """Each line in parts. What cannot be read as Python is in one part from there on."""
    lines = _split(text)
    cuts: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    for kind, (row, column), (last, end) in _tokens(text):
        for at in range(row - 1, min(last, len(lines))):
            cuts[at].append((column if at == row - 1 else 0, end if at == last - 1 else len(lines[at]), kind))
    return tuple(tuple(_parts(line, marks)) for line, marks in zip(lines, cuts, strict=True))


def _parts(line: str, marks: Sequence[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    at = 0
    for begin, end, kind in marks:
        if at < begin:
            yield "", line[at:begin]
        if max(at, begin) < end:
            yield kind, line[max(at, begin) : end]
        at = max(at, end)
    if at < len(line) or not line:
        yield "", line[at:]


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    kinds = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "n"}
    kinds |= {  # The parts of an f-string, each a token from Python 3.12 on.
        number: "s" for number, name in tokenize.tok_name.items() if name.startswith("FSTRING")
    }
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(_split(text)) + "\n").readline):
            kind = kinds.get(token.type, "")
            if token.type == tokenize.NAME and keyword.iskeyword(token.string):
                kind = "k"
            if kind:
                yield kind, token.start, token.end
    except (tokenize.TokenError, SyntaxError):
        return
