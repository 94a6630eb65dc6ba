"""How far a training run has come, read from its log: phases in order, steps, and the line of its last error.

The signs are what verl 0.6 to 0.9, vLLM and Ray print by themselves, and the `[uky]` stamps that the instrument records
add to the trainer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from patcher.i18n import Phrase, phrase
from patcher.logs.labels import strip_labels
from patcher.logs.lines import Line, Stripped, strip_prefix

Phase: TypeAlias = Literal["config", "dataset", "resource-pool", "actor", "rollout", "weight-sync", "loop"]
PHASES: tuple[Phase, ...] = get_args(Phase)

_ACTORS: dict[str, Phase] = {
    "WorkerDict": "actor",
    "FusedWorker": "actor",
    "ActorRolloutRefWorker": "actor",
    "vLLMHttpServer": "rollout",
    "vLLMHttpServerForPD": "rollout",
    "SGLangHttpServer": "rollout",
    "TRTLLMHttpServer": "rollout",
    "EngineCore": "rollout",
    "EngineCore_DP0": "rollout",
}
"""Processes whose first line begins a phase."""
_SIGNS: tuple[tuple[str, Phase], ...] = (
    ("Using dataset class: ", "dataset"),
    ("dataset len: ", "dataset"),
    ("Generating train split: ", "dataset"),
    ("building train, validation, and test datasets", "dataset"),
    ("colocated worker base class ", "resource-pool"),
    ("bind role ", "resource-pool"),
    ("Loading checkpoint shards: ", "actor"),
    ("DeepSpeed info: version=", "actor"),
    ("Initializing a V1 LLM engine", "rollout"),
    ("Loading safetensors checkpoint shards", "rollout"),
    ("GPU KV cache size", "rollout"),
    ("Memory profiling takes ", "rollout"),
    ("Avg prompt throughput: ", "rollout"),
    ("Starting vLLM API server", "rollout"),
    ("Starting vLLM server on ", "rollout"),
    ("Available routes are:", "rollout"),
    ("The server is fired up and ready to roll", "rollout"),
    ("KV Cache is allocated. ", "rollout"),
    ("Capturing CUDA graph", "rollout"),
    ("#running-req: ", "rollout"),
    ("Training from scratch", "loop"),
    ("Load from checkpoint folder: ", "loop"),
    ("Initial validation metrics: ", "loop"),
    ("Training Progress: ", "loop"),
    ("step:", "loop"),
)
"""Texts that begin a phase: at the beginning of a line, or anywhere in it for vLLM's, as its logger puts a label first.
"""
_BY_HAND: tuple[tuple[str, Phase], ...] = (
    ("Starting dataset generation", "dataset"),
    ("Creating ResourcePool", "resource-pool"),
    ("Initializing Actor Worker", "actor"),
    ("Initializing Rollout Worker", "rollout"),
    ("Starting weight synchronization", "weight-sync"),
    ("Starting training loop", "loop"),
)
"""Lines that people add to a trainer by hand. A logger's label may come before them."""
LOOPS = (
    *("Running training", "Starting training", "Start training", "Started training", "Begin training"),
    *("Resuming training", "Training starts", "Training started", "Training begins", "*** Train ***"),
    *("before the start of training step", "Started: 'step'", "Saving model checkpoint to "),
    *("= Step ", "Saving checkpoint for step ", "Starting epoch ", "Skipping step. Attempted loss scale"),
    *("elapsed time per iteration (ms)", "pipeline step ", " Train step ", "Progress on:train ", "[step=", "[batch="),
    *(
        f"{of}{opening}1/"
        for of in ("step", "Step", "iteration", "Epoch", "epoch", "Episode")
        for opening in (" ", ": ", " [")
    ),
)
"""Texts by which trainers other than verl say that they train."""
_LOOP_WORDS = re.compile("|".join(map(re.escape, LOOPS)), re.IGNORECASE)
_TRAINS = re.compile(
    r"(?P<opening>[^\w'\"]{0,30})"
    r"(?:(?:running|starting|start|started|begin|resuming) (?:the )?training(?: loop| run)?"
    r"(?=[\W_]*$|,? (?:at|from|with|for) )"
    r"|training (?:starts|started|begins)(?=[\W_]*$|,? (?:at|from|with|for) )"
    r"|train \*\*\*|\[?before the start of training step|started: 'step'$)"
    r"|(?:train(?:ing)? )?(?:global )?(?:step|iteration|epoch|episode):? \[?1/\d+(?![\d.])"
    r"|\s{0,9}(?:\d+%\|.*\])?(?:\[[^\]]*\] [\d, :-]+ >> )?saving model checkpoint to \S"
    r"|=+ step \d+/\d+ =|saving checkpoint for step \d|starting epoch \d+(?:/\d+)?\W*$"
    r"|.{0,60}skipping step\. attempted loss scale|\s*iteration +\d+/ *\d+ \|"
    r"|.{0,90}\bpipeline step \d+ (?:start|finished)|.{0,60}\bepoch \d+/\d+ step \d+/\d+ train step \d+/\d+ done"
    r"|progress on:train [\d.]+k?it/|\[step=\d+/\d+|\[(?:epoch=\d+/?\d*)?\]?\[?batch=\d+/\d+",
    re.IGNORECASE,
)
"""The lines that `LOOPS` must be part of: `***** Running training *****` and `Saving model checkpoint to …` of
transformers, `Training starts at step 1` of torchtitan, `Started: 'step'` of SkyRL, `[before the start of training
step] datetime: …` of Megatron, and the first of counted steps, `Step 1/100`. Of the others `===== Step 2/9 =====` is
of NeMo-RL, `iteration 122/ 250000 |` of Megatron, `pipeline step 3 finished` of ROLL, `Epoch 1/3 Step 2/9 Train step
2/27 done.` of AReaL, `Progress on:train 12.0it/100it` of Levanter, `[step=10/1000]` of OLMo, `[batch=3/100]` of
Composer."""
_STAMP = re.compile(r"\[uky\] (?P<name>\S.*?) (?P<edge>begin|end) (?P<seconds>\d+(?:\.\d+)?)s pid=(?P<pid>\d+)")
_WORKERS: dict[str, Phase] = {"[ACTOR]": "actor", "[ROLLOUT]": "rollout", "[SYNC]": "weight-sync"}
_STEP = re.compile(r"step:(?P<step>\d{1,18}) - ")
_BAR = re.compile(r"Training Progress: +\d+%\|[^|]*\| (?P<step>\d{1,18})/(?P<steps>\d{1,18}) \[")
_TOTAL = re.compile(r"Total training steps: (?P<steps>\d{1,18})$")
_DASHBOARD = re.compile(r"View the dashboard at (?P<address>(?:https?://)?[\w.:\[\]-]+)")
_RAISED = re.compile(
    r"(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Failure|OOM))(?P<of>\([\w.]+\))?(?::|$)"
)
_WRAPPED = ("ray.exceptions.", "RayTaskError", "torch.distributed.elastic.", "subprocess.CalledProcessError")
_NO_EXCEPTION = re.compile(
    r"(?:\S+: line \d+: +\d+ )?(?:Killed|Segmentation fault|Aborted|Bus error)\b|Fatal Python error: "
    r"|.*: (?:No such file or directory|command not found)$"
)
FIRST_SEEN = (
    *(f"({actor} " for actor in _ACTORS),
    *(text for text, phase in _SIGNS if phase != "loop"),
    *(text for text, _ in _BY_HAND),
    *LOOPS,
    *("Training from scratch", "Load from checkpoint folder: ", "Initial validation metrics: "),
    *("Total training steps: ", "View the dashboard at "),
)
LAST_SEEN = (
    "Training Progress: ",
    "step:",
    "[uky] ",
    "Error",
    "Exception",
    "Interrupt",
    "Killed",
    "Fatal",
    "not found",
)
"""Texts of the lines that matter here: of those in `FIRST_SEEN` the first line is needed, of these the last ones."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """A phase that began, or a step that was made. Times are seconds since the start of the job."""

    phase: Phase
    at: float
    before: Phase | None = None
    """The phase that ended with it."""
    took: float = 0.0
    """Seconds that `before` took, or the step."""
    step: int | None = None
    steps: int | None = None
    usual: tuple[float, float] | None = None
    """Seconds that `phase` usually takes, low and high, where the profile is known."""


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A line of the log with its number."""

    number: int
    text: str


class Milestones:
    """Takes the lines of a log in order, each with its time, and records what the run has reached."""

    def __init__(self) -> None:
        self.begun: dict[Phase, float] = {}
        """When each phase began, in that order."""
        self.step: int | None = None
        self.steps: int | None = None
        """Steps made, and steps asked for, as far as the log shows them."""
        self.step_at: float | None = None
        self.syncing = 0
        """Transfers of weights from actor to rollout that are under way, where the log is stamped."""
        self.dashboard: str | None = None
        self.at = 0.0
        self._raised: NumberedLine | None = None
        self._wrapped: NumberedLine | None = None
        self._ended: NumberedLine | None = None

    @property
    def phase(self) -> Phase | None:
        """The phase of the run; None before the first line."""
        if self.syncing > 0:
            return "weight-sync"
        return max(self.begun, key=PHASES.index, default=None)

    @property
    def telling(self) -> NumberedLine | None:
        """The line of the error that ended the run: the last exception that carries no other, else one that does, else
        the end of a process."""
        return self._raised or self._wrapped or self._ended

    def spans(self) -> dict[Phase, float]:
        """Seconds that each phase took, up to now for the last one."""
        ends = [*self.begun.values(), self.at][1:]
        return {phase: end - at for (phase, at), end in zip(self.begun.items(), ends, strict=True)}

    def feed(self, line: Line, at: float) -> tuple[Milestone, ...]:
        """Take a line written `at` seconds after the start. Returns the milestones that it reached."""
        self.at = max(self.at, at)
        stripped = strip_prefix(line.text)
        if not stripped.text:
            return ()
        self._note_failure(stripped, line.number)
        found = [] if self.begun else [self._begin("config")]
        if stamp := _STAMP.search(stripped.text):
            found += self._stamped(stamp)
        elif (phase := _sign(stripped)) is not None and self._is_later(phase):
            found.append(self._begin(phase))
        if (step := self._stepped(stripped.text)) is not None:
            found.append(step)
        return tuple(found)

    def begin_loop(self) -> None:
        """Note that training is in its loop, where another sign than those known here shows that it has begun."""
        for phase in ("config", "loop"):
            if phase == "loop" or not self.begun:
                self._begin(phase)

    def _begin(self, phase: Phase) -> Milestone:
        before = next(reversed(self.begun), None)
        took = self.at - self.begun[before] if before is not None else 0.0
        self.begun[phase] = self.at if self.begun else 0.0
        return Milestone(phase, self.begun[phase], before, took)

    def _is_later(self, phase: Phase) -> bool:
        return all(PHASES.index(phase) > PHASES.index(other) for other in self.begun)

    def _stamped(self, stamp: re.Match[str]) -> list[Milestone]:
        """The phase that a stamp begins.

        A worker's stamp counts where the trainer has none. The stamps of a weight transfer always count.
        """
        head = stamp["name"].partition(" ")[0]
        phase = _WORKERS.get(head) or next((phase for phase in PHASES if phase == stamp["name"]), None)
        if phase == "weight-sync":
            self.syncing = max(0, self.syncing + (1 if stamp["edge"] == "begin" else -1))
        if phase is None or stamp["edge"] == "end" or phase in self.begun:
            return []
        if head == "[ROLLOUT]" or (phase != "weight-sync" and not self._is_later(phase)):
            return []
        return [self._begin(phase)]

    def _stepped(self, text: str) -> Milestone | None:
        if total := _TOTAL.search(text):
            self.steps = int(total["steps"])
            return None
        if (found := _STEP.match(text)) is None and (found := _BAR.search(text)) is not None:
            self.steps = int(found["steps"])
        if found is None or int(found["step"]) <= (self.step or 0):
            return None
        self.step = int(found["step"])
        took = self.at - (self.step_at if self.step_at is not None else self.begun.get("loop", self.at))
        self.step_at = self.at
        return Milestone("loop", self.at, None, took, self.step, self.steps)

    def _note_failure(self, stripped: Stripped, number: int) -> None:
        text = stripped.text
        if self.dashboard is None and (found := _DASHBOARD.search(text)):
            self.dashboard = found["address"]
        if raised := _RAISED.match(text):
            telling = NumberedLine(number, text[:500])
            if raised["name"].startswith(_WRAPPED) or raised["of"]:
                self._wrapped = telling
            else:
                self._raised = telling
        elif _NO_EXCEPTION.match(text):
            self._ended = NumberedLine(number, text[:500])


def _sign(stripped: Stripped) -> Phase | None:
    """The phase that a line begins; None for other lines."""
    phases = [phase for actor in stripped.actors if (phase := _ACTORS.get(actor)) is not None]
    text = stripped.text
    # verl prints some lines with pprint: `("Initial validation metrics: {'val-core/…`; Megatron `> building train, …`.
    bare = text.lstrip("(\"'> ")
    for sign, phase in _SIGNS:
        if bare.startswith(sign) or (phase == "rollout" and sign in text):
            phases.append(phase)
            break
    phases += [phase for sign, phase in _BY_HAND if sign in text]
    if _LOOP_WORDS.search(text) and _TRAINS.match(strip_labels(text).text):
        phases.append("loop")
    return max(phases, key=PHASES.index, default=None)


_PHASE_NAMES: dict[Phase, Phrase] = {
    "config": phrase("config"),
    "dataset": phrase("dataset"),
    "resource-pool": phrase("resource pool"),
    "actor": phrase("actor"),
    "rollout": phrase("rollout"),
    "weight-sync": phrase("weight sync"),
    "loop": phrase("loop"),
}


def phase_name(phase: Phase | None) -> Phrase:
    """The name of a phase, for people."""
    return _PHASE_NAMES[phase] if phase is not None else phrase("none")
