"""The places in a source text that an edit is about: each kind of edit finds its own.

`rename-argument` looks for calls, `move-import` for imports, `set-default` for the head of a function. What it finds
are anchors, where the edit is still to be made, and effects, where somebody has made it: see `sites`.
"""

from __future__ import annotations

from collections.abc import Sequence

from patcher.rewrite.arguments import add_argument, remove_argument, rename_argument, rename_attribute
from patcher.rewrite.definitions import replace_function, set_base, set_decorator, set_default, set_parameter
from patcher.rewrite.edits import (
    AddArgument,
    Insert,
    Mark,
    MoveImport,
    RemoveArgument,
    RenameArgument,
    RenameAttribute,
    Replace,
    ReplaceFunction,
    SetBase,
    SetDecorator,
    SetDefault,
    SetEntry,
    SetParameter,
    SyntaxEdit,
)
from patcher.rewrite.entries import set_entry
from patcher.rewrite.imports import move_import
from patcher.rewrite.replacing import insert, replace
from patcher.rewrite.sites import Sites
from patcher.rewrite.source import Source
from patcher.rewrite.syntax import Scope


def locate(code: Source, scopes: Sequence[Scope], edit: SyntaxEdit, mark: Mark) -> Sites:
    """The places that an edit is about."""
    match edit:
        case MoveImport():
            return move_import(code, scopes, edit)
        case RenameArgument():
            return rename_argument(code, scopes, edit)
        case RemoveArgument():
            return remove_argument(code, scopes, edit)
        case AddArgument():
            return add_argument(code, scopes, edit)
        case RenameAttribute():
            return rename_attribute(code, scopes, edit)
        case Replace():
            return replace(code, scopes, edit, mark)
        case Insert():
            return insert(code, scopes, edit)
        case SetDefault():
            return set_default(scopes, edit)
        case SetParameter():
            return set_parameter(scopes, edit)
        case SetDecorator():
            return set_decorator(scopes, edit)
        case SetBase():
            return set_base(scopes, edit)
        case SetEntry():
            return set_entry(code, scopes, edit)
        case ReplaceFunction():
            return replace_function(code, scopes, edit)
