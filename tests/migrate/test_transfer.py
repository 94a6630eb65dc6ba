"""A tree brought to a host over a real sshd with a real rsync."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from patcher.migrate import step_texts
from tests.machines import Machine
from tests.migrate.toys import bring, cargo, contents, fork, there

NAMES = {
    "verl/with space.py": "a",
    "verl/new\nline.py": "b",
    'verl/it\'s "quoted" $(touch pwned) `id` ;x.py': "c",
    "verl/中文/名.py": "d",
    "verl/-e sh": "e",
    "verl/*": "f",
    "verl/#comment": "g",
    "verl/[a-z]?": "h",
    "verl/back\\slash": "i",
    os.fsdecode(b"verl/latin-\xe9\xff.txt"): "j",
    " lead": "k",
    "verl/trail ": "l",
    "verl/a:b": "m",
    "~": "n",
    "verl/empty": "",
    "verl/big": secrets.token_bytes(3 << 20),
}


def test_what_somebody_removed_there_comes_again_and_is_named(reachable: Machine, tmp_path: Path) -> None:
    root, host = fork(tmp_path / "fork", {"verl/a.py": "a", "verl/b/c.py": "c"}), there(reachable, "fork")
    assert bring(host, cargo(root))[0].removed == ()
    (Path(str(host.path)) / "verl/a.py").unlink()
    shutil.rmtree(Path(str(host.path)) / "verl/b")
    difference, _ = bring(host, cargo(root))
    assert difference.removed == ("verl/a.py", "verl/b/c.py")
    told = "removed on the host, sent again: verl/a.py, verl/b/c.py"
    assert [str(one) for one in step_texts.would_change(difference)] == [told]
    assert contents(Path(str(host.path))) == contents(root)


def test_a_fork_arrives_by_rsync_with_names_of_all_kinds(reachable: Machine, tmp_path: Path) -> None:
    root = fork(tmp_path / "my fork", NAMES)
    (root / "verl/run.sh").write_text("echo\n")
    (root / "verl/run.sh").chmod(0o755)
    (root / "verl/link").symlink_to("run.sh")
    host = there(reachable, "it's a 'fork' $(x)")
    difference, sent = bring(host, cargo(root))
    assert sent.way == "rsync"
    assert sent.files == len(difference.send) == len(contents(root))
    place = Path(str(host.path))
    assert contents(place) == contents(root)
    assert os.access(place / "verl/run.sh", os.X_OK)
    assert not os.access(place / "README.md", os.X_OK)
    assert not (reachable.home / "pwned").exists()
    assert bring(host, cargo(root))[0].nothing
