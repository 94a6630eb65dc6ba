"""A module of the user's own that one machine has and another lacks.

Ray and cloudpickle send classes and functions by the name of their module. The process that reads them imports that
module, and fails where the module is not there: a file of the user's folder, which no index has.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from patcher.diagnose.diagnosis import Offer
from patcher.diagnose.evidence import Call, Evidence, Hit, Raised
from patcher.diagnose.exception_message import parse_message
from patcher.diagnose.frame import distribution, frame_of
from patcher.records.rules import DISTRIBUTIONS
from patcher.records.symptoms import Symptom

_READS = re.compile(
    r", in (?:subimport|dynamic_subimport|_load_actor_class_from_(?:gcs|local)|fetch_and_register_remote_function"
    r"|_deserialize_(?:object|pickle5_data|msgpack_data)|deserialize_objects|load_actor_class|_make_skeleton_class"
    r"|loads|find_class|load)$"
)
"""Functions that read what another process has pickled."""
_OF_PICKLE = re.compile(r"(?:^|/)(?:cloudpickle|pickle|ray)(?:/|\.py|_fast\.py)|/(?:cloudpickle|ray)/")

_BY_RAY = re.compile(r"(?:ray\.exceptions\.)?RaySystemError: System error: No module named ")
"""What Ray says where it cannot read an object."""

OWN_MODULE = Offer(
    "If it is a file of your own: give every node the folder that holds it, by Ray's working_dir or py_modules, "
    "or by PYTHONPATH before Ray starts there",
    "若是你自己的文件：用 Ray 的 working_dir 或 py_modules 把所在文件夹带到每个节点，或在启动 Ray 前设置 PYTHONPATH",
    ("export PYTHONPATH=$PWD:$PYTHONPATH", 'ray.init(runtime_env={"working_dir": "."})'),
)
EVERYWHERE = Offer(
    "If it is a package: install on every node the version that the driver has",
    "若是软件包：在每个节点上安装与 driver 相同的版本",
)


def unpickled_module(one: Raised) -> str:
    """The module that a process lacks although the one that pickled for it has it; "" for any other exception."""
    parts = parse_message(one.message or (one.place.text,))
    if parts is None or parts.matter != "missing-module":
        return ""
    if _BY_RAY.match(one.place.text):
        return parts.symbol if is_of_ones_own(parts.symbol) else ""
    frames = [place.text for place in one.frames if frame_of(place.text) is not None]
    if not frames or not _READS.search(frames[-1].rstrip()) or not is_of_ones_own(parts.symbol):
        return ""
    at = frame_of(frames[-1])
    return parts.symbol if at is not None and _OF_PICKLE.search(at.path) else ""


def is_of_ones_own(module: str) -> bool:
    """Whether no distribution is known that has the module, so that it may be a file of the user's."""
    top = module.partition(".")[0]
    name = distribution(top)
    return name not in DISTRIBUTIONS and name == top.replace("_", "-")


def folder_above(module: str, calls: Sequence[Call]) -> str:
    """The folder that holds a module which the program itself is a part of; "" where it is none of its folders.

    python /src/Q-Align/q_align/train.py, and in it `import q_align.model`     ▶ /src/Q-Align

    A part of the module has to be asked for: `import datasets` in /src/datasets/train.py may mean the package.
    """
    at = frame_of(calls[-1].frame) if calls else None
    if at is None or at.installed or not re.search(rf"\b(?:from|import) +{re.escape(module)}\.\w", calls[-1].code):
        return ""
    path = at.path if at.path.startswith("/") else f"./{at.path.removeprefix('./')}"
    above, found, _ = path.partition(f"/{module.partition('.')[0]}/")
    return above if found else ""


def own_folder(above: str) -> Offer:
    """How a program finds a module in whose folder it lies itself."""
    return Offer(
        "It is the project's own folder, in which the program that fails lies: let Python look in the folder above, by "
        "PYTHONPATH, by python3 -m, or by installing the project",
        "这是项目自己的目录，出错的程序就在其中：让 Python 在上一级目录中查找，"
        "可用 PYTHONPATH、python3 -m，或安装该项目",
        (f"export PYTHONPATH={shlex.quote(above)}:$PYTHONPATH",),
    )


def without_installs(hits: Iterable[Hit], evidence: Evidence) -> list[Hit]:
    """The symptoms, without those that would install a package of the name of such a module."""
    places = {(one.place.file, one.place.number) for one in evidence.raised if unpickled_module(one)}
    return [hit for hit in hits if (hit.start.file, hit.start.number) not in places or not installs(hit.symptom)]


def installs(symptom: Symptom) -> bool:
    """Whether the first fix of the symptom installs the package that the log's line names."""
    return "PACKAGE" in symptom.fixes[0].run if symptom.fixes else False
