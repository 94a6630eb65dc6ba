"""A frame of a Python traceback, and the package that its file belongs to.

File "/opt/env/lib/python3.12/site-packages/mbridge/core/util.py", line 83, in build_model
▶ mbridge/core/util.py:83 of the package mbridge
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patcher.packages.agent.folders import distribution_of

_FRAME = re.compile(r'File "(?P<path>[^"]+)"(?=, (?:line \d|in \S))(?:, line (?P<line>\d+))?(?:, in (?P<function>.+))?')
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?:[^/]+\.egg/)?(?P<inner>.+)$")
_HIDDEN = re.compile(
    r"^(?:\{[^{}/]*\}|<[^<>/]*>|\[[^\[\]/]*\]|\$\{?\w+\}?|\*{2,}|x{3,}|\.\.\.|\u2026)/+(?P<inner>\w.*)$", re.IGNORECASE
)
_OF_PACKAGES = re.compile(r"lib|site|pack|env|conda|python", re.IGNORECASE)
"""What somebody calls the folder of installed packages who has hidden where it is: `{path_to_the_library}/`."""
_OF_PYTHON = re.compile(
    r"/lib/python\d[\d.]*/|^<frozen |^<string>$|^[A-Za-z]:/.*(?:python[\d.]*|conda\d?|/envs/[^/]+)/lib/", re.IGNORECASE
)
_OF_WINDOWS = re.compile(r"[A-Za-z]:\\|\\\\|[^/]*\\(?:site|dist)-packages\\")
_OF_VERL = re.compile(r".*/(?P<inner>verl/(?!megatron/)(?:(?!src/)[a-z_]\w*/)*\w+\.py)$")
"""A module of the package, and none of a project that lies in a folder of that name: `verl/agent-lightning/trainer.py`,
`verl/ART/src/art/patches.py`, `verl/megatron/training/global_vars.py`.
"""
_DISTRIBUTIONS = {
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "pkg_resources": "setuptools<81",
    "swift": "ms-swift",
    "hydra": "hydra-core",
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "yaml": "pyyaml",
    "cv2": "opencv-python-headless",
    "zmq": "pyzmq",
    "attr": "attrs",
    "grpc": "grpcio",
    "lmformatenforcer": "lm-format-enforcer",
    "tvm_ffi": "apache-tvm-ffi",
    "transfer_queue": "transferqueue",
    "nemo": "nemo-toolkit",
    "pynvml": "nvidia-ml-py",
    "Crypto": "pycryptodome",
    "skimage": "scikit-image",
    "fitz": "pymupdf",
    "bs4": "beautifulsoup4",
    "Levenshtein": "python-levenshtein",
    "git": "gitpython",
    "docx": "python-docx",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "serial": "pyserial",
}
"""Distributions whose name is not that of their module."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in code. `package`: the top-level module of an installed package, `verl` for a verl tree, else "".

    `line` is 0 where it is not known.
    """

    path: str
    line: int
    package: str
    installed: bool

    @property
    def shown(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


def frame_of(text: str) -> Frame | None:
    """The frame on a line of a traceback, its path cut to what is below site-packages or the tree; None for other
    lines."""
    found = _FRAME.search(text)
    if found is None:
        return None
    path, line = found["path"], int(found["line"] or 0)
    slashed = path.replace("\\", "/") if _OF_WINDOWS.match(path) else path
    inner = _INSTALLED.search(slashed)
    if inner is not None:
        return Frame(inner["inner"], line, inner["inner"].split("/")[0].removesuffix(".py"), True)
    hidden = _HIDDEN.match(slashed)
    if hidden is not None and "/" in hidden["inner"] and _OF_PACKAGES.search(slashed[: hidden.start("inner")]):
        return Frame(hidden["inner"], line, hidden["inner"].split("/")[0], True)
    if _OF_PYTHON.search(slashed):
        return Frame(path, line, "", True)
    own = _OF_VERL.search(path)
    return Frame(own["inner"], line, "verl", False) if own is not None else Frame(path, line, "", False)


def is_installed(path: str) -> bool:
    """Whether a file is in site-packages or dist-packages."""
    return _INSTALLED.search(path) is not None


def distribution(module: str) -> str:
    """The distribution that installs a module, as pip takes it."""
    return _DISTRIBUTIONS.get(module) or distribution_of(module)


_MAIN = re.compile(r'File "(?!<|.*(?:/bin/|-packages/))[^"]+", line \d+, in <module>$')


def is_of_main(text: str) -> bool:
    """Whether a frame is the first of a program that somebody has started: not of a process that Python starts by `-c`,
    nor of one of Ray's workers."""
    return _MAIN.search(text.rstrip()) is not None
