"""Read the code that asks for a missing name: what the name was imported from, and whether a newer release still asks.

AttributeError: type object 'ModelType' has no attribute 'encoder_and_decoder', raised at mbridge/core/util.py:83
from megatron.core.enums import ModelType     ▶ megatron.core.enums.ModelType.encoder_and_decoder
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from patcher.analysis.symbols import Symbols
from patcher.analysis.symbols.definition import Module
from patcher.analysis.symbols.scope import Scope
from patcher.diagnose.exception_message import UNREADABLE_CODE, MessageParts
from patcher.packages.agent.folders import package_in


def asked_symbol(parts: MessageParts, source: str) -> str:
    """The full name of a missing attribute or argument, as `Symbols.has` takes it; "" where the imports do not show it.

    Args:
        parts: the message: the class or function by its own name.
        source: the text of the file that asks.
    """
    if not parts.names or parts.matter not in ("missing-attribute", "unexpected-argument"):
        return ""
    first, _, rest = parts.symbol.partition(".")
    owner = _imported(source, first)
    if not owner:
        return ""
    dotted = f"{owner}.{rest}" if rest else owner
    return f"{dotted}.{parts.names[0]}" if parts.matter == "missing-attribute" else f"{dotted}({parts.names[0]})"


_OF_MODEL = re.compile(r"(?!PretrainedConfig|PreTrainedConfig|AutoConfig|GenerationConfig)[A-Z]\w+Config$")


def is_unimported_module(found: Symbols | None, symbol: str) -> bool:
    """Whether the name is a module that its package does not import itself, as `from .main import main` does."""
    if found is None or not isinstance(found.modules.find(symbol), Module):
        return False
    package, _, name = symbol.rpartition(".")
    around = found.modules.find(package)
    scope = found.modules.scope(around) if isinstance(around, Module) else None
    return not (isinstance(scope, Scope) and scope.bindings(name))


def field_of_configuration(parts: MessageParts) -> str:
    """The full name of a field that the configuration of a model lacks, `transformers.LlamaConfig.rope_theta`; "" for
    anything else. Whether transformers has such a class its releases tell."""
    if parts.matter != "missing-attribute" or not parts.names or not _OF_MODEL.match(parts.symbol):
        return ""
    return f"transformers.{parts.symbol}.{parts.names[0]}"


_PART_OF_MODEL = re.compile(r"(?P<family>Llama|Mistral|Gemma|Qwen2)(?:RotaryEmbedding|RMSNorm)\.__init__$")


def argument_of_model_part(parts: MessageParts) -> str:
    """The full name of an argument that a part of transformers' models does not take, by the name of its class alone;
    "" for anything else."""
    found = _PART_OF_MODEL.match(parts.symbol) if parts.matter == "unexpected-argument" and parts.names else None
    if found is None:
        return ""
    family = found["family"].lower()
    return f"transformers.models.{family}.modeling_{family}.{parts.symbol}({parts.names[0]})"


def lacks_field(folder: Path, symbol: str) -> bool:
    """Whether nothing in a release of transformers sets this field of a model's configuration.

    All configurations take any keyword, so their classes alone do not tell. The file of the class has the fields that
    it knows, and `configuration_utils.py` those of all.
    """
    _, kind, name = symbol.rsplit(".", 2)
    word = re.compile(rf"\b{re.escape(name)}\b")
    begins = f"class {kind}("
    shared = [one for one in (folder / "configuration_utils.py", folder / "modeling_rope_utils.py") if one.is_file()]
    if any(word.search(_text(one)) for one in shared):
        return False
    own = [text for one in folder.glob("models/*/configuration_*.py") if begins in (text := _text(one))]
    return len(own) == 1 and not word.search(own[0])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _imported(source: str, name: str) -> str:
    """The dotted name that `from module import …` binds to `name`."""
    try:
        tree = ast.parse(source)
    except UNREADABLE_CODE:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"{node.module}.{alias.name}"
    return ""


_GUARD = re.compile(r"version|hasattr|available|installed|find_spec", re.IGNORECASE)
_GUARD_OF_PART = re.compile(r"version|hasattr|TYPE_CHECKING", re.IGNORECASE)
"""The same for the import of a submodule. That its package is installed does not mean that the submodule exists."""


def still_asks(folder: Path, file: str, word: str) -> bool | None:
    """Whether a release still uses a word in code that is not guarded by a check whether it exists.

    The file itself is searched; if it is gone, all files of its package. None where the release lacks the package, or a
    file cannot be parsed.

    Args:
        folder: the unpacked release.
        file: the path of the file from its package on.
        word: a name, or the dotted name of a module that is imported.
    """
    package = folder_of(folder, file.partition("/")[0])
    if package is None:
        return None
    own = package.parent / file
    for one in [own] if own.is_file() else package.rglob("*.py"):
        text = one.read_text(encoding="utf-8", errors="replace")
        if word not in text:
            continue
        try:
            tree = ast.parse(text)
            if any(word in _words(node) for node in _unguarded(tree)) or ("." in word and _imports_part(tree, word)):
                return True
        except UNREADABLE_CODE:
            return None
    return False


def _unguarded(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree without guarded code: `if version < …`, `try: import …`. Imports below any `if` count
    as guarded."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Try) and child.handlers:
            continue
        if not isinstance(child, ast.If | ast.IfExp):
            yield from _unguarded(child)
        elif not _GUARD.search(ast.unparse(child.test)):
            yield from (one for one in _unguarded(child) if not isinstance(one, ast.alias))


def _imports_part(node: ast.AST, module: str) -> bool:
    """Whether the module, or a submodule of it, is imported without a check of a version and outside of `try`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Try) and child.handlers:
            continue
        if isinstance(child, ast.If | ast.IfExp) and _GUARD_OF_PART.search(ast.unparse(child.test)):
            continue
        names = [child.module or ""] if isinstance(child, ast.ImportFrom) and not child.level else []
        names += [one.name for one in child.names] if isinstance(child, ast.Import) else []
        if any(f"{name}.".startswith(f"{module}.") for name in names) or _imports_part(child, module):
            return True
    return False


def _words(node: ast.AST) -> tuple[str | None, ...]:
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name) | ast.keyword(arg=name):
            return (name,)
    return ()


def folder_of(folder: Path, module: str) -> Path | None:
    """As `package_in`, but also of a package without `__init__.py`, such as megatron."""
    found = package_in(folder, module)
    return found or next((one for below in ("", "src") if (one := folder / below / module).is_dir()), None)
