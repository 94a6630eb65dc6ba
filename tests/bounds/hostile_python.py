# ruff: noqa: E501
"""Python that nobody writes, by what is odd about it."""

from __future__ import annotations

MENTION = "import vllm\n"
"""So that `check` looks into the file at all."""


def unreadable() -> dict[str, bytes]:
    """Files that cost a finding `not readable`."""
    many = 20_000
    texts = {
        "parentheses": "x = " + "(" * 5_000 + ")" * 5_000,
        "brackets": "x = " + "[" * 150 + "]" * 150,
        "attributes": "x = a" + ".b" * many,
        "calls": "x = f" + "()" * many,
        "calls_with_commas": "x = f" + "(0,\n0)" * many,
        "subscripts": "x = f" + "[0]" * many,
        "sum": "x = 1" + "+1" * many,
        "sum_on_lines": "x = (1" + "\n+1" * many + ")",
        "short_sum": "x = 1" + "+1" * 400,
        "alternatives": "x: a" + "|b" * many,
        "minus": "x = " + "-" * many + "1",
        "negations": "x = " + "not " * many + "1",
        "lambdas": "x = " + "lambda: " * many + "1",
        "choices": "x = " + "1 if 1 else " * many + "1",
        "few_choices": "x = " + "1 if 1 else " * 300 + "1",
        "powers": "x = 1" + "**1" * many,
        "comparisons_nested": "x = " + "(1 < " * 180 + "1" + ")" * 180,
        "ifs": "".join(" " * n + "if 1:\n" for n in range(5_000)) + " " * 5_000 + "pass\n",
        "elifs": "if a:\n    pass\n" + "elif b:\n    pass\n" * 5_000,
        "few_elifs": "if a:\n    pass\n" + "elif b:\n    pass\n" * 400,
        "decorator": "@a" + ".b" * many + "\ndef f(): pass\n",
        "default": "def f(x=1" + "+1" * many + "): pass\n",
        "base": "class A(b" + ".c" * many + "): pass\n",
        "number": "x = " + "1" * 20_000,
        "no_python": "def def def",
        "open_string": 'x = """' + "a\n" * 1000,
        "tabs": "if 1:\n\tx = 1\n        y = 2\n",
        "dedent": "if 1:\n        x = 1\n    y = 2\n",
        "encoding": "# -*- coding: no-such-encoding -*-\nx = 1\n",
        "quoted_printable": "# -*- coding: rot13 -*-\nvzcbeg bf\n",
    }
    found = {name: (_mentioning(text)).encode() for name, text in texts.items()}
    return {
        **found,
        "null": b"import vllm\nx = 1\0\n",
        "surrogates": "import vllm\nx = '\udc80'\n".encode("utf-8", "surrogateescape"),
        "latin": "import vllm\nx = 'é'\n".encode("latin-1"),
        "utf16": "import vllm\nx = 1\n".encode("utf-16") + b"vllm",
        "binary": bytes(range(256)) * 100 + b"vllm",
        "large": b"import vllm\n" + b"x = 1\n" * 1_000_000,
        "large_comment": b"import vllm\n#" + b"x" * 30_000_000,
    }


def readable() -> dict[str, bytes]:
    """Files that are odd, and Python all the same: nothing but what they lead to is undecided."""
    many = 3_000
    chain = "".join(f"class K{n + 1}(K{n}):\n    def f(self):\n        return self.g()\n" for n in range(many))
    circle = [f"class C{n}(C{(n + 1) % 60}):\n    def f(self): return self.g()\n" for n in range(60)]
    doubling = "a0 = '1.0.0'\n" + "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(60))
    nested = "t0 = (1, 2)\n" + "".join(f"t{n + 1} = (t{n}, t{n})\n" for n in range(30))
    replaced = "r0 = 'aaaa'\n" + "".join(f"r{n + 1} = r{n}.replace('a', r{n})\n" for n in range(12))
    helpers = "".join(
        f"def h{n}():\n    if h{n + 1}() and h{n + 1}():\n        return h{n + 1}()\n    return h{n + 1}()\n"
        for n in range(30)
    )
    return_each_other = "".join(
        f"def r{n}(x):\n"
        + "".join(f"    if x == {m}:\n        return r{m}(x)\n" for m in range(12))
        + "    return LLM()\n"
        for n in range(12)
    )
    texts = {
        "form_feed": "import vllm\n\fx = 1\n",
        "carriage_returns": "import vllm\rfrom vllm import LLM\rx = LLM(model='a').generate('b')\r",
        "mutual": "from vllm import LLM\ndef f(): return g()\ndef g(): return f()\nf().generate(1)\ng().x.y(z=1)\n",
        "return_each_other": f"from vllm import LLM\n{return_each_other}\nr0(1).generate(1).x\nr11(2).abc()\n",
        "subclasses": f"from vllm import LLM\nclass K0(LLM): pass\n{chain}\nK{many}().generate(1)\n",
        "circle": f"import vllm\n{''.join(circle)}\nC0().f().x\n",
        "own_base": "from vllm import LLM\nclass LLM(LLM):\n    def f(self): return super().f()\nLLM().f()\n",
        "property": "import vllm\nclass A:\n    @property\n    def p(self): return self.p\nA().p.q.r(vllm=1)\n",
        "alias": "import vllm\nA = list['B']\nB = dict[str, 'A']\ndef f(x: A) -> B: return x[0]\nf(vllm).y.z()\n",
        "quoted": "import vllm\nx: 'x'\ndef f(a: \"'a'\") -> \"f\": ...\nf(vllm).b\n",
        "deep_quotes": "import vllm\ndef f(a: " + repr("vllm.LLM" + " | None" * 5_000) + "): return a.generate(1)\n",
        "getattr": "import vllm\nclass A:\n    def __getattr__(self, n): return getattr(B(), n)\n"
        "class B:\n    def __getattr__(self, n): return getattr(A(), n)\nA().generate(vllm)\n",
        "decorators": "import vllm\n" + "".join(f"def d{n}(f): return d{n + 1}(f)\n" for n in range(200))
        + "@d0\n@d1\n@d2\ndef f(): return vllm.LLM()\nf().generate(1)\n",
        "many_decorators": "import vllm\n" + "@a\n" * 5_000 + "def f(): return vllm.LLM()\nf().generate(1)\n",
        "swapped": "import vllm\na = b\nb = a\na.generate(vllm)\nb.x.y\n",
        "attributes_again": "import vllm\nx = vllm.LLM\n" + "x = x.y\n" * many + "x.z()\n",
        "called_again": "import vllm\nx = vllm.LLM\n" + "x = x()\n" * many + "x.z()\n",
        "items_again": "import vllm\nx = vllm.LLM\n" + "x = x[0]\n" * many + "x.z()\n",
        "loop": "import vllm\nx = vllm.LLM\nfor i in range(9):\n" + "    x = x.y\n" * 300 + "x.z()\n",
        "collected": "import vllm\nx = [vllm.LLM]\n" + "x = [x, x]\n" * 300 + "x[0].z()\n",
        "keywords": "import vllm\nk = {}\n" + "".join(f"k['a{n}'] = k\n" for n in range(many)) + "vllm.LLM(**k)\n",
        "either": "import vllm\nx = vllm.LLM\n" + "".join(f"if a{n}:\n    x = x.y{n}\n" for n in range(300)) + "x.z()\n",
        "either_tests": "import vllm\nx = 0\n"
        + "".join(f"if a{n}:\n    k{n} = vllm.LLM\nelse:\n    k{n} = vllm.y\n" for n in range(300))
        + "k9.z()\n",
        "assignments": "import vllm\n" + "".join(f"a{n} = vllm.LLM\n" for n in range(20_000)),
        "one_name": "import vllm\n" + "a = vllm.LLM\n" * 20_000,
        "doubling": f"import vllm\n{doubling}\nif vllm.__version__ > a60:\n    vllm.gone()\n",
        "nested_tuples": f"import vllm\n{nested}\nif t30 == t29 or vllm.__version__ == str(t30):\n    vllm.gone()\n",
        "replaced": f"import vllm\n{replaced}\nif vllm.__version__ == r12:\n    vllm.gone()\n",
        "helpers": f"import vllm\n{helpers}\ndef h30(): return vllm.__version__ > '1'\nif h0():\n    vllm.gone()\n",
        "tests": "import vllm\n" + "if vllm.__version__ > '0.1':\n  " * 1 + "x = 1\n"
        + "".join(" " * n + f"if vllm.__version__ > '0.{n}':\n" for n in range(90)) + " " * 90 + "vllm.gone()\n",
        "tests_in_a_row": "import vllm\n" + "if vllm.__version__ < '0.1': raise ValueError\n" * many + "vllm.gone()\n",
        "tries": "import vllm\n" + "try:\n    vllm.gone()\nexcept AttributeError:\n    pass\n" * 500,
        "nested_tries": "import vllm\n" + "".join(
            " " * n + "try:\n" + " " * (n + 1) + "vllm.gone()\n" for n in range(40)
        ) + "".join(" " * n + "except ImportError:\n" + " " * (n + 1) + "vllm.gone()\n" for n in range(39, -1, -1)),
        "conditions": "import vllm\nif vllm" + " and vllm" * many + ":\n    vllm.gone()\n",
        "comparison": "import vllm\nif vllm" + " < vllm" * many + ":\n    vllm.gone()\n",
        "list": "import vllm\nx = [" + "vllm.LLM," * 20_000 + "]\nx[0].y\n",
        "dict": "import vllm\nx = {" + "'a': vllm.LLM," * 20_000 + "}\nx['a'].y\n",
        "string": "import vllm\nx = '" + "a" * 1_000_000 + "'\n",
        "arguments": "import vllm\nvllm.LLM(" + "".join(f"a{n}=1," for n in range(5_000)) + ")\n",
        "parameters": "import vllm\ndef f(" + "".join(f"a{n}: vllm.LLM," for n in range(5_000)) + "): a0.x\n",
        "functions": "import vllm\n" + "".join(f"def f{n}(): return f{n + 1}()\n" for n in range(3_000)) + "f0().x\n",
        "inner": "import vllm\n" + "".join(" " * n + f"def f{n}():\n" for n in range(95)) + " " * 95 + "vllm.gone()\n",
        "inner_classes": "import vllm\n" + "".join(" " * n + f"class C{n}:\n" for n in range(95)) + " " * 95 + "x = vllm.gone\n",
        "comprehension": "import vllm\nx = [vllm.LLM" + " for x in vllm.y" * 500 + "]\n",
        "globals": "import vllm\ndef f():\n    global " + ", ".join(f"a{n}" for n in range(3_000)) + "\n    a1 = vllm.LLM\na1.x\n",
        "stars": "from vllm import *\nfrom verl.odd.stars import *\nfrom verl.odd.other_stars import *\nLLM().generate(1)\nnone().x\n",
        "other_stars": "from vllm import *\nfrom verl.odd.stars import *\nLLM().generate(1)\nnone().x\n",
        "itself": "import vllm\nimport verl.odd.itself\nfrom verl.odd import itself\nfrom verl.odd.itself import x\nx.y(vllm)\n",
        "dots": "import vllm\nfrom " + "." * 500 + " import x\nx.y(vllm)\n",
        "long_name": "import vllm\nimport " + ".".join("a" * 3_000) + "\nvllm." + "b" * 100_000 + "\n",
        "environment": "import os, vllm\n" + "os.environ['VLLM_A'] = os.environ.get('VLLM_A', os.environ['VLLM_A'])\n" * 500,
        "match": "import vllm\nmatch vllm:\n" + "".join(f"    case vllm.A{n}: pass\n" for n in range(1_000)),
        "versions": "import vllm\nx = vllm.__version__ < '0.10' < " + "'0.9' < " * 500 + "'1'\n",
        "semicolons": "import vllm\n" + "vllm.LLM;" * 3_000,
        "walrus": "import vllm\n" + "if (x := vllm.LLM) and (y := x.z): pass\n" * 500,
    }  # fmt: skip
    return {name: text.encode() for name, text in texts.items()}


def _mentioning(text: str) -> str:
    return text + "\n" + MENTION if text.startswith("#") else MENTION + text
