"""Installing and compiling: pip, gcc, the linker, Triton, torch's compilers."""

from tests.corpus.making.scenes import scene

SDIST = {
    "package/setup.py": """from setuptools import Extension, setup
setup(name="fast-reward", version="0.1", ext_modules=[Extension("fast_reward._core", ["core.c"])], packages=[])
""",
    "package/core.c": """#include <Python.h>
int reward(int n) { return n + undeclared_thing; }
""",
}
PIP = "$PYTHON -m pip install --disable-pip-version-check --target site"
scene("pip-compiler-error", made="pip builds a source package whose C code does not compile.",
      command=f"{PIP} --no-build-isolation --no-index ./package", files=SDIST, root=["wheel-build-failed"],
      signs=[r"subprocess-exited-with-error|did not run successfully|undeclared_thing|Failed building wheel for fast-reward|error: command .* failed|fatal error: Python.h"], all_signs=True, versions=["pip", "setuptools"])  # fmt: skip
scene("pip-no-compiler", made="pip builds a source package and there is no C compiler.",
      command=f"CC=gcc-absent {PIP} --no-build-isolation --no-index ./package", files=SDIST,
      root=["c-compiler-missing"], signs=[r"gcc-absent"], all_signs=True, versions=["pip", "setuptools"])  # fmt: skip
scene("pip-setup-raises", made="pip builds a source package whose setup.py imports a module that is not there.",
      command="$PYTHON -I -m pip install --disable-pip-version-check --target site --no-index --no-build-isolation ./package",
      files={"package/setup.py": "from setuptools import setup\nimport torch_not_there as torch\nsetup(name='flash-attn', version='2.8.3')\n"},
      root=["wheel-build-failed", "flash-attn-build-failed", "module-missing"], signs=[r"No module named 'torch|metadata-generation-failed|subprocess-exited-with-error"], all_signs=True, versions=["pip"])  # fmt: skip
scene("pip-no-network", made="pip install without a network.", command=f"{PIP} verl==0.8.0 --retries 1 --timeout 3 --index-url https://index.example.org/simple --no-deps",
      root=["package-index-unreachable"], signs=[r"No matching distribution|Could not find a version|NewConnectionError|name resolution"], all_signs=True, versions=["pip"])  # fmt: skip
scene("pip-hash", made="pip install of a wheel that is no wheel.", command=f"echo no > vllm-0.20.2-py3-none-any.whl; {PIP} --no-deps ./vllm-0.20.2-py3-none-any.whl",
      root=["unknown", "wheel-build-failed"], signs=[r"(?i)invalid|has an invalid wheel|is not a zip"], all_signs=True, versions=["pip"])  # fmt: skip
scene("pip-managed", made="pip install into a Python that the system manages.", command="/usr/bin/python3 -m pip install --no-index tensordict || $PYTHON -c pass; /usr/bin/python3 -c 'import sys; print(sys.version)'",
      root=["pip-managed-environment"], signs=[r"externally-managed-environment"], versions=[])  # fmt: skip
scene("linker-lcuda", made="gcc links with -lcuda where there is no libcuda, as Triton's launcher does.",
      command="bash build.sh", files={"build.sh": "echo '[build] linking cuda_utils'\ngcc main.c -O3 -shared -fPIC -lcuda -o cuda_utils.so\necho exit code $?\n", "main.c": "int f() { return 1; }\n"},
      root=["libcuda-linker"], signs=[r"cannot find -lcuda"], versions=[])  # fmt: skip
scene("triton-gcc-lcuda", made="A subprocess.check_call of gcc with -lcuda fails, as in Triton's build module.",
      command="$PYTHON main.py",
      files={"main.py": """import subprocess
from triton.runtime.build import _build
import pathlib
pathlib.Path("main.c").write_text("int f() { return 1; }")
_build("cuda_utils", "main.c", ".", ["/usr/lib/x86_64-linux-gnu"], ["."], ["cuda"], [])
"""}, root=["libcuda-linker", "triton-gcc-failed"], signs=[r"cannot find -lcuda", r"CalledProcessError"], all_signs=True, versions=["triton"])  # fmt: skip
scene("triton-no-compiler", made="Triton builds a module and there is no C compiler.", command="PATH=/nothing $PYTHON main.py",
      files={"main.py": """import pathlib
from triton.runtime.build import _build
pathlib.Path("main.c").write_text("int f() { return 1; }")
_build("cuda_utils", "main.c", ".", [], [], [], [])
"""}, root=["c-compiler-missing"], signs=[r"Failed to find C compiler"], versions=["triton"])  # fmt: skip
scene("inductor-headers", made="torch.compile on a CPU with an interpreter whose headers are not installed.", command="$PYTHON main.py",
      files={"main.py": """import torch
f = torch.compile(lambda x: torch.sin(x) + x.sum())
print("compiling", flush=True)
print(f(torch.ones(64, 64)).mean())
"""}, root=["python-headers-missing"], signs=[r"fatal error: Python.h: No such file", r"CppCompileError"], all_signs=True)  # fmt: skip
scene("inductor-no-compiler", made="torch.compile on a CPU and there is no C++ compiler.", command="PATH=/nothing CXX=g++-absent $PYTHON main.py",
      files={"main.py": """import torch
f = torch.compile(lambda x: torch.sin(x) + x.sum())
print(f(torch.ones(64, 64)).mean())
"""}, root=["c-compiler-missing", "inductor-failed"], signs=[r"InvalidCxxCompiler|No working C\+\+ compiler"], all_signs=True)  # fmt: skip
scene("torch-extension", made="torch.utils.cpp_extension.load of code that does not compile.", command="$PYTHON main.py",
      files={"main.py": """from torch.utils.cpp_extension import load
load("fused", ["fused.cpp"], verbose=True, build_directory=".")
""", "fused.cpp": "#include <torch/extension.h>\nint f() { return missing; }\n"},
      root=["torch-extension-build-failed", "python-headers-missing"], signs=[r"Error building extension|ninja: build stopped|fatal error: Python.h"], all_signs=True, versions=["torch", "ninja"])  # fmt: skip
scene("flash-attn-missing", made="transformers is asked for flash_attention_2 and flash-attn is not installed.", command="$PYTHON main.py",
      files={"main.py": """import os, torch
from transformers import AutoModelForCausalLM
AutoModelForCausalLM.from_pretrained(os.environ["MODEL"], attn_implementation="flash_attention_2", torch_dtype=torch.bfloat16)
"""}, root=["flash-attn-missing"], signs=[r"(?i)flash_attn.*(not|seems)|FlashAttention2"], all_signs=True, versions=["transformers"])  # fmt: skip
scene("flash-attn-import", made="A fork imports flash_attn, which is not installed.", command="$PYTHON main.py",
      files={"main.py": "import torch\nfrom flash_attn.bert_padding import index_first_axis, pad_input\n"}, root=["flash-attn-missing"],
      signs=[r"No module named 'flash_attn'"], versions=["torch"])  # fmt: skip
scene("torch-without-cuda", made="A script moves a tensor to a GPU with torch's CPU build.", command="$PYTHON main.py",
      files={"main.py": "import torch\nprint(torch.__version__, flush=True)\nx = torch.zeros(4).to('cuda')\n"}, root=["torch-without-cuda", "cuda-no-device"],
      signs=[r"Torch not compiled with CUDA enabled"])  # fmt: skip
scene("shared-library-missing", made="A program is started whose shared library is not there.",
      command="gcc -shared -fPIC -o libnccl_uky.so lib.c && gcc -o tool main.c -L. -lnccl_uky && rm libnccl_uky.so; ./tool --check; $PYTHON -c \"import ctypes; ctypes.CDLL('libcudart.so.12')\"",
      files={"lib.c": "int f(void) { return 1; }\n", "main.c": "int f(void); int main(void) { return f(); }\n"}, root=["shared-library-missing"],
      signs=[r"cannot open shared object file"], all_signs=True, versions=[])  # fmt: skip
scene("numpy-newer-abi", made="A package asks for a symbol that numpy has moved.", command="$PYTHON -c 'import numpy; numpy.float_(3)'",
      root=["numpy-abi-mismatch", "unknown"], signs=[r"AttributeError: `np.float_` was removed"], versions=["numpy"])  # fmt: skip
scene("port-in-use-plain", made="A plain socket server on a port that is taken.", command="""$PYTHON -c "
import socketserver, http.server, logging
logging.basicConfig(level=logging.INFO)
a = http.server.HTTPServer(('127.0.0.1', 8125), http.server.BaseHTTPRequestHandler)
logging.info('reward server on 8125')
b = http.server.HTTPServer(('127.0.0.1', 8125), http.server.BaseHTTPRequestHandler)" """,
      root=["port-in-use"], signs=[r"Address already in use"], versions=[])  # fmt: skip
scene("compile-ok", made="pip installs a source package from its folder, to the end.", command=f"{PIP} --no-build-isolation --no-index ./package",
      files={"package/setup.py": "from setuptools import setup\nsetup(name='error-reporting', version='0.1', py_modules=[])\n"}, verdict="ok", versions=["pip", "setuptools"])  # fmt: skip
