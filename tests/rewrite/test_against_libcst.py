"""libcst as a witness: the same edits as codemods give the same syntax trees, on sources disturbed at random."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst
import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import AddArgument, Edit, Mark, MoveImport, RemoveArgument, RenameArgument, RenameAttribute
from patcher.rewrite.outcome import Rewritten
from tests.disturb import disturb

SOURCE = '''\
"""A server."""

import asyncio
from vllm.utils import FlexibleArgumentParser, get_tcp_uri as uri, random_uuid


class Server:
    async def run(self, args, *, wait: bool = True):
        parser = FlexibleArgumentParser(description="it's", add_help=False)
        client = AsyncLLM.from_vllm_config(
            vllm_config=self.config,
            usage_context=None,
            disable_log_requests=args.disable_log_requests,  # quiet
            disable_log_stats=not args.stats,
        )
        other = [AsyncLLM.build(x, flag=(1, 2)) for x in (uri("h", 1), random_uuid())]
        await client.engine.step(*other, **{"a": 1})
        return parser, client.engine.output, f"{client.engine!r}: {args.stats:>{len(other)}}"
'''


class Codemod(cst.CSTTransformer):
    def __init__(self, edit: Edit) -> None:
        self.edit = edit

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        match self.edit:
            case RenameArgument(call=call, old=old, new=new, value=value) if dotted(updated_node.func).endswith(call):
                return updated_node.with_changes(args=[renamed(arg, old, new, value) for arg in updated_node.args])
            case RemoveArgument(call=call, old=old) if dotted(updated_node.func).endswith(call):
                return updated_node.with_changes(args=[arg for arg in updated_node.args if keyword(arg) != old])
            case AddArgument(call=call, new=new, value=value) if dotted(updated_node.func).endswith(call):
                added = cst.Arg(cst.parse_expression(value), cst.Name(new))
                return updated_node.with_changes(args=[*commas(updated_node.args), added])
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        if isinstance(self.edit, RenameAttribute) and dotted(original_node).endswith(self.edit.old):
            return updated_node.with_changes(attr=cst.Name(self.edit.new))
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.FlattenSentinel[cst.SimpleStatementLine] | cst.SimpleStatementLine:
        match self.edit, updated_node.body[0]:
            case MoveImport(old=old, new=new), cst.ImportFrom(module=module, names=names) if not isinstance(
                names, cst.ImportStar
            ):
                package, _, name = old.rpartition(".")
                gone = [alias for alias in names if dotted(module) == package and dotted(alias.name) == name]
                if gone:
                    rest = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in names if alias not in gone]
                    local = gone[0].asname.name.value if gone[0].asname else name
                    target, _, new_name = new.rpartition(".")
                    text = f"from {target} import {new_name}" + (f" as {local}" if local != new_name else "")
                    kept = updated_node.with_changes(body=[updated_node.body[0].with_changes(names=rest)])
                    return cst.FlattenSentinel([kept, cst.parse_statement(text)])
        return updated_node


def dotted(node: cst.CSTNode | None) -> str:
    match node:
        case cst.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr.value}"
        case cst.Name(value=name):
            return name
    return ""


def keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword else ""


def renamed(arg: cst.Arg, old: str, new: str, value: str | None) -> cst.Arg:
    if keyword(arg) != old:
        return arg
    return arg.with_changes(keyword=cst.Name(new), value=cst.parse_expression(value) if value else arg.value)


def commas(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in args]


EDITS: tuple[Edit, ...] = (
    RenameArgument(
        file="a.py",
        call="AsyncLLM.from_vllm_config",
        old="disable_log_requests",
        new="enable_log_requests",
        value="not args.enable",
    ),
    RenameArgument(file="a.py", call="AsyncLLM.build", old="flag", new="mode"),
    RemoveArgument(file="a.py", call="from_vllm_config", old="disable_log_requests"),
    RemoveArgument(file="a.py", call="from_vllm_config", old="disable_log_stats"),
    RemoveArgument(file="a.py", call="from_vllm_config", old="vllm_config"),
    RemoveArgument(file="a.py", call="AsyncLLM.build", old="flag"),
    RemoveArgument(file="a.py", call="FlexibleArgumentParser", old="description"),
    AddArgument(file="a.py", call="from_vllm_config", new="extra", value="{1: [2]}"),
    AddArgument(file="a.py", call="AsyncLLM.build", new="extra", value="f(1)"),
    RenameAttribute(file="a.py", old="client.engine.output", new="result"),
    MoveImport(
        file="a.py", old="vllm.utils.FlexibleArgumentParser", new="vllm.utils.argparse_utils.FlexibleArgumentParser"
    ),
    MoveImport(file="a.py", old="vllm.utils.get_tcp_uri", new="vllm.utils.network_utils.tcp_uri"),
    MoveImport(file="a.py", old="vllm.utils.random_uuid", new="vllm.ids.random_uuid"),
)


def by_libcst(source: str, edit: Edit) -> str:
    return cst.parse_module(source).visit(Codemod(edit)).code


@pytest.mark.parametrize(
    "edit", EDITS, ids=lambda edit: f"{type(edit).__name__}-{getattr(edit, 'old', '') or edit.new}"
)
def test_a_codemod_gives_the_same_tree(edit: Edit) -> None:
    wanted = ast.dump(ast.parse(by_libcst(SOURCE, edit)))
    assert wanted != ast.dump(ast.parse(SOURCE))
    for seed in range(40):
        source = disturb(SOURCE, seed)
        for style in ("comment", "clean"):
            outcome = rewrite(source, edit, Mark("rec", style=style))
            assert isinstance(outcome, Rewritten), (seed, outcome)
            assert ast.dump(ast.parse(outcome.source)) == wanted, seed
            assert cst.parse_module(outcome.source).code == outcome.source
