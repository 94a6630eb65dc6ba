"""The plain job: what it starts, what it does not use, and the values that the tree's configuration has by default.

The plain job is the usual GRPO training of a dense text model in bf16 on CUDA. vLLM rolls out and FSDP trains; what is
found of SGLang is rated by the job that rolls out with it, what is found of Megatron by the one that trains with it. A
finding is a break only where this job runs into it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from patcher.analysis.conditions.terms import OFF, UNKNOWN, Known, Reference, Setting, Term
from patcher.analysis.configuration import compose, load
from patcher.analysis.expressions import Attribute, Call, Constant, Elements, Expression, Name, Subscript
from patcher.analysis.project import Project
from patcher.worktree.python import UnreadableError, parse

ENTRIES: tuple[tuple[str, str], ...] = (
    # GRPO is started from the command line; hydra calls this;
    ("verl.trainer.main_ppo", "main"),
    # Ray starts the task, whatever it is called;
    ("verl.trainer.main_ppo", "TaskRunner"),
    ("verl.trainer.main_ppo", "TaskRunnerV1"),
)
"""Where the plain job begins: module, and function or class. What a release does not have is passed over."""

ENGINES: Mapping[str, tuple[tuple[str, str], ...]] = {
    # The rollout and its server are loaded by name, and the engine makes their classes in processes of its own.
    "vllm": (
        ("verl.workers.rollout.vllm_rollout.vllm_async_server", "vLLMReplica"),
        ("verl.workers.rollout.vllm_rollout.vllm_async_server", "vLLMHttpServer"),
        ("verl.workers.rollout.vllm_rollout", "vLLMAsyncRollout"),
        ("verl.workers.rollout.vllm_rollout", "ServerAdapter"),
    ),
    "sglang": (
        ("verl.workers.rollout.sglang_rollout.async_sglang_server", "SGLangReplica"),
        ("verl.workers.rollout.sglang_rollout.async_sglang_server", "SGLangHttpServer"),
        ("verl.workers.rollout.sglang_rollout.async_sglang_server", "AsyncSGLangServer"),
        ("verl.workers.rollout.sglang_rollout.sglang_rollout", "ServerAdapter"),
        ("verl.workers.rollout.sglang_rollout", "SGLangRollout"),
    ),
}
"""What may roll out, by the package's name, and where the job enters the tree's code for it."""

TRAINERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    # The worker is chosen by the configuration: `actor.strategy`, or `model_engine` from verl 0.8 on.
    "fsdp": (("verl.workers.fsdp_workers", "AsyncActorRolloutRefWorker"),),
    "megatron": (
        ("verl.workers.megatron_workers", "AsyncActorRolloutRefWorker"),
        ("verl.workers.engine.megatron.transformer_impl", "MegatronEngineWithLMHead"),
    ),
}
"""What may train, and where the job enters the tree's code for it."""

CONFIGURATIONS: Mapping[str, str] = {
    "fsdp": "ppo_trainer",
    "megatron": "ppo_megatron_trainer",
}
"""The names of verl's configurations, without `.yaml`."""


@dataclass(frozen=True, slots=True)
class Backends:
    """What rolls out in a plain job, and what trains."""

    engine: str
    trainer: str = "fsdp"


USUAL_JOB = "vllm"
JOBS: Mapping[str, Backends] = {
    USUAL_JOB: Backends("vllm"),
    "sglang": Backends("sglang"),
    "megatron": Backends("vllm", "megatron"),
}
"""The plain jobs by name."""
JOB_OF: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "megatron": "megatron", "mbridge": "megatron"}
"""The plain job by which a finding about a package is rated, by the package's import name."""

METHODS = frozenset({"forward", "backward", "run", "setup"})
"""Methods that torch or Ray call without their being named; those with two underscores besides."""

DISPATCH = ("rpc", "execute", "getattr", "run_method", "dispatch", "call")
"""Parts of the names of functions that take a method's name as text."""

CHOSEN = frozenset({"backend", "strategy", "engine", "impl", "implementation", "weight_loader"})
"""Names of what is chosen by the configuration: none of them is a word that the configuration does not have."""

NOT_CHOSEN = frozenset({"sync", "hf", "naive", "fire"})
"""Keys of tables whose entry another choice takes."""

OFF_WORDS = frozenset(
    {
        # adapters and low precision
        *("lora", "peft", "adapter", "adapters", "fp8", "mxfp8", "nvfp4", "quant", "quantized", "quanted", "torchao"),
        *("quantization", "qat", "modelopt"),
        # other hardware
        *("npu", "ascend", "rocm", "hip", "xpu", "hpu", "musa", "cann", "hccl"),
        # other engines
        *("trtllm", "veomni", "torchtitan", "automodel", "mindspeed"),
        # other kinds of model and data
        *("image", "images", "video", "videos", "audio", "audios", "multimodal", "mm", "processor", "vl", "vision"),
        *("glm4v", "moe", "experts", "mtp", "eagle", "speculative", "deepseek", "deepseekv2"),
        # other ways to run
        *("headless", "standalone", "colocated", "disaggregation", "disaggregated", "teacher", "distillation"),
        *("profile", "profiler", "profiling", "nsys", "nvtx", "prometheus", "mooncake", "nixl", "kimi"),
        # values of the reward model
        *("genrm", "grm"),
    }
)
"""Words in names of what no plain job uses. The names of what another one rolls out or trains with are added."""

TRAINER_WORDS: Mapping[str, frozenset[str]] = {
    "fsdp": frozenset(),
    "megatron": frozenset({"megatron", "mcore", "mbridge"}),
}
"""Words in names of what only this trainer uses. What is of FSDP is not told by its name: others shard too."""

TRAINER_OFF_WORDS: Mapping[str, frozenset[str]] = {
    "fsdp": frozenset(),
    # `hf_to_mcore_config_dpskv3` is for a model of experts, `local_cp_size` for context parallel groups.
    "megatron": frozenset({"dpskv3", "mixtral", "cp"}),
}
"""Words in names of what a plain job with this trainer does not use, in the code of that trainer."""

FIXED: Mapping[str, Term] = {
    "node_rank": Known(0),
    "nnodes": Known(1),
    "rollout_mode": Reference("RolloutMode.HYBRID"),
    "is_cuda_available": Known(True),
    "is_npu_available": OFF,
    "is_torch_npu_available": OFF,
    "is_reward_model": Known(False),
    "is_teacher_model": Known(False),
    "is_lora": Known(False),
    "lora_rank": Known(0),
}
"""What goes by these names, wherever it is."""

FIXED_NAMES: Mapping[str, Term] = {
    "torch.version.hip": OFF,
    "torch.version.cuda": Known("12.8"),
    "torch.cuda.is_available": Known(True),
    "torch.cuda.get_device_name": Known("NVIDIA H100"),
    "os.environ": Known({}),
    # The stages of a pipeline: one, as in verl's defaults. `mpu` is how Megatron calls its `parallel_state` by default.
    "megatron.core.mpu.get_pipeline_model_parallel_world_size": Known(1),
    "megatron.core.parallel_state.get_pipeline_model_parallel_world_size": Known(1),
}
"""What these dotted names come to, called or not. `os.environ` has nothing that switches a feature on."""

MODE = "actor_rollout_ref.rollout.mode"
"""How the plain job rolls out. verl has `sync` and `async`; forks add modes with rollout classes of their own."""

OVERRIDES: Mapping[str, object] = {
    "actor_rollout_ref.actor.use_kl_loss": True,
    "critic.enable": False,
    "algorithm.adv_estimator": "grpo",
    "trainer.nnodes": 1,
    "trainer.device": "cuda",
    "reward_model.enable": False,
    "reward.reward_model.enable": False,
}
"""What the plain job says on its command line besides engine and trainer, in the place of the default."""


class Job:
    """What is known of a plain job, given its configuration's values by dotted key, what rolls out and what trains."""

    def __init__(
        self,
        values: Mapping[str, object],
        fields: Mapping[str, object],
        backends: Backends = JOBS[USUAL_JOB],
        *,
        mode: str = "async",
    ) -> None:
        """`mode`: how it rolls out, as `MODE` names it."""
        engine, trainer = backends.engine, backends.trainer
        entries = (*ENTRIES, *TRAINERS[trainer], *ENGINES[engine])
        self.entries = tuple(one for one in entries if mode == "async" or "async" not in ".".join(one).lower())
        others = (words for name, words in TRAINER_WORDS.items() if name != trainer)
        self._off_words = OFF_WORDS.union(ENGINES.keys() - {engine}, TRAINER_OFF_WORDS[trainer], *others)
        self._known_off: dict[str, bool] = {}
        chosen = {"actor_rollout_ref.rollout.name": engine, "actor_rollout_ref.actor.strategy": trainer}
        self._values = {**values, **OVERRIDES, **chosen, MODE: mode}
        self.fixed = dict(FIXED)
        """What goes by a name, wherever it is."""
        # `if self.bridge is not None:` in the code of Megatron, which makes one where this is set.
        if trainer == "megatron" and values.get("actor_rollout_ref.actor.megatron.use_mbridge"):
            self.fixed["bridge"] = Known(True)
        self._fields = fields
        """Defaults of the configuration's classes, by field name."""
        self.choices = frozenset(value for value in self._values.values() if isinstance(value, str))
        """All texts among the values: the entries of registries that the job may choose."""
        self._ends: dict[str, list[str]] = {}
        for key in self._values:
            self._ends.setdefault(key.rpartition(".")[2], []).append(key)

    def setting(self, name: str, annotation: str | None) -> Term:
        """A parameter or attribute that holds part of the configuration."""
        words = name_words(name)
        if "config" not in words and "cfg" not in words:
            return UNKNOWN
        hints = tuple(word for word in words if word not in ("config", "cfg"))
        if annotation is not None:
            hints += tuple(word for word in name_words(annotation) if word != "config")
        return Setting((), hints)

    def value(self, setting: Setting) -> Term:
        """The value that a setting has in this job."""
        if not setting.path:
            return UNKNOWN
        # `actor.lora.rank` is off unless the tree's own defaults turn it on.
        if any(self.is_off_word(part) for part in setting.path):
            known = self._found(setting)
            return known if isinstance(known, Known) and known.value else OFF
        return self._found(setting)

    def is_off_word(self, name: str) -> bool:
        """Whether a word of the name is of what the job does not use."""
        known = self._known_off.get(name)
        if known is None:
            known = self._known_off[name] = not name_words(name).isdisjoint(self._off_words)
        return known

    def has_below(self, setting: Setting) -> bool:
        """Whether the setting is a group of others."""
        if not setting.path:
            return True
        inner = f".{'.'.join(setting.path)}."
        return any(inner in f".{key}." and not f".{key}.".endswith(inner) for key in self._values)

    def _found(self, setting: Setting) -> Term:
        wanted = list(setting.path)
        found = [key for key in self._ends.get(wanted[-1], ()) if key.split(".")[-len(wanted) :] == wanted]
        # `actor_config.strategy`: of the keys that end in "strategy" the one below "actor".
        if len(found) > 1 and setting.hints:
            hinted = [key for key in found if not set(setting.hints).isdisjoint(key.split("."))]
            found = hinted or found
        values = [self._values[key] for key in found]
        if values and all(value == values[0] for value in values):
            return Known(values[0])
        if not values and len(wanted) == 1 and wanted[0] in self._fields:
            return Known(self._fields[wanted[0]])
        return UNKNOWN

    def is_off(self, of: Expression) -> bool:
        """Whether an expression of unknown value is, by its name, something that the job does not use."""
        match of:
            case Name(id=name) | Attribute(name=name):
                return self.is_off_word(name)
            # `isinstance(answer, ErrorResponse)`: the plain job's requests are answered.
            case Call(of=Name(id="isinstance"), positional=(_, kind)):
                return self.is_off(kind) or "error" in name_words(_last_name(kind))
            case Call(of=Attribute(name="get"), positional=(Constant(value=str() as key), *_)):
                return self.is_off_word(key)
            case Call(of=called):
                return self.is_off(called)
            case Subscript(of=value, key=Constant(value=str() as key)):
                return self.is_off_word(key) or self.is_off(value)
            case _:
                return False

    def compared(self, left: Expression, operator: str, right: Expression) -> bool | None:
        """What a comparison of something unknown with a word of an unused feature comes to."""
        for one in (left, right):
            if isinstance(one, Constant) and isinstance(one.value, str):
                # `if backend == "trtllm":` with a word that no value of the configuration is.
                if one is right and _last_name(left) in CHOSEN and one.value not in self.choices:
                    return operator in ("!=", "not in", "is not")
                if self.is_off_word(one.value):
                    return operator in ("!=", "not in", "is not")
            elif isinstance(one, Elements) and one.values:
                texts = [part.value for part in one.values if isinstance(part, Constant)]
                words = [text for text in texts if isinstance(text, str) and self.is_off_word(text)]
                if len(words) == len(texts) == len(one.values):
                    return operator in ("not in", "!=")
        return None


def _last_name(of: Expression) -> str:
    match of:
        case Name(id=name) | Attribute(name=name):
            return name
        case Call(of=Name(id="getattr"), positional=(_, Constant(value=str() as name), *_)):
            return name
        case Call(of=Attribute(name="get"), positional=(Constant(value=str() as name), *_)):
            return name
        case Subscript(key=Constant(value=str() as name)):
            return name
        case _:
            return ""


_SPLIT = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")


@cache
def name_words(name: str) -> frozenset[str]:
    """The words of an identifier: `self_LoRAConfig` -> self, lora, config."""
    text = name.replace("LoRA", "Lora").replace("vLLM", "Vllm").replace("MoE", "Moe")
    return frozenset(part.lower() for part in _SPLIT.findall(text))


_FOLDER = "verl/trainer/config"
_CLASSES = ("verl/workers/config", _FOLDER)
_FALLBACK = re.compile(r"\$\{oc\.(?:select|env):([^,{}]+),\s*([^{}]*)\}")
_OTHER_KEY = re.compile(r"\$\{([\w.]+)\}")
_FLOAT = re.compile(r"[-+]?\d+e[-+]?\d+")


def defaults_of(project: Project, trainer: str) -> dict[str, object]:
    """Dotted key -> value. A value that refers to another key is followed; one that is computed is left out."""
    folder = project.renamed(_FOLDER)

    def read(path: str) -> str | None:
        content = project.content(f"{folder}/{path}")
        return None if content is None else content.decode(errors="replace")

    made = compose(read, CONFIGURATIONS[trainer], {})
    found = dict(_values(made.config, "")) if made is not None else {}
    for key, value in found.items():
        found[key] = _followed(value, found)
    return {key: value for key, value in found.items() if not _is_computed(value)}


def is_synchronous(project: Project, values: Mapping[str, object], trainer: str) -> bool:
    """Whether the tree rolls out synchronously by default and has no worker that could do it otherwise."""
    workers = project.content(project.renamed(f"verl/workers/{trainer}_workers.py"))
    return values.get(MODE) == "sync" and workers is not None and b"class Async" not in workers


def _values(config: Mapping[str, object], above: str) -> Iterator[tuple[str, object]]:
    """The values in a config by dotted key. `???` must be given on the command line, and is no value."""
    for name, value in config.items():
        if isinstance(value, dict) and value:
            yield from _values(value, f"{above}{name}.")
        elif isinstance(value, str) and _FLOAT.fullmatch(value):
            yield f"{above}{name}", float(value)  # `1e-6` is a text for PyYAML, and a number for hydra.
        elif value != "???":
            yield f"{above}{name}", tuple(value) if isinstance(value, list) else value


def _followed(value: object, found: Mapping[str, object]) -> object:
    """The value; of a reference to another key, what that key is known to hold by now."""
    if not _is_computed(value):
        return value
    # `${oc.select:actor.strategy, fsdp}`: the other key, else the text behind the comma.
    if match := _FALLBACK.fullmatch(str(value)):
        other = found.get(match[1].strip(), value)
        return other if not _is_computed(other) else load(match[2])
    match = _OTHER_KEY.fullmatch(str(value))
    return found.get(match[1], value) if match else value


def _is_computed(value: object) -> bool:
    return isinstance(value, str) and "${" in value


def fields_of(project: Project) -> dict[str, object]:
    """Defaults of the configuration's classes by field name, where all classes agree."""
    found: dict[str, object] = {}
    differing: set[str] = set()
    for folder in _CLASSES:
        for path in sorted((project.root / project.renamed(folder)).glob("**/*.py")):
            content = project.content(path.relative_to(project.root).as_posix())
            for name, value in _fields(content or b""):
                # Two classes with a field of one name and different defaults: the field alone does not tell which is
                # meant.
                if name in found and found[name] != value:
                    differing.add(name)
                found[name] = value
    return {name: value for name, value in found.items() if name not in differing}


def _fields(content: bytes) -> list[tuple[str, object]]:
    try:
        tree = parse(content)
    except UnreadableError:
        return []
    found: list[tuple[str, object]] = []
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            for node in owner.body:
                match node:
                    case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                        found.append((name, value))
                    case ast.AnnAssign(
                        target=ast.Name(id=name), value=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(v)))
                    ):
                        found.append((name, -v))
    return found
