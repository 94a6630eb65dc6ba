"""YAML that somebody else wrote, with limits: on its size, on how deep it nests, and on what its aliases come to.

Nine lines of `b: [*a, *a, *a, *a, *a, *a, *a, *a, *a]`, each with the one before, stand for a thousand million nodes.
"""

from __future__ import annotations

from typing import Any

_MOST = 2 << 20
"""Characters of a text. The largest of verl has 40 kB."""
_DEEPEST = 60
_MOST_NODES = 200_000
"""Nodes, each as often as an alias stands for it."""
_LONGEST = 1000
"""Characters of a value that is read as a number where it looks like one."""


def documents(text: str) -> list[Any]:
    """The nodes of each document, with their places, as PyYAML composes them.

    Raises:
        yaml.YAMLError: it is no YAML, or more of it than is looked at.
    """
    import yaml

    _check(text)
    try:
        return list(yaml.compose_all(text, Loader=_loader()))
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error


def load(text: str) -> Any:
    """The content of a text; None if it is no YAML, or more of it than is looked at."""
    import yaml

    try:
        _check(text, numbers=True)
        return yaml.load(text, Loader=_loader())  # noqa: S506
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):  # A key that is a list: TypeError.
        return None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check(text: str, *, numbers: bool = False) -> None:
    """Raises yaml.YAMLError. A parser's events need no stack, whatever the text nests."""
    import yaml

    if len(text) > _MOST:
        raise yaml.YAMLError(f"more than {_MOST} characters")
    sizes: dict[str, int] = {}
    nodes, open_anchors = [0], [""]
    try:
        for event in yaml.parse(text, Loader=_loader()):
            if isinstance(event, yaml.CollectionStartEvent):
                nodes.append(1)
                open_anchors.append(event.anchor or "")
                if len(nodes) > _DEEPEST:
                    raise _too_much("it nests too deeply", event)
            elif isinstance(event, yaml.CollectionEndEvent):
                size, anchor = nodes.pop(), open_anchors.pop()
                nodes[-1] += size
                sizes[anchor] = size
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor in open_anchors:
                    raise _too_much("an alias stands for what it is part of", event)
                nodes[-1] += sizes.get(event.anchor, 1)
            elif isinstance(event, yaml.ScalarEvent):
                nodes[-1] += 1
                sizes[event.anchor or ""] = 1
                if numbers and not event.style and len(event.value) > _LONGEST:
                    raise _too_much("a value is too long", event)
            if nodes[-1] > _MOST_NODES:
                raise _too_much("its aliases stand for too much", event)
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from error


def _too_much(problem: str, event: Any) -> Exception:
    import yaml

    error: Exception = yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
    return error
