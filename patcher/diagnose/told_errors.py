"""Errors that a library or an installer tells on a line of its own, without an exception, and may well survive.

gpu7:81:93 [0] socket.cc:483 NCCL WARN connect to 10.0.0.2 failed        ▶ the root, where below it a process only ends
bash: line 1:    81 Aborted                 python train.py

What NCCL, gloo, UCX and Open MPI tell counts where nothing else says why a run failed. What an installer tells counts
also where a module is missing afterwards, because the script went on without it.
"""

from __future__ import annotations

import re

from patcher.logs.labels import strip_labels

TOLD_WORDS = (
    *("nccl warn", "/gloo/", "[gloo]", "[btl_", "ucx  error", "ucx error", "lost communication with a remote daemon"),
    *("e: unable to locate package", "has no installation candidate", "error: subprocess-exited-with-error"),
    *("error: metadata-generation-failed", "error: externally-managed-environment"),
)
"""Each line that `told_error` knows holds one of these, in lower case."""
_FAILS = r".*\b(?:reset|refused|closed|fail\w*|timed out|unreachable|unexpected|error)\b"
_OF_TRANSPORT = (
    # NCCL warns also of what it does without: `NCCL WARN Missing "iommu=pt" from kernel command line`.
    re.compile(
        r'.{0,300}?\b(?P<words>NCCL WARN (?!.*\bretry|Missing "iommu|NUMA auto|Failed to open lib|.{0,40}\bplugin)\S.*)'
    ),
    # what():  [/src/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:31234
    re.compile(r".{0,300}?/gloo/\S{1,200}:\d+\] (?P<words>\S.*)"),
    re.compile(rf"\[gloo\] (?P<words>{_FAILS}.*)", re.IGNORECASE),
    # [node7][[31234,1],0][btl_tcp_endpoint.c:803:complete_connect] connect() to 10.0.0.2 failed: Connection timed out
    re.compile(rf".{{0,200}}?\[btl_\w+\.c:\d+:\w+\] (?P<words>{_FAILS}.*)", re.IGNORECASE),
    re.compile(r".{0,300}?\b(?P<words>UCX +ERROR \S.*)"),
    re.compile(r"(?P<words>(?:ORTE|PRTE|PRRTE) has lost communication with a remote daemon.*)"),
)
_OF_INSTALLER = re.compile(
    r"\s{0,4}(?:E: (?:Unable to locate package |Package ')(?P<package>[\w.+-]+).*"
    r"|error: (?:subprocess-exited-with-error|metadata-generation-failed|externally-managed-environment)\b.*"
    r"|ERROR: (?:Could not find a version|No matching distribution|Failed (?:building|to build)|Cannot install) .*"
    r"|(?:(?:\w+\.)*\w*Conda\w*(?:Error|Exception)|(?:Packages|ResolvePackage)NotFound(?:Error)?"
    r"|Environment(?:File|Location|Name)NotFound|(?:LibMamba)?UnsatisfiableError): .*)"
)
_OF_PACKAGING = re.compile(r"^(?:python3?|lib)-|-(?:dev|bin)$|[\d.-]+$")
"""What a Linux distribution adds to the name of a package: `python3-mpi4py`, `libopenmpi-dev`."""


def told_error(text: str) -> str:
    """The words of an error that a library of transport or an installer tells on this line; "" for any other line."""
    bare = strip_labels(text).text
    for pattern in _OF_TRANSPORT:
        if found := pattern.match(text):
            return found["words"].strip()
    return bare.strip() if is_of_installer(text) else ""


def is_of_installer(text: str) -> bool:
    """Whether a line is the error of pip, conda or apt-get."""
    return _OF_INSTALLER.match(strip_labels(text).text) is not None


def may_lack(text: str, module: str) -> bool:
    """Whether a line is the error of an installer, for which a module may be missing afterwards.

    One of pip or conda ends the whole installation. apt-get tells the package, which must be that of the module.
    """
    found = _OF_INSTALLER.match(strip_labels(text).text)
    if found is None or found["package"] is None:
        return found is not None
    package = _OF_PACKAGING.sub("", found["package"]).lower().replace("-", "_")
    return package == module.lower() or package.startswith(f"{module.lower()}_")
