"""Names with the values that they are given: `NAME=value` in the spellings of programs, files, tables and languages."""

from __future__ import annotations

import re
from typing import Iterator

from patcher.secrets.names import MAYBE, NEEDLE, PASSWORD, PIN, rank
from patcher.secrets.patterns import Pattern
from patcher.secrets.tables import continued, is_head
from patcher.secrets.values import OPEN, Span, bare, closing, end_of_quoted, hidden, items, line_end, random

_LONGEST = 80
"""Characters of a name that are looked at on each side of what gives it away."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_REST = Pattern(r"[A-Za-z0-9_.-]{0,80}")
_SHORT = Pattern(r"(?:p(?:at|in|w)|t?otp|s(?:id|as|ig))s?(?![a-z])")
_HUMPS = Pattern(r"(?:P(?:at|in|w|ass|wd)|Otp|S(?:id|as|ig))s?(?![a-z])")
"""Words that stand within many others, such as `pat` in `path`: between signs alone, or as in `githubPat`."""

# What stands between a name and its value: `NAME=`, `"name": `, `name => `, `| name | `, `name is `, `密码：`, `<name>`,
# `"name"] :: `. A quote and brackets may close the name first (`cfg["token"] =`), and a remark may follow it (`Password (again):`).
_SEPARATOR = Pattern(
    r"(?P<slashes>\\{0,15})(?P<quote>[\"'`]?)(?:[ \t]{0,4}\([^()\n]{0,30}\)(?=[ \t]{0,4}[:=]))?[\])}>%*`]{0,3}"
    r"(?:[ \t](?:provided|given|supplied|used|specified)(?=:))?"
    r"(?:</?[\w:.]{1,40}(?:\s[^<>\n]{0,80})?>\s{0,40}){0,3}[ \t]{0,80}"
    r"(?P<sign>=>|->|→|:-|:=|:\?|\+=|={1,3}|(?<=[ \t\]\"'])::|:(?!//)|：|＝|,|\||│|┃|║|\t"
    r"|(?:is|was|are|set to)\b[ \t]{0,4}[:=]?|[是为][：:]?|(?<=>))"
    r"[ \t]{0,80}"
)
_NAMED = Pattern(
    r"\\{0,15}[\"']?[ \t]{0,4}[,;]?\s{0,80}(?:- )?\\{0,15}[\"']?"
    r"(?:[vV]alue|VALUE|val|default|content|data)\\{0,15}[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
)
"""Behind a name that is a value itself: `- name: HF_TOKEN`, and on the next line `value: ...`."""
_NAMED_AS = Pattern(
    r"(?i)(?:name|key|field|id|var|variable|option|header)\\{0,15}[\"']?[ \t]{0,8}[:=][ \t]{0,8}\\{0,15}[\"']?\Z"
)
# A value behind a space alone: `--token X`, `"--token", "X"`. No sign follows, or it would be the separator.
_SPACE = Pattern(r"(?P<quote>[\"']?)(?P<comma>,?)[ \t]{1,40}(?![-=:|,])")
# A value in brackets behind its name: `token (abc123def)`.
_ENCLOSED = Pattern(r"[ \t]?(?:[:=][ \t]?)?[(\[<]([^\s()\[\]<>\"'`,=]{8,200})[)\]>]")
# A word before the name that says that a value follows it: `ENV HF_TOKEN x`, `config set token x`.
_ORDERS = Pattern(
    r"(?i)(?:\b(?:set|setenv|env|arg|config|add|login|put|with|using|export|enter|value)\s+|add-|^\s*)[\"']?\Z"
)
_WRAPPED = Pattern(
    r"(?:[A-Za-z_][\w.]{0,40}(?:\([ \t]*(?:\w{1,20}=)?|\[)(?=\\{0,15}[\"'])|!!?\w{0,20}[ \t]+|&\w{1,20}[ \t]+|[bBrRfFuU]{1,2}(?=\\{0,15}[\"'])|\$(?=\\{0,15}['\"])"
    r"|<(?=\\{0,15}[\"'])){0,3}"
)
"""What may stand around a value: `SecretStr('...')`, `b'...'`, `!!str ...`."""
_TAGGED = Pattern(r"(?:!!?\w{0,20}|&\w{1,20})[ \t]+(?=\S)")
# Nothing behind the separator but the marks of a block of YAML and a remark: the value stands on the next lines.
_BELOW = Pattern(r"(?:[|>][+-]?\d?[ \t]*)?(?:#[^\n]*)?\\?\r?\n")
_LINE = Pattern(r"(?P<indent>[ \t]*)(?P<dash>- +)?(?P<rest>[^\n]*)")
# A line that begins another entry of a table: `name: x`, `name = x`.
_ENTRY = Pattern(r"[\w.\"'/-]{1,80}\s?:(?:\s|\Z)|[\w.]{1,80}\s?=")
# A sentence goes on: `token: The string that separates ...`.
_PROSE = Pattern(r"[A-Za-z]{1,20}[.!?:]?(?=\s+[a-z]|\s*\Z|\s*\n)")
# What may stand before a name at the beginning of its line: `(Worker pid=1) `, `# `, `- `, `export `, a quote.
_START = Pattern(
    r"[ \t]*(?:\([^()\n]{1,60}\)[ \t]*|[#;]+[ \t]*|- +|export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|\+[ \t]*)*[\"']?\Z"
)
_NEXT = Pattern(r"\s(?:--?\w|\w[\w.-]{0,60}\s?=|[|&;>])")
_TO_END = Pattern(r"[^\n\"'`\\<>{}]+")


def word_at(text: str, start: int, end: int, floor: int = 0) -> Span:
    """The name that what stands at `start` belongs to."""
    before = text[max(0, start - _LONGEST, floor) : start]
    start -= len(before) - len(before.rstrip(_LETTERS))
    for _ in range(20):
        if start <= floor or text[start - 1].isascii() or not text[start - 1].isalnum():
            break
        start -= 1
    rest = _REST.match(text, end)
    end = rest.end() if rest else end
    while end > start and text[end - 1] in ".-":
        end -= 1
    return start, end


def find_assigned(text: str, small: str) -> Iterator[Span]:
    """Where values stand that are hidden because of their name. `small` is the same text in small letters."""
    done = 0
    for first, last in sorted([*(hit.span() for hit in NEEDLE.finditer(small)), *short_words(text, small)]):
        if first < done:
            continue
        start, end = word_at(text, first, last, done)
        done = max(done, end)
        name = text[start:end]
        kind = rank(name)
        if not kind:
            continue
        for span in _values(text, start, end, name, kind):
            done = max(done, span[1])
            yield span


def lower(text: str) -> str:
    """The text in small letters, of the same length: a few letters grow when they are made small, such as \u0130."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


def short_words(text: str, small: str) -> Iterator[Span]:
    """Where one of the short words stands by itself within a name."""
    for hit in _SHORT.finditer(small):
        if not ("a" <= small[hit.start() - 1 : hit.start()] <= "z"):
            yield hit.span()
    for hit in _HUMPS.finditer(text):
        if "a" <= text[hit.start() - 1 : hit.start()] <= "z":
            yield hit.span()


def _values(text: str, start: int, end: int, name: str, kind: str) -> Iterator[Span]:
    named = _NAMED.match(text, end)
    if named is not None and _NAMED_AS.search(text, max(0, start - 60), start):
        yield from _value(text, named.end(), kind, name, start, quote="", sign=":")
        return
    enclosed = _ENCLOSED.match(text, end)
    if enclosed is not None and kind not in (MAYBE, PIN) and _mixed(enclosed[1]):
        yield enclosed.span(1)
        return
    found = _SEPARATOR.match(text, end)
    if found is not None and _fits(text, start, found, name, kind):
        yield from _value(
            text, found.end(), kind, name, start, quote=found["slashes"] + found["quote"], sign=found["sign"]
        )
        return
    spaced = _SPACE.match(text, end)
    if spaced is not None and kind == MAYBE:
        value = text[spaced.end() : bare(text, spaced.end())]
        if random(value) and not re.fullmatch("[0-9a-f]+", value):
            yield spaced.end(), spaced.end() + len(value)
    elif spaced is not None and kind != PIN:
        yield from _behind_a_space(text, start, spaced, name, kind)


def _mixed(value: str) -> bool:
    """Whether a value holds letters and digits, and is no call, path or version: `hunter2`."""
    mixed = re.search(r"\d", value) and re.search(r"[A-Za-z]", value) and not re.search(r"[/\\=()]", value)
    return bool(mixed) and not re.fullmatch(r"\d+(?:\.\d+)*[a-z]*|[a-z_]+\d{1,3}", value)


def _fits(text: str, start: int, found: re.Match[str], name: str, kind: str) -> bool:
    """Whether a sign that stands for other things as well gives a name its value here."""
    sign = found["sign"]
    if sign == ",":  # A list of arguments, `["--token", "X"]`, but not `("token", "name")`, which are two names.
        if not (found["quote"] or name.startswith("-")) or not OPEN.match(text, found.end()):
            opened = re.compile(r"[bru]{0,2}[\"']").match(text, found.end())
            if opened is None or not found["quote"]:
                return False
        value = _quoted(text, found.end())
        if value is None or _is_name(text[slice(*value)], of_option=name.startswith("-")):
            return False
        called = name.startswith("-") or re.search(r"[(\[]\s*\\*[\"']\Z", text[max(0, start - 20) : start])
        return bool(called) or bool(re.search(r"\d", text[slice(*value)]))
    if sign[:1] in "iwas" and sign[:1]:  # `the password is hunter2`, but not `the token is missing`.
        rest = text[found.end() : bare(text, found.end())]
        return bool(re.search(r"[\d\W_]", rest)) and kind not in (MAYBE, PIN)
    if sign in ("是", "为"):
        return True
    if sign == "":  # `<password>X</password>`
        return (found[0].strip() != "" and "<" in found[0]) or found[0].endswith(">")
    return True


def _is_name(value: str, *, of_option: bool) -> bool:
    """Whether a value is the next name of a list, as in `("token", "secret")`. Behind an option only another option and
    words with underscores are, `("--token", "HF_TOKEN")`: in `["--token", "hunter2secret"]` a value sounds like a name."""
    return bool(rank(value)) and (not of_option or bool(re.fullmatch(r"-.*|[A-Za-z]+(?:_[A-Za-z]+)+", value)))


def _quoted(text: str, at: int) -> Span | None:
    wrapped = _WRAPPED.match(text, at)
    at = wrapped.end() if wrapped else at
    found = OPEN.match(text, at)
    if found is None:
        return None
    return found.end(), end_of_quoted(text, found.end(), len(found["slashes"]), found["quote"])


def _value(text: str, at: int, kind: str, name: str, start: int, *, quote: str, sign: str) -> Iterator[Span]:
    below = _BELOW.match(text, at)
    if below is not None:
        if sign in (":", "=", "：") or text[at : at + 1] in ("|", ">"):
            yield from _on_next_lines(text, below.end(), kind, name, start, block=text[at : at + 1] in ("|", ">"))
        return
    span = _quoted(text, at)
    if span is not None:
        if hidden(kind, text[slice(*span)], name=name):
            yield span
        return
    if text[at : at + 1] in ("[", "{", "(") and text[at + 1 : at + 2] != "{":
        if kind not in (MAYBE, PIN):
            end = closing(text, at)
            for item in items(text, at + 1, end):
                value = text[slice(*item)]
                if hidden(kind, value, quoted=value[:1] not in "0123456789.+-", name=name):
                    yield item
        return
    yield from _unquoted(text, at, kind, name, start, quote=quote, sign=sign)


def _unquoted(text: str, at: int, kind: str, name: str, start: int, *, quote: str, sign: str) -> Iterator[Span]:
    # `| HF_TOKEN | X |`, unless it is the head of a table, which `tables` reads.
    if sign in ("|", "│", "┃", "║", "\t"):
        ended = re.compile("[\n\t]" if sign == "\t" else "[\n|│┃║]").search(text, at)
        end = ended.start() if ended else len(text)
        value = text[at:end].rstrip()
        if value and hidden(kind, value, quoted=False) and not rank(value) and not is_head(text, at):
            yield at, at + len(value)
            if sign != "\t":
                yield from continued(text, at, at + len(value))
        return
    tagged = _TAGGED.match(text, at)
    at = tagged.end() if tagged else at
    end = bare(text, at)
    value = text[at:end]
    if text[end : end + 1] == "(" and re.fullmatch(r"[A-Za-z_][\w.]*", value):
        return  # A program calls something: `key = load(path)`.
    if sign == "=" and text[at - 1 : at] == " " and text[at : at + 1] == "-":
        return  # An option that was given nothing, and the next one.
    a_sentence = sign in (":", "：") and not quote and _PROSE.match(text, at) and not re.search(r"[\d_]", value)
    if a_sentence and kind != PASSWORD:
        return
    if kind == PASSWORD and sign in (":", "=", "：") and not quote:  # May hold spaces.
        end = _whole(text, start, at, end)
        value = text[at:end]
    if hidden(kind, value, quoted=False, name=name):
        yield at, end
        more = _wrapped(text, end)
        if more is not None:
            yield more


def _whole(text: str, start: int, at: int, end: int) -> int:
    """A password on a line of its own may hold spaces, as in `passphrase: correct horse battery staple`."""
    line = text.rfind("\n", max(0, start - 200), start) + 1
    if not _START.match(text[line:start]) or end >= len(text):
        return end
    rest = _TO_END.match(text, at)
    if rest is None or rest.end() < line_end(text, at) or _NEXT.search(rest[0]) or rest.end() - at > 200:
        return end
    return max(end, at + len(rest[0].rstrip()))


def _wrapped(text: str, end: int) -> Span | None:
    """The rest of a value that went on in the next line, because its own was full."""
    line = text.rfind("\n", max(0, end - 4000), end) + 1
    if end >= len(text) or text[end] not in "\r\n" or not 60 <= end - line <= 400:
        return None
    found = re.compile(r"\r?\n(?:\([^()\n]{1,60}\) )?([A-Za-z0-9+/=_.~-]{4,})(?=\r?\n|\Z|[\"',])").match(text, end)
    if found is None or found.end(1) - found.start(1) > end - line or not re.search(r"\d", found[1]):
        return None
    return found.span(1)


def _on_next_lines(text: str, at: int, kind: str, name: str, start: int, *, block: bool) -> Iterator[Span]:
    """What stands below its name: a block of YAML, a list, one value, or the entries of a table."""
    begun = text.rfind("\n", max(0, start - 4000), start) + 1
    outer = len(text[begun:start]) - len(text[begun:start].lstrip())
    inner = None
    for number in range(100):
        found = _LINE.match(text, at)
        if found is None or at >= len(text):
            return
        indent, rest = len(found["indent"]), found["rest"].rstrip().rstrip(",")
        if not rest and block:
            at = found.end() + 1
            continue
        if indent < outer or not rest:
            return
        if indent == outer and not found["dash"]:
            # A program asks, and what is typed is echoed below: `Password:` and `hunter2`.
            if number == 0 and not outer and kind == PASSWORD and len(rest.split()) == 1 and _mixed(rest):
                yield found.start("rest"), found.start("rest") + len(rest)
            return
        inner = indent if inner is None else inner
        begin = found.start("rest")
        if indent < inner or (_ENTRY.match(rest) and not block):
            if kind in (MAYBE, PIN, PASSWORD) or not _ENTRY.match(rest):
                return
            entry = re.compile(r"[^\n:=]{1,82}[:=]\s?").match(text, begin)
            if entry is None or rank(name) == MAYBE or not re.search(r"(?i)s\Z", name):
                return
            begin = entry.end()
        elif number and not block and not found["dash"]:
            return
        quoted = OPEN.match(text, begin)
        end = bare(text, begin) if not block else begin + len(rest)
        if quoted is not None:
            begin, end = quoted.end(), end_of_quoted(text, quoted.end(), len(quoted["slashes"]), quoted["quote"])
        if hidden(kind, text[begin:end], quoted=quoted is not None or block):
            yield begin, end
        elif not block:
            return
        at = line_end(text, begin) + 1


def _behind_a_space(text: str, start: int, spaced: re.Match[str], name: str, kind: str) -> Iterator[Span]:
    """`--token X`, `ENV HF_TOKEN X`, `password hunter2`; in prose only what is no word."""
    at = spaced.end()
    quoted = _quoted(text, at)
    begin, end = quoted or (at, bare(text, at))
    value = text[begin:end]
    before = text[max(0, start - 40) : start]
    option = name.startswith("-") or before.endswith("-")
    if not value or not hidden(kind, value, quoted=quoted is not None) or _is_name(value, of_option=option):
        return
    line = before.rpartition("\n")[2]
    ordered = option or (_ORDERS.search(line) and name.upper() == name and "_" in name)
    looks_random = re.search(r"\d", value) and re.search(r"[A-Za-z]", value) and len(value) > 5
    looks_random = looks_random and not re.search(r"[/\\=()]|^\d+(?:\.\d+)*[a-z]*$", value)
    if spaced["comma"] and not name.startswith("-"):
        return
    if ordered or looks_random or (quoted is not None and not value.isalpha() and kind == PASSWORD):
        yield begin, end
