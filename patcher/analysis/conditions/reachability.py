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
from patcher.analysis.conditions.names import EvalContext, Summaries, summaries_of
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.project import Project
from patcher.analysis.summary import Assigned, Block, Body, ClassSummary, FileSummary, Import

_Node = tuple[str, str]
"""A file and the qualified name of a function or class in it."""

_FRAMEWORKS = ("torch", "abc", "enum", "typing", "builtins", "collections", "pydantic", "nn", "dataclasses", "logging")

_MOST_LOOKED_UP = 40
"""How many names one name may lead through: an import of an import, say."""


class Reachability:
    """Grows from entries. What depends on the target is laid by (`deferred`) if `defer`."""

    def __init__(self, summaries: Summaries, choices: frozenset[str]) -> None:
        self.summaries = summaries
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

    def copy(self, summaries: Summaries | None = None) -> Reachability:
        """The same, to grow apart; `tree`: in another variant of the tree."""
        other = Reachability(summaries or self.summaries, self._choices)
        other.bodies, other.classes = set(self.bodies), set(self.classes)
        other.deferred = list(self.deferred)
        other._attributes, other._loaded = set(self._attributes), set(self._loaded)
        if other.summaries is self.summaries:
            other._tops = self._tops
        other._methods = {name: list(nodes) for name, nodes in self._methods.items()}
        return other

    def enter(self, entries: Iterable[tuple[str, str]]) -> None:
        """Begin at functions and classes, by module and name."""
        for module, name in entries:
            if self.summaries.module(module) is not None:
                self._load(module)
                self._mention_dotted(f"{module}.{name}", called=True)

    def extend_with(self, evaluator: Evaluator, *, defer: bool) -> None:
        """Follow everything that is reached until nothing new comes."""
        if not defer:
            laid_by, self.deferred = self.deferred, []
            for node, number in laid_by:
                if (found := self._body(node)) is not None:
                    summary, body = found
                    block = body.blocks[number]
                    if evaluator.runs(block.conditions, EvalContext(summary, body.qualname)) is not False:
                        self._take(summary, body, block)
        while self._waiting:
            node = self._waiting.pop()
            found = self._body(node)
            if found is None:
                continue
            summary, body = found
            context = EvalContext(summary, body.qualname)
            for number, block in enumerate(body.blocks):
                evaluator.asked = False
                answer = evaluator.runs((*body.conditions, *block.conditions), context)
                # What does not run on any target is passed over. What depends on the target is put off and decided for
                # each target.
                if answer is False and not (defer and evaluator.asked):
                    continue
                if defer and evaluator.asked:
                    self.deferred.append((node, number))
                else:
                    self._take(summary, body, block)

    def _body(self, node: _Node) -> tuple[FileSummary, Body] | None:
        """A body and its file. Here nobody is in the middle of anything."""
        self.summaries.project.free_memory()
        summary = self.summaries.file(node[0])
        body = summary.bodies.get(node[1]) if summary is not None else None
        return (summary, body) if summary is not None and body is not None else None

    # what a step leads to

    def _take(self, summary: FileSummary, body: Body, block: Block) -> None:
        for one in block.imports:
            self._import(one)
        for written in block.called:
            self._mention(written, summary, body, called=True)
        for written in block.named:
            self._mention(written, summary, body, called=False)
        dispatched = any(part in written.rpartition(".")[2] for written in block.called for part in DISPATCH)
        for text, *keys in block.texts:
            # `"verl.workers.rollout.vllm_rollout.ServerAdapter"`: a class that is loaded by its name.
            if text.partition(".")[0] == self.summaries.top and "." in text:
                if not any(is_off_word(word) for word in (text, *keys)) and NOT_CHOSEN.isdisjoint(keys):
                    self._mention_dotted(text.replace(":", "."), called=True)
            # `self.execute("init_model", ...)`: a method that is called by its name.
            elif dispatched and text.isidentifier():
                self._attribute(text)

    def _is_chosen(self, class_summary: ClassSummary) -> bool:
        """Whether the job may take a class from a registry: none of its names is off, and one is a value of the job."""
        given = class_summary.registered or ()
        if any(is_off_word(word) for word in (class_summary.qualname, *given)):
            return False
        # `@register("vllm", "async")`: the last entry of `given` is the decorator itself.
        names = [word for word in given[:-1] if word]
        return not names or not self._choices.isdisjoint(names)

    def _import(self, one: Import) -> None:
        if self.summaries.split(one.module) is None:
            return
        self._load(one.module)
        if one.name is not None and self.summaries.module(f"{one.module}.{one.name}") is not None:
            self._load(f"{one.module}.{one.name}")

    def _load(self, module: str) -> None:
        if module in self._loaded:
            return
        self._loaded.add(module)
        parts = module.split(".")
        # Importing a.b.c runs a and a.b first.
        for length in range(1, len(parts) + 1):
            summary = self.summaries.module(".".join(parts[:length]))
            if summary is None or (summary.file, "") in self.bodies:
                continue
            self._reach(summary.file, "")
            for class_summary in summary.classes.values():
                if class_summary.registered is not None and self._is_chosen(class_summary):
                    self._use_class(summary, class_summary)
            for body in summary.bodies.values():
                # A decorated function at the top level may be entered in a registry by its decorator.
                if body.decorators and "." not in body.qualname and not body.owner and not is_off_word(body.qualname):
                    self._reach(summary.file, body.qualname)

    def _reach(self, file: str, qualname: str) -> None:
        if (file, qualname) not in self.bodies:
            self.bodies.add((file, qualname))
            self._waiting.append((file, qualname))

    def _use_class(self, summary: FileSummary, class_summary: ClassSummary) -> None:
        node = (summary.file, class_summary.qualname)
        if node in self.classes:
            return
        self.classes.add(node)
        everything = False
        for base in class_summary.bases:
            found = list(self._definitions(base, summary, summary.bodies[""]))
            for where, name in found:
                if name in where.classes:
                    self._use_class(where, where.classes[name])
            root = self._outside_root(base, summary)
            everything = everything or (root is not None and root not in _FRAMEWORKS)
        for name, qualname in class_summary.methods.items():
            self._methods.setdefault(name, []).append((summary.file, qualname))
            special = name.startswith("__") and name.endswith("__")
            # A base class from a package that is no framework may call any method: a vLLM worker extension, say.
            if everything or special or name in METHODS or name in self._attributes:
                self._reach(summary.file, qualname)

    def _attribute(self, name: str) -> None:
        if name not in self._attributes:
            self._attributes.add(name)
            for file, qualname in self._methods.get(name, ()):
                self._reach(file, qualname)

    def _mention(self, written: str, summary: FileSummary, body: Body, *, called: bool) -> None:
        if not written:
            return
        root, _, rest = written.partition(".")
        # `self.run` is any method `run` of a class that is in use.
        if root in ("self", "cls", "") or not root:
            for name in rest.split("."):
                self._attribute(name)
            return
        found = list(self._definitions(root, summary, body))
        for where, name in found:
            self._mention_definition(where, f"{name}.{rest}" if name and rest else name or rest, called=called)
        if rest and not found and self._outside_root(root, summary, body) is None:
            for name in rest.split("."):
                self._attribute(name)

    def _mention_dotted(self, dotted: str, *, called: bool) -> None:
        split = self.summaries.split(dotted)
        if split is not None:
            self._load(split[0].module)
            self._mention_definition(*split, called=called)

    def _mention_definition(self, summary: FileSummary, name: str, *, called: bool) -> None:
        first, _, rest = name.partition(".")
        if name in summary.bodies and name:
            if called or not is_off_word(f"{summary.module}.{name}"):
                self._reach(summary.file, name)
        elif name in summary.classes:
            self._use_class(summary, summary.classes[name])
        elif first in summary.classes:
            self._use_class(summary, summary.classes[first])
            for part in rest.split("."):
                self._attribute(part)
        elif first in summary.bodies:
            if first:
                self._reach(summary.file, first)
        elif first in summary.bodies[""].assigned:
            for where, there in self._definitions(first, summary, summary.bodies[""]):
                if (where.file, there) != (summary.file, first):
                    self._mention_definition(
                        where, f"{there}.{rest}" if rest and there else there or rest, called=called
                    )
        elif rest and self.summaries.module(f"{summary.module}.{first}") is not None:
            self._mention_dotted(f"{summary.module}.{name}", called=called)

    def _definitions(self, name: str, summary: FileSummary, body: Body) -> Iterator[tuple[FileSummary, str]]:
        """Functions and classes of the tree that a name may stand for in a body; "" for a module itself."""
        function = body.qualname
        while function:
            inner = f"{function}.{name}"
            if (inner in summary.bodies and not summary.bodies[inner].owner) or inner in summary.classes:
                yield summary, inner
                return
            here = summary.bodies.get(function)
            if here is not None:
                if name in here.assigned:
                    yield from self._imported(here.assigned[name], set())
                    return
                if name in here.parameters:
                    return
            function = function.rpartition(".")[0]
        key = (summary.file, name)
        if key not in self._tops:
            self._tops[key] = tuple((where.file, there) for where, there in self._top(name, summary, set()))
        for file, there in self._tops[key]:
            if (where := self.summaries.file(file)) is not None:
                yield where, there

    def _top(self, name: str, summary: FileSummary, seen: set[_Node]) -> Iterator[tuple[FileSummary, str]]:
        """`seen`: what was looked up on the way here, as imports go around in circles."""
        if (summary.file, name) in seen:
            return
        seen.add((summary.file, name))
        for here in self.summaries.modules_binding(name, summary):
            if name in here.bodies or name in here.classes:
                yield here, name
            else:
                yield from self._imported(here.bodies[""].assigned[name], seen)

    def _imported(self, alternatives: list[Assigned], seen: set[_Node]) -> Iterator[tuple[FileSummary, str]]:
        for alternative in alternatives:
            if isinstance(alternative.written, Import) and len(seen) < _MOST_LOOKED_UP:
                split = self.summaries.split(alternative.written.dotted)
                if split is None:
                    continue
                where, rest = split
                if not rest:
                    yield where, ""
                else:
                    found = list(self._top(rest, where, seen))
                    # A name that its module gets in a way that is not seen (a lazy import) is taken for its own.
                    yield from found or [(where, rest)]

    def _outside_root(self, written: str, summary: FileSummary, body: Body | None = None) -> str | None:
        """The package outside the tree that a name was imported from; None if it was not."""
        root = written.partition(".")[0]
        for home in (body, summary.bodies[""]):
            for alternative in home.assigned.get(root, ()) if home is not None else ():
                if isinstance(alternative.written, Import) and self.summaries.split(alternative.written.module) is None:
                    return alternative.written.module.partition(".")[0]
        return None


Node: TypeAlias = "tuple[str, str]"
"""A file and the qualified name of a function or class in it; "" for what runs on import."""


@dataclass(frozen=True, slots=True)
class ReachedCode:
    """What the plain job runs on one target, and what on some target."""

    here: AbstractSet[Node]
    anywhere: AbstractSet[Node]


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, project: Project) -> None:
        self.summaries: Summaries = summaries_of(project)
        self._blank = Evaluator(self.summaries, TargetQueries(None), job_of(project))
        self._base = Reachability(self.summaries, job_of(project).choices)
        self._base.enter(ENTRIES)
        self._base.extend_with(self._blank, defer=True)
        self._widest: AbstractSet[Node] | None = None

    def on(self, evaluator: Evaluator) -> ReachedCode:
        """What runs on the evaluator's target."""
        if self._widest is None:
            self._widest = self._grown(self._blank)
        return ReachedCode(self._grown(evaluator), self._widest)

    def _grown(self, evaluator: Evaluator) -> AbstractSet[Node]:
        found = self._base.copy()
        found.extend_with(evaluator, defer=False)
        return found.bodies


def plain_path(project: Project) -> PlainPath:
    """The plain path of a tree, kept as long as the project lives."""
    path = project.kept.get("plain path")
    if not isinstance(path, PlainPath):
        path = project.kept["plain path"] = PlainPath(project)
    return path


def job_of(project: Project) -> Job:
    """The plain job of a tree, with the tree's own defaults."""
    job = project.kept.get("plain job")
    if not isinstance(job, Job):
        job = project.kept["plain job"] = Job(defaults_of(project), fields_of(project))
    return job
