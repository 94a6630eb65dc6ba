"""Failures for which the frames themselves show who is at fault: a package alone, a file of a module's name, a row."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from itertools import pairwise

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.failed_code import mixed, statement_of, taken_from
from patcher.diagnose.frame import Frame, frame_of
from patcher.diagnose.parties import frame_above, party
from patcher.i18n import Phrase, phrase

_IMPORTS = re.compile(r"\s*(?:import|from) (?P<name>[A-Za-z_]\w*)(?=[\s.,]|$)")


def shadowing(calls: Sequence[Call]) -> Phrase | None:
    """What it means where code of a package imports a module of Python and gets a file of the user's own."""
    known = [(one, frame) for one in calls if (frame := frame_of(one.frame)) is not None]
    known = [(one, frame) for one, frame in known if not frame.path.startswith("<")]
    for (one, frame), (_, then) in pairwise(known):
        found = _IMPORTS.match(one.code)
        if found is None or not frame.installed or then.installed or found["name"] not in sys.stdlib_module_names:
            continue
        if re.split(r"[/\\]", then.path)[-1] == f"{found['name']}.py":
            text = (
                "{place} has the name of the module {name} of Python, and was imported in its place: rename that file, "
                "and delete its compiled one in __pycache__"
            )
            return phrase(text, place=then.path, name=found["name"])
    return None


def lies_within(parts: MessageParts, calls: Sequence[Call]) -> Phrase | None:
    """What it means where a file asks for the package that it lies in itself.

      File "/home/me/garden/scripts/beds/plan.py", line 15, in <module>
        from scripts.beds.rows import Row
    ModuleNotFoundError: No module named 'scripts.beds'
    """
    at = frame_of(calls[-1].frame) if calls and parts.matter == "missing-module" else None
    if at is None or at.installed:
        return None
    inner = f"/{parts.symbol.replace('.', '/')}/"
    path = _WHOLE_PATH.search(calls[-1].frame)
    root, found, _ = path["path"].rpartition(inner) if path is not None else ("", "", "")
    if not found:
        return None
    text = (
        "the file that asks lies in {module} itself, so it is there, and {root} is not on Python's path, or another "
        "{top} comes before it: set PYTHONPATH={root}, or start the program there with python -m"
    )
    return phrase(text, module=parts.symbol, root=root, top=parts.package)


_WHOLE_PATH = re.compile(r'File "(?P<path>/[^"]+)"')
_OWN_SCRIPT = re.compile(r"(?:^|/)bin/[\w.-]+$")
_OF_SETTINGS = re.compile(
    r"conf|cfg|arg|param|option|setting|tokenizer|processor|environ|path|file|state_dict|weight|vocab|dataset|template",
    re.IGNORECASE,
)
"""What a value is called that settings, data or files decide."""
_MAPPING = re.compile(r"self\.\w+(?:\.\w+)*$")


_DEEP = 3
"""Innermost frames of one package, behind which a local value that is None is its own. Set by hand."""


def is_internal(parts: MessageParts, at: Frame | None, calls: Sequence[Call]) -> bool:
    """Whether a package alone has failed: on a value that is None or of another type, or a key that is not there,
    called by itself, and with no code of the user's among the frames, or far from it."""
    above, name = frame_above(calls), party(at)
    if not name or name == "verl" or above is None or party(above) != name:
        return False
    frames = [frame for one in calls if (frame := frame_of(one.frame)) is not None]
    deep = len(frames) > _DEEP and all(party(one) == name for one in frames[-_DEEP:])
    deep = deep and parts.matter == "none" and parts.symbol.isidentifier()
    if not deep and any(not one.installed and not party(one) and not _OWN_SCRIPT.search(one.path) for one in frames):
        return False
    if parts.matter == "type":
        sides = mixed(calls[-1].code, calls[-1].marks)
        # `bench_args.cut` in `rows[bench_args.cut :]` says nothing of the type of the rows.
        return all(side and not _OF_SETTINGS.search(re.sub(r"\[[^][]*\]", "", side)) for side in sides)
    if parts.matter == "key":
        what, place = taken_from(calls[-1].code, calls[-1].marks)
        literal = place.strip("'\"") == parts.names[0] and place != parts.names[0]
        own = _MAPPING.match(what) is not None or (what.isidentifier() and not _may_be_given(what))
        return literal and own and not _OF_SETTINGS.search(what)
    return parts.matter == "none" and not _OF_SETTINGS.search(parts.symbol or calls[-1].code)


def _may_be_given(name: str) -> bool:
    """Whether a value of this name may come from data, settings or an answer, which need not have each key."""
    given = re.search(r"kwargs|info|data|batch|input|output|result|response|request|json|meta|message", name)
    return given is not None or _ROW.match(name) is not None or _DATUM.match(name) is not None


_ROW = re.compile(r"(?:example|row|record)s?$")
_DATUM = re.compile(r"(?:sample|item|instance|datum|data_point|datapoint|element|entry|x|d|batch|features?)$")
_OF_DATA = re.compile(
    r", in (?:\w*(?:encode|preprocess|tokeni[sz]e|prepare_(?:data|dataset|sample|inputs)|format|collat|to_prompt"
    r"|convert)\w*|map|_map_single|apply_function(?:_on_filtered_inputs)?|<lambda>)$"
)
_SEARCHED = 4
"""Innermost frames in which a function that reads rows of data is searched."""


def missing_column(parts: MessageParts, calls: Sequence[Call]) -> bool:
    """Whether the key is one of a row of data, that is a column of the dataset."""
    if parts.matter != "key" or not calls:
        return False
    if _is_of_row(calls[-1].code, parts.names[0]):
        return True
    what, place = taken_from(calls[-1].code, calls[-1].marks, parts.names[0])
    if place.strip("'\"") != parts.names[0] or place == parts.names[0]:
        return False
    reads = any(_OF_DATA.search(one.frame) for one in calls[-_SEARCHED:])
    mapped = any("datasets/arrow_dataset.py" in one.frame for one in calls)
    return (reads and _ROW.match(what) is not None) or (mapped and _DATUM.match(what) is not None)


_ROWS = re.compile(r"(?:\w+\.)*\w*(?:data_?set|data|batch|examples?|rows?|samples?|records?|features?)\d?$")


def _is_of_row(code: str, key: str) -> bool:
    """Whether the only place in a line of code that may be the key's is in a row of data: `train_dataset[0]["text"]`,
    `batch[LABEL_KEY]`. `dataset["train"]` is a part of the data, and no row."""
    node = statement_of(code)
    found = [one for one in (ast.walk(node) if node is not None else ()) if isinstance(one, ast.Subscript)]
    rows = []
    for one in found:
        match one.slice:
            case ast.Constant(value=value) if value == key:
                named = False
            case ast.Name(id=name) if name.isupper():
                named = True
            case _:
                continue
        match one.value:
            case ast.Subscript(value=rowed, slice=ast.Constant(value=int()) | ast.Name(id="i" | "j" | "idx" | "index")):
                rows.append(_ROWS.match(ast.unparse(rowed)) is not None)
            case whole:
                rows.append(named and _ROWS.match(ast.unparse(whole)) is not None)
    return rows == [True]


_FOR_EACH = re.compile(r"\b(?P<row>\w+)\[[^\]]+\] for (?P=row) in (?P<rows>[\w.]+)")


def rows_of(parts: MessageParts, calls: Sequence[Call]) -> str:
    """What a key is taken from each of: `infos` of `[info[key] for info in infos]`; "" for any other key."""
    found = _FOR_EACH.search(calls[-1].code) if parts.matter == "key" and calls else None
    return found["rows"] if found is not None else ""


_COMMAND = re.compile(
    r"\w*(?:mapping|commands?|routes?|registry|tasks?|handlers)\w*\[(?:method_name|(?:sub)?_?(?:command|cmd)(?:_name)?"
    r"|(?:sys\.)?argv\[[01]\]|args\.(?:sub)?(?:command|cmd))\]",
    re.IGNORECASE,
)
_MAIN = re.compile(r", in (?:\w*main|run_cli|cli|<module>)$")


def unknown_command(parts: MessageParts, calls: Sequence[Call]) -> bool:
    """Whether the key is the sub-command with which a program was called."""
    if parts.matter != "key" or not calls or _MAIN.search(calls[-1].frame) is None:
        return False
    return _COMMAND.search(calls[-1].code) is not None and f"'{parts.names[0]}'" not in calls[-1].code
