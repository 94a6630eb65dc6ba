"""Python's own `ast` as a witness: the same edits made on syntax trees give the same trees, on disturbed sources."""

from __future__ import annotations

import ast

import pytest

from patcher.rewrite import rewrite
from patcher.rewrite.edits import AddArgument, Edit, Mark, MoveImport, RemoveArgument, RenameArgument, RenameAttribute
from patcher.rewrite.outcome import Rewritten
from tests.disturb import disturb
from tests.lanes import one_in

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


class Witness(ast.NodeTransformer):
    """Makes one edit on a syntax tree, in the most direct way."""

    def __init__(self, edit: Edit) -> None:
        self.edit = edit

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        match self.edit:
            case RenameArgument(call=call, old=old, new=new, value=value) if name.endswith(call):
                for keyword in node.keywords:
                    if keyword.arg == old:
                        keyword.arg = new
                        keyword.value = expression(value) if value else keyword.value
            case RemoveArgument(call=call, old=old) if name.endswith(call):
                node.keywords = [keyword for keyword in node.keywords if keyword.arg != old]
            case AddArgument(call=call, new=new, value=value) if name.endswith(call):
                node.keywords.append(ast.keyword(new, expression(value)))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        whole = ast.unparse(node)
        self.generic_visit(node)
        if isinstance(self.edit, RenameAttribute) and whole.endswith(self.edit.old):
            node.attr = self.edit.new
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if not isinstance(self.edit, MoveImport):
            return node
        package, _, name = self.edit.old.rpartition(".")
        target, _, new = self.edit.new.rpartition(".")
        gone = [alias for alias in node.names if node.module == package and alias.name == name]
        if not gone:
            return node
        node.names = [alias for alias in node.names if alias not in gone]
        local = gone[0].asname or name
        return [node, ast.ImportFrom(target, [ast.alias(new, local if local != new else None)], 0)]


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


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


@pytest.mark.parametrize(
    "edit", one_in(3, EDITS), ids=lambda edit: f"{type(edit).__name__}-{getattr(edit, 'old', '') or edit.new}"
)
def test_an_edit_of_the_syntax_tree_gives_the_same(edit: Edit) -> None:
    wanted = ast.dump(Witness(edit).visit(ast.parse(SOURCE)))
    assert wanted != ast.dump(ast.parse(SOURCE))
    for seed in range(40):
        source = disturb(SOURCE, seed)
        for style in ("comment", "clean"):
            outcome = rewrite(source, edit, Mark("rec", style=style))
            assert isinstance(outcome, Rewritten), (seed, outcome)
            assert ast.dump(ast.parse(outcome.source)) == wanted, seed
