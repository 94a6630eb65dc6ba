"""The labels: what the uses of a verl release do on a release of a package, as executed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bench.accuracy.environments import ENVIRONMENTS
from bench.accuracy.uses import Use

FOLDER = Path(__file__).parent / "labels"
Kind = Literal["import", "attribute", "keyword", "positional", "override"]
KINDS: tuple[Kind, ...] = ("import", "attribute", "keyword", "positional", "override")
State = Literal["holds", "broken", "unknown"]
Answer: TypeAlias = list[Any]
PACKAGES = ("vllm", "transformers", "ray", "numpy", "torch")
WORKS_WITH = {
    verl: dict(zip(PACKAGES, made_for, strict=True))
    for verl, *made_for in (
        ("0.5.0", "0.9.0", "4.52.4", "2.43.0", "1.26.4", "2.6.0"),
        ("0.6.0", "0.9.2", "4.52.4", "2.43.0", "1.26.4", "2.6.0"),
        ("0.6.1", "0.11.0", "4.57.6", "2.48.0", "1.26.4", "2.6.0"),
        ("0.7.0", "0.12.0", "4.57.6", "2.48.0", "1.26.4", "2.6.0"),
        ("0.7.1", "0.12.0", "4.57.6", "2.48.0", "1.26.4", "2.6.0"),
        ("0.8.0", "0.20.2", "4.57.6", "2.48.0", "2.0.2", "2.11.0"),
        ("0.9.0", "0.24.0", "5.5.4", "2.55.1", "2.3.5", "2.11.0"),
        ("0.9.1", "0.24.0", "5.5.4", "2.55.1", "2.3.5", "2.11.0"),
    )
}
"""The release of a package, among those executed, that a verl release was made for: it tells what positional arguments
were meant for, and which parameters an overridden method had."""


@dataclass(frozen=True, slots=True)
class Label:
    """`state`: unknown where it could not be executed; `why` is then the reason, else the exception.

    `name`: the module, attribute, parameter or method in question. `lines`: where a finding about it may stand.
    """

    verl: str
    package: str
    version: str
    file: str
    lines: tuple[int, ...]
    kind: Kind
    symbol: str
    name: str
    state: State
    why: str
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Witnessed:
    """A probe with what each environment answered, by its name."""

    probe: list[Any]
    answers: dict[str, Answer]


def write(uses: Mapping[str, Iterable[Use]], probes: Sequence[Witnessed]) -> None:
    """Uses by verl release, one line each, with the number of their probe; probes with the environments by answer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    numbers = {json.dumps(witnessed.probe): number for number, witnessed in enumerate(probes)}
    names = [environment.name for environment in ENVIRONMENTS]
    rows: list[list[Any]] = [names]
    for witnessed in probes:
        answers: dict[str, list[int]] = {}
        for name, answer in witnessed.answers.items():
            answers.setdefault(json.dumps(answer), []).append(names.index(name))
        rows.append([witnessed.probe, [[json.loads(answer), indices] for answer, indices in answers.items()]])
    _rows(FOLDER / "probes.jsonl", rows)
    for verl, found in uses.items():
        kept = []
        for use in found:
            row = {key: value for key, value in asdict(use).items() if value and key != "probe"}
            kept.append({**row, "probe": numbers[json.dumps(use.probe)]})
        _rows(FOLDER / f"verl-{verl}.jsonl", kept)


def _rows(file: Path, rows: Iterable[Any]) -> None:
    file.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


@cache
def witnessed() -> tuple[Witnessed, ...]:
    """The probes in the order of their numbers; none if there are no labels yet."""
    file = FOLDER / "probes.jsonl"
    names, *rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else [[]]
    return tuple(
        Witnessed(probe, {names[index]: answer for answer, indices in answers for index in indices})
        for probe, answers in rows
    )


def _answer(number: int, package: str, version: str) -> Answer | None:
    """What the real build could not execute is taken from the sources, where those are labelled too."""
    given = witnessed()[number].answers
    found = [given[name] for how in ("installed", "sources") if (name := f"{package}-{version}-{how}") in given]
    return next((answer for answer in found if answer[0] != "unknown"), found[0] if found else None)


def releases(package: str) -> list[str]:
    """The labelled releases of a package."""
    return list(dict.fromkeys(each.version for each in ENVIRONMENTS if each.package == package))


def labels(verl: str, package: str, version: str) -> Iterator[Label]:
    """The labels of one pair."""
    for line in (FOLDER / f"verl-{verl}.jsonl").read_text().splitlines():
        use = json.loads(line)
        answer = _answer(use["probe"], package, version)
        if answer is None:
            continue
        before = _answer(use["probe"], package, WORKS_WITH[verl][package]) or ["unknown"]
        for kind, lines, symbol, name, state, why in _of(use, answer, before):
            asked = use.get("asked", False)
            yield Label(verl, package, version, use["file"], lines, kind, symbol, name, state, why, asked)


_Row = tuple[Kind, tuple[int, ...], str, str, State, str]


def _of(use: dict[str, Any], answer: Answer, before: Answer) -> Iterator[_Row]:
    symbol, lines = use["symbol"], (use["line"],)
    name = symbol.rpartition(".")[2]
    match use["kind"], answer:
        case "call", ["bound", refused, positional, names]:
            for keyword, line in use.get("keywords", ()):
                why = refused.get(keyword, "")
                yield "keyword", (line, *lines), f"{symbol}({keyword})", keyword, _state(why), why
            # verl has no branches for older releases of torch, so that what went the same way is meant so:
            # `F.pad(value, …)` where the first parameter is `input`, and another one is called `value`.
            same = symbol.startswith("torch.") and before[0] == "bound" and before[3] == names
            shifted = "" if same else _shifted(use.get("arguments", []), names, before)
            yield "positional", lines, symbol, name, _state(positional or shifted), positional or shifted
        case "call", ["unknown", why]:
            for keyword, line in use.get("keywords", ()):
                yield "keyword", (line, *lines), f"{symbol}({keyword})", keyword, "unknown", why
            yield "positional", lines, symbol, name, "unknown", why
        case "override", _:
            state, why = _override(use.get("shape", {}), answer, before)
            yield "override", lines, symbol, name, state, why
        case ("import" | "attribute") as kind, [("holds" | "broken" | "unknown") as state, *why]:
            yield kind, lines, symbol, name, state, why[0] if why else ""


def _state(problem: str) -> State:
    return "broken" if problem else "holds"


def _shifted(arguments: list[str], names: list[str], before: Answer) -> str:
    """A positional argument that goes to another parameter than the one of its own name; where no argument has the name
    of a parameter, than the one that it went to on the release that the tree was made for."""
    meant = arguments
    if not set(arguments) & set(names) and before[0] == "bound" and not before[1] and not before[2]:
        meant = before[3][: len(arguments)]
    for index, (name, parameter) in enumerate(zip(meant, names, strict=False)):
        if name != parameter and name in names:
            return f"shifted: argument {index + 1} is {name}, goes to {parameter}"
    return ""


def _override(shape: dict[str, Any], answer: list[Any], before: list[Any]) -> tuple[State, str]:
    """Whether an overriding method takes what the overridden one has come to take since it was written."""
    if answer[0] != "method":
        return "unknown", answer[1] if answer[0] == "unknown" else "overrides nothing"
    if shape.get("required", 0) > len([kind for _, kind, _ in answer[1] if kind.startswith("POSITIONAL")]):
        return "broken", "TypeError: requires more than it is called with"
    known = {name for name, _, _ in before[1]} if before[0] == "method" else set()
    positional = shape.get("positional", [])
    for index, (name, kind, _) in enumerate(answer[1]):
        match kind:
            case "VAR_POSITIONAL" | "VAR_KEYWORD":
                continue
            case "KEYWORD_ONLY":
                taken = shape.get("any_keyword") or name in (*positional, *shape.get("keyword", ()))
            case _:
                by_name = name in (*positional, *shape.get("keyword", ())) or shape.get("any_keyword")
                taken = by_name and (index < len(positional) or shape.get("any_positional") or shape.get("any_keyword"))
                taken = taken or (shape.get("any_positional") and shape.get("any_keyword"))
        named = name in (*positional, *shape.get("keyword", ()))
        if taken and not named:
            return "unknown", f"takes {name} only in **kwargs"
        if not taken:
            if name in known:
                return "unknown", f"does not take {name}, and did not where it works"
            if before[0] == "unknown":
                return "unknown", "not executed on the release it was written for"
            return "broken", f"TypeError: does not take {name!r}"
    return "holds", ""
