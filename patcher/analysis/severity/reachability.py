"""Which code of a tree the plain job and the programs of run scripts run, and which is dead to them: modules that are
imported and functions that are called, found by name from the entry points (a call graph).

The search is light on purpose: `x.name` may be any method `name` of a class that the job mentions. What conditions rule
out is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from patcher.analysis.bindings import Binding, Imported
from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.job import (
    DISPATCH,
    JOBS,
    METHODS,
    NOT_CHOSEN,
    Job,
    defaults_of,
    fields_of,
    is_synchronous,
)
from patcher.analysis.conditions.names import EvalContext, Summaries, summaries_of
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.project import Entry, Project
from patcher.analysis.summary import Block, Body, ClassSummary, FileSummary
from patcher.analysis.uses import Condition

Node: TypeAlias = "tuple[str, str]"
"""A file and the qualified name of a function or class in it; "" for what runs on import."""

_FRAMEWORKS = ("torch", "abc", "enum", "typing", "builtins", "collections", "pydantic", "nn", "dataclasses", "logging")

_MOST_LOOKED_UP = 40
"""How many names one name may lead through: an import of an import, say."""


class Reachability:
    """Grows from entries. With `defer`, what depends on the target is put off, for the copies that know one.

    A name that a module binds in branches of a version test is what the target's branch binds:

        if version("vllm") == "0.5.4":
            from .vllm_v_0_5_4.llm import LLM
        else:
            from vllm import LLM
    """

    def __init__(self, summaries: Summaries, evaluator: Evaluator, job: Job, *, defer: bool) -> None:
        self.summaries = summaries
        self._evaluator = evaluator
        self._job = job
        self._defer = defer
        self._dependent = False
        """Whether what was looked up since this was last reset rests on the target."""
        self.bodies: set[Node] = set()
        self.classes: set[Node] = set()
        self._entries: list[tuple[str, str]] = []
        self._deferred: list[tuple[Node, int]] = []
        """Blocks of bodies, by their place there."""
        self._deferred_classes: list[Node] = []
        """Classes whose bases depend on the target."""
        self._attributes: set[str] = set()
        self._methods: dict[str, list[Node]] = {}
        self._waiting: list[Node] = []
        self._loaded: set[str] = set()
        self._tops: dict[Node, tuple[Node, ...]] = {}
        """What names of modules stand for on every target; the same for all that grow in one tree."""
        self._tops_here: dict[Node, tuple[Node, ...]] = {}
        """What those names stand for that depend on the target."""

    def copy(self, evaluator: Evaluator) -> Reachability:
        """The same, to grow apart on the evaluator's target."""
        other = Reachability(self.summaries, evaluator, self._job, defer=False)
        other.bodies, other.classes = set(self.bodies), set(self.classes)
        other._attributes, other._loaded = set(self._attributes), set(self._loaded)
        other._tops = self._tops
        if evaluator is self._evaluator:
            other._tops_here = self._tops_here
        other._methods = {name: list(nodes) for name, nodes in self._methods.items()}
        return other

    def on(self, evaluator: Evaluator) -> Reachability:
        """A copy that takes on the evaluator's target what was put off."""
        other = self.copy(evaluator)
        other.enter(self._entries)
        for file, qualname in self._deferred_classes:
            if (summary := self.summaries.file(file)) is not None:
                other._use_bases(summary, summary.classes[qualname])
        for node, number in self._deferred:
            if (found := other._body(node)) is not None:
                summary, body = found
                block = body.content.blocks[number]
                conditions = (*body.conditions, *block.conditions)
                if evaluator.runs(conditions, EvalContext(summary, body.qualname)) is not False:
                    other._take(summary, body, block)
        return other

    def enter(self, entries: Iterable[tuple[str, str]]) -> None:
        """Begin at functions and classes, by module and name."""
        self._entries += entries
        for module, name in self._entries:
            if self.summaries.module(module) is not None:
                self._load(module)
                self._mention_dotted(f"{module}.{name}", called=True)

    def enter_program(self, entry: Entry) -> None:
        """Begin at a program that a run script starts, and at what its configuration selects by name."""
        if entry.module:
            self._load(entry.module)
        for name in entry.names:
            if not self._job.is_off_word(name):
                self._mention_dotted(name, called=True)

    def extend(self) -> None:
        """Follow everything that is reached until nothing new comes."""
        while self._waiting:
            node = self._waiting.pop()
            found = self._body(node)
            if found is None:
                continue
            summary, body = found
            context = EvalContext(summary, body.qualname)
            for number, block in enumerate(body.content.blocks):
                self._dependent = False
                runs = self._runs((*body.conditions, *block.conditions), context)
                # What does not run on any target is passed over. What depends on the target is put off and decided for
                # each target.
                if runs:
                    self._take(summary, body, block)
                if self._defer and self._dependent:
                    self._deferred.append((node, number))

    def _runs(self, conditions: tuple[Condition, ...], context: EvalContext) -> bool:
        """Whether something may run under these conditions; False if that is put off, as it depends on the target."""
        if not conditions:
            return True
        self._evaluator.asked = False
        answer = self._evaluator.runs(conditions, context)
        if self._evaluator.asked:
            self._dependent = True
            return not self._defer and answer is not False
        return answer is not False

    def _body(self, node: Node) -> tuple[FileSummary, Body] | None:
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
            if "." in text and self.summaries.project.owns(text):
                if not any(self._job.is_off_word(word) for word in (text, *keys)) and NOT_CHOSEN.isdisjoint(keys):
                    self._mention_dotted(text.replace(":", "."), called=True)
            # `self.execute("init_model", ...)`: a method that is called by its name.
            elif dispatched and text.isidentifier():
                self._attribute(text)

    def _is_chosen(self, class_summary: ClassSummary) -> bool:
        """Whether the job may take a class from a registry: none of its names is off, and one is a value of the job."""
        given = class_summary.registered or ()
        if any(self._job.is_off_word(word) for word in (class_summary.qualname, *given)):
            return False
        # `@register("vllm", "async")`: the last entry of `given` is the decorator itself.
        names = [word for word in given[:-1] if word]
        return not names or not self._job.choices.isdisjoint(names)

    def _import(self, one: Imported) -> None:
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
                on_top = body.decorators and "." not in body.qualname and not body.owner
                if on_top and not self._job.is_off_word(body.qualname):
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
        before, self._dependent = self._dependent, False
        everything = self._use_bases(summary, class_summary)
        if self._defer and self._dependent:
            self._deferred_classes.append(node)
        self._dependent = before
        for name, qualname in class_summary.methods.items():
            self._methods.setdefault(name, []).append((summary.file, qualname))
            special = name.startswith("__") and name.endswith("__")
            # A base class from a package that is no framework may call any method: a vLLM worker extension, say.
            if everything or special or name in METHODS or name in self._attributes:
                self._reach(summary.file, qualname)

    def _use_bases(self, summary: FileSummary, class_summary: ClassSummary) -> bool:
        """Whether one of the bases is of a package that may call any method."""
        everything = False
        for base in class_summary.bases:
            for where, name in list(self._definitions(base, summary, summary.bodies[""])):
                if name in where.classes:
                    self._use_class(where, where.classes[name])
            root = self._outside_root(base, summary)
            everything = everything or (root is not None and root not in _FRAMEWORKS)
        return everything

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
        if root in ("self", "cls", ""):
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
            if called or not self._job.is_off_word(f"{summary.module}.{name}"):
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
        elif first in summary.bodies[""].content.assigned:
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
                if name in here.content.assigned:
                    yield from self._imported(here.content.assigned[name], EvalContext(summary, function), set())
                    return
                if name in here.parameters:
                    return
            function = function.rpartition(".")[0]
        for file, there in self._module_name(name, summary):
            if (where := self.summaries.file(file)) is not None:
                yield where, there

    def _module_name(self, name: str, summary: FileSummary) -> tuple[Node, ...]:
        """What a name of a module's body stands for."""
        key = (summary.file, name)
        if key in self._tops:
            return self._tops[key]
        if key not in self._tops_here:
            before, self._dependent = self._dependent, False
            found = tuple((where.file, there) for where, there in self._top(name, summary, set()))
            dependent, self._dependent = self._dependent, before
            if not dependent:
                self._tops[key] = found
                return found
            self._tops_here[key] = found
        self._dependent = True
        return self._tops_here[key]

    def _top(self, name: str, summary: FileSummary, seen: set[Node]) -> Iterator[tuple[FileSummary, str]]:
        """`seen`: what was looked up on the way here, as imports go around in circles."""
        if (summary.file, name) in seen:
            return
        seen.add((summary.file, name))
        for here in self.summaries.modules_binding(name, summary):
            if name in here.bodies or name in here.classes:
                yield here, name
            else:
                yield from self._imported(here.bodies[""].content.assigned[name], EvalContext(here), seen)

    def _imported(
        self, alternatives: list[Binding], context: EvalContext, seen: set[Node]
    ) -> Iterator[tuple[FileSummary, str]]:
        for alternative in alternatives:
            if isinstance(alternative.value, Imported) and len(seen) < _MOST_LOOKED_UP:
                if not self._runs(alternative.conditions, context):
                    continue
                split = self.summaries.split(alternative.value.dotted)
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
            for alternative in home.content.assigned.get(root, ()) if home is not None else ():
                if isinstance(alternative.value, Imported) and self.summaries.split(alternative.value.module) is None:
                    return alternative.value.module.partition(".")[0]
        return None


@dataclass(frozen=True, slots=True)
class ReachedCode:
    """What the plain job runs on one target, and what on some target."""

    here: AbstractSet[Node]
    anywhere: AbstractSet[Node]
    programs: Mapping[Node, str]
    """What the plain job does not run, and another program that a run script starts does: which, as findings name
    it."""
    programs_anywhere: AbstractSet[Node]


class PlainPath:
    """The plain job's way through one tree: the part that no target changes, found once."""

    def __init__(self, project: Project, name: str) -> None:
        job = job_of(project, name)
        self._name = name
        self.summaries: Summaries = summaries_of(project)
        self._programs = project.scope.entries
        self._blank = Evaluator(self.summaries, TargetQueries(), job)
        self._base = Reachability(self.summaries, self._blank, job, defer=True)
        self._base.enter((project.renamed(module), name) for module, name in job.entries)
        self._base.extend()

    def on(self, evaluator: Evaluator) -> ReachedCode:
        """What runs on the evaluator's target."""
        (anywhere, others), (here, programs) = self._widest, self._grown(evaluator)
        return ReachedCode(here, anywhere, programs, others.keys())

    @cached_property
    def _widest(self) -> tuple[AbstractSet[Node], Mapping[Node, str]]:
        """What runs on some target."""
        return self._grown(self._blank)

    def _grown(self, evaluator: Evaluator) -> tuple[AbstractSet[Node], Mapping[Node, str]]:
        """What the plain job runs, and what only other programs do, with the first of them."""
        plain = self._base.on(evaluator)
        plain.extend()
        programs: dict[Node, str] = {}
        for entry in self._programs:
            # Each program grows from the plain job's code, most of which it runs too. Programs do not grow from one
            # another: the classes of one recipe are not those of the next.
            program = self._in_mode(entry.mode, evaluator) if entry.mode else plain.copy(evaluator)
            program.enter_program(entry)
            program.extend()
            for node in program.bodies - plain.bodies:
                programs.setdefault(node, entry.shown)
        return plain.bodies, programs

    def _in_mode(self, mode: str, evaluator: Evaluator) -> Reachability:
        """The plain job from its beginning, with another rollout: `elif self.config.rollout.mode == "with_tools":`."""
        job = job_of(self.summaries.project, self._name, mode)
        found = Reachability(self.summaries, Evaluator(self.summaries, evaluator.queries, job), job, defer=False)
        found.enter((self.summaries.project.renamed(module), name) for module, name in job.entries)
        return found


def plain_path(project: Project, name: str) -> PlainPath:
    """What one of the plain jobs (`JOBS`) runs of a tree, kept as long as the project lives."""
    return project.answers.once(("plain path", name), lambda: PlainPath(project, name))


def job_of(project: Project, name: str, mode: str = "") -> Job:
    """One of the plain jobs (`JOBS`), with the tree's own defaults, and this mode of the rollout if one is given."""

    def made() -> Job:
        trainer = JOBS[name].trainer
        values = defaults_of(project, trainer)
        usual = "sync" if is_synchronous(project, values, trainer) else "async"
        return Job(values, fields_of(project), JOBS[name], mode=mode or usual)

    return project.answers.once(("plain job", name, mode), made)
