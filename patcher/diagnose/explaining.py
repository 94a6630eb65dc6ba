"""Explain a failure that no record covers: who asks for what, and what the message itself advises.

A message of a known form becomes a sentence: `mbridge 0.15.1 (mbridge/core/util.py:83) asks for
ModelType.encoder_and_decoder, which megatron-core 0.18.0 does not have`. Nothing is guessed: the sentence holds only
what the message, the frames and the known versions say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from urllib.parse import quote_plus

from patcher.diagnose.code_message import is_of_getter, object_in, parse_by_code, passes_on, with_class
from patcher.diagnose.code_sentences import code_sentence, configured_sentence, values_of
from patcher.diagnose.cut_messages import (
    completed,
    parse_cut_import,
    parse_cut_name,
    parse_cut_task,
    parse_requirement,
    parse_stopped,
)
from patcher.diagnose.diagnosis import Explanation
from patcher.diagnose.evidence import Call, LogLine, Raised
from patcher.diagnose.exception_message import UNREADABLE_CODE, Matter, MessageParts, parse_message
from patcher.diagnose.failed_code import mapping_with, none_argument, none_operand, pointed_none, taken_from, zero_in
from patcher.diagnose.frame import Frame, distribution, frame_of
from patcher.diagnose.line_meaning import begins_anew
from patcher.diagnose.message_words import (
    at_caret,
    below_caret,
    line_of_kernel,
    own_words,
    remedy_in,
    straight,
    to_search_for,
)
from patcher.diagnose.own_module import unpickled_module
from patcher.diagnose.parties import (
    HANDS_ON,
    caller_of,
    frame_above,
    given_by_configuration,
    hands_on,
    is_cut_off,
    outside_of,
    party,
)
from patcher.diagnose.sentences import sentence_of
from patcher.diagnose.tensor_code import of_dimension
from patcher.diagnose.torch_call import refused_argument
from patcher.diagnose.usual_cause import of_settings, usual_cause
from patcher.i18n import Phrase, phrase
from patcher.logs.labels import strip_labels
from patcher.secrets.redacting import here

_SEARCH = "https://github.com/search?type=issues&q="

_NO_FILE = re.compile(r"<(?!ipython-input)|.*/bin/[\w-]+$|python/ray/_raylet\.pyx$")
"""`<string>`, `<frozen importlib._bootstrap>` the command `/env/bin/lmdeploy` that pip has made and Ray's compiled part
are not the user's own code; the cell of a notebook is."""


def explain(
    place: LogLine,
    raised: Raised | None,
    versions: Mapping[str, str],
    below: Sequence[str] = (),
    complaint: bool = False,
    behind: Sequence[Call] = (),
) -> Explanation | None:
    """Explain an exception; None where neither its message nor its frames say anything.

    Args:
        place: the line of the exception, or the line that reports an error without one.
        versions: by distribution.
        below: the lines below `place`, which may belong to its message.
        complaint: whether `place` reports an error that is no exception.
        behind: the frames of a traceback with which the log ends, of which the exception's own line is not known.
    """
    lines = _message_lines(place, raised, below)
    first = strip_labels(lines[0]).text
    texts = [one.text for one in raised.frames] if raised is not None else []
    calls = raised.calls if raised is not None else ()
    # The error may be quoted above its traceback, which is cut off.
    borrowed = not texts and bool(behind)
    if borrowed:
        texts = [one.frame for one in behind]
    # If the log ends within a traceback, `place` is the line of code.
    code = _code(*texts, place.text) if texts or not calls else calls[-1].code.strip()
    parts = parse_cut_task(first) if behind else None
    if parts is not None:
        calls, borrowed = tuple(behind), False
        parts = replace(parts, found=calls[-1].code.strip().partition("\n")[0])
    parts = parts or _parts(lines, raised, code, complaint, calls)
    remedy = remedy_in(lines)
    if parts is not None and parts.matter == "words" and remedy in parts.found:
        remedy = ""
    # All frames, not only those that are shown.
    texts = [one.frame for one in calls if one.frame] or texts
    frames = [frame for text in texts if (frame := frame_of(text)) is not None]
    at = (_sender(raised, frames) if _NOT_PICKLED.search(first) else None) or _asking_frame(texts, frames)
    if parts is not None and parts.matter in _OF_CALLS and calls and hands_on(calls[-1]):
        asking = [one.frame for one in calls if not hands_on(one)]
        at = (_asking_frame(asking, frames) or at) if asking else None
    if parts is not None and parts.matter == "claim":
        at = frames[-1] if frames else None
    elif parts is not None and parts.matter == "unwritten":
        at = frame_above(calls)
    elif parts is not None and parts.matter == "validation" and party(at) == "pydantic":
        at = outside_of("pydantic", calls) or at
    elif parts is not None and parts.matter == "dimension" and calls and (name := of_dimension(calls[-1].code)):
        parts = replace(parts, names=(name,))
    elif parts is not None and parts.matter == "none" and frames and at == frames[-1]:
        parts = replace(parts, symbol=_asked_of(parts, code, calls))
    again = parts is not None and parts.matter != "words" and (passes_on(calls) or _OF_WORKER.search(first) is not None)
    again = again or (parts is not None and is_cut_off(parts, calls))
    sentence = often = None
    if parts is not None:
        # The words of an error that a logger prints are its own, and not those of a frame.
        speaking = None if complaint and parts.matter == "words" else at
        who = _who(speaking, versions)
        if again:
            # That frame only raises again what it has caught, so another one asks.
            inner = object_in(first)
            who, at = phrase("{who} or what it calls", who=inner or who), None
        elif borrowed or (raised is not None and raised.message and not raised.name and speaking is not None):
            # The error is printed above a traceback that is cut off, so frames may be missing.
            who = phrase("{who} or what it calls", who=who)
        kernel = line_of_kernel(lines)
        if kernel and parts.matter != "words":
            # Triton's frames only read the kernel, whose line asks.
            who, at = _kernel(kernel), None
        given = given_by_configuration(parts, calls)
        sentence = (
            configured_sentence(parts, who, given)
            or _claim_sentence(parts, who, frames)
            or code_sentence(parts, who, calls, lines[0])
            or sentence_of(parts, who, versions)
        )
        often = usual_cause(parts, at, calls, given)
        if _OF_INDUCTOR.match(kernel):
            often = phrase("each torch wants one triton, and another one is installed: install the one it asks for")
        if parts.matter == "undefined-name" and often is not None:
            remedy = ""  # Python's suggestion is a similar name of the same file.
    if sentence is None:
        if not remedy and raised is None:
            return None
        sentence = _place_sentence(lines[0], raised, at)
    if parts is not None and raised is not None and (tried := _tried(raised, parts)):
        text = "{sentence}; before that it looked for {names}, which was not there either"
        sentence = phrase(text, sentence=sentence, names=", ".join(tried))
    if parts is not None and parts.matter == "words" and calls and (zero := zero_in(first, calls[-1].code)):
        sentence = phrase("{sentence}; {name} is 0", sentence=sentence, name=zero)
    if raised is not None and raised.because is not None:
        said = strip_labels(raised.because.text).text.strip()
        sentence = phrase("the program says: {words}; then {sentence}", words=said, sentence=sentence)
        lines = [said]
    own = _own_frame(frames) or _own_frame([frame for one in behind if (frame := frame_of(one.frame)) is not None])
    searched = _searched(first, code) or "".join(below_caret(lines)[:1]) or whole_line(lines[0], raised)
    caller, called = _caller(parts, at, own, calls) if parts is not None and not again else (None, "")
    if caller is None and behind and not borrowed and at is not None and not at.installed:
        caller = _passing(behind, at)
    if parts is not None and parts.matter == "cut" and at is not None:
        searched = " ".join((*parts.names, parts.found or " ".join(at.path.split("/")[-2:])))
    return Explanation(
        sentence,
        parts,
        at,
        own.shown if own is not None and own != at else "",
        remedy,
        line=_line(at, calls, unwritten=parts is not None and parts.matter == "unwritten"),
        caller=caller,
        calls=called,
        often=often,
        # Redact before quoting: in a link a secret no longer looks like one.
        search=_SEARCH + quote_plus(to_search_for(here().text(searched))),
    )


def _message_lines(place: LogLine, raised: Raised | None, below: Sequence[str]) -> Sequence[str]:
    """The lines of the message, as far as they are known."""
    if raised is not None and raised.message:
        return raised.message
    own = takewhile(lambda text: text.strip() and not strip_labels(text).level and not begins_anew(text), below)
    return (place.text, *own)


def _parts(
    lines: Sequence[str], raised: Raised | None, code: str, complaint: bool, calls: Sequence[Call]
) -> MessageParts | None:
    """The parsed message; for a message of no known form its own words, or the condition of an `assert`."""
    lines = [straight(line) for line in lines]
    first = strip_labels(lines[0]).text
    if raised is not None and (module := unpickled_module(raised)):
        return MessageParts("unpickled", names=(module,))
    # The message of a compiler of kernels is its source; what went wrong there is below the caret.
    kernel, lines = lines, below_caret(lines) or lines
    parts = parse_by_code(first, calls) or refused_argument(lines) or parse_message(lines)
    if parts is not None and parts.matter == "none" and lines is not kernel:
        return replace(parts, symbol=at_caret(kernel))
    parts = parts or parse_cut_import(lines[0], code) or parse_stopped(first, code)
    parts = parts or parse_cut_name(first, [one.code.strip() for one in calls] or [code])
    if parts is not None:
        return with_class(parts, calls)
    more = [*takewhile(_is_of_message, lines[1:] if raised is not None and raised.message else ())]
    is_code = raised is not None and not raised.name and not raised.message
    if is_code and (refused := parse_requirement(code)) is not None:
        return refused
    if not is_code and (words := own_words([first, *more], named=not complaint)):
        return MessageParts("words", found=words)
    if code.startswith(("assert ", "assert(")):
        own = calls[-1].code if calls else code
        said = _ITS_NAME.sub("", " ".join([first, *more])) if raised is not None and raised.message else ""
        return MessageParts("claim", names=(_claim(code),), found=values_of(said, own))
    if is_code and calls and "~" in calls[-1].marks and all(taken := taken_from(calls[-1].code, calls[-1].marks)):
        return MessageParts("cut", symbol=taken[0], names=(taken[1],), found=code)
    if is_code and of_settings(code):
        return MessageParts("cut", found=code)
    if raised is not None and raised.name and raised.message == (f"{raised.name}: ",):
        return MessageParts("cut", names=(raised.name,))
    return None


def _tried(raised: Raised, parts: MessageParts) -> list[str]:
    """What the code had looked for before, in the same way as for what `parts` names."""
    found = [one for said in raised.tried if (one := parse_message([said])) is not None and one.matter == parts.matter]
    return [one.symbol or repr(one.names[0]) for one in found if one.symbol or one.names]


def _asking_frame(texts: Sequence[str], frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that asks for something by itself; None where all frames only pass a call on.

    A frame of Python's standard library, or of `python -c`, asks on behalf of its caller.
    """
    asking = [frame for text in texts if not HANDS_ON.search(text) and (frame := frame_of(text)) is not None]
    if not asking:
        return None
    return _innermost(asking) or _innermost(frames) or frames[-1]


_OF_CALLS = ("unexpected-argument", "missing-argument", "too-many-arguments", "argument-twice")
_OF_WORKER = re.compile(r"\bWorker failed with error '")
"""What an engine raises for an exception that one of its workers has told it."""
_NOT_PICKLED = re.compile(r"\b(?:cannot|can't) (?:pickle|get local object)\b", re.IGNORECASE)
_PICKLES = re.compile(r"(?:(?:python/)?ray|cloudpickle|dill|joblib|multiprocess|torch/multiprocessing)/")


def _sender(raised: Raised | None, frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame outside of what pickles and sends, which has handed over what cannot be pickled."""
    shown = [frame_of(place.text) for place in raised.frames] if raised is not None else []
    for some in (frames, [frame for frame in shown if frame is not None]):
        senders = [one for one in some if not (_PICKLES.match(one.path) or (one.installed and not one.package))]
        if senders:
            return senders[-1]
    return None


def _line(at: Frame | None, calls: Sequence[Call], *, unwritten: bool) -> str:
    """The line of code of a frame; "" where something that it called in its own package has failed.

    `unwritten`: what it called is a method that only a base class has, so that the call is what failed."""
    call = next((one for one in reversed(calls) if frame_of(one.frame) == at), None)
    if at is None or call is None:
        return ""
    inside = call is not calls[-1] and party(frame_of(calls[-1].frame)) == party(at)
    return call.code.strip().partition("\n")[0] if unwritten or not inside else ""


def _own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame outside of packages, be they installed or run from a checkout."""
    own = (one for one in reversed(frames) if not one.installed and party(one) in ("", "verl"))
    return next((one for one in own if not _NO_FILE.match(one.path)), None)


_ITS_NAME = re.compile(r"^[\w.]+(?:: *|$)")
_CALLED: frozenset[Matter] = frozenset(
    (
        *("words", "key", "value", "none", "index", "validation", "shape", "dtype", "device", "type", "empty"),
        *("unpacking", "argument-type"),
    )
)
"""Where the sentence names who refuses, and the package that called it tells more."""


def _caller(
    parts: MessageParts, at: Frame | None, own: Frame | None, calls: Sequence[Call]
) -> tuple[Frame | None, str]:
    """The innermost frame of another package above `at`, with its code, where neither the sentence nor `own` names
    it."""
    if parts.matter == "words" and is_of_getter(calls):
        return _above(calls, own)
    if parts.matter == "none" and re.fullmatch(r"[a-z_]\w*", parts.symbol) and at is not None and not party(at):
        # It may be an argument of the function that failed.
        asker, code = _above(calls, own)
        return (asker, code) if asker is not None and asker.path != at.path else (None, "")
    forwards = parts.matter == "unexpected-argument" and bool(calls) and mapping_with(calls[-1].code, parts.names[0])
    found = caller_of(at, calls) if forwards or parts.matter in _CALLED else None
    return found if found is not None and found[0] not in (own, at) else (None, "")


def _passing(behind: Sequence[Call], at: Frame | None) -> Frame | None:
    """The installed package that called what failed, where the log ends within the frames of its own traceback."""
    last = frame_of(behind[-1].frame)
    return last if last is not None and last.installed and party(last) not in ("", party(at)) else None


def _above(calls: Sequence[Call], own: Frame | None) -> tuple[Frame | None, str]:
    """The frame that has called the innermost one, with its code, where it is not told already."""
    asker = frame_above(calls)
    code = next((one.code for one in reversed(calls[:-1]) if frame_of(one.frame) == asker), "")
    return (asker, code.strip().partition("\n")[0]) if asker is not None and asker != own else (None, "")


def _claim_sentence(parts: MessageParts, who: Phrase, frames: Sequence[Frame]) -> Phrase | None:
    """The sentence for an assertion that gives values, or that a call from another package did not meet; None for
    anything else."""
    if parts.matter != "claim":
        return None
    whence = _called_from(frames)
    fields = {"who": who, "claim": ", ".join(parts.names), "values": parts.found}
    if whence is None:
        text = "{who} asserts {claim}, which does not hold: {values}"
        return phrase(text, **fields) if parts.found else None
    if parts.found:
        text = "{who} asserts {claim}, which does not hold for the call at {place}: {values}"
        return phrase(text, place=whence.shown, **fields)
    text = "{who} asserts {claim}, which does not hold for the call at {place}"
    return phrase(text, who=who, claim=fields["claim"], place=whence.shown)


_OF_INDUCTOR = re.compile(r"def triton_\w+")


def _kernel(line: str) -> Phrase:
    """Who asks in the line of a kernel's source; in `def triton_poi_fused_add_0(...):` a kernel of torch's Inductor."""
    if _OF_INDUCTOR.match(line):
        return phrase("a kernel that torch's Inductor wrote")
    return phrase("the Triton kernel, with {code},", code=line)


def _place_sentence(line: str, raised: Raised | None, at: Frame | None) -> Phrase:
    """The sentence where the message says nothing that is known: the exception's name, and where it was raised."""
    if raised is not None and not raised.name and at is not None:
        return phrase("the log ends within a traceback, at {place}", place=at.shown)
    name = _name(line)
    if at is None:
        return phrase("{name}", name=name)
    return phrase("{name}, raised at {place}", name=name, place=at.shown)


def _code(*texts: str) -> str:
    """The line of code among the lines of a traceback."""
    return next((text.strip() for text in texts if frame_of(text) is None), "")


def whole_line(line: str, raised: Raised | None) -> str:
    """The line of an exception; where it is cut off within a name, with the whole name from the line of code."""
    code = _code(*(one.text for one in raised.frames)) if raised is not None else ""
    parts = parse_cut_import(line, code) if code else None
    return completed(line, parts) if parts is not None else line


def _called_from(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of another package than the last frame's; None where all are of one package."""
    last = _top(frames[-1]) if frames else ""
    known = [one for one in frames if not _PASSES_ON.match(one.path)]
    return next((one for one in reversed(known) if last and _top(one) not in ("", last)), None)


_PASSES_ON = re.compile(r"torch/(?:_ops|utils/_contextlib|nn/modules/module|_library/\w+|_dynamo/\w+)\.py$")
"""Files of torch that only pass a call on."""


_PLACEHOLDER = re.compile(r"^(?:\.\.\.|…|\{[^{}/]*\})/+")


def _top(at: Frame) -> str:
    """The top-level module of a frame, also of a shortened path such as `.../loss/cce.py`; "" where it is unknown."""
    cut = _PLACEHOLDER.sub("", at.path)
    return party(at) or (cut.partition("/")[0] if cut != at.path and "/" in cut else "")


def _searched(line: str, code: str) -> str:
    """What to search for where an exception has no message: its name and the code that raised it."""
    bare = re.fullmatch(r"\s*(?P<name>[\w.]+):?\s*", line)
    return f"{bare['name']} {code.removeprefix('assert ')}" if bare is not None and code else ""


def _is_of_message(line: str) -> bool:
    """Whether a line below an exception may belong to its message. `[W309 02:06:18 a.cpp:15] …` is a log line of its
    own."""
    # A line without letters, `"""` or `.`, only ends a quotation.
    return bool(re.search(r"\w", line)) and not strip_labels(line).level and not begins_anew(line)


def _innermost(frames: Sequence[Frame]) -> Frame | None:
    return next((one for one in reversed(frames) if one.package or not one.installed), None)


def _claim(code: str) -> str:
    """The condition that `assert a in (1, 2), "not so"` asserts. The message may continue on the next lines."""
    for whole in (code, code.removesuffix(", ("), code + ")"):
        with suppress(*UNREADABLE_CODE):
            (node,) = ast.parse(whole).body
            if isinstance(node, ast.Assert):
                return ast.unparse(node.test)
    return code.removeprefix("assert ")


_CHAIN = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^][()]*\])*"


def _asked_of(parts: MessageParts, code: str, calls: Sequence[Call]) -> str:
    """The expression that is None in a line of code: `self.bar` in `self.bar.update(1)`, where None has no `update`.

    "" where the line has several candidates.
    """
    if calls and (pointed := pointed_none(calls[-1].code, calls[-1].marks, "".join(parts.names[:1]), parts.found)):
        return pointed
    if calls and (given := none_argument(calls[-1].code, parts.found)):
        return given
    if parts.wanted:
        return none_operand(calls[-1].code if calls else code, parts.wanted, left=bool(parts.found))
    if parts.names:
        found = re.findall(rf"(?<![\w.])({_CHAIN})\.{re.escape(parts.names[0])}\b", code)
    else:
        found = re.findall(rf"^for .+ in ({_CHAIN}):$", code)
    return str(found[0]) if len(set(found)) == 1 else ""


def _name(line: str) -> str:
    return strip_labels(line).text.partition(":")[0].strip()[:80]


def _who(at: Frame | None, versions: Mapping[str, str]) -> Phrase:
    """Who asks, in words: `mbridge 0.15.1 (mbridge/core/util.py:83)`."""
    if at is None:
        return phrase("the program")
    if not at.package:
        return phrase("{place}", place=at.shown)
    known = versions.get(distribution(at.package), "")
    name = f"{at.package} {known}".strip()
    return phrase("{name} ({place})", name=name, place=at.shown)
