"""Does a drafted record do what it is for? Tried on the tree in memory, checked again, and shown by an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from patcher.analysis.findings import Finding
from patcher.check.drafts.inputs import DraftInputs
from patcher.check.pair import check_pair
from patcher.plan.replay import Replayed, Workspace
from patcher.records.model import Example, Record
from patcher.rewrite.edits import Edit, Mark
from patcher.rewrite.engine import locate
from patcher.rewrite.names import aliases
from patcher.rewrite.outcome import AlreadyDone, AnchorMissing, Overlap, Rewritten, Unparseable
from patcher.rewrite.sites import settle
from patcher.rewrite.source import Source, parse
from patcher.rewrite.syntax import IMPORTS, SCOPES, statements


@dataclass(frozen=True, slots=True)
class Proven:
    """The files' texts after the record, and the findings that are gone with it."""

    texts: Mapping[str, str]
    gone: tuple[Finding, ...]


@dataclass(slots=True, eq=False)
class Prover:
    """Tries records on one tree."""

    inputs: DraftInputs
    _checked: dict[tuple[str, ...], tuple[tuple[Finding, ...], Counter[str]]] = field(default_factory=dict)

    def prove(self, record: Record, wanted: Sequence[Finding]) -> Proven | None:
        """None unless the record applies, every finding in `wanted` is gone, none is new and a second run is idle."""
        texts = {file: text for file in record.files if (text := self.inputs.text(file)) is not None}
        made = replayed(record, texts, self.inputs.word)
        if made is None:
            return None
        # A record that edits its own result would edit it again at every run.
        if not is_idle(record, made, self.inputs.word):
            return None
        files = tuple(sorted(texts))
        if files not in self._checked:
            self._checked[files] = self._check(files, {})
        findings, unresolved = self._checked[files]
        after, unresolved_after = self._check(files, made)
        left = _counted(after)
        before = _counted(findings)
        gone = before - left
        # A new finding, or a use that could be decided before and cannot now.
        if left - before or _concerned(record, wanted) & set(unresolved_after - unresolved):
            return None
        if any(gone[_identity(finding)] == 0 for finding in wanted):
            return None
        return Proven(made, tuple(finding for finding in findings if gone[_identity(finding)] > 0))

    def _check(self, files: tuple[str, ...], texts: Mapping[str, str]) -> tuple[tuple[Finding, ...], Counter[str]]:
        inputs = self.inputs
        project = inputs.project.with_texts(texts)
        report = check_pair(project, inputs.target, verl=inputs.verl, baseline=inputs.baseline, files=files)
        return report.findings, Counter(one.symbol for one in report.unresolved)


def _concerned(record: Record, wanted: Sequence[Finding]) -> set[str]:
    """The symbols that the record is about. They must be decided after it; what hangs on them may be undecidable."""
    return {symbol.partition("(")[0] for symbol in (*record.when.has, *(finding.symbol for finding in wanted))}


def replayed(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str] = frozenset()
) -> dict[str, str] | None:
    """The texts with the record's edits; None unless every one of them is made."""
    workspace, done = _replay(record, texts, word, may_touch)
    if not done.made or not all(isinstance(result.outcome, Rewritten) for result in done.results):
        return None
    return dict(workspace.texts)


def is_idle(record: Record, texts: Mapping[str, str], word: str) -> bool:
    """Whether the record finds its work done."""
    workspace, done = _replay(record, texts, word, frozenset())
    return workspace.texts == texts and all(isinstance(result.outcome, AlreadyDone) for result in done.results)


def conflicting_record(record: Record, texts: Mapping[str, str], word: str) -> str | None:
    """The record whose marked line the edits stand on, if that is what keeps them from being made."""
    _, done = _replay(record, texts, word, frozenset())
    return next((result.outcome.record for result in done.results if isinstance(result.outcome, Overlap)), None)


def _replay(
    record: Record, texts: Mapping[str, str], word: str, may_touch: frozenset[str]
) -> tuple[Workspace, Replayed]:
    workspace = Workspace.of(texts, {}, word, "comment")
    return workspace, workspace.replay(record, lambda _edit: True, may_touch)


def _identity(finding: Finding) -> tuple[tuple[str, str, str, str], str]:
    return finding.key, finding.severity


def _counted(findings: Sequence[Finding]) -> Counter[tuple[tuple[str, str, str, str], str]]:
    return Counter(map(_identity, findings))


_STEP = "    "


def examples(record: Record, texts: dict[str, str], verl: str, word: str) -> tuple[Example, ...] | None:
    """Before and after of each file that the record edits, one that is done already, and one without its place.

    None where a smallest form cannot be made.
    """
    found: list[Example] = []
    several = len(record.files) > 1
    for file in record.files:
        edits = [edit for edit in record.edits if edit.file == file]
        code = parse(texts[file])
        if isinstance(code, Unparseable):
            return None
        anchors = _anchors(code, edits, Mark(record.id, word))
        # The example without the file's imports is shorter. If the edit finds no place there, its call goes by an
        # imported name.
        for imported in ((), _imports(code)):
            before = smallest(code, [*imported, *anchors])
            after = _made(record, file, before, word)
            if after is not None and after != before:
                break
        else:
            return None
        named = file if several else None
        found.append(Example(f"as in verl {verl}", before, after, file=named))
        clean = _without_markers(_made(record, file, before, word, clean=True) or "", record.id, word)
        # What the record made, without its marks, must be recognised as done.
        if clean and _is_left(record, file, clean, word):
            found.append(Example("done already", clean, file=named))
        if _is_missing(record, file, "import os\n", word):
            found.append(Example("no such place", "import os\n", fails="anchor-missing", file=named))
    return tuple(found)


def _anchors(code: Source, edits: Sequence[Edit], mark: Mark) -> list[cst.CSTNode]:
    found: dict[int, cst.CSTNode] = {}
    for edit in edits:
        for anchor in settle(code, locate(code, code.within(edit.within), edit, mark)).anchors:
            if not isinstance(anchor.node, cst.Module):
                statement = code.statement(anchor.node)
                found[id(statement)] = statement
    return sorted(found.values(), key=code.span)


def _imports(code: Source) -> list[cst.CSTNode]:
    """The module's own imports of names, which an edit's call may go by."""
    return [
        node
        for node, _ in statements(code.module)
        if isinstance(node, IMPORTS) and any(alias.asname for alias in aliases(node))
    ]


def smallest(code: Source, found: Iterable[cst.CSTNode]) -> str:
    """The statements alone, in the headers of the classes and functions around them."""
    lines: list[str] = []
    open_shells: list[cst.CSTNode] = []
    for statement in found:
        shells = [node for node in reversed(list(code.ancestors(statement))) if isinstance(node, SCOPES)]
        shared = 0
        while shared < min(len(shells), len(open_shells)) and shells[shared] is open_shells[shared]:
            shared += 1
        for depth in range(shared, len(shells)):
            lines += ["", ""] if depth == 0 and lines else [""] if shared and depth == shared and lines else []
            lines.append(_STEP * depth + _header(shells[depth]))
        open_shells = list(shells)
        lines += _lines(code, statement, _STEP * len(shells))
    return "\n".join(lines) + "\n"


def _header(node: cst.ClassDef | cst.FunctionDef) -> str:
    if isinstance(node, cst.ClassDef):
        return f"class {node.name.value}:"
    return f"{'async def' if node.asynchronous else 'def'} {node.name.value}({_parameters(node.params)}):"


def _parameters(params: cst.Parameters) -> str:
    """The parameters by name alone."""
    found = [one.name.value for one in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param) or params.kwonly_params:
        found.append(f"*{params.star_arg.name.value}" if isinstance(params.star_arg, cst.Param) else "*")
    found += [f"{one.name.value}=None" for one in params.kwonly_params]
    return ", ".join([*found, *([f"**{params.star_kwarg.name.value}"] if params.star_kwarg is not None else [])])


def _lines(code: Source, statement: cst.CSTNode, indent: str) -> list[str]:
    """A statement's lines at another depth; of a compound one the header, with nothing in it."""
    first, last = code.lines(statement)
    header = isinstance(statement, (cst.BaseCompoundStatement))
    # Of `if x:` the header alone, with `pass` in its body.
    if isinstance(statement, cst.BaseCompoundStatement):
        last = code.lines(statements(statement.body)[0][0])[0] - 1
    lines = [code.line(number) for number in range(first, last + 1)]
    own = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if all(not line.strip() or line.startswith(own) for line in lines):
        lines = [indent + line[len(own) :] if line.strip() else "" for line in lines]
    return [*lines, *([f"{indent}{_STEP}pass"] if header else [])]


def _made(record: Record, file: str, source: str, word: str, *, clean: bool = False) -> str | None:
    workspace = Workspace.of({file: source}, {}, word, "clean" if clean else "comment")
    done = workspace.replay(record, lambda edit: edit.file == file)
    return workspace.texts[file] if done.made else None


def _is_left(record: Record, file: str, source: str, word: str) -> bool:
    workspace = Workspace.of({file: source}, {}, word, "comment")
    done = workspace.replay(record, lambda edit: edit.file == file)
    return workspace.texts[file] == source and all(isinstance(result.outcome, AlreadyDone) for result in done.results)


def _is_missing(record: Record, file: str, source: str, word: str) -> bool:
    workspace = Workspace.of({file: source}, {}, word, "comment")
    done = workspace.replay(record, lambda edit: edit.file == file)
    return any(isinstance(result.outcome, AnchorMissing) for result in done.results)


def _without_markers(text: str, record: str, word: str) -> str:
    return "".join(line.replace(f"  # {word}[{record}]", "") for line in text.splitlines(keepends=True))
