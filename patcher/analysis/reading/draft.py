"""A class while its file is being read: methods add attributes to it as they are visited."""

from __future__ import annotations

from dataclasses import dataclass, field

from patcher.analysis.facts import Bound, ClassFacts, FunctionFacts
from patcher.analysis.values import Value


@dataclass(slots=True, eq=False)
class ClassDraft:
    qualname: str
    line: int
    bases: tuple[Value, ...]
    attributes: dict[str, list[Bound]] = field(default_factory=dict)
    methods: dict[str, FunctionFacts] = field(default_factory=dict)

    def facts(self) -> ClassFacts:
        attributes = {name: tuple(bounds) for name, bounds in self.attributes.items()}
        return ClassFacts(self.qualname, self.line, self.bases, attributes, self.methods)
