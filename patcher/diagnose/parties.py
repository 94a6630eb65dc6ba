"""Who takes part in a failed call: the package that asks, the one that is asked, and what only passes the call on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts
from patcher.diagnose.failed_code import arguments_of, mapping_with
from patcher.diagnose.frame import Frame, distribution, frame_of

HANDS_ON = re.compile(
    r", in (?:(?:__)?(?:[gs]et|del)attr(?:ibute)?(?:__)?|_(?:wrapped_)?call_impl"
    r"|inner|wrapped_f(?:n|unc)|decorate_context|_get_module|_compare_versions|require_version(?:_core)?)$"
    r"|torch/_ops\.py\", line \d+, in __call__$"
    r"|torch/(?:_dynamo/(?:eval_frame|utils|external_utils)|_compile|fx/\w+)\.py\", line \d+, in \S+$"
    r"|ray/_private/\w+\.py\", line \d+, in (?:get|get_objects|wait|wrapper|auto_init_wrapper)$"
    r"|triton/(?:runtime/jit|compiler/(?:code_generator|compiler))\.py\", line \d+, in (?:visit\w*|generic_visit)$"
)
"""Functions that only pass a call on, so they are not who asks: attributes and calls of torch modules, decorators with
`return func(*args, **kwargs)`, the version checks of transformers, torch's calls of operators and of compiled code of
any package, Ray's waits for what another process answers, and triton's walk through the code of a kernel. A text that
was pasted as Markdown has lost the underscores of `__getattr__`."""
_FORWARDS = re.compile(
    r"(?:return |else |\w+ = )?(?:await )?(?:self\.)?\w+"
    r"\((?:(?:self|cls), ?)?(?:\*\w*(?:args|inputs), ?\*\*\w*kwargs|\*\*\w*kwargs|\*\w*args)\)(?:\s+#.*)?"
    r"|return \w+\((?:self\.)?\w+\(\*\w*(?:args|inputs), ?\*\*\w*kwargs\)\)"
)
"""The line of a decorator that calls what it wraps with all that it was given: `return fn(self, **kwargs)`; of
accelerate `return convert_to_fp32(self.model_forward(*args, **kwargs))`."""
GIVES_ALL = re.compile(r"\(\*\w*args, ?\*\*\w*kwargs\)$")
"""The end of a line that hands on all that it was given, whatever it calls."""
_GETS = re.compile(r", in (?:__)?getattr(?:ibute)?(?:__)?$")
_FUNCTION = re.compile(r", in (?P<name>\S+)$")
ENGINES = frozenset(("vllm", "sglang"))
"""Inference engines, by their distribution."""
_FOR_ANY = ("torch/nn/modules/module.py",)
"""Files whose `__getattr__` speaks for classes of any package."""
# Packages that people run from a checkout, so that their files are outside of site-packages.
_TREE = re.compile(
    r"/(?P<name>verl|sglang|vllm|transformers|megatron|trl|peft|accelerate|deepspeed|opencompass|llamafactory|openrlhf"
    r"|torchtitan|axolotl|nemo_rl|mbridge|(?<=/ms-swift/)swift)/"
    r"(?:(?!(?:examples?|scripts?|tests?|tools|benchmarks?|python)/)(?=[a-z_]\w*/)|(?:python/|src/)(?P=name)/(?=\w+\.py))"
)

_TWICE = re.compile(
    r"(?:^|/)(?P<name>[a-z][a-z0-9_]{2,})/(?P=name)/(?!(?:examples?|scripts?|tests?|tools|benchmarks?)/)[a-z_]\w*/"
)
"""The package of a checkout whose folder has its name: `/srv/rllm/rllm/engine/agent.py`."""
_OF_UNSLOTH = "unsloth_compiled_cache/"
"""The folder in which unsloth keeps the code that it has made of other packages', where the program was started."""
_BRIDGE = re.compile(r"(?:^|/)megatron/bridge/\w")
"""A distribution within the namespace of another: `megatron` itself is megatron-core's."""
_NAMES_OF: Mapping[str, str] = {
    "apex": "FastLayerNormFN FastLayerNorm FusedLayerNormAffineFunction FusedRMSNormAffineFunction",
    "flash-attn": "flash_attn_with_kvcache flash_attn_qkvpacked_func flash_attn_varlen_qkvpacked_func FlashAttnFunc "
    "FlashAttnVarlenFunc FlashAttnQKVPackedFunc flash_attn_func flash_attn_varlen_func",
    "transformers": "AutoModelForCausalLM AutoTokenizer AutoProcessor AutoConfig PreTrainedModel PretrainedConfig "
    "PreTrainedTokenizerFast GenerationMixin GenerationConfig DynamicCache "
    "StaticCache BitsAndBytesConfig LlamaConfig Qwen2Config Qwen3Config Qwen2VLConfig Qwen2TokenizerFast "
    "LlamaTokenizerFast WeightConverter LlamaRotaryEmbedding MistralRotaryEmbedding Qwen2RotaryEmbedding "
    "GemmaRotaryEmbedding LlamaRMSNorm Qwen2RMSNorm PeftAdapterMixin",
    "accelerate": "Accelerator AcceleratorState PartialState GradientState AcceleratedOptimizer ClusterConfig "
    "DataLoaderConfiguration FullyShardedDataParallelPlugin DeepSpeedPlugin MegatronLMPlugin",
    "peft": "LoraConfig PeftModel PeftModelForCausalLM LoraModel PeftConfig",
    "trl": "SFTConfig KTOConfig ORPOConfig AutoModelForCausalLMWithValueHead DataCollatorForCompletionOnlyLM",
    "vllm": "LLM SamplingParams AsyncLLMEngine LLMEngine AsyncLLM AsyncEngineArgs EngineArgs VllmConfig LoRARequest "
    "RayDistributedExecutor MultiprocExecutor WorkerWrapperBase CoreEngineProcManager LoRAModel MMEncoderAttention "
    "CachedRequestState FusedMoEParallelConfig GPTQMarlinMoEMethod WorkerProc",
    "sglang": "ServerArgs TokenizerManager TpModelWorker ScheduleBatch ForwardBatch RadixAttention RadixCache "
    "HiRadixCache",
    "megatron-core": "MLATransformerConfig ModelParallelConfig DistributedDataParallelConfig GPTDatasetConfig "
    "BlendedMegatronDatasetBuilder",
    "transformer-engine": "LayerNormLinear LayerNormMLP fused_attn_fwd fused_attn_bwd",
    "torch": "FullyShardedDataParallel DistributedDataParallel DataLoader DeviceMesh init_device_mesh "
    "init_process_group _new_process_group_helper TCPStore LambdaLR FileSystemWriter _write_item",
    "deepspeed": "DeepSpeedEngine DeepSpeedZeroOptimizer DeepSpeedZeroOptimizer_Stage3 DeepSpeedCPUAdam PipelineEngine "
    "DeepSpeedConfig BF16_Optimizer",
    "ray": "PlacementGroupSchedulingStrategy NodeAffinitySchedulingStrategy",
    "tensordict": "TensorDict TensorDictBase NonTensorData",
    "qwen-vl-utils": "process_vision_info",
    "liger-kernel": "liger_fused_linear_cross_entropy LigerFusedLinearCrossEntropyLoss",
    "sgl-kernel": "moe_fused_gate",
    "lmdeploy": "_turbomind",
    "unsloth-zoo": "grpo_accumulated_loss grpo_compute_loss",
    "llguidance": "LLMatcher",
    "triton": "runtime_knobs compilation_knobs JITFunction",
}
_OWNERS = {name: package for package, names in _NAMES_OF.items() for name in names.split()}
"""Classes and functions that other packages call, and whose name is that of one package only: its distribution."""


def hands_on(call: Call) -> bool:
    """Whether a frame only passes a call on, by its function or by its line of code."""
    return HANDS_ON.search(call.frame) is not None or _FORWARDS.fullmatch(call.code.strip()) is not None


def is_cut_off(parts: MessageParts, calls: Sequence[Call]) -> bool:
    """Whether the frame that asked is not shown: the last one that is only hands everything on, and does not name what
    is missing, or has no line of code, which all others have.

        return getattr(self.worker_dict[key], name)(*args, **kwargs)
    AttributeError: 'Tensor' object has no attribute 'offsets'
    """
    code = calls[-1].code.strip() if calls else ""
    if parts.matter == "missing-attribute":
        return GIVES_ALL.search(code) is not None and not any(name in code for name in parts.names)
    last = frame_of(calls[-1].frame) if calls else None
    if parts.matter != "unexpected-argument" or code or last is None or last.path.startswith("<"):
        return False  # `<frozen importlib._bootstrap>` never has a line of code.
    return len(calls) > 1 and all(one.code for one in calls[:-1])


def owner_of(symbol: str) -> str:
    """The distribution that a class or function is of, by its name alone; "" where the name is not known."""
    return _OWNERS.get(symbol.partition(".")[0], "")


def party(frame: Frame | None) -> str:
    """The distribution that a frame is of, also where it runs from a checkout; "" where that is not known."""
    if frame is None:
        return ""
    if _BRIDGE.search(frame.path):
        return "megatron-bridge"
    if frame.package:
        return distribution(frame.package)
    if _OF_UNSLOTH in frame.path:
        return "unsloth"
    if frame.installed:
        return ""
    found = [*_TREE.finditer(frame.path)] or [*_TWICE.finditer(frame.path)]
    return distribution(found[-1]["name"]) if found else ""


def asked_party(parts: MessageParts, calls: Sequence[Call]) -> str:
    """The distribution that a missing attribute, or a called function, is of; "" where neither the frames nor its name
    tell."""
    if parts.matter == "missing-attribute":
        last = frame_of(calls[-1].frame) if calls and _GETS.search(calls[-1].frame) else None
        if last is not None and last.path not in _FOR_ANY:
            return party(last)
    outer, inside, _ = parts.symbol.partition(".<locals>")
    if inside:  # A function within another one, which mostly still runs.
        name = outer.rpartition(".")[2]
        return next((party(frame_of(one.frame)) for one in reversed(calls) if _function(one) == name), "")
    return owner_of(parts.symbol) or _party_of_all(parts, calls)


def is_getter(call: Call) -> bool:
    """Whether a frame is that of a `__getattr__`, which asks for its caller."""
    return _GETS.search(call.frame) is not None


def asks_itself(name: str, calls: Sequence[Call]) -> bool:
    """Whether the code that fails asks `self` for an attribute."""
    asking = [one for one in calls if not hands_on(one)]
    # `self.vocab = self.processor.vocab` sets it in `self`, and asks another object.
    of = re.findall(rf"([\w.\])]+)\.{re.escape(name)}\b(?!\s*=(?!=))", asking[-1].code) if asking else []
    return bool(of) and set(of) == {"self"}


_OF_OTHERS = re.compile(
    r"(?:Config|Tokenizer(?:Fast)?|Processor|Cache|Parameter|Tensor|Module|Size|Stream|Event|Group|Work|Mesh|Future"
    r"|Optimizer|Scheduler|Dataset|DataLoader|Client|Response|Request|Logger|Queue|Event|Handle|State|Model"
    r"|ForCausalLM|ForConditionalGeneration)$"
)
"""Ends of the names of classes that packages take from others."""
_FEWEST = 3
"""Frames of one package above an object's own that show the object to be of that package too. Set by hand."""


def _party_of_all(parts: MessageParts, calls: Sequence[Call]) -> str:
    """The distribution that all known frames are of, which then has most likely made the object; "" where they are few
    or of several."""
    if parts.matter != "missing-attribute" or _OF_OTHERS.search(parts.symbol) or not parts.symbol[:1].isupper():
        return ""
    known = [(one, frame) for one in calls if (frame := frame_of(one.frame)) is not None]
    of = [
        party(frame)
        for one, frame in known
        if not (hands_on(one) or _MACHINERY.match(frame.path) or (frame.installed and not frame.package))
    ]
    return of[-1] if len(of) >= _FEWEST and len(set(of)) == 1 else ""


def _function(call: Call) -> str:
    found = _FUNCTION.search(call.frame)
    return found["name"] if found is not None else ""


@dataclass(frozen=True, slots=True)
class Given:
    """Where a keyword stands that code only hands on: the name of the configuration, and who gives it to the reader."""

    section: str = ""
    at: Frame | None = None


_CONFIG = re.compile(
    r"(?:^|[._])(?:cfg|conf|config|configs|configuration|yaml|json|settings|section|spec|hparams|model_args)"
    r"(?:$|[._\[(]|_?(?:dict|file|path|yaml|json|data|name)s?\b)",
    re.IGNORECASE,
)
_READS = re.compile(
    r"^(?:from_(?:yaml|json|toml|cfg|config|conf|dict|file)\w*|(?:load|read|parse|get)_\w*(?:config|yaml|json|cfg)\w*"
    r"|build(?:_\w+)?_from_(?:cfg|config|dict)|instantiate\w*|_?call_target|\w+_from_(?:cfg|config|dict|yaml|json|file))$"
)
"""Functions that make an object of what a configuration holds."""
_NEAR = 2
"""Frames above the failing one in which a function that reads a configuration is searched."""


def given_by_configuration(parts: MessageParts, calls: Sequence[Call]) -> Given | None:
    """Where a refused keyword comes from a configuration that the failing line only hands on, as `cls(**config)` does;
    None where the code itself may have written it."""
    if parts.matter != "unexpected-argument" or not parts.names or not calls:
        return None
    mapping = mapping_with(calls[-1].code, parts.names[0])
    if not mapping:
        return None
    reads = any(_READS.match(_function(one)) for one in calls[-1 - _NEAR :])
    passed = mapping.endswith(("kwargs", "kw")) and "hydra/_internal/instantiate" not in calls[-1].frame
    if passed or not (reads or _CONFIG.search(mapping)):
        return None
    reader = frame_of(calls[-1].frame)
    for one in reversed(calls[:-1]):
        frame = frame_of(one.frame)
        named = [text for text in arguments_of(one.code) if _CONFIG.search(text)]
        if frame is not None and reader is not None and party(frame) != party(reader) and named:
            return Given(named[0], frame)
        if not named and not _READS.match(_function(one)):
            break
    # All in one package: the outermost of the calls that hand the configuration from one to the next.
    found = Given()
    for one in reversed(calls[:-1]):
        named = [text for text in arguments_of(one.code) if _CONFIG.search(text)]
        if not named:
            break
        found = Given(named[0], frame_of(one.frame))
    return found


def frame_above(calls: Sequence[Call]) -> Frame | None:
    """The frame that has called the innermost one, as far as it asks for something itself; None where there is none."""
    for one in reversed(calls[:-1]):
        frame = frame_of(one.frame)
        if frame is not None and not hands_on(one) and not _MACHINERY.match(frame.path):
            return frame
    return None


def outside_of(name: str, calls: Sequence[Call]) -> Frame | None:
    """The innermost frame that is not of this distribution, nor of Python or of what only passes a call on; None where
    there is none."""
    for one in reversed(calls[:-1]):
        frame = frame_of(one.frame)
        if frame is None or hands_on(one) or _MACHINERY.match(frame.path):
            continue
        if party(frame) != name and not (frame.installed and not frame.package):
            return frame
    return None


_MACHINERY = re.compile(r"^(?:torch/(?:nn/modules/module|utils/_contextlib|_dynamo/\S+|autograd/\S+)\.py)$")


def caller_of(at: Frame | None, calls: Sequence[Call]) -> tuple[Frame, str] | None:
    """The innermost frame of another package above `at`, with its line of code; None where there is none."""
    if at is None or not party(at):
        return None
    known = [(frame, one) for one in calls if (frame := frame_of(one.frame)) is not None]
    places = [number for number, (frame, _) in enumerate(known) if frame == at]
    for frame, one in reversed(known[: places[-1]] if places else []):
        if hands_on(one) or _MACHINERY.match(frame.path) or (frame.installed and not frame.package):
            continue
        if party(frame) not in ("", party(at)):
            return frame, one.code.strip().partition("\n")[0]
    return None


def is_beside(at: Frame | None, parts: MessageParts) -> bool:
    """Whether a package asks itself for a module: `/a/pyarrow/__init__.py` for `pyarrow.lib`. Other files may be of a
    project in a folder of the package's name."""
    own = at is not None and f"/{parts.package}/" in at.path and at.path.endswith("/__init__.py")
    return own and parts.matter == "missing-module"


def is_in_tree_of(at: Frame | None, parts: MessageParts) -> bool:
    """Whether the file that asks lies in the folder of the package that lacks the name, or in the sources of the same
    build: `/tmp/pip-install-1/farm_2/setup.py` and `/tmp/pip-install-1/farm_2/tools/hoe.py`."""
    tree, inside, _ = parts.file.rpartition(f"/{parts.package}/")
    folder = f"{tree}/" if "/pip-install-" in tree else f"{tree}{inside}"
    return at is not None and bool(inside) and at.path.startswith(folder)
