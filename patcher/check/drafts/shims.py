"""What a release says of a name that it is about to give up: by words, or by code that passes on to the new one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_INSTEAD = re.compile(
    r"(?:\buse|\bprefer|\bswitch(?:ing)? to|\bmigrate to|\brenamed(?: to)?|\bmoved to|\breplaced (?:with|by)"
    r"|\bin favou?r of|\bsuperseded by)\s+(?:the\s+)?(?:new\s+)?[`'\"]*([A-Za-z_][\w.]*)",
    re.IGNORECASE,
)
_NO_EFFECT = re.compile(r"\bno effect\b|\bignored\b|\bnot used\b|\bunused\b|\bno longer used\b", re.IGNORECASE)
_PARTS = re.compile(r"[._]")
_POLARITY = {
    "disable": False, "disabled": False, "no": False, "skip": False, "without": False, "not": False, "ignore": False,
    "exclude": False, "enable": True, "enabled": True, "use": True, "with": True, "include": True, "do": True,
    "allow": True, "forbid": False, "disallow": False,
}  # fmt: skip


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in a definition: docstrings, warnings, arguments of decorators; the parts of an f-string joined."""
    inside: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            inside |= {id(value) for value in part.values}
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in part.values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inside:
            yield part.value


def named_instead(node: ast.AST, old: str) -> tuple[str, ...]:
    """The names that the definition's own words give in place of `old`, last parts alone."""
    found: list[str] = []
    word = re.compile(rf"\b{re.escape(old)}\b")
    for call in _spoken(node):
        if word.search(call):
            found += [name.rstrip(".").rpartition(".")[2] for name in _INSTEAD.findall(call)]
    return tuple(dict.fromkeys(name for name in found if name and name != old))


def said_to_be_ignored(node: ast.AST, name: str) -> bool:
    """Whether the definition's words say that `name` has no effect."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(word.search(text) and _NO_EFFECT.search(text) for text in _spoken(node))


def _spoken(node: ast.AST) -> Iterator[str]:
    """What is said in one go: the texts of one call together, a docstring paragraph by paragraph."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            yield " ".join(texts(part))
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str):
            yield from re.split(r"\n\s*\n|\n(?=\s*\w+\s*(?:\([^)]*\))?:)", part.value.value)


def inverted(old: str, new: str) -> bool:
    """Whether two names of a flag say the opposite: `disable_x` and `enable_x`, `no_x` and `x`."""
    return _polarity(old) is not _polarity(new)


def same_stem(old: str, new: str) -> bool:
    """Whether two names are alike but for words of yes and no."""
    return _stem(old) == _stem(new) != ()


def _polarity(name: str) -> bool:
    answer = True
    for word in _PARTS.split(name.lower()):
        answer = answer is _POLARITY.get(word, True)
    return answer


def _stem(name: str) -> tuple[str, ...]:
    return tuple(word for word in _PARTS.split(name.lower()) if word and word not in _POLARITY)
