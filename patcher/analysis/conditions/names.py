"""What names stand for where a test is evaluated: local names, parameters, imports, star imports, `self.x` and
`Class.x`.

It works on the summaries of the tree's files. Every binding of a name counts whose own conditions may hold; the name is
known where they all agree.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from weakref import ref

from patcher.analysis.bindings import Binding, Imported
from patcher.analysis.conditions.job import ENTRIES, FIXED_NAMES, Job
from patcher.analysis.conditions.target_queries import TargetQueries
from patcher.analysis.conditions.terms import UNKNOWN, Known, Raised, Reference, Setting, Term, Truthy, Unknown, truth
from patcher.analysis.expressions import Constant, Expression
from patcher.analysis.project import Project
from patcher.analysis.summary import Body, FileSummary
from patcher.analysis.uses import Condition

_MOST_STARS = 300
"""How many modules are searched along star imports for one name: a guess far above the chains that people write.
Generated packages may form circles."""


class Summaries:
    """A project as summaries."""

    def __init__(self, project: Project) -> None:
        self._project = ref(project)
        self.started = {project.renamed(ENTRIES[0][0]), *(entry.module for entry in project.scope.entries)}
        """Modules that are run as programs: there `__name__` is "__main__"."""
        self._splits: dict[str, tuple[FileSummary, str] | None] = {}
        self._modules: dict[str, FileSummary | None] = {}
        self._generation = project.generation

    @property
    def project(self) -> Project:
        """The files; they must be alive as long as the tree is asked for more."""
        project = self._project()
        assert project is not None, "the summaries outlived their project"
        return project

    def _stay_current(self) -> None:
        """Let go of the summaries that the project has dropped."""
        generation = self.project.generation
        if self._generation != generation:
            self._generation = generation
            self._splits.clear()
            self._modules.clear()

    def modules_binding(self, name: str, summary: FileSummary) -> Iterator[FileSummary]:
        """The module if its body binds the name, else those that do among the modules that it takes names from with a
        star, directly or not. Each is looked at once, whatever circles there are, and no more than a few hundred."""
        waiting, seen = deque([summary]), {summary.file}
        while waiting:
            here = waiting.popleft()
            if name in here.bodies[""].content.assigned or name in here.bodies or name in here.classes:
                yield here
                continue
            for star in here.stars:
                there = self.module(star) if len(seen) < _MOST_STARS else None
                if there is not None and there.file not in seen:
                    seen.add(there.file)
                    waiting.append(there)

    def file(self, file: str) -> FileSummary | None:
        """The summary of a file; None if there is none."""
        return self.project.summary(file)

    def module(self, dotted: str) -> FileSummary | None:
        """The summary of a module of the tree."""
        self._stay_current()
        if dotted not in self._modules:
            found = None
            if self.project.owns(dotted):
                files = map(self.file, self.project.files_of(dotted))
                found = next((summary for summary in files if summary is not None), None)
            self._modules[dotted] = found
        return self._modules[dotted]

    def split(self, dotted: str) -> tuple[FileSummary, str] | None:
        """The module that a dotted name of the tree begins with, and the rest of the name."""
        if not self.project.owns(dotted):
            return None
        self._stay_current()
        if dotted not in self._splits:
            self._splits[dotted] = self._split(dotted)
        return self._splits[dotted]

    def _split(self, dotted: str) -> tuple[FileSummary, str] | None:
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            if (found := self.module(".".join(parts[:length]))) is not None:
                return found, ".".join(parts[length:])
        return None


def summaries_of(project: Project) -> Summaries:
    """The summaries of a project, kept as long as it lives."""
    return project.answers.once("summaries", lambda: Summaries(project))


_DEEPEST = 40
"""How many names may wait for one another's values."""


@dataclass(frozen=True, slots=True, eq=False)
class EvalContext:
    """Where an expression stands: in a function of a file, with what is known of local names."""

    summary: FileSummary
    function: str = ""
    local: Mapping[str, Term] = field(default_factory=dict)

    @property
    def body(self) -> Body | None:
        return self.summary.bodies.get(self.function)


class NameResolver(ABC):
    """Finds what names stand for; what is assigned to them is evaluated by whoever fills this in."""

    def __init__(self, summaries: Summaries, queries: TargetQueries, job: Job | None) -> None:
        self.summaries = summaries
        self.queries = queries
        self.job = job
        self.asked = False
        """Whether the answers since it was last reset rest on the target."""
        self.active: set[tuple[str, str, str]] = set()
        """What is being worked out: files, functions and names."""
        self._names: dict[tuple[str, str, str], tuple[Term, bool]] = {}

    @abstractmethod
    def term(self, node: Expression, context: EvalContext) -> Term:
        """What an expression comes to. Raises `Raised`."""

    @abstractmethod
    def runs(self, conditions: tuple[Condition, ...], context: EvalContext) -> bool | None:
        """Whether code under these conditions runs; None if that cannot be known."""

    @abstractmethod
    def attribute_of(self, term: Term, name: str) -> Term:
        """The attribute `name` of what a term stands for."""

    def resolve_setting(self, term: Term) -> Term:
        """A setting's value in its place."""
        if isinstance(term, Setting):
            return self.job.value(term) if self.job is not None else UNKNOWN
        return term

    def value(self, of: Expression, context: EvalContext) -> Term:
        """What an expression comes to, a setting's value in its place. Raises `Raised`."""
        return self.resolve_setting(self.term(of, context))

    def fixed(self, name: str) -> Term | None:
        """What goes by a name in the plain job, wherever it is; None if nothing is known of it."""
        return self.job.fixed.get(name) if self.job is not None else None

    def name(self, name: str, context: EvalContext) -> Term:
        """What a name stands for in a place."""
        if name in context.local:
            return context.local[name]
        # `if __name__ == "__main__":` in a module that no run script starts. That it does not run there says nothing
        # about releases, so it counts for what a job runs only.
        if name == "__name__" and self.job is not None:
            return Known("__main__" if context.summary.module in self.summaries.started else context.summary.module)
        function = context.function
        while function:
            body = context.summary.bodies.get(function)
            if body is not None:
                inner = EvalContext(context.summary, function)
                # Names inside a function, from the innermost outwards, as Python looks them up.
                if name in body.content.assigned:
                    return self._bound((context.summary.file, function, name), body.content.assigned[name], inner)
                if name in body.parameters:
                    return self._parameter(body, name)
            function = function.rpartition(".")[0]
        return self.member(context.summary, name)

    def member(self, summary: FileSummary, name: str) -> Term:
        """What a name stands for at a module's top level."""
        for here in self.summaries.modules_binding(name, summary):
            if name not in here.bodies[""].content.assigned:
                return Reference(f"{here.module}.{name}")
            found = self._bound((here.file, "", name), here.bodies[""].content.assigned[name], EvalContext(here))
            # A name from a star import whose value is not known may still be known from another one.
            if here is summary or not isinstance(found, Unknown):
                return found
        return Reference(f"builtins.{name}") if hasattr(builtins, name) else UNKNOWN

    def _parameter(self, body: Body, name: str) -> Term:
        if self.job is None:
            return UNKNOWN
        if (fixed := self.fixed(name)) is not None:
            return fixed
        default = body.content.defaults.get(name)
        # `def run(self, offload=False)`: the plain job takes the default of a switch.
        if isinstance(default, Constant) and isinstance(default.value, bool):
            return Known(default.value)
        return self.job.setting(name, body.content.annotations.get(name))

    def _bound(self, key: tuple[str, str, str], alternatives: list[Binding], context: EvalContext) -> Term:
        """The value of a name that is assigned in these ways, a later one in the place of an earlier."""
        if key in self._names:
            known, asked = self._names[key]
            self.asked = self.asked or asked
            return known
        # `a = b; b = a` in different functions waits for itself.
        if key in self.active or len(self.active) >= _DEEPEST:
            return UNKNOWN
        self.active.add(key)
        before, self.asked = self.asked, False
        try:
            term = self._merged(key, alternatives, context)
        finally:
            self.active.discard(key)
            asked, self.asked = self.asked, self.asked or before
        self._names[key] = (term, asked)
        return term

    def _merged(self, key: tuple[str, str, str], alternatives: list[Binding], context: EvalContext) -> Term:
        found: list[Term] = []
        for alternative in alternatives:
            answer = self.runs(alternative.conditions, context)
            if answer is False:
                continue
            term = _unless_filled(self._assigned(alternative, context), key[2])
            # A binding that certainly runs replaces the earlier ones; one that may run stands beside them.
            found = [term] if answer else [*found, term]
        fixed = self.fixed(key[2])
        if not found and fixed is not None:
            return fixed
        # All bindings that may hold agree.
        if found and all(term == found[0] for term in found):
            term = found[0]
        else:
            # For the plain job it is enough that all bindings are true, or all false.
            answers = {truth(self.resolve_setting(term)) for term in found} if self.job else set()
            # Without a target neither branch of `if mode == "spmd"` is taken: what runs "somewhere" is sure to.
            some = Truthy() if self.queries.has_target else Known(True)
            term = some if answers == {True} else Known(False) if answers == {False} else UNKNOWN
        return fixed if isinstance(term, Unknown) and fixed is not None else term

    def _assigned(self, alternative: Binding, context: EvalContext) -> Term:
        match alternative.value:
            case Imported() as imported:
                return self.dotted(imported.dotted)
            case tuple() as expression:
                try:
                    return self.term(expression, context)
                except Raised:
                    return UNKNOWN
            case _:
                return UNKNOWN

    def dotted(self, dotted: str) -> Term:
        """What an absolute dotted name stands for."""
        if self.job is not None and dotted in FIXED_NAMES:
            return FIXED_NAMES[dotted]
        split = self.summaries.split(dotted)
        if split is None:
            return self.queries.reference(dotted, self)
        summary, rest = split
        if not rest:
            return Reference(dotted)
        first, _, more = rest.partition(".")
        found = self.member(summary, first)
        # A name that the package binds to something unknown may be its submodule.
        if isinstance(found, Unknown) and self.summaries.module(f"{summary.module}.{first}") is not None:
            return Reference(dotted)
        for name in filter(None, more.split(".")):
            found = self.attribute_of(found, name)
        return found

    def self_attribute(self, summary: FileSummary, owner: str, name: str) -> Term:
        """`self.name` in a class."""
        waiting, seen = [(summary, owner)], set()
        while waiting:
            where, current = waiting.pop(0)
            class_summary = where.classes.get(current)
            if class_summary is None or (where.file, current) in seen:
                continue
            seen.add((where.file, current))
            if name in class_summary.attributes:
                key = (where.file, current, f"self.{name}")
                if key in self.active or len(self.active) >= _DEEPEST:
                    return UNKNOWN
                self.active.add(key)
                try:
                    terms = [
                        _unless_filled(self._assigned(alternative, EvalContext(where, function)), name)
                        for function, alternative in class_summary.attributes[name]
                        if self.runs(alternative.conditions, EvalContext(where, function)) is not False
                    ]
                finally:
                    self.active.discard(key)
                if terms and all(term == terms[0] for term in terms) and not isinstance(terms[0], Unknown):
                    return terms[0]
                break
            for base in class_summary.bases:
                found = self._base(where, base)
                if found is not None:
                    waiting.append(found)
        return self.job.setting(name, None) if self.job is not None else UNKNOWN

    def class_attribute(self, summary: FileSummary, owner: str, name: str) -> Term:
        """`Class.name`: a constant of the class body; a member of an enumeration stays a thing."""
        class_summary = summary.classes.get(owner)
        alternatives = class_summary.attributes.get(name, []) if class_summary is not None else []
        if (
            class_summary is not None
            and len(alternatives) == 1
            and not any("Enum" in base for base in class_summary.bases)
        ):
            found = self._assigned(alternatives[0][1], EvalContext(summary))
            if not isinstance(found, Unknown):
                return found
        return Reference(f"{summary.module}.{owner}.{name}")

    def _base(self, summary: FileSummary, written: str) -> tuple[FileSummary, str] | None:
        term = self.member(summary, written) if "." not in written else UNKNOWN
        if isinstance(term, Reference) and (split := self.summaries.split(term.dotted)) is not None:
            return split
        return None


def _unless_filled(term: Term, name: str) -> Term:
    """The term, unknown for what other code may add to: a dictionary, and an empty list, `waiting = []`, which somebody
    fills before `while waiting:`.

    What is stored later is not followed. A name in capital letters says that nothing is: `SHIMS = {"0.5.1": "0.5.4"}`.
    """
    if not isinstance(term, Known) or name.isupper():
        return term
    empty = isinstance(term.value, tuple | list | set | frozenset) and not term.value
    return UNKNOWN if empty or isinstance(term.value, dict) else term


def class_of(summary: FileSummary, body: Body) -> str:
    """The class whose method a function is, or is nested in."""
    name = body.qualname
    while name:
        found = summary.bodies.get(name)
        if found is not None and found.owner:
            return found.owner
        name = name.rpartition(".")[0]
    return ""
