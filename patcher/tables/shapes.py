"""What a TOML table may hold, declared key by key. Reading a table notes every mistake and stops at none.

    OVERRIDE = Shape(
        Override,
        {"key": text(matching(_KEY, "{name!r} is no key of a config", "name")), "value": text(), "add": flag(False)},
    )

reads `[[override]]` tables into `Override` values: a key that is missing, unknown or of another type becomes a mistake
with its line, and so does what a rule refuses. A value that is wrong is replaced by one of its type, so that the rest
of the table, and what depends on several keys, is still looked at; whoever reads a file throws the result away if there
are mistakes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from patcher.errors import message_of
from patcher.i18n import Phrase, Phrases, phrase
from patcher.tables.mistakes import KeyPath, Mistake, shortened_fields
from patcher.tables.toml import decode, key_lines

T = TypeVar("T")
Rule = Callable[[str], object]
"""What a text must be; it raises ValueError with a sentence for people where the text is something else."""
JsonSchema = Mapping[str, Any]
"""A part of a JSON schema, by which editors complete and check a file: `{"type": "string", "minLength": 1}`."""
_REQUIRED: Any = object()
_AS_EMPTY: Any = object()


@dataclass
class Mistakes:
    """The mistakes of one file, each noted with the line of its key."""

    file: str
    text: str
    found: list[Mistake] = field(default_factory=list)
    _lines: dict[KeyPath, int] | None = None

    def note(self, path: KeyPath, message: Phrase | Phrases | str) -> None:
        """Add a mistake at the key `path`."""
        self.found.append(Mistake(self.file, self.line(path), _dotted(path), shortened_fields(message)))

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest table around it."""
        if self._lines is None:
            self._lines = key_lines(self.text)
        for length in range(len(path), 0, -1):
            if line := self._lines.get(path[:length]):
                return line
        return 1

    def hold_to(self, rules: Iterable[Rule], path: KeyPath, value: str) -> None:
        """Note what each of the rules raises for `value`."""
        for rule in rules:
            try:
                rule(value)
            except ValueError as error:
                self.note(path, message_of(error))


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a table: how its value is read, and what stands for it where it is not given."""

    read: Callable[[Mistakes, KeyPath, Any], Any]
    wrong: Any
    """Stands for a value that is missing or of another type."""
    default: Any = _REQUIRED
    attribute: str = ""
    """The name of the value where the key cannot be one, as `with` and `after-steps`."""
    schema: JsonSchema = field(default_factory=dict)

    @property
    def required(self) -> bool:
        """Whether a table without the key is wrong."""
        return self.default is _REQUIRED or (self.default is _AS_EMPTY and "required" in self.schema)

    def value(self, mistakes: Mistakes, path: KeyPath, table: Mapping[str, Any]) -> Any:
        """The value at the key that `path` ends in."""
        key = path[-1]
        if key in table:
            return self.read(mistakes, path, table[str(key)])
        if self.default is _REQUIRED:
            mistakes.note(path, "is missing")
            return self.wrong
        return self.read(mistakes, path, {}) if self.default is _AS_EMPTY else self.default


READ_ELSEWHERE = Field(lambda *_: None, None, None)
"""A key that is allowed, and that the value does not get: something else has read it."""


@dataclass(frozen=True, slots=True)
class Shape(Generic[T]):
    """A table of fixed keys, and the value that it stands for."""

    make: Callable[..., T]
    """Takes the fields by name."""
    fields: Mapping[str, Field]
    rule: Callable[[Mistakes, KeyPath, T, Mapping[str, Any]], None] | None = None
    """Notes what is wrong between several keys: it gets the value made and the table as written."""

    def read(self, mistakes: Mistakes, path: KeyPath, written: Any) -> T:
        table = read_table(mistakes, path, written, tuple(self.fields))
        values = {
            each.attribute or key: each.value(mistakes, (*path, key), table)
            for key, each in self.fields.items()
            if each is not READ_ELSEWHERE
        }
        made = self.make(**values)
        if self.rule is not None:
            self.rule(mistakes, path, made, table)
        return made

    @property
    def schema(self) -> JsonSchema:
        """The keys and their types; what a rule says about several keys is not in it."""
        properties = {key: each.schema for key, each in self.fields.items()}
        required = [key for key, each in self.fields.items() if each.required]
        needs = {"required": required} if required else {}
        return {"type": "object", "properties": properties, **needs, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class OneOf:
    """A table whose key `key` says which of several shapes it has, as `kind` does in `[[edit]]`.

    Each shape has `key` as `READ_ELSEWHERE`.
    """

    key: str
    shapes: Mapping[str, Shape[Any]]

    def read(self, mistakes: Mistakes, path: KeyPath, written: Any) -> Any:
        """The value of the shape that is named; None where none is."""
        named = written.get(self.key) if isinstance(written, dict) else None
        if isinstance(named, str) and named in self.shapes:
            return self.shapes[named].read(mistakes, path, written)
        every = dict.fromkeys(key for shape in self.shapes.values() for key in shape.fields)
        table = read_table(mistakes, path, written, tuple(every))
        choice(self.shapes).value(mistakes, (*path, self.key), table)
        return None

    @property
    def schema(self) -> JsonSchema:
        """Any of the shapes, each with its own word in `key`."""
        return {"oneOf": [_with_word(shape.schema, self.key, word) for word, shape in self.shapes.items()]}


def read_file(text: str, path: Path, shape: Shape[T]) -> T | list[Mistake]:
    """The value that a file stands for, or all of its mistakes."""
    data = decode(text, path)
    if isinstance(data, Mistake):
        return [data]
    mistakes = Mistakes(str(path), text)
    made = shape.read(mistakes, (), data)
    return mistakes.found or made


def read_table(mistakes: Mistakes, path: KeyPath, written: Any, allowed: Collection[str]) -> Mapping[str, Any]:
    """`written` as a table; each key outside `allowed` is a mistake that names the nearest one."""
    if not isinstance(written, dict):
        mistakes.note(path, phrase("must be a table, not {kind}", kind=_kind(written)))
        return {}
    for key in written:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1)
            with_near = "unknown key; did you mean {near}? allowed here: {names}"
            template = with_near if near else "unknown key; allowed here: {names}"
            mistakes.note((*path, key), phrase(template, near="".join(near), names=", ".join(allowed)))
    return written


def text(*rules: Rule, default: Any = _REQUIRED, blank: bool = False, attribute: str = "") -> Field:
    """A string that the rules allow, with more than white space in it unless it may be `blank`."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> str:
        if not isinstance(written, str):
            mistakes.note(path, phrase("must be a string, not {kind}", kind=_kind(written)))
            return ""
        if not blank and not written.strip():
            mistakes.note(path, "must not be empty")
            return ""
        mistakes.hold_to(rules, path, written)
        return written

    return Field(read, "", default, attribute, _text_schema(rules, blank))


def texts(*rules: Rule) -> Field:
    """A list of strings, each allowed by the rules; empty where it is not given."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> tuple[str, ...]:
        if not isinstance(written, list) or not all(isinstance(item, str) and item for item in written):
            mistakes.note(path, "must be a list of non-empty strings")
            return ()
        for item in written:
            mistakes.hold_to(rules, path, item)
        return tuple(written)

    return Field(read, (), (), schema={"type": "array", "items": _text_schema(rules)})


def text_or_texts(*rules: Rule) -> Field:
    """A string, or a list of them: a tuple in either case."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> tuple[str, ...]:
        if isinstance(written, list):
            several: tuple[str, ...] = texts(*rules).read(mistakes, path, written)
            return several
        single = text(*rules).read(mistakes, path, written)
        return (single,) if single else ()

    return Field(read, (), schema={"anyOf": [text(*rules).schema, texts(*rules).schema]})


def choice(allowed: Iterable[str], *, default: Any = _REQUIRED) -> Field:
    """One of several words; "" stands for a wrong one."""
    rule = one_of(allowed)

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> str:
        value: str = text().read(mistakes, path, written)
        before = len(mistakes.found)
        if value:
            mistakes.hold_to((rule,), path, value)
        return value if len(mistakes.found) == before else ""

    return Field(read, "", default, schema=_text_schema((rule,)))


def flag(default: bool) -> Field:
    """`true` or `false`."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> bool:
        if not isinstance(written, bool):
            mistakes.note(path, phrase("must be true or false, not {kind}", kind=_kind(written)))
            return default
        return written

    return Field(read, default, default, schema={"type": "boolean", "default": default})


def whole(default: int | None, *, most: int = 1000, attribute: str = "") -> Field:
    """A whole number from 1 to `most`; `true` is none."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> int:
        if not isinstance(written, int) or isinstance(written, bool) or not 1 <= written <= most:
            mistakes.note(path, phrase("must be a whole number from 1 to {most}", most=most))
            return default or 1
        return written

    return Field(read, default or 1, default, attribute, {"type": "integer", "minimum": 1, "maximum": most})


def number(default: float) -> Field:
    """Any number; `true` is none."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> float:
        if not isinstance(written, (int, float)) or isinstance(written, bool):
            mistakes.note(path, "must be a number")
            return default
        return float(written)

    return Field(read, default, default, schema={"type": "number"})


def table(shape: Shape[Any], *, default: Any = _AS_EMPTY, attribute: str = "") -> Field:
    """A table of one shape. Where it is not given, and has no default, each of its required keys is missing."""
    return Field(shape.read, None, default, attribute, shape.schema)


def tables(shape: Shape[Any] | OneOf, *, attribute: str = "") -> Field:
    """An array of tables, `[[edit]]`; a table that no shape fits is left out of the tuple."""

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> tuple[Any, ...]:
        if not isinstance(written, list):
            sentence = "must be an array of tables ([[{key}]]), not {kind}"
            mistakes.note(path, phrase(sentence, key=path[-1], kind=_kind(written)))
            return ()
        made = (shape.read(mistakes, (*path, index), item) for index, item in enumerate(written))
        return tuple(value for value in made if value is not None)

    return Field(read, (), (), attribute, {"type": "array", "items": shape.schema})


def mapping(name: Rule, *values: Callable[[str, str], object]) -> Field:
    """A table of the writer's own keys, each allowed by a rule, with strings as values.

    The rules of a value get its key first: whether `HF_TOKEN = "x"` is a secret depends on both.
    """

    def read(mistakes: Mistakes, path: KeyPath, written: Any) -> dict[str, str]:
        rows = read_table(mistakes, path, written, written if isinstance(written, dict) else ())
        found = {}
        for key, value in rows.items():
            mistakes.hold_to((name,), (*path, key), key)
            rules = (partial(rule, key) for rule in values)
            found[key] = text(*rules, blank=True).read(mistakes, (*path, key), value)
        return found

    names = _text_schema((name,))
    return Field(
        read, {}, {}, schema={"type": "object", "propertyNames": names, "additionalProperties": {"type": "string"}}
    )


@dataclass(frozen=True, slots=True)
class Matching:
    """The rule that a text matches a pattern as a whole; it stands in the sentence `wrong` in place of `gap`."""

    pattern: re.Pattern[str]
    wrong: str
    gap: str

    def __call__(self, value: str) -> None:
        if not self.pattern.fullmatch(value):
            raise ValueError(phrase(self.wrong, **{self.gap: value}))


@dataclass(frozen=True, slots=True)
class OneWord:
    """The rule that a text is one of several words."""

    words: tuple[str, ...]

    def __call__(self, value: str) -> None:
        if value not in self.words:
            raise ValueError(phrase("{value!r} is none of: {names}", value=value, names=", ".join(self.words)))


def one_of(allowed: Iterable[str]) -> Rule:
    """The rule that a text is one of several words."""
    return OneWord(tuple(allowed))


def _text_schema(rules: Iterable[Rule], blank: bool = False) -> JsonSchema:
    """A string, as far as a schema can say what the rules ask for."""
    schema: dict[str, Any] = {"type": "string"}
    for rule in rules:
        if isinstance(rule, Matching):
            schema["pattern"] = f"^(?:{rule.pattern.pattern})$"
        elif isinstance(rule, OneWord):
            schema["enum"] = list(rule.words)
    return schema if blank or len(schema) > 1 else {**schema, "minLength": 1}


def _with_word(schema: JsonSchema, key: str, word: str) -> JsonSchema:
    properties = {**schema["properties"], key: {"const": word}}
    return {**schema, "properties": properties, "required": [*schema.get("required", ()), key]}


def _dotted(path: KeyPath) -> str:
    """`("edit", 0, "file")` as people write it: `edit[1].file`."""
    dotted = ""
    for part in path:
        dotted += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if dotted else part
    return dotted


def _kind(value: object) -> Phrase:
    kinds = {
        bool: phrase("true or false"),
        int: phrase("a number"),
        float: phrase("a number"),
        str: phrase("a string"),
        list: phrase("a list"),
        dict: phrase("a table"),
    }
    return kinds.get(type(value), phrase("a date"))
