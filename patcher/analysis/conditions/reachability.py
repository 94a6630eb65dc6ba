"""What a job runs of a tree: modules that are imported and functions that are called, found by name from its entries.

The search is light on purpose: `x.name` may be any method `name` of a class that the job mentions. What conditions rule
out is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.job import (
    DISPATCH,
    ENTRIES,
    METHODS,
    NOT_CHOSEN,
    Job,
    defaults_of,
    fields_of,
    is_off_word,
)
from patcher.analysis.conditions.names import Place, Tree, tree_of
from patcher.analysis.conditions.target_queries import Outside
from patcher.analysis.project import Forest
from patcher.analysis.summary import Assigned, Body, Family, Import, Outline, Step

_Node = tuple[str, str]
"""A file and the qualified name of a function or class in it."""

_FRAMEWORKS = ("torch", "abc", "enum", "typing", "builtins", "collections", "pydantic", "nn", "dataclasses", "logging")

_MOST_LOOKED_UP = 40
"""How many names one name may lead through: an import of an import, say."""


class Reach:
    """Grows from entries. What depends on the target is laid by (`deferred`) if `defer`."""

    def __init__(self, tree: Tree, choices: frozenset[str]) -> None:
        self.tree = tree
        self._choices = choices
        self.bodies: set[_Node] = set()
        self.classes: set[_Node] = set()
        self.deferred: list[tuple[_Node, int]] = []
        """Steps of bodies, by their place there."""
        self._attributes: set[str] = set()
        self._methods: dict[str, list[_Node]] = {}
        self._waiting: list[_Node] = []
        self._loaded: set[str] = set()
        self._tops: dict[_Node, tuple[_Node, ...]] = {}
        """What names of modules stand for; the same for all that grow in one tree."""

    def copy(self, tree: Tree | None = None) -> Reach:
        """The same, to grow apart; `tree`: in another variant of the tree."""
        other = Reach(tree or self.tree, self._choices)
        other.bodies, other.classes = set(self.bodies), set(self.classes)
        other.deferred = list(self.deferred)
        other._attributes, other._loaded = set(self._attributes), set(self._loaded)
        if other.tree is self.tree:
            other._tops = self._tops
        other._methods = {name: list(nodes) for name, nodes in self._methods.items()}
        return other

    def enter(self, entries: Iterable[tuple[str, str]]) -> None:
        """Begin at functions and classes, by module and name."""
        for module, name in entries:
            if self.tree.module(module) is not None:
                self._load(module)
                self._mention_dotted(f"{module}.{name}", called=True)

    def grow(self, evaluator: Evaluator, *, defer: bool) -> None:
        """Follow everything that is reached until nothing new comes."""
        if not defer:
            laid_by, self.deferred = self.deferred, []
            for node, number in laid_by:
                if (found := self._body(node)) is not None:
                    outline, body = found
                    step = body.steps[number]
                    if evaluator.runs(step.conditions, Place(outline, body.qualname)) is not False:
                        self._take(outline, body, step)
        while self._waiting:
            node = self._waiting.pop()
            found = self._body(node)
            if found is None:
                continue
            outline, body = found
            place = Place(outline, body.qualname)
            for number, step in enumerate(body.steps):
                evaluator.asked = False
                answer = evaluator.runs((*body.conditions, *step.conditions), place)
                if answer is False and not (defer and evaluator.asked):
                    continue
                if defer and evaluator.asked:
                    self.deferred.append((node, number))
                else:
                    self._take(outline, body, step)

    def _body(self, node: _Node) -> tuple[Outline, Body] | None:
        """A body and its file. Here nobody is in the middle of anything."""
        self.tree.forest.rest()
        outline = self.tree.file(node[0])
        body = outline.bodies.get(node[1]) if outline is not None else None
        return (outline, body) if outline is not None and body is not None else None

    # what a step leads to

    def _take(self, outline: Outline, body: Body, step: Step) -> None:
        for one in step.imports:
            self._import(one)
        for written in step.called:
            self._mention(written, outline, body, called=True)
        for written in step.named:
            self._mention(written, outline, body, called=False)
        dispatched = any(part in written.rpartition(".")[2] for written in step.called for part in DISPATCH)
        for text, *keys in step.texts:
            if text.partition(".")[0] == self.tree.top and "." in text:
                if not any(is_off_word(word) for word in (text, *keys)) and NOT_CHOSEN.isdisjoint(keys):
                    self._mention_dotted(text.replace(":", "."), called=True)
            elif dispatched and text.isidentifier():
                self._attribute(text)

    def _is_chosen(self, family: Family) -> bool:
        """Whether the job may take a class from a registry: none of its names is off, and one is a value of the job."""
        given = family.registered or ()
        if any(is_off_word(word) for word in (family.qualname, *given)):
            return False
        names = [word for word in given[:-1] if word]
        return not names or not self._choices.isdisjoint(names)

    def _import(self, one: Import) -> None:
        if self.tree.split(one.module) is None:
            return
        self._load(one.module)
        if one.name is not None and self.tree.module(f"{one.module}.{one.name}") is not None:
            self._load(f"{one.module}.{one.name}")

    def _load(self, module: str) -> None:
        if module in self._loaded:
            return
        self._loaded.add(module)
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            outline = self.tree.module(".".join(parts[:length]))
            if outline is None or (outline.file, "") in self.bodies:
                continue
            self._reach(outline.file, "")
            for family in outline.classes.values():
                if family.registered is not None and self._is_chosen(family):
                    self._live(outline, family)
            for body in outline.bodies.values():
                if body.decorators and "." not in body.qualname and not body.owner and not is_off_word(body.qualname):
                    self._reach(outline.file, body.qualname)

    def _reach(self, file: str, qualname: str) -> None:
        if (file, qualname) not in self.bodies:
            self.bodies.add((file, qualname))
            self._waiting.append((file, qualname))

    def _live(self, outline: Outline, family: Family) -> None:
        node = (outline.file, family.qualname)
        if node in self.classes:
            return
        self.classes.add(node)
        everything = False
        for base in family.bases:
            found = list(self._definitions(base, outline, outline.bodies[""]))
            for where, name in found:
                if name in where.classes:
                    self._live(where, where.classes[name])
            root = self._outside_root(base, outline)
            everything = everything or (root is not None and root not in _FRAMEWORKS)
        for name, qualname in family.methods.items():
            self._methods.setdefault(name, []).append((outline.file, qualname))
            special = name.startswith("__") and name.endswith("__")
            if everything or special or name in METHODS or name in self._attributes:
                self._reach(outline.file, qualname)

    def _attribute(self, name: str) -> None:
        if name not in self._attributes:
            self._attributes.add(name)
            for file, qualname in self._methods.get(name, ()):
                self._reach(file, qualname)

    def _mention(self, written: str, outline: Outline, body: Body, *, called: bool) -> None:
        if not written:
            return
        root, _, rest = written.partition(".")
        if root in ("self", "cls", "") or not root:
            for name in rest.split("."):
                self._attribute(name)
            return
        found = list(self._definitions(root, outline, body))
        for where, name in found:
            self._mention_definition(where, f"{name}.{rest}" if name and rest else name or rest, called=called)
        if rest and not found and self._outside_root(root, outline, body) is None:
            for name in rest.split("."):
                self._attribute(name)

    def _mention_dotted(self, dotted: str, *, called: bool) -> None:
        split = self.tree.split(dotted)
        if split is not None:
            self._load(split[0].module)
            self._mention_definition(*split, called=called)

    def _mention_definition(self, outline: Outline, name: str, *, called: bool) -> None:
        first, _, rest = name.partition(".")
        if name in outline.bodies and name:
            if called or not is_off_word(f"{outline.module}.{name}"):
                self._reach(outline.file, name)
        elif name in outline.classes:
            self._live(outline, outline.classes[name])
        elif first in outline.classes:
            self._live(outline, outline.classes[first])
            for part in rest.split("."):
                self._attribute(part)
        elif first in outline.bodies:
            if first:
                self._reach(outline.file, first)
        elif first in outline.bodies[""].assigned:
            for where, there in self._definitions(first, outline, outline.bodies[""]):
                if (where.file, there) != (outline.file, first):
                    self._mention_definition(
                        where, f"{there}.{rest}" if rest and there else there or rest, called=called
                    )
        elif rest and self.tree.module(f"{outline.module}.{first}") is not None:
            self._mention_dotted(f"{outline.module}.{name}", called=called)

    def _definitions(self, name: str, outline: Outline, body: Body) -> Iterator[tuple[Outline, str]]:
        """Functions and classes of the tree that a name may stand for in a body; "" for a module itself."""
        function = body.qualname
        while function:
            inner = f"{function}.{name}"
            if (inner in outline.bodies and not outline.bodies[inner].owner) or inner in outline.classes:
                yield outline, inner
                return
            here = outline.bodies.get(function)
            if here is not None:
                if name in here.assigned:
                    yield from self._imported(here.assigned[name], set())
                    return
                if name in here.parameters:
                    return
            function = function.rpartition(".")[0]
        key = (outline.file, name)
        if key not in self._tops:
            self._tops[key] = tuple((where.file, there) for where, there in self._top(name, outline, set()))
        for file, there in self._tops[key]:
            if (where := self.tree.file(file)) is not None:
                yield where, there

    def _top(self, name: str, outline: Outline, seen: set[_Node]) -> Iterator[tuple[Outline, str]]:
        """`seen`: what was looked up on the way here, as imports go around in circles."""
        if (outline.file, name) in seen:
            return
        seen.add((outline.file, name))
        for here in self.tree.giving(name, outline):
            if name in here.bodies or name in here.classes:
                yield here, name
            else:
                yield from self._imported(here.bodies[""].assigned[name], seen)

    def _imported(self, ways: list[Assigned], seen: set[_Node]) -> Iterator[tuple[Outline, str]]:
        for way in ways:
            if isinstance(way.written, Import) and len(seen) < _MOST_LOOKED_UP:
                split = self.tree.split(way.written.dotted)
                if split is None:
                    continue
                where, rest = split
                if not rest:
                    yield where, ""
                else:
                    found = list(self._top(rest, where, seen))
                    yield from found or [(where, rest)]

    def _outside_root(self, written: str, outline: Outline, body: Body | None = None) -> str | None:
        """The package outside the tree that a name was imported from; None if it was not."""
        root = written.partition(".")[0]
        for home in (body, outline.bodies[""]):
            for way in home.assigned.get(root, ()) if home is not None else ():
                if isinstance(way.written, Import) and self.tree.split(way.written.module) is None:
                    return way.written.module.partition(".")[0]
        return None


Node: TypeAlias = "tuple[str, str]"
"""A file and the qualified name of a function or class in it; "" for what runs on import."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What the plain job runs on one target, and what on some target."""

    here: AbstractSet[Node]
    anywhere: AbstractSet[Node]


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, forest: Forest) -> None:
        self.tree: Tree = tree_of(forest)
        self._blank = Evaluator(self.tree, Outside(None), job_of(forest))
        self._base = Reach(self.tree, job_of(forest).choices)
        self._base.enter(ENTRIES)
        self._base.grow(self._blank, defer=True)
        self._widest: AbstractSet[Node] | None = None

    def on(self, evaluator: Evaluator) -> Ways:
        """What runs on the evaluator's target."""
        if self._widest is None:
            self._widest = self._grown(self._blank)
        return Ways(self._grown(evaluator), self._widest)

    def _grown(self, evaluator: Evaluator) -> AbstractSet[Node]:
        found = self._base.copy()
        found.grow(evaluator, defer=False)
        return found.bodies


def plain_path(forest: Forest) -> PlainPath:
    """The plain path of a tree, kept as long as the forest lives."""
    path = forest.kept.get("plain path")
    if not isinstance(path, PlainPath):
        path = forest.kept["plain path"] = PlainPath(forest)
    return path


def job_of(forest: Forest) -> Job:
    """The plain job of a tree, with the tree's own defaults."""
    job = forest.kept.get("plain job")
    if not isinstance(job, Job):
        job = forest.kept["plain job"] = Job(defaults_of(forest), fields_of(forest))
    return job
