"""vLLM's server and engine on a CPU: what it refuses to start with, what kills it, and what it survives."""

from tests.corpus.making.scenes import scene

VERSIONS = ("vllm", "torch", "transformers")
SERVE = "vllm serve {model} --enforce-eager --max-model-len {length} --port 8131 {options}"


def serve(
    name: str, options: str = "", *, model: str = "$MODEL", length: object = 256, head: str = "", **told: object
) -> None:
    """`vllm serve` of the tiny model; `head` goes before it in the shell."""
    command = head + SERVE.format(model=model, length=length, options=options)
    scene(
        name,
        command=command,
        **{"versions": VERSIONS, "seconds": 300, "environment": {"TORCHDYNAMO_DISABLE": "1"}, **told},
    )


ASK = """(until grep -q 'Application startup complete' $LOG; do sleep 1; done; {ask}; sleep 3; {after}) & """
CURL = 'curl -s http://127.0.0.1:8131/v1/completions -H \'Content-Type: application/json\' -d \'{{"model": "\'$MODEL\'", "prompt": {prompt}, "max_tokens": {tokens}}}\''
HELLO = CURL.format(prompt='"what is one plus two?"', tokens=16)
STOP = "$END SIGINT 'vllm serve'"

serve("vllm-serve-running", head=ASK.format(ask=f"for i in 1 2 3; do {HELLO}; done", after=":"), made="A server that answers, cut while it runs.",
      verdict="running", phase="rollout", seconds=300, until="200 OK", times=3)  # fmt: skip
serve("vllm-serve-stopped", head=ASK.format(ask=HELLO, after=STOP), made="A server that answers, then is ended with Ctrl-C.",
      verdict="ok", phase="rollout", seconds=300)  # fmt: skip
serve("vllm-serve-bad-requests",
      head=ASK.format(ask=";".join([CURL.format(prompt='"' + "x " * 400 + '"', tokens=999), HELLO, "curl -s http://127.0.0.1:8131/v1/nothing", CURL.format(prompt="17.5", tokens='"many"'), HELLO]), after=":"),
      made="A server that refuses bad requests and goes on, cut while it runs.", verdict="running", phase="rollout", seconds=300, until="200 OK", times=2)  # fmt: skip
serve("vllm-serve-compile-in-request", head=ASK.format(ask=HELLO, after=":"), environment={},
      made="The server starts eagerly; its sampler is compiled for the first request, and the interpreter's headers are not installed.",
      root=["python-headers-missing"], phase="rollout", signs=[r"fatal error: Python.h: No such file", r"CppCompileError"], all_signs=True)  # fmt: skip
serve("vllm-max-model-len", length=8192, made="The length asked for is beyond what the model can take.",
      root=["max-model-len-too-long"], signs=[r"User-specified max_model_len"], all_signs=True)  # fmt: skip
serve("vllm-kv-cache-too-small", model="long", length=4_000_000,
      head="""cp -r $MODEL long; sed -i 's/"max_position_embeddings": 1024/"max_position_embeddings": 4000000/' long/config.json; """,
      made="One sequence of the length asked for needs more KV cache than there is.",
      root=["kv-cache-too-small-for-length"], phase="rollout", signs=[r"larger than the available KV cache memory"], all_signs=True)  # fmt: skip
serve("vllm-kv-space-beyond-memory", head="VLLM_CPU_KVCACHE_SPACE=400 ", made="More KV cache is asked for than the machine has memory.",
      root=["cannot-allocate-memory", "vllm-free-memory-at-startup", "unknown", "vllm-no-kv-cache-memory", "kv-cache-allocation"], phase="rollout",
      signs=[r"ValueError|RuntimeError: .*alloc|not enough memory|can't allocate"], all_signs=True)  # fmt: skip
serve("vllm-memory-refused", head="ulimit -v 5000000; ", made="Under ulimit -v the engine cannot get its memory.",
      root=["cannot-allocate-memory", "host-oom-killed"], signs=[r"(?i)cannot allocate memory|can't allocate|MemoryError|failed to map|not enough memory"], all_signs=True)  # fmt: skip
serve("vllm-dtype", "--dtype float8", made="A dtype that there is not.", root=["command-line-wrong", "vllm-argument-unknown", "config-value-unknown"],
      signs=[r"argument --dtype: invalid choice|Unknown dtype"], all_signs=True)  # fmt: skip
serve("vllm-old-flag", "--disable-log-requests", made="A flag that vLLM 0.12 removed.",
      root=["vllm-argument-unknown", "vllm-disable-log-requests"], signs=[r"unrecognized arguments"])  # fmt: skip
serve("vllm-model-missing", model="/data/models/Qwen3-4B-uky", made="The model's folder does not exist.", root=["model-path-wrong"],
      signs=[r"Repo id must be in the form|OSError|HFValidationError|does not exist|Invalid repository ID"], all_signs=True)  # fmt: skip
serve("vllm-hub-unreachable", model="Qwen/Qwen2.5-0.5B-Instruct", made="A model of the hub, on a machine without a network.",
      root=["hf-no-connection"], signs=[r"couldn't connect|Can't load the configuration|Failed to resolve|Name resolution|name resolution|LocalEntryNotFound|OfflineModeIsEnabled|Cannot send a request"], all_signs=True)  # fmt: skip
serve("vllm-config-json-missing", model="bare", head="cp -r $MODEL bare; rm bare/config.json; ", made="The model's folder lacks config.json.",
      root=["model-files-incomplete", "model-path-wrong"], signs=[r"ValueError|OSError|config.json"], all_signs=True)  # fmt: skip
serve("vllm-architecture", model="odd", head="""cp -r $MODEL odd; sed -i 's/LlamaForCausalLM/Qwen9MoeForCausalLM/' odd/config.json; """,
      made="The model's architecture is unknown to this vLLM.", root=["model-architecture-unsupported"],
      signs=[r"Qwen9MoeForCausalLM.*not supported|architectures .*Qwen9Moe|has no vLLM implementation"], all_signs=True)  # fmt: skip
serve("vllm-model-type", model="odd", head="""cp -r $MODEL odd; sed -i 's/"model_type": "llama"/"model_type": "qwen9"/' odd/config.json; """,
      made="The model's type is unknown to this transformers.", root=["transformers-model-unknown", "model-architecture-unsupported"],
      signs=[r"does not recognize this architecture|model type `qwen9`"], all_signs=True)  # fmt: skip
serve("vllm-tensor-parallel", "--tensor-parallel-size 4", made="The model's two heads do not divide by four.",
      root=["tensor-parallel-not-divisible"], signs=[r"must be divisible by tensor parallel size"], all_signs=True)  # fmt: skip
serve("vllm-safetensors-cut", model="cut", head="cp -r $MODEL cut; truncate -s 100000 cut/model.safetensors; ",
      made="The weights' file is cut short, as after a broken download.", root=["safetensors-corrupt"], phase="rollout",
      signs=[r"SafetensorError|incomplete metadata|InvalidHeader|HeaderTooSmall"], all_signs=True)  # fmt: skip
serve("vllm-git-lfs-pointer", model="lfs",
      head="""cp -r $MODEL lfs; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\\nsize 988097824\\n' > lfs/model.safetensors; """,
      made="The weights' file is a pointer of git-lfs.", root=["safetensors-corrupt", "model-files-incomplete"], phase="rollout",
      signs=[r"SafetensorError|header too large|HeaderTooLarge"], all_signs=True)  # fmt: skip
serve("vllm-weights-missing", model="bare", head="cp -r $MODEL bare; rm bare/model.safetensors; ", made="The model's folder holds no weights.",
      root=["model-files-incomplete"], phase="rollout", signs=[r"Cannot find any model weights"], all_signs=True)  # fmt: skip
serve("vllm-weights-of-other-shape", model="odd", head="""cp -r $MODEL odd; sed -i 's/"intermediate_size": 128/"intermediate_size": 256/' odd/config.json; """,
      made="The configuration and the weights are of different models.", root=["vllm-weights-do-not-fit", "unknown", "checkpoint-mismatch"], phase="rollout",
      signs=[r"exceeds dimension size|size mismatch|Attempted to load weight"], all_signs=True)  # fmt: skip
serve("vllm-port-in-use", head="""$PYTHON -c "
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('0.0.0.0', 8131)); s.listen(); time.sleep(140)" &
sleep 1; """, made="Another program listens on the server's port.", root=["port-in-use"],
      signs=[r"Address already in use"], all_signs=True)  # fmt: skip
serve("vllm-quantization", "--quantization gptq_marlin", made="A quantization that the model has not.", root=["quantization-unsupported", "unknown"],
      signs=[r"(?i)quantization.*(not|cannot|does not)|Cannot find the config file for"], all_signs=True)  # fmt: skip
serve("vllm-engine-killed", head=ASK.format(ask=HELLO, after=f"$END SIGKILL VLLM::EngineCore; sleep 1; {HELLO}"),
      made="The engine's process is killed with SIGKILL while the server runs.", root=["engine-process-died", "process-killed", "engine-dead"], phase="rollout",
      signs=[r"Engine core proc .* died|EngineCore.*died|EngineDeadError|Engine core proc"], all_signs=True)  # fmt: skip
serve("vllm-engine-oom-killed", "--num-gpu-blocks-override 100000000", head="", memory=2500, made="The kernel kills the engine, which outgrows the control group's memory.",
      root=["engine-process-died", "process-killed", "host-oom-killed", "engine-core-failed"], phase="rollout",
      signs=[r"Engine core initialization failed|Failed core proc|died unexpectedly|Killed"], all_signs=True)  # fmt: skip
serve("vllm-worker-killed-in-start", head="$END SIGKILL VLLM::EngineCore 'Loading safetensors' & ", made="The engine's process is killed with SIGKILL while it loads.",
      root=["engine-process-died", "process-killed", "engine-core-failed"], phase="rollout", signs=[r"Engine core initialization failed|Failed core proc|died"], all_signs=True)  # fmt: skip
serve("vllm-chat-template", head="""cp -r $MODEL bare; rm bare/chat_template.jinja; """ + ASK.format(
      ask="""curl -s http://127.0.0.1:8131/v1/chat/completions -H 'Content-Type: application/json' -d '{{"model": "bare", "messages": [{{"role": "user", "content": "hi"}}]}}'""".replace("{{", "{").replace("}}", "}"), after=":"),
      model="bare", made="Chat is asked of a model without a chat template: the request fails, the server goes on.", verdict="running", phase="rollout", seconds=300, until="/v1/chat/completions HTTP/1.1")  # fmt: skip

scene(
    "vllm-async-old-argument",
    made="A fork's script gives AsyncEngineArgs an argument that vLLM 0.12 removed.",
    command="$PYTHON main.py",
    files={
        "main.py": """import os
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.v1.engine.async_llm import AsyncLLM
args = AsyncEngineArgs(model=os.environ["MODEL"], disable_log_requests=True, enforce_eager=True)
engine = AsyncLLM.from_engine_args(args)
"""
    },
    root=["vllm-disable-log-requests"],
    signs=[r"disable_log_requests'"],
    versions=VERSIONS,
)
scene(
    "vllm-offline-ok",
    made="Offline generation, to the end.",
    command="$PYTHON main.py",
    files={
        "main.py": """import os
from vllm import LLM, SamplingParams
if __name__ == "__main__":
    llm = LLM(os.environ["MODEL"], max_model_len=256, enforce_eager=True)
    for out in llm.generate(["one plus two", "three plus four"], SamplingParams(max_tokens=8)):
        print(repr(out.outputs[0].text))
    print("generated", flush=True)
"""
    },
    verdict="running",
    phase="rollout",
    versions=VERSIONS,
    environment={"TORCHDYNAMO_DISABLE": "1"},
)
scene(
    "vllm-no-main-guard",
    made="A script makes an engine with spawned processes outside of a main guard.",
    command="VLLM_WORKER_MULTIPROC_METHOD=spawn $PYTHON main.py",
    files={
        "main.py": """import os
from vllm import LLM, SamplingParams
llm = LLM(os.environ["MODEL"], max_model_len=256, enforce_eager=True)
print(llm.generate(["one plus two"], SamplingParams(max_tokens=8)))
"""
    },
    root=["spawn-without-main-guard"],
    signs=[r"An attempt has been made to start a new process|current process has finished its bootstrapping"],
    all_signs=True,
    versions=VERSIONS,
)
