"""A small matrix made by hand: all three states, a release without sources, names that are out for trouble."""

from __future__ import annotations

import shlex

from patcher.analysis.findings import Finding, FindingKind, Severity
from patcher.check.matrix import Cell, Matrix, Missing, with_since
from patcher.check.matrix_run import MatrixRequest
from patcher.i18n import Phrase, phrase

VERL = ("0.6.1", "0.7.0", "0.8.0")
VLLM = ("0.12.0", "0.14.0", "0.18.0", "0.19.0", "0.20.2")
SERVER = "verl/workers/rollout/vllm_rollout/vllm_rollout.py"
HOSTILE = "verl/</script><img src=x onerror=\"document.title='owned'\">'&amp;.py"
HOSTILE_SYMBOL = "vllm.<b onmouseover=alert(1)>\u2028{{ 7*7 }}"


def finding(
    symbol: str,
    severity: Severity = "break",
    *,
    kind: FindingKind = "symbol-removed",
    repaired_by: str | None = None,
    file: str = SERVER,
    line: int = 205,
    suggestion: Phrase | None = None,
) -> Finding:
    parent, _, name = symbol.rpartition(".")
    detail = phrase("{parent} has no {name}", parent=parent, name=name)
    return Finding(file, line, symbol, kind, severity, detail, suggestion, repaired_by=repaired_by, function="run")


CONFIG = finding(
    "vllm.a.WorkerWrapperBase(vllm_config)", kind="argument-removed", repaired_by="vllm-worker-wrapper-config"
)
METHOD = finding(
    "vllm.a.WorkerWrapperBase.execute_method", kind="attribute-removed", repaired_by="vllm-run-method", line=218
)
LORA = finding("vllm.lora.models", kind="module-moved", file="verl/utils/vllm/utils.py", line=18)
HELPER = finding("vllm.deep_gemm.helper", "optional", file=HOSTILE, line=3)
GUARDED = finding(HOSTILE_SYMBOL, "guarded", line=9)


def cell(verl: str, release: str, *findings: Finding) -> Cell:
    left = sum(one.severity == "break" and one.repaired_by is None for one in findings)
    return Cell(verl, release, {"vllm": release}, 67, 3, findings, left)


def sample() -> Matrix:
    """0.6.1 breaks from 0.18.0 on, 0.7.0 needs records from 0.14.0 on, 0.8.0 works; vLLM 0.19.0 cannot be had."""
    cells = [
        cell("0.6.1", "0.12.0"),
        cell("0.6.1", "0.14.0", CONFIG),
        cell("0.6.1", "0.18.0", CONFIG, METHOD, LORA),
        cell("0.6.1", "0.20.2", CONFIG, METHOD, LORA, HELPER, GUARDED),
        cell("0.7.0", "0.12.0", HELPER),
        cell("0.7.0", "0.14.0", CONFIG),
        cell("0.7.0", "0.18.0", CONFIG, METHOD),
        cell("0.7.0", "0.20.2", CONFIG, METHOD, HELPER, GUARDED),
        *(cell("0.8.0", release) for release in VLLM if release != "0.19.0"),
    ]
    gone = {"0.19.0": Missing("0.19.0", phrase("no release of {name} was found", name="vllm"))}
    return with_since(Matrix("vllm", VERL, VLLM, {(one.verl, one.release): one for one in cells}, missing=gone))


def wide() -> Matrix:
    """Thirty columns of six contents, two rows that are alike, and counts of three digits."""
    verl, vllm = ("0.6.0", "0.6.1", "0.7.0"), tuple(f"0.{number}.0" for number in range(30))
    many = [finding(f"vllm.a.Name{number}", line=number + 1) for number in range(207)]
    many += [finding(f"vllm.b.Name{number}", "optional", line=number + 1) for number in range(134)]
    contents = ([], [CONFIG], [CONFIG, METHOD], many, [METHOD], [HELPER])
    cells = [cell(row, release, *contents[at // 5]) for row in verl[:2] for at, release in enumerate(vllm)]
    cells += [cell("0.7.0", release) for release in vllm]
    return with_since(Matrix("vllm", verl, vllm, {(one.verl, one.release): one for one in cells}))


def asked_in(document: str) -> MatrixRequest:
    """The order that a document was made with. Raises ValueError where it holds none."""
    words = shlex.split(document.partition("```\n")[2].partition("\n```")[0])
    return MatrixRequest(words[words.index("--verl") + 1], (words[words.index("--against") + 1],))
