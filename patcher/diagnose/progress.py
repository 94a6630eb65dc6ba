"""How far a run has come, and whether it goes on: phases, steps, progress bars that move, and trends of metrics."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

from patcher.diagnose.evidence import Evidence, LogLine
from patcher.diagnose.matched_line import YEAR, MatchedLine
from patcher.diagnose.metrics import MetricTrends
from patcher.logs.labels import strip_labels, time_of
from patcher.logs.lines import Line
from patcher.logs.milestones import Milestones, Phase

_ANY_BAR = re.compile(r"(?P<name>.*?):?\s*\d+%\|[^|]*\|\s*(?P<done>\d+)/(?P<all>\d+)\s*\[")
_TRAINING = re.compile(
    r"training progress|train|episode|epoch|make[_ ]experience|steps?\b|rollout batch|^\d+\|\d+\|loss", re.IGNORECASE
)
"""Names of the bars of training; torchtune's is `1|10|Loss: 1.53`."""
_VERL = "Training Progress"
"""verl's own bar. Its steps are milestones; drawn again at an exit, it shows no progress."""
_COUNTED = re.compile(
    r"(?:global[_ ]?step|step|iteration|iter|episode|epoch)s?\s*[:=#\[( ]\s*(?P<done>\d+(?:\.\d+)?)\b"
    r"\b.*(?:loss|reward|lr|grad)",
    re.IGNORECASE,
)
_LOGGED = re.compile(
    r"\{'(?:loss|eps)': |\{\"current_steps\": \d|\s*Epoch:? ?\[\d+\]\s*\[\s*\d+/\d+\].*loss", re.IGNORECASE
)
"""A step as the Trainer of transformers logs it, `{'loss': 0.0031, 'grad_norm': 0.144, …, 'epoch': 0.41}`, as TRL's
PPOTrainer does, `{'eps': 1, 'objective/kl': 10.5, …`, as LLaMA-Factory does, `{"current_steps": 10, "total_steps": 90,
"loss": …`, and as scripts after those of torchvision and DETR do: `Epoch: [4]  [ 20/900]  lr: 0.0003  loss: 2.7100
(2.9300)`."""
_BEHIND_BAR = re.compile(r"\] *\{'(?:loss|eps)': ")
"""The same behind the bar on the same line: `1%|1 | 1/100 [00:01<02:33, 1.55it/s]  {'loss': 1.2, …`."""
_TIMED = "Total step time: "
"""A step as NeMo-RL reports it when it is done: `• Total step time: 201.90s`."""
_NAMED_STEP = re.compile(r"Finished: 'step', time cost: ")
"""A step as SkyRL reports it: `Finished: 'step', time cost: …`."""
_SERVED = re.compile(r'HTTP/[\d.]+" 200(?: OK)?\W*$')
_SKIPPED = "Skipping step. Attempted loss scale"
"""DeepSpeed searches the scale of the loss: it made a step, and leaves its result out."""
_THROUGHPUT = "RunningAvgSamplesPerSec="
"""What DeepSpeed reports of the steps that it has made: `0/7, RunningAvgSamplesPerSec=304.7, …`."""
_PLAIN = re.compile(
    r"(?<![\w-])loss ?[=: ] ?(?:\d+\.\d{2,}(?:e[+-]?\d+)?|nan|inf)\b"
    r".{0,120}?\b(?:lr|learning[_ ]rate) ?[=: ] ?\d",
    re.IGNORECASE,
)
"""A step with its loss and learning rate, in whatever form: `00030/01024 : loss = 7.5E-01 (lr=3.8E-06)`, `TRAIN Batch
3/900 loss 2.875 lr 0.00012 grad_norm 1.5` of WeNet."""
_TRIALS = re.compile(r"\s*Number of trials: .*\b[1-9]\d* (?:RUNNING|TERMINATED)\b")
"""Ray Tune's table tells that trials run: `Number of trials: 100/100 (94 PENDING, 4 RUNNING, 2 TERMINATED)`."""
COUNTED = ("number of trials", "loss", "runningavgsamplespersec=", "reward: ", "total step time", "finished: 'step'")
PROGRESS_WORDS = ("%|", *COUNTED, '" 200')
_NAME, _LENGTH = 100, 500
"""Characters of a bar's name, and of a line, that are read: what shows progress is at its beginning."""
MOST_BARS = 50
"""Bars that are kept apart: runs have a few, a made-up log any number."""


_COUNTS = (
    re.compile(r"\s*iteration +(?P<done>\d+)/ *(?P<all>\d+) \|", re.IGNORECASE),
    re.compile(r".{0,60}\bepoch \d+/\d+ step \d+/\d+ train step (?P<done>\d+)/(?P<all>\d+) done", re.IGNORECASE),
    re.compile(r"\[step=(?P<done>\d+)/(?P<all>\d+)", re.IGNORECASE),
    re.compile(r"\[(?:epoch=\d+/?\d*)?\]?\[?batch=(?P<done>\d+)/(?P<all>\d+)", re.IGNORECASE),
    re.compile(r"\{\"current_steps\": (?P<done>\d+), \"total_steps\": (?P<all>\d+),"),
    re.compile(r"\{'loss': .*'global_step/max_steps': '(?P<done>\d+)/(?P<all>\d+)'"),
)
"""Lines of other trainers that are printed when a step is done, of so many."""
_BEGINS = (
    re.compile(r"=+ Step (?P<done>\d+)/(?P<all>\d+) =", re.IGNORECASE),
    re.compile(
        r"(?:train(?:ing)? )?(?:global )?(?:step|iteration):? \[?(?P<done>\d+)/(?P<all>\d+)\]?(?![\d.])", re.IGNORECASE
    ),
)
"""Those that may be printed when a step begins."""
_ASKED = re.compile(r"Total (?:optimization )?steps ?[:=] ?(?P<all>\d[\d,]*)")
"""`Total optimization steps = 1,000` of transformers, `Total steps = 60` of unsloth."""
_LONGEST_COUNT = 18
"""Digits of a number of steps that are read."""


class CountedSteps:
    """Counts the steps of trainers other than verl."""

    def __init__(self) -> None:
        self.done: int | None = None
        self.all: int | None = None
        self.complete = False
        """Whether the last line that was taken says that the last of all steps is done."""

    def take(self, text: str) -> None:
        """Take a line, without labels."""
        self.complete = False
        head = text[:_LENGTH]
        if (asked := _ASKED.search(head)) is not None:
            self.all = _number(asked["all"])
        elif (found := next(filter(None, (one.match(head) for one in _COUNTS)), None)) is not None:
            self._set(found, ends=True)
        elif (found := next(filter(None, (one.match(head) for one in _BEGINS)), None)) is not None:
            self._set(found, ends=False)
        elif (
            # Of the bars of a run the one that has as many parts as there are steps is that of the steps.
            self.all
            and "%|" in text
            and (bar := _ANY_BAR.match(text[: _NAME + _LENGTH])) is not None
            and _number(bar["all"]) == self.all
        ):
            self._set(bar, ends=True)

    def _set(self, found: re.Match[str], *, ends: bool) -> None:
        done, steps = _number(found["done"]), _number(found["all"])
        if done is None or steps is None or done > steps:
            return
        self.done, self.all = max(done, self.done or 0), steps
        self.complete = ends and done == steps


def _number(text: str) -> int | None:
    digits = text.replace(",", "")
    return int(digits) if len(digits) <= _LONGEST_COUNT else None


class MovingBars:
    """Finds out whether a line shows that training went on since the last line of its kind."""

    def __init__(self) -> None:
        self._done: dict[str, float] = {}
        self.nameless = False
        """Whether a bar without a name moves a step in some seconds, as hardly anything but training does."""

    def moved(self, text: str, milestones: Milestones) -> bool:
        """Whether this line, without labels, shows more progress than any line of its kind before, or an answered
        request."""
        at = text.find("%|")
        if at >= 0 and milestones.step is None and _BEHIND_BAR.search(text[at : at + _LENGTH]):
            return True
        if at >= 0:
            found = _ANY_BAR.match(text[max(0, at - _NAME) : at + _LENGTH])
            if found is None or found["name"].endswith(_VERL):
                return False
            name = strip_labels(found["name"]).text.strip()
            # The bar of transformers' Trainer has no name. Before training, a bar without a name shows something else.
            if not (_TRAINING.search(found["name"]) or (not name and "loop" in milestones.begun)):
                slow = not name and found["done"] != "0" and "s/it" in text[at : at + _LENGTH]
                self.nameless = self.nameless or slow
                return False
            return self._more(found["name"].strip() if name else "%", float(found["done"]))
        if _SKIPPED in text[:_LENGTH] and milestones.step is None:
            return True
        if _SERVED.search(text[-_LENGTH:]):
            return milestones.begun.keys() <= {"config", "rollout"}
        if milestones.step is None and (counted := _COUNTED.search(text[:_LENGTH])) is not None:
            # A line with a loss reports a step that is done, `step 0: {'train/loss': 0.3`, so step 0 is progress too.
            return self._more("", float(counted["done"]), least=-1.0)
        if milestones.step is not None:
            return False
        if _THROUGHPUT in text[:_LENGTH] or _PLAIN.search(text[:_LENGTH]) or _TRIALS.match(text[:_LENGTH]):
            return True
        return bool(_LOGGED.match(text) or _TIMED in text[:_LENGTH] or _NAMED_STEP.search(text[:_LENGTH]))

    def _more(self, name: str, done: float, least: float = 0.0) -> bool:
        before = self._done.get(name)
        if before is None and len(self._done) >= MOST_BARS:
            return False
        self._done[name] = done if before is None else max(done, before)
        return done > (least if before is None else before)


CONFIG = (
    *("actor_rollout_ref", "ray init kwargs", "[validate_config]", "taskrunner hostname", "verl.trainer."),
    "error executing job with overrides",
    *("wandb: tracking run with ", "[axolotl.", " training worker group of size "),
    *("application startup complete", "|n-shot|", "running loglikelihood requests", "running generate_until requests"),
    *("running training *****", "vllm api server version ", "non-default args: {'"),
    # SGLang's start, and DeepSpeed's launcher.
    *("server_args.py:", "server_args=serverargs(", "world info dict: ", "-m deepspeed.launcher.launch "),
    *("# using devices", "# collective test starting", "# nthread "),
)
"""Words that show a log to be of a training, by verl or another trainer, in its first phase."""
OF_RUN = (
    *("sleep mode freed ", "seconds to wake up tags", "seconds to fall asleep", "successfully reset prefix cache"),
    *("kv cache pool is full. retract requests", "init engine (profile, create kv cache", "# cuda blocks: "),
    *("automatically detected platform ", "this model supports multiple tasks", "graph capturing finished in "),
    *("loading model weights took ", "model loading took ", "load weight begin", "memory pool end."),
    *("nccl info connected all ", "nccl info ncclcomminitrank", "algbw   busbw", "processgroupnccl.cpp:"),
    *("unsloth: ", "train_loss  valid_loss", "memory-usage ", "make experience", "train step of epoch"),
    *("deepspeedengine configuration", "setting ds_accelerator to ", "] config: micro_batches="),
    *("deepspeed basic optimizer = ", "deepspeed final optimizer = ", "] [torchcheckpointengine] "),
    *("sglang_router", "starting router on ", "all workers are healthy", "added worker: http"),
)
"""Words of what trains or serves models, in no certain phase."""
ORIGINS: Mapping[str, tuple[str, ...]] = {
    "verl": (
        *("verl/", "verl.", "/verl", "verl_", "actor_rollout_ref", "(taskrunner", "(workerdict", "fsdp_workers"),
        *("ray_trainer", "main_ppo", "single_controller", "algorithm.adv_estimator"),
    ),
    "other": (
        *("/trl/", "from trl", "grpotrainer", "sfttrainer", "dpotrainer", "transformers/trainer.py", "|trainer.py:"),
        *("nemo_rl", "nemo-rl", "llamafactory", "llama-factory", "llama_factory", "axolotl", "unsloth", "ms-swift"),
        *("swift/trainers", "swift/llm", "openrlhf", "torchtitan", "torchtune", "levanter", "pretrain_gpt"),
        *("megatron/training", "deepspeed/runtime", "deepspeed/launcher", "pytorch_lightning", "lightning/pytorch"),
        *("/slime/", "skyrl", "/areal/", "open_instruct", "open-instruct", "roll/pipeline", "llama_recipes"),
        *("accelerate/commands/launch", "***** running training *****", "h2o llm studio", "instructlab", "nanotron"),
        *("mmengine", "xtuner", "colossalai", "open_r1", "open-r1", "vlm_r1", "vlm-r1", "gpt-neox", "litgpt"),
        *("consumed samples:", "llm-foundry", "llmfoundry", "fairseq"),
    ),
}
"""Words by which a log shows whose trainer wrote it."""
ENGINES: Mapping[str, tuple[str, ...]] = {"vllm": ("vllm",), "sglang": ("sglang", "launch_server.py")}
"""Words by which a log shows which inference engine runs."""
ACTOR = ":actor_name:"
"""By this the log of a Ray worker names its actor."""
STEPS = ("training progress: ", "step:")
_STEP = re.compile(rb"step:(?P<step>\d+) - ")
_VERL_BAR = re.compile(rb"Training Progress: +\d+%\|[^|]*\| (?P<step>\d+)/(?P<all>\d+) \[")
_OF_LOOP = r"(?:episode|train epoch|train step of epoch|make[_ ]experience)(?: ?\[?\d+(?:/\d+)?\]?)?:? +\d+%\|"
"""Bars of OpenRLHF and ColossalChat: `Train epoch [1/1]:  50%|`, `Episode [3/20]:   2%|`, `make_experience:  12%|`."""
_IN_LOOP = re.compile(
    rf"{_LOGGED.pattern}|\b(?:step|iteration|iter)\b.*loss|{_THROUGHPUT}|{_PLAIN.pattern}|{_OF_LOOP}", re.IGNORECASE
)
"""A line of a step that is done, which shows that training is in its loop."""
_TRAINS = re.compile(r"\*{5} Running training \*{5}\s*$")
"""What the Trainer of transformers, and scripts written after it, print when the loop begins."""
_BEFORE = frozenset(b" \t)]m")
"""Bytes that may come before `step:`, besides the beginning of the line."""
_HEAD = 400
"""Characters of a line in which a phase or a step is named, behind the labels of loggers and launchers."""
_STEPS_KEPT = 6
"""Steps whose metrics are kept as printed, the last ones: as many columns as a page shows."""
_YEAR = 365 * 86400.0
"""Seconds. A run takes less than half a year, and in a leap year one day is wrong."""
_METRICS = 40_000
"""Bytes of a step's metrics: verl prints some hundred metrics of some dozen bytes."""


class RunProgress:
    """Takes the lines that may show progress, in order."""

    def __init__(self, trends: MetricTrends) -> None:
        self.progress = 0
        """The offset of the last sign that training goes on."""
        self.progress_before = 0
        """The offset of the sign before that one."""
        self.progressed: LogLine | None = None
        self.complete: LogLine | None = None
        self._begun: dict[Phase, LogLine] = {}
        self._known = False
        """Whether the log is known to be of a training, or of an inference engine that one uses."""
        self._milestones = Milestones()
        self._bars = MovingBars()
        self._counted = CountedSteps()
        self._trends = trends
        self._zero: float | None = None
        self._step_lines: deque[bytes] = deque(maxlen=_STEPS_KEPT)

    @property
    def step(self) -> int | None:
        """Steps made, as verl prints them."""
        return self._milestones.step

    @property
    def phase(self) -> Phase | None:
        """The phase of the run; None for a log that is not known to be of a training."""
        return self._milestones.phase if len(self._milestones.begun) > 1 or self._known else None

    @property
    def looping(self) -> bool:
        """Whether training is in its loop, where most lines show only steps."""
        return "loop" in self._begun

    def fill(self, found: Evidence) -> None:
        """Write into `found` what the run has reached."""
        milestones = self._milestones
        found.step, found.steps, found.phase = milestones.step, milestones.steps, self.phase
        found.spans = {name: span for name, span in milestones.spans().items() if name in self._begun}
        found.begun, found.trends = self._begun, self._trends.holding()
        found.progress, found.progressed, found.complete = self.progress, self.progressed, self.complete
        found.progress_before = self.progress_before
        found.of_run = found.of_run or self._bars.nameless
        if found.step is None:
            found.counted, found.steps = self._counted.done, found.steps or self._counted.all
        found.step_lines = tuple([line[:_METRICS].decode("utf-8", "replace").strip() for line in self._step_lines])

    def take(self, line: MatchedLine) -> None:
        """Take a line that may show a phase, a step or a progress bar."""
        held = line.held
        self._known = self._known or held.config
        milestones, text = self._milestones, line.label.text
        before = milestones.step
        if held.milestone:
            now = self._now(line.stripped.text) if held.begins else milestones.at
            shown = Line(_with_prefix(line.stripped.speaker, text[:_HEAD]), line.number, 0)
            for milestone in milestones.feed(shown, now):
                self._begun.setdefault(milestone.phase, line.place)
            if (metrics := _metrics(line.raw)) is not None:
                self._take_metrics(line, metrics, milestones.step or 0)
        if "loop" not in milestones.begun and _TRAINS.search(text[:_HEAD]):
            milestones.begin_loop()
            self._begun.setdefault("loop", line.place)
        if milestones.step != before:
            self._moved(line)
            self.complete = line.place if milestones.step == milestones.steps else None
        elif held.progress and self._bars.moved(text, milestones):
            self._moved(line)
            if "loop" not in milestones.begun and _IN_LOOP.search(text[:_HEAD]):
                milestones.begin_loop()
                self._begun.setdefault("loop", line.place)
        self._count(line, text)

    def _count(self, line: MatchedLine, text: str) -> None:
        """Count the step of another trainer, where the line tells one."""
        if self._milestones.step is not None:
            return
        counted = self._counted
        counted.all = counted.all or self._milestones.steps
        done = counted.done
        counted.take(text)
        if counted.done != done:
            self._moved(line)
            self.complete = line.place if counted.complete else None

    def take_step(self, line: MatchedLine) -> None:
        """Take a line that holds only words of steps, of a run in its loop. Most lines are such, so this way is
        short."""
        raw, milestones = line.raw, self._milestones
        metrics, bar = _metrics(raw), _bar(raw)
        if metrics is None and bar is None:
            if line.held.bar:
                text = line.label.text
                if self._bars.moved(text, milestones):
                    self._moved(line)
                self._count(line, text)
            return
        step = 0
        if bar is not None:
            step, milestones.steps = int(bar["step"]), int(bar["all"])
        if metrics is not None:
            step = int(metrics["step"])
            self._take_metrics(line, metrics, step)
        if step > (milestones.step or 0):
            milestones.step, self.progress_before, self.progress = step, self.progress, line.offset
            self.complete = line.place if step == milestones.steps else None
            if line.timed:
                self.progressed = line.place

    def _take_metrics(self, line: MatchedLine, metrics: re.Match[bytes], step: int) -> None:
        said = line.raw[metrics.start() :]
        self._step_lines.append(said)
        if self._trends:
            self._trends.feed(said, lambda: line.place, step)

    def last_time(self, text: str) -> bool:
        """Take the time of one of the log's last lines; returns whether the line has one."""
        if self._zero is None or time_of(text, YEAR) is None:
            return False
        self._milestones.at = max(self._milestones.at, self._now(text))
        return True

    def _moved(self, line: MatchedLine) -> None:
        if line.offset > self.progress:
            self.progress_before, self.progress = self.progress, line.offset
        self.progressed = line.place

    def _now(self, text: str) -> float:
        """Seconds since the first line with a time; without a time on this line, those of the last line that had
        one."""
        at = time_of(text, YEAR)
        if at is None:
            return self._milestones.at
        if self._zero is None:
            self._zero = at
        # In a log of an earlier year some lines have the year, `2025-09-19 10:12:41`, and vLLM's lines have none,
        # `INFO 09-19 10:14:02`, so the two may seem to be whole years apart.
        years = round((at - self._zero) / _YEAR)
        return at - self._zero - years * _YEAR


def _with_prefix(speaker: str, text: str) -> str:
    """The text with the prefix of its process; in a worker's own log its actor is named once, at the beginning."""
    if text.startswith(ACTOR):
        return f"({text.removeprefix(ACTOR)} pid=0) {text}"
    return f"{speaker} {text}".lstrip()


def _metrics(raw: bytes) -> re.Match[bytes] | None:
    """The beginning of a line's metrics; None for a line without."""
    at = raw.find(b"step:", 0, _HEAD)
    while at > 0 and raw[at - 1] not in _BEFORE:
        at = raw.find(b"step:", at + 1, _HEAD)
    return _STEP.match(raw, at) if at >= 0 else None


def _bar(raw: bytes) -> re.Match[bytes] | None:
    at = raw.find(b"Training Progress: ", 0, _HEAD)
    return _VERL_BAR.match(raw, at) if at >= 0 else None
