from __future__ import annotations

import codecs

import pytest

from patcher.errors import TreeError
from patcher.tree.source import Codec, Source, Undecodable, decode, encode
from patcher.worktree.hashing import digest_of


def source(content: bytes, path: str = "verl/a.py") -> Source:
    return Source(path, content, digest_of(content), 0o644)


@pytest.mark.parametrize(
    ("content", "text", "codec"),
    [
        (b"x = 1\n", "x = 1\n", Codec()),
        (codecs.BOM_UTF8 + b"x = 1\n", "x = 1\n", Codec(bom=True)),
        (codecs.BOM_UTF8 + b"# coding: utf-8\n", "# coding: utf-8\n", Codec(bom=True)),
        ("# coding: latin-1\ns = 'é'\n".encode("latin-1"), "# coding: latin-1\ns = 'é'\n", Codec("iso-8859-1")),
        (
            "#!x\n# -*- coding: gbk -*-\ns = '中'\n".encode("gbk"),
            "#!x\n# -*- coding: gbk -*-\ns = '中'\n",
            Codec("gbk"),
        ),
        ("s = '中'\r\nb\rc\n".encode(), "s = '中'\r\nb\rc\n", Codec()),
        (b"", "", Codec()),
        (b"decoding = 1\nx", "decoding = 1\nx", Codec()),
    ],
)
def test_text_and_bytes_of_a_file_are_the_same_thing(content, text, codec):
    assert decode(source(content)) == (text, codec)
    assert encode(text, codec) == content


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a = 1\nb = '\xff'\n", 2),
        (b"# coding: no-such-codec\n", 1),
        (b"# coding: rot13\n", 1),
        (b"# coding: hex\n00\n", 1),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1),
        (b"# coding: ascii\n\n'\xc3\xa9'\n", 3),
        (b"# coding: utf-7\nx = '+AGE-'\n", 1),
    ],
)
def test_what_is_no_text_is_named_with_its_line(content, line):
    result = decode(source(content))
    assert isinstance(result, Undecodable)
    assert result.line == line
    assert result.message


def test_a_cookie_counts_in_python_files_alone():
    content = b"# coding: latin-1\n\xc3\xa9\n"
    assert decode(source(content, "run.sh")) == ("# coding: latin-1\né\n", Codec())


def test_a_character_that_the_encoding_lacks_is_an_error_with_its_line():
    with pytest.raises(TreeError, match=r"verl/a\.py: line 2"):
        encode("# coding: latin-1\n'中'\n", Codec("iso-8859-1"), "verl/a.py")
