"""The plain job: what it starts, what it does not use, and the values that the tree's configuration has by default.

The plain job is the usual GRPO training of a dense text model in bf16 on CUDA. vLLM rolls out and FSDP trains; what is
found of SGLang is rated by the job that rolls out with it, what is found of Megatron by the one that trains with it. A
finding is a break only where this job runs into it.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from patcher.analysis.conditions.terms import OFF, UNKNOWN, Known, Reference, Setting, Term
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
    "fsdp": "verl/trainer/config/ppo_trainer.yaml",
    "megatron": "verl/trainer/config/ppo_megatron_trainer.yaml",
}


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
    "mbridge": Backends("vllm", "megatron"),
}
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
        *("glm4v", "moe", "experts", "mtp", "eagle", "speculative", "deepseek"),
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

OVERRIDES: Mapping[str, object] = {
    "actor_rollout_ref.rollout.mode": "async",
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
        self, values: Mapping[str, object], fields: Mapping[str, object], backends: Backends = JOBS[USUAL_JOB]
    ) -> None:
        engine, trainer = backends.engine, backends.trainer
        self.entries = (*ENTRIES, *TRAINERS[trainer], *ENGINES[engine])
        others = (words for name, words in TRAINER_WORDS.items() if name != trainer)
        self._off_words = OFF_WORDS.union(ENGINES.keys() - {engine}, TRAINER_OFF_WORDS[trainer], *others)
        self._known_off: dict[str, bool] = {}
        chosen = {"actor_rollout_ref.rollout.name": engine, "actor_rollout_ref.actor.strategy": trainer}
        self._values = {**values, **OVERRIDES, **chosen}
        self._fixed = dict(FIXED)
        # `if self.bridge is not None:` in the code of Megatron, which makes one where this is set.
        if trainer == "megatron" and values.get("actor_rollout_ref.actor.megatron.use_mbridge"):
            self._fixed["bridge"] = Known(True)
        self._fields = fields
        """Defaults of the configuration's classes, by field name."""
        self._choices = frozenset(value for value in self._values.values() if isinstance(value, str))
        self._ends: dict[str, list[str]] = {}
        for key in self._values:
            self._ends.setdefault(key.rpartition(".")[2], []).append(key)

    @property
    def choices(self) -> frozenset[str]:
        """All texts among the values: the entries of registries that the job may choose."""
        return self._choices

    def fixed(self, name: str) -> Term | None:
        """What goes by a name; None if nothing is known of it."""
        return self._fixed.get(name)

    def fixed_name(self, dotted: str) -> Term | None:
        return FIXED_NAMES.get(dotted)

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
                if one is right and _last_name(left) in CHOSEN and one.value not in self._choices:
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


def name_words(name: str) -> frozenset[str]:
    """The words of an identifier: `self_LoRAConfig` -> self, lora, config."""
    return _words(name)


_SPLIT = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_KNOWN: dict[str, frozenset[str]] = {}


def _words(name: str) -> frozenset[str]:
    if name not in _KNOWN:
        text = name.replace("LoRA", "Lora").replace("vLLM", "Vllm").replace("MoE", "Moe")
        _KNOWN[name] = frozenset(part.lower() for part in _SPLIT.findall(text))
    return _KNOWN[name]


_LINE = re.compile(r"^(?P<indent> *)(?P<item>- )?(?P<key>[^\s:#'\"][^:#]*?)\s*:(?:\s+(?P<value>.*))?$")
_ENTRY = re.compile(
    r"^ *- *(?:(?:override|optional) +)*(?P<group>[^\s:@]+)(?:@(?P<package>[^\s:]+))?(?: *: *(?P<name>[^\s#]+))?"
)
_OPTION = re.compile(r"\$\{(\w+)\}")
_FALLBACK = re.compile(r"\$\{oc\.(?:select|env):[^,{}]+,\s*([^{}]*)\}")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None, "{}": {}, "[]": ()}
_FOLDER = "verl/trainer/config"
_CLASSES = ("verl/workers/config", "verl/trainer/config")


def defaults_of(project: Project, trainer: str) -> dict[str, object]:
    """Dotted key -> value. A value that refers to another key is followed; one that is computed is left out."""
    found = _composed(project, project.renamed(CONFIGURATIONS[trainer]), "", {}, 0)
    for key, value in list(found.items()):
        if isinstance(value, str) and "${" in value:
            followed = _followed(value, found)
            if followed is _COMPUTED:
                del found[key]
            else:
                found[key] = followed
    return found


_COMPUTED = object()


def _followed(value: str, found: dict[str, object]) -> object:
    # `${oc.select:actor.strategy, fsdp}`: the other key, else the text behind the comma.
    if match := _FALLBACK.fullmatch(value):
        key = value[value.index(":") + 1 :].partition(",")[0].strip()
        other = found.get(key, _COMPUTED)
        if other is not _COMPUTED and not (isinstance(other, str) and "${" in other):
            return other
        return _scalar(match[1])
    if match := re.fullmatch(r"\$\{([\w.]+)\}", value):
        other = found.get(match[1], _COMPUTED)
        return _COMPUTED if isinstance(other, str) and "${" in other else other
    return _COMPUTED


def _composed(project: Project, file: str, package: str, chosen: Mapping[str, str], depth: int) -> dict[str, object]:
    """The file's values under `package`, over those of the files in its `defaults`.

    `chosen`: options by group that a file above has overridden, `model_engine` -> `megatron`.
    """
    content = project.content(file)
    # Six levels of `defaults` is a guess above what verl has. Configs that name each other in a circle end here.
    if content is None or depth > 6:
        return {}
    own, entries = _read(content.decode(errors="replace"))
    mine = {f"{package}.{key}" if package else key: value for key, value in own.items()}
    found: dict[str, object] = {}
    folder = posixpath.dirname(file)
    has_own = False
    chosen = {group: name for group, where, name in entries if name and where is None} | dict(chosen)
    for group, where, name in entries:
        # `actor@actor_rollout_ref.actor: ${model_engine}_actor`: the option of another group is part of the name.
        name = _OPTION.sub(lambda match: chosen.get(match[1], match[0]), name) if where else chosen.get(group, name)
        if group == "_self_":
            found |= mine
            has_own = True
            continue
        base = project.renamed(_FOLDER) if group.startswith("/") else folder
        group = group.lstrip("/")
        other = posixpath.normpath(f"{base}/{group}/{name}" if name else f"{base}/{group}")
        # Without `@package`, a group's values go below the group's name: `actor: dp_actor` -> actor.
        inside = where if where is not None else (group.replace("../", "").replace("/", ".") if name else "")
        if inside == "_here_":
            inside = ""
        elif inside == "_global_":
            found |= _composed(project, f"{other.removesuffix('.yaml')}.yaml", "", chosen, depth + 1)
            continue
        there = ".".join(part for part in (package, inside) if part)
        found |= _composed(project, f"{other.removesuffix('.yaml')}.yaml", there, chosen, depth + 1)
    return found if has_own else found | mine


def _read(text: str) -> tuple[dict[str, object], list[tuple[str, str | None, str]]]:
    """The values by dotted key, and the entries of `defaults`: group, package, name. Lists are read as not empty."""
    values: dict[str, object] = {}
    entries: list[tuple[str, str | None, str]] = []
    path: list[tuple[int, str]] = []
    for raw in text.splitlines():
        line = raw.rstrip()
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        stripped = line.strip()
        if stripped.startswith("- ") or stripped == "-":
            if path and path[0][1] == "defaults" and (match := _ENTRY.match(line)):
                entries.append((match["group"], match["package"], (match["name"] or "").strip("'\"")))
            elif path:
                # What a list holds does not matter to any test; that it is not empty does.
                values[".".join(name for _, name in path)] = "[…]"
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        while path and path[-1][0] >= indent:
            path.pop()
        path.append((indent, match["key"].strip()))
        if path[0][1] == "defaults":
            continue
        value = re.sub(r"\s+#.*$", "", match["value"] or "").strip()
        if value.startswith("#"):
            value = ""
        dotted = ".".join(name for _, name in path)
        values.pop(dotted.rpartition(".")[0], None)
        # `???` must be given on the command line.
        if value != "???":
            values[dotted] = _scalar(value)
    return values, entries


def _scalar(text: str) -> object:
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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
                    case _:
                        pass
    return found
