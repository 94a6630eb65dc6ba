"""What a package passes to methods of a name, by the text of its calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.analysis.meaning import Universe
from patcher.analysis.symbols import Class
from patcher.analysis.symbols.text import Text

_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Passed:
    """`keywords` that some call passes, `most` positional arguments; `open`: some call passes `*` or `**`.

    `foreign` are the keywords of calls on anything but `self`.
    """

    keywords: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    most: int = 0
    open: bool = False

    def by_keyword(self, name: str) -> bool:
        return name in self.keywords

    def reaches(self, index: int | None, name: str) -> bool:
        """Whether some call gives the parameter a value, by its place or its name."""
        return name in self.keywords or (index is not None and index < self.most)

    def from_outside(self, index: int | None, name: str) -> bool:
        """The same of calls that are not a class's own on `self`, as far as they pass it by name."""
        return name in self.foreign or (index is not None and index < self.most)


def passed(universe: Universe, module: str, name: str) -> Passed:
    """What the package of `module` passes wherever it calls `….name(…)`."""
    key = ("passed", module.partition(".")[0], name)
    return universe.once(key, lambda: _search(universe.symbols(module).text, name), Passed())


def always_passed(universe: Universe, owner: Class, method: str, name: str) -> bool:
    """Whether whoever knows the class and calls its method gives it the parameter, by name and as something but False.

    A method that is handed on uncalled may be called without.
    """
    text = universe.symbols(owner.module).text
    knowing = {mention.module for mention in text.mentions(owner.qualname)} - {owner.module}
    asked = False
    for mention in text.mentions(method):
        before = text.before(mention)
        if mention.module not in knowing or not before.endswith(b".") or before.lstrip().startswith(b"#"):
            continue
        call = _parsed(text.after(mention, method, _LONGEST))
        given = {word.arg: word.value for word in call.keywords} if call is not None else {}
        value = given.get(name)
        if value is None or (isinstance(value, ast.Constant) and value.value is False):
            return False
        asked = True
    return asked


def _search(text: Text, name: str) -> Passed:
    keywords: set[str] = set()
    foreign: set[str] = set()
    most, open_ = 0, False
    for mention in text.mentions(name):
        if not text.before(mention).rstrip().endswith(b".") or text.before(mention).lstrip().startswith(b"#"):
            continue
        call = _parsed(text.after(mention, name, _LONGEST))
        if call is None:
            continue
        words = {word.arg for word in call.keywords if word.arg}
        keywords |= words
        foreign |= set() if text.before(mention).endswith(b"self.") else words
        most = max(most, sum(1 for one in call.args if not isinstance(one, ast.Starred)))
        open_ = open_ or any(word.arg is None for word in call.keywords)
    return Passed(frozenset(keywords), frozenset(foreign), most, open_)


def _parsed(after: bytes) -> ast.Call | None:
    """The call whose arguments begin the text; None if it begins with anything else."""
    if not after.startswith(b"("):
        return None
    depth = 0
    for index, byte in enumerate(after):
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
            if depth == 0:
                try:
                    node = ast.parse(b"f" + after[: index + 1], mode="eval").body
                except (SyntaxError, ValueError):
                    return None
                return node if isinstance(node, ast.Call) else None
    return None
