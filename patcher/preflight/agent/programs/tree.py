"""verl, and whether it is this tree's."""

from __future__ import annotations

import importlib
import os
import shlex
import warnings

from patcher.messages import phrase
from patcher.preflight.agent.check_report import ARGS, PYTHON, Check

warnings.simplefilter("ignore")
MEND = phrase("uky-patch status says whether a record repairs it, and uky-patch check what else has changed")

with Check("verl", fix=MEND) as here:
    verl = importlib.import_module("verl")
    place = os.path.dirname(os.path.realpath(str(verl.__file__)))
    wanted = os.path.realpath(os.path.join(ARGS["root"], "verl"))
    version = getattr(verl, "__version__", "?")
    if place == wanted:
        here.ok(phrase("{version}, from this tree", version=version))
    else:
        here.fail(
            phrase("{version} comes from {place}, and not from this tree", version=version, place=place),
            phrase(
                "put the tree first: export PYTHONPATH={root}, or {python} -m pip install --no-deps -e {root}",
                root=shlex.quote(ARGS["root"]),
                python=PYTHON,
            ),
        )
