"""What the steps of a migration say."""

from __future__ import annotations

import pytest

from patcher.migrate.step_texts import rendered_files
from patcher.profiles.rendered_file import WrittenFile


@pytest.mark.parametrize(
    ("dry", "told"),
    [
        (False, "git_ignore.py written, run.sh updated, run_debug.sh unchanged"),
        (True, "git_ignore.py would be written, run.sh would be updated, run_debug.sh unchanged"),
    ],
)
def test_a_dry_run_writes_no_rendered_file(dry: bool, told: str) -> None:
    files = (
        WrittenFile("git_ignore.py", "written"),
        WrittenFile("run.sh", "updated"),
        WrittenFile("run_debug.sh", "unchanged"),
    )
    assert str(rendered_files(files, dry=dry)) == told
