"""An object that is refused because it is of another class than the one that is asked for, with both named:

`plan` must be an instance of `garden.plans.Plan`, got `<orchard.plans.TreePlan object at 0x7f00>`
"""

from __future__ import annotations

import re

from patcher.diagnose.exception_message import NAME
from patcher.i18n import Phrase, phrase

_CLASS = rf"{NAME}(?:\.{NAME})+"
_WANTED = re.compile(rf"\binstances? of (?:type |class |the class )?[`'\"<]*(?:class ')?(?P<name>{_CLASS})")
_GIVEN = re.compile(
    rf"<(?P<object>{_CLASS}) object at 0x|(?:\bgot|\breceived|\bgiven|\bis|\bfound)\b(?: an?| the)?"
    rf"(?: object| instance| value)?(?: of)?(?: type| class)?:? [`'\"<]*(?:class ')?(?P<type>{_CLASS})"
)


def refused_class(words: str) -> Phrase | None:
    """Why an object is not of the class that the message asks for; None where it does not name both classes."""
    wanted = _WANTED.search(words)
    given = _GIVEN.search(words) if wanted is not None else None
    if wanted is None or given is None:
        return None
    asked, has = wanted["name"], given["object"] or given["type"]
    if asked == has:
        text = (
            "{name} is there twice: its module was imported under two names or loaded again, or the object comes from "
            "another process that has pickled the class with it"
        )
        return phrase(text, name=asked)
    package, own = asked.partition(".")[0], has.partition(".")[0]
    if package == own:
        return None
    text = (
        "{has} does not derive from this {asked}: it is written for another release of {package}, or for another "
        "package that has a class of this name; import that class from one package on both sides, or take the release "
        "of {own} that is made for {package}"
    )
    return phrase(text, has=has, asked=asked, package=package, own=own)
