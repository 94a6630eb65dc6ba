from __future__ import annotations

from patcher.rewrite import Marker, markers


def test_every_way_to_write_a_marker() -> None:
    source = "a  # Uky[one]\nb  # Uky[one, two]\n# Uky: by hand\nc  #uky\nd  # UKY\n"
    assert markers(source, "Uky") == (
        Marker(1, "one", False),
        Marker(2, "one", False),
        Marker(2, "two", False),
        Marker(3, None, True),
        Marker(4, None, False),
        Marker(5, None, False),
    )


def test_what_is_no_marker() -> None:
    assert markers("a = '# Uky'\nb = '''\n# Uky[x]\n'''\n# Ukyo\n# the Uky\nuky = 1\n", "Uky") == ()


def test_a_comment_between_the_parts_of_a_string_is_one() -> None:
    assert markers("a = ('# Uky'  # no\n     'b'  # Uky[one]\n     'c')\n", "Uky") == (Marker(2, "one", False),)


def test_the_old_line_kept_as_a_comment_is_one() -> None:
    assert markers("# old()  # Uky[one]\nnew()  # Uky[one]\n", "Uky") == (
        Marker(1, "one", True),
        Marker(2, "one", False),
    )


def test_files_that_are_no_python_are_read_too() -> None:
    assert markers("export A='1  # Uky\n", "Uky") == (Marker(1, None, False),)


def test_the_word_is_the_forks_own() -> None:
    assert markers("a  # Team+1[x]\nb  # Uky\n", "Team+1") == (Marker(1, "x", False),)
