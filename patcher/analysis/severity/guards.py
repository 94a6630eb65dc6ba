"""What stands between a use and its failure: tests of versions, `hasattr`, `try` with `except`, and jobs that never run
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from weakref import ref

from patcher.analysis.conditions.evaluator import Evaluator
from patcher.analysis.conditions.job import JOB_OF, USUAL_JOB
from patcher.analysis.conditions.names import EvalContext, summaries_of
from patcher.analysis.conditions.terms import EXCEPTIONS, FAILED_IMPORT, is_caught
from patcher.analysis.findings import Broken, FindingKind, Problem
from patcher.analysis.meaning import Program
from patcher.analysis.severity.attribute_tests import attributes_asked, has_attribute, with_known_attributes
from patcher.analysis.severity.reachability import Node, ReachedCode, job_of, plain_path
from patcher.analysis.uses import CallOf, Condition, ImportOf, MemberOf, Use, WhenRaised


class Guards:
    """Answers for one program and one of the plain jobs; everything is found when first asked for."""

    def __init__(self, program: Program, job: str) -> None:
        self._program = ref(program)
        self._job = job
        self._project, self._target, self._judge = program.project, program.target, program.judge
        self.summaries = summaries_of(program.project)
        self.target = program.evaluator
        self._broken: dict[str, list[tuple[Use, tuple[Problem, ...]]]] = {}
        self._asked: dict[str, Mapping[tuple[int, str], list[Use]]] = {}

    @cached_property
    def plain(self) -> Evaluator:
        """On the same target, by what is known of the plain job too."""
        return Evaluator(self.summaries, self.target.queries, job_of(self._project, self._job))

    @cached_property
    def reached(self) -> ReachedCode:
        """What the plain job runs of the tree as it is, on this target."""
        origin = self._project.origin
        if origin is not self._project:
            program = Program(origin, self._target, self._judge)
            return guards_of(program, self._job).reached
        known = self._target.kept
        found = known.get(("ways", self._job, origin))
        if not isinstance(found, ReachedCode):
            found = known["ways", self._job, origin] = plain_path(origin, self._job).on(self.plain)
        return found

    def runs_plainly(self, node: Node) -> bool:
        """Whether the plain job runs a function on this target, or another program that a run script starts."""
        return self._is_among(self.reached.here, node) or self._is_among(self.reached.programs.keys(), node)

    def runs_somewhere(self, node: Node) -> bool:
        """Whether one of them runs it on some target."""
        return self._is_among(self.reached.anywhere, node) or self._is_among(self.reached.programs_anywhere, node)

    def program_of(self, node: Node) -> str:
        """The program that runs a function which the plain job does not; "" where the plain job does, or none."""
        if self._is_among(self.reached.here, node):
            return ""
        return self.reached.programs.get(node) or self.reached.programs.get((node[0], ""), "")

    def is_for_other_releases(self, node: Node) -> bool:
        """Whether a test of versions keeps this release from a function, or from the import of its whole module.

        So it is with all of `verl.third_party.vllm.vllm_v_0_5_4` on any other release.
        """
        module = (node[0], "")
        if self.runs_somewhere(node) or (self.runs_somewhere(module) and not self.runs_plainly(module)):
            return True
        return self._is_chosen_on_others(*node)

    def _is_chosen_on_others(self, file: str, function: str) -> bool:
        """Whether tests of versions rule out every mention of a module's function on this target.

        if version("vllm") >= "0.14":
            patch = process_weights_for_vllm14
        else:
            patch = process_weights_for_vllm10
        """
        summary = self.summaries.file(file)
        name = function.partition(".")[0]
        if summary is None or not name or name not in summary.bodies:
            return False
        # Another file that has the name may use it on any release.
        if any(other != file for other in self._project.files([name])):
            return False
        ruled_out = False
        for body in summary.bodies.values():
            for block in body.content.blocks:
                if name in block.called or name in block.named:
                    self.target.asked = False
                    context = EvalContext(summary, body.qualname)
                    if self.target.runs((*body.conditions, *block.conditions), context) is not False:
                        return False
                    ruled_out = ruled_out or self.target.asked
        return ruled_out

    def _is_among(self, nodes: AbstractSet[Node], node: Node) -> bool:
        """Whether a function is among those that run, found for the tree as it is.

        A function that a record brings into a file is taken to run where the file's own code does.
        """
        if node in nodes or self._project.origin is self._project:
            return node in nodes
        # Not among the functions of the tree as it is: new with the record.
        before = summaries_of(self._project.origin).file(node[0])
        return (before is None or node[1] not in before.bodies) and (node[0], "") in nodes

    def runs(self, use: Use, evaluator: Evaluator) -> bool | None:
        """Whether the conditions of a use hold."""
        summary = self.summaries.file(use.file)
        if summary is None:
            return None
        context = EvalContext(summary, use.context.function)
        sure: bool | None = True
        body = summary.bodies.get(use.context.function)
        around = body.conditions if body is not None else ()
        for condition in (*around, *use.context.conditions):
            answer = self._holds(condition, use, evaluator, context)
            if answer is False:
                return False
            sure = sure if answer else None
        return sure

    def _holds(self, condition: Condition, use: Use, evaluator: Evaluator, context: EvalContext) -> bool | None:
        if not isinstance(condition, WhenRaised):
            known = with_known_attributes(condition, lambda line, name: self._has(use.file, line, name))
            return evaluator.runs((known,), context)
        sure: bool | None = None
        if use.file.endswith(".py"):
            sure = evaluator.fails(condition, context.summary)
            if sure:
                return True
        failing = (found for found in self._judged(use.file) if condition.first <= found[0].line <= condition.last)
        if any(covers(condition.catches, one.kind, other) for other, problems in failing for one in problems):
            return True
        return False if self._all_decided(use.file, condition) else sure

    def _has(self, file: str, line: int, name: str) -> bool | None:
        """Whether the value that `hasattr` or `getattr` asks in a line has the attribute on this target."""
        if file not in self._asked:
            self._asked[file] = attributes_asked(self._project.uses(file))
        return has_attribute(self._found(), self._asked[file].get((line, name), ()))

    def _found(self) -> Program:
        program = self._program()
        assert program is not None, "guards outlived their program"
        return program

    def _judged(self, file: str) -> list[tuple[Use, tuple[Problem, ...]]]:
        """The broken uses that stand in a `try` of the file."""
        if file not in self._broken:
            program = self._found()
            found = []
            for use in self._project.uses(file):
                if use.context.caught and isinstance(use.need, ImportOf | MemberOf | CallOf):
                    verdict = program.judge(use, program)
                    if isinstance(verdict, Broken):
                        found.append((use, verdict.problems))
            self._broken[file] = found
        return self._broken[file]

    def _all_decided(self, file: str, condition: WhenRaised) -> bool:
        """Whether the `try` holds uses of the target and none of them fails: then the handler waits in vain."""
        return any(
            condition.first <= use.line <= condition.last
            and isinstance(use.need, ImportOf)
            and use.need.module.partition(".")[0] in self._target.against
            for use in self._project.uses(file)
        )


def guards_of(program: Program, package: str = "") -> Guards:
    """The guards of a program, kept as long as it lives, for what is used of a package, by its import name.

    The plain job is the one of that package where it has one of its own; else of what the tree is held against.
    """
    against = program.target.against
    wanted = (package, USUAL_JOB, *JOB_OF)
    job = next((JOB_OF[one] for one in wanted if one in JOB_OF and one in against), USUAL_JOB)
    found = program.once(("guards", job), lambda: Guards(program, job), None)
    assert found is not None
    return found


def covers(catches: tuple[str, ...], kind: FindingKind, use: Use) -> bool:
    """Whether one of the exceptions catches what a problem of this kind raises."""
    return is_caught(_raised(kind, use), catches)


def _raised(kind: FindingKind, use: Use) -> tuple[str, ...]:
    match kind:
        case "module-removed" | "module-moved":
            return FAILED_IMPORT
        case "symbol-removed" | "symbol-moved" if isinstance(use.need, ImportOf):
            return FAILED_IMPORT if use.need.name is None else FAILED_IMPORT[1:]
        case "symbol-removed" | "symbol-moved" | "attribute-removed":
            return EXCEPTIONS["AttributeError"]
        case "argument-removed" | "argument-required" | "argument-shifted":
            return EXCEPTIONS["TypeError"]
        case _:
            return ()
