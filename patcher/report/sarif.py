"""`check --sarif`: the findings as SARIF 2.1.0, which code hosts show beside the lines of a pull request.

A break is an `error`, what is inside a feature a `warning`, the rest a `note`; findings that the fork accepts are
suppressed results. Fingerprints do not depend on line numbers. Paths are those of the repository that the tree lies in,
`third_party/verl/verl/trainer/main_ppo.py`: a code host looks for them there.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from patcher import __version__
from patcher.analysis.findings import FindingKind
from patcher.check.enclosing import checkout_of

if TYPE_CHECKING:
    from patcher.analysis.findings import Finding, Severity
    from patcher.check.result import Check

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {"break": "error", "optional": "warning", "inert": "note", "guarded": "note"}
_KINDS = get_args(FindingKind)


def sarif_text(done: Check) -> str:
    """The file's text, without secrets."""
    from patcher.secrets.redacting import here

    return json.dumps(here().value(sarif(done)), indent=1, ensure_ascii=False) + "\n"


def sarif(done: Check) -> dict[str, Any]:
    """One run; a result each finding, with those that the fork accepts as suppressed ones."""
    seen: Counter[str] = Counter()
    root, top = done.session.tree.root, checkout_of(done.session.tree.root)
    tree = root.relative_to(top).as_posix()
    results = [_result(one, seen, tree) for one in done.report.findings]
    for accepted in done.accepted:
        suppressed = {"kind": "external", "justification": accepted.reason}
        results.append({**_result(accepted.finding, seen, tree), "suppressions": [suppressed]})
    unread = [
        {
            "level": "error",
            "message": {"text": f"{one.file}:{one.line}: {one.why}"},
            "locations": [_location(tree, one.file, one.line)],
        }
        for one in done.unreadable
    ]
    rules = [{"id": kind, "shortDescription": {"text": kind.replace("-", " ").capitalize()}} for kind in _KINDS]
    driver = {"name": "uky-patch", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"%SRCROOT%": {"uri": top.as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not unread and done.empty is None, "toolExecutionNotifications": unread}
        ],
        "properties": {"verl": done.report.verl, "against": dict(done.report.against)},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, seen: Counter[str], tree: str) -> dict[str, Any]:
    """`seen` tells equal findings apart: the fingerprint stays the same when lines move."""
    key = "\0".join(finding.key)
    seen[key] += 1
    since = f" (since {finding.since})" if finding.since else ""
    repair = f" Repaired by the record {finding.repaired_by}." if finding.repaired_by else ""
    hint = f" {finding.suggestion}." if finding.suggestion and not repair else ""
    properties = {"severity": finding.severity, "since": finding.since, "repaired_by": finding.repaired_by}
    return {
        "ruleId": finding.kind,
        "ruleIndex": _KINDS.index(finding.kind),
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.symbol}: {finding.detail}{since}.{repair}{hint}"},
        "locations": [_location(tree, finding.file, finding.line)],
        "partialFingerprints": {"ukyPatch/v1": hashlib.sha256(f"{key}\0{seen[key]}".encode()).hexdigest()[:32]},
        "properties": properties,
    }


def _location(tree: str, file: str, line: int) -> dict[str, Any]:
    """`tree` is its path in the repository; `file` may begin with `../` there."""
    from urllib.parse import quote

    path = posixpath.normpath(posixpath.join(tree, file))
    place = {"artifactLocation": {"uri": quote(path), "uriBaseId": "%SRCROOT%"}}
    return {"physicalLocation": {**place, "region": {"startLine": max(1, line)}}}
