"""What stands where a value is expected: where it ends, whether it is a plain word, whether it seems drawn at random."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Iterator, Tuple

from patcher.secrets.names import MAYBE, NONE, PASSWORD, PIN, rank
from patcher.secrets.patterns import Pattern

_LONGEST = 1 << 16
"""Characters of a string in quotes that are looked at."""
HIDDEN = "***"
"""What stands in a secret's place."""
Span = Tuple[int, int]

_PLAIN = Pattern(
    r"(?i)true|false|none|null|nil|yes|no|on|off|undefined|unset|empty|missing|required|optional|\W*"
    r"|\$[\w:@]+|\$?\{\{?[^{}]*\}?\}|\$\([^()]*\)|%\w+%|<[^\W\d][^\W\d |.-]*>|<[^\W\d]*[_ |.-][^\d<>]*>|<\|[^<>]*\|>|</?s>|\[[A-Z]+\]|\.{2,}"
    r"|\W{0,3}(?:redacted|hidden|masked|removed|filtered|censored)\W{0,3}|\W{0,3}(?:x{3,}|\*{3,})\W{0,3}"
    r"|(?:str|int|bool|bytes|float|any|dict|list|tuple|object|optional|union|string|number|boolean)(?:\[.*)?"
)
_CODE = Pattern(
    r"(?:self|os|config|cfg|args|kwargs|request|req|settings|env|environ|ctx|data|batch|tokenizer|tok|model|output|outputs|input"
    r"|response|params|options|opts|hparams|processor|torch|np|math|getpass|secrets|event|item|row|sys|cls|conf)"
    r"(?:\.\w+|\[).{0,200}|[A-Za-z_][\w.]{0,60}\(.{0,200}"
)
"""What a program computes: `token = tokenizer.decode(ids)`."""
_NUMBER = Pattern(r"(?i)[+-]?(?:\d[\d,_]*\.?\d*|\.\d+|nan|inf)(?:e[+-]?\d+)?(?:\s?(?:[kmgt]i?b?|ms|s|m|h|d|%|x))?")
_WORDS = Pattern(r"[A-Za-z]{3,}")
_PLACE = Pattern(r"[./\\]|^[a-z_]+$|^[A-Z_]+$|^[\d.,-]+$")
_UUID = Pattern(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ENTROPY = 3.4
"""Bits a character from which on a value counts as drawn at random.

16 letters and digits that are drawn at random have 3.8 on average, 20 have 4.0, and 32 hexadecimal digits 3.6; the limits
are set below these, at 3.4 and for hexadecimal digits at 3.0. Hashes in logs are above them too, so the value must also
stand under a name that may be a secret's.
"""


def random(value: str) -> bool:
    """Whether a value seems drawn at random: neither words, nor a place, nor a number, nor the id of something.

    `9fK2mQ7xLw3Vb8ZcT1pR` does; `torch_compile_cache/3bb0ab`, `checkpoint-global-step-1000` and a UUID do not. Ids of 16
    characters and more are taken for random where their letters are spread as evenly as ENTROPY says.
    """
    body = value.strip("=")
    if len(body) < 16 or _UUID.fullmatch(body):
        return False
    if _PLACE.search(body) and not re.fullmatch(r"[A-Za-z0-9+/]{32,}", body):
        return False
    if not (re.search(r"\d", body) and re.search(r"[A-Za-z]", body)):
        return False
    if sum(len(word) for word in _WORDS.findall(body)) > 0.7 * len(body) and re.search(r"[_-]", body):
        return False
    entropy = -sum(count / len(body) * math.log2(count / len(body)) for count in Counter(body).values())
    return entropy >= (ENTROPY if len(set(body.lower()) - set("0123456789abcdef")) else 3.0)


def hidden(kind: str, value: str, *, quoted: bool = True, name: str = "") -> bool:
    """Whether the value that a name of this kind (see `names`) is given is hidden. `quoted`: it stood in quotes.

    Never hidden: what stands for a value (`None`, `${TOKEN}`, `<your key>`, `***`). Of secrets but passwords, small
    numbers (`token: 12`), words in capitals (`HF_TOKEN = MY_TOKEN_NAME`) and what a program computes.
    """
    value = value.strip()
    if not value or kind == NONE or (len(value) < 120 and _PLAIN.fullmatch(value)):
        return False
    if name.lower() in ("pwd", "pw") and value[:1] in "/~.":  # The working folder of a shell.
        return False
    if kind == PIN:
        return bool(re.fullmatch(r"\d{4,8}", value))
    if kind == MAYBE:
        return random(value) or _drawn(value)
    if not quoted and _CODE.fullmatch(value):
        return False
    if kind == PASSWORD:
        return True
    if not quoted and "\u4e00" <= value[0] <= "\u9fff":
        return False  # A sentence goes on: 切分 token：补齐到其倍数
    if _NUMBER.fullmatch(value):
        return len(value) > 5 and (quoted or (value.isdigit() and len(value) > 8))
    return not (rank(value) and re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+" if quoted else r"[A-Za-z_]+", value))


def _drawn(value: str) -> bool:
    """Whether a shorter value under a doubtful name is nobody's word: `hunter2x!Q`."""
    if not 8 <= len(value) <= 200 or re.search(r"[\s/\\.:]", value) or _UUID.fullmatch(value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w-]"))
    return kinds >= 3 and not re.search(r"[_-][a-z]{3,}|[()\[\]{}<>,=]", value)


OPEN = Pattern(r"(?P<slashes>\\*)(?P<quote>\"\"\"|'''|[\"'`])")
_BARE = Pattern(
    r"(?:[^\s,;&\"'`()\[\]{}<>|│┃║\\，；。]"
    r"|\\(?![nrt]|\\{0,8}(?:[\"'`\n]|\Z))."
    r"|[,;&|，；。](?![\s,;&|)\]}\"']|\Z|[\w.-]{1,60}[\"']?\s?[=:])"
    r"|<(?![/A-Za-z\s]|\Z)|[\"'`()\[\]{}>](?![\s,;&)\]}\"'`>]|\Z|[A-Za-z]{1,40}=))+"
)
"""A value without quotes. A sign that may end it does so where what follows looks like the next thing."""


def end_of_quoted(text: str, at: int, slashes: int, quote: str) -> int:
    """Where the string ends that begins at `at`, behind its quote with so many backslashes before it.

    In JSON within JSON the quotes that end a string have as many before them as those that began it: `{\\"a\\": \\"b\\"}`.
    A string that does not end before its line does ends there.
    """
    line = text.find("\n", at, at + _LONGEST)
    line = line if line >= 0 else min(len(text), at + _LONGEST)
    until = min(len(text), at + _LONGEST) if len(quote) == 3 else line
    level = slashes + 1
    found = text.find(quote, at, until)
    while found >= 0:
        before = found
        while before > at and text[before - 1] == "\\":
            before -= 1
        count = found - before
        if count < slashes or ((count + 1) % level == 0 and (count + 1) // level % 2):
            return found - min(count, slashes)
        found = text.find(quote, found + 1, until)
    return line


def bare(text: str, at: int) -> int:
    """Where a value without quotes ends."""
    found = _BARE.match(text, at)
    end = found.end() if found else at
    while end > at and text[end - 1] in ".,;:，；。" and text[at:end].rstrip(".,;:，；。"):
        end -= 1
    return end


def closing(text: str, at: int) -> int:
    """Where the bracket ends that opens at `at`; where it does not, the end of its line."""
    pairs, stack = {"(": ")", "[": "]", "{": "}"}, []
    until = min(len(text), at + 4000)
    for found in re.compile(r"\\*[\"']|[()\[\]{}]").finditer(text, at, until):
        sign = found[0]
        if sign in pairs:
            stack.append(pairs[sign])
        elif stack and sign == stack[-1]:
            stack.pop()
            if not stack:
                return found.end()
    line = text.find("\n", at, until)
    return line if line >= 0 else until


_ITEM = Pattern(r"(?P<slashes>\\*)(?P<quote>[\"'])|[^\s,;:=\[\](){}\"'\\]+")


def items(text: str, at: int, end: int) -> Iterator[Span]:
    """The strings and words within a bracket."""
    while at < end:
        found = _ITEM.search(text, at, end)
        if found is None:
            return
        if found["quote"]:
            at = min(end, end_of_quoted(text, found.end(), len(found["slashes"]), found["quote"]))
            yield found.end(), at
            at += 1 + len(found["slashes"])
        else:
            at = found.end()
            yield found.span()


def line_end(text: str, at: int) -> int:
    """Where the line at `at` ends, without its newline."""
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def spans_of(found: re.Match[str] | None) -> Iterator[Span]:
    """Where the groups of a match that hold a secret stand."""
    if found is not None:
        for group in range(1, found.re.groups + 1):
            if found.start(group) >= 0 and found.end(group) > found.start(group):
                yield found.span(group)
