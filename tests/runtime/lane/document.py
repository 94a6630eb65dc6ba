"""The tables of docs/runtime.md and its Chinese twin, from the results of one build. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patcher.i18n import Language
from tests.runtime.lane.model import ENTRIES, Failure, Result, State
from tests.runtime.lane.reasons import missing_package

DOCUMENTS: dict[str, Language] = {"docs/runtime.md": "en", "docs/runtime.zh-CN.md": "zh"}
_WORDS: dict[str, str] = {
    "verl": "verl",
    "as it comes": "原样",
    "modules": "模块",
    "import": "能导入",
    "lack a package": "缺别的包",
    "do not": "不能导入",
    "applied: import": "打补丁后能导入",
    "applied: do not": "打补丁后不能导入",
    "records": "记录",
    "findings": "发现",
    "true": "属实",
    "false": "不实",
    "not executed": "未能执行",
    "breaks left": "仍剩的 break",
    "symbol": "符号",
    "finding": "发现",
    "executed": "执行结果",
    "of": "/",
}


def block(text: str, name: str) -> str:
    """What stands between the marks of a block. Raises ValueError where there is none."""
    found = re.search(_marks(name), text, re.DOTALL)
    if found is None:
        raise ValueError(f"no block {name}")
    return found[2]


def with_block(text: str, name: str, inner: str) -> str:
    """The text with other lines between the marks. Raises ValueError where there are none."""
    block(text, name)
    return re.sub(_marks(name), lambda found: found[1] + inner + found[3], text, flags=re.DOTALL)


def _marks(name: str) -> str:
    return rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- end -->\n)"


def blocks(results: Sequence[Result], language: Language) -> dict[str, str]:
    """By name: the three tables of one build."""
    build = results[0].pair.build
    return {
        f"imports {build}": imports(results, language),
        f"findings {build}": findings(results, language),
        f"executed {build}": executed(results, language),
    }


def imports(results: Sequence[Result], language: Language) -> str:
    """Module by module untouched and, behind an arrow, with the records; then the plain path in numbers; then what the
    letters stand for."""
    letters: dict[str, str] = {}
    head = ["verl", "as it comes", *(f"`{entry.removeprefix('verl.').removeprefix('workers.')}`" for entry in ENTRIES)]
    head += ["modules", "import", "lack a package", "do not", "applied: import", "applied: do not", "records"]
    rows = []
    for result in results:
        named, applied = result.entries["named"], result.entries["applied"]
        alone = result.entries["as it comes"].values()
        row = [result.pair.verl, f"{sum(one is None for one in alone)} {_word('of', language)} {len(alone)}"]
        row += ["–" if entry not in named else _cell(named[entry], applied[entry], letters) for entry in ENTRIES]
        whole, lacking, broken = _counts(result, "named")
        row += [str(len(result.modules["named"])), str(whole), str(lacking), str(broken)]
        whole, _, broken = _counts(result, "applied")
        row += [str(whole), str(broken), str(len(result.records))]
        rows.append(row)
    notes = "".join(f"- {letter}: `{text}`\n" for text, letter in letters.items())
    return _table(head, rows, language) + (f"\n{notes}" if notes else "")


def _cell(before: Failure | None, after: Failure | None, letters: dict[str, str]) -> str:
    marks = [_mark(before, letters), _mark(after, letters)]
    return marks[0] if marks[0] == marks[1] else " → ".join(marks)


def _mark(failure: Failure | None, letters: dict[str, str]) -> str:
    if failure is None:
        return "✓"
    text = f"{failure.text} ({failure.place})" if failure.place else failure.text
    return letters.setdefault(text, chr(ord("a") + len(letters)))


def _counts(result: Result, state: State) -> tuple[int, int, int]:
    """Modules of the plain path that import, that lack another package, and that do not import."""
    failures = list(result.modules[state].values())
    lacking = sum(one is not None and bool(missing_package(one)) for one in failures)
    whole = failures.count(None)
    return whole, lacking, len(failures) - whole - lacking


def findings(results: Sequence[Result], language: Language) -> str:
    head = ["verl", "findings", "true", "false", "not executed", "breaks left"]
    rows = []
    for result in results:
        states = [claim.state for claim in result.claims]
        numbers = [len(states), *(states.count(state) for state in ("broken", "holds", "unknown")), result.left]
        rows.append([result.pair.verl, *map(str, numbers)])
    return _table(head, rows, language)


def executed(results: Sequence[Result], language: Language) -> str:
    """Each symbol once: the kind of finding, the releases of verl that it is found in, what its execution raised."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for result in results:
        for claim in result.claims:
            releases = found.setdefault((claim.symbol, claim.kind, claim.why), [])
            if result.pair.verl not in releases:
                releases.append(result.pair.verl)
    rows = [
        [f"`{symbol}`", kind, ", ".join(releases), f"`{why.replace('|', chr(92) + '|')}`"]
        for (symbol, kind, why), releases in sorted(found.items())
    ]
    return _table(["symbol", "finding", "verl", "executed"], rows, language)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], language: Language) -> str:
    lines = [[_word(word, language) for word in head], ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _word(word: str, language: Language) -> str:
    return _WORDS.get(word, word) if language == "zh" else word


def stale(text: str, results: Sequence[Result], language: Language) -> Iterator[str]:
    """Names of the blocks that say something else than the results."""
    for name, inner in blocks(results, language).items():
        if block(text, name) != inner:
            yield name
