"""pip's configuration, read from files and variables in pip's order."""

from __future__ import annotations

import os
from pathlib import Path

from patcher.packages.releases.index import PipConfig, read_pip_config


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_DIRS": str(tmp_path / "xdg"),
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        **more,
    }


def test_later_files_win_and_variables_win_over_files(tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = https://a/simple\ncert = /a.pem\nproxy = http://p\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex_url = https://b/simple\ntimeout = 40\n")
    write(tmp_path / "venv/pip.conf", "[install]\ntrusted-host = one\n   two\n")
    found = read_pip_config(environ(tmp_path, PIP_CERT="/b.pem"))
    assert found.index_url == "https://b/simple"
    assert (found.cert, found.proxy, found.timeout) == ("/b.pem", "http://p", 40.0)
    assert found.trusted_hosts == ("one", "two")


def test_lists_and_percent_signs(tmp_path: Path) -> None:
    indexes = "extra-index-url =\n    https://u:a%40b@x/simple\n    https://y/simple\n"
    own = write(tmp_path / "own.conf", f"[global]\n{indexes}find-links = /w1 /w2\nno-index = yes\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://user/simple\n")
    found = read_pip_config(environ(tmp_path, PIP_CONFIG_FILE=str(own)))
    assert found.extra_index_urls == ("https://u:a%40b@x/simple", "https://y/simple")
    assert found.find_links == ("/w1", "/w2")
    assert found.no_index
    assert found.index_url is None


def test_no_files_at_all(tmp_path: Path) -> None:
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\nindex-url = https://user/simple\n")
    assert read_pip_config(environ(tmp_path, PIP_CONFIG_FILE=os.devnull)) == PipConfig()


def test_a_file_that_is_no_configuration_counts_as_empty(tmp_path: Path) -> None:
    write(tmp_path / "xdg/pip/pip.conf", "index-url without a section\n")
    own = write(tmp_path / "own.conf", "[global]\nindex-url = https://own/simple\n")
    assert read_pip_config(environ(tmp_path, PIP_CONFIG_FILE=str(own))).index_url == "https://own/simple"
