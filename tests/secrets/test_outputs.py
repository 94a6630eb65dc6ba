"""No command lets a planted secret out: archives, reports, JSON, errors, progress. A foreign scanner looks as well."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from patcher.cli.app import run
from patcher.secrets import redacting
from patcher.secrets.redacting import Redactor
from tests.secrets.test_forms import left

CORPUS = Path(__file__).parents[1] / "corpus"
VALUES = {
    "OPENAI_KEY": "c4naryOne8sX2kLm9QpZ",
    "MY_JWT": "c4naryTwo7dW3vBn5RtY",
    "HF_TOKENS": "hf_c4naryThreeAbCdEfGhIjKlMnOpQrSt",
    "COOKIES": "c4naryFour6hG1jKl4FsA",
    "SENTRY_DSN": "https://c4naryfive0123456789abcdef012345@o1.ingest.sentry.io/1",
    "AWS_ACCESS_KEY_ID": "AKIAC4NARYSIX4567890",
    "DB_PASS": "c4nary-seven-horse",
}
LINES = "\n".join(
    [
        *(f"+ export {name}={value}" for name, value in VALUES.items()),
        *(json.dumps({"config": {name: value}}) for name, value in VALUES.items()),
        f"ValueError: cannot connect with token {VALUES['OPENAI_KEY']}",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
        "",
    ]
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "fork"
    (root / "verl/version").mkdir(parents=True)
    (root / "verl/__init__.py").write_text(f"import vllm\nvllm.gone(api_key='{VALUES['OPENAI_KEY']}')\n")
    (root / "verl/version/version").write_text("0.6.1\n")
    (root / "train.log").write_text(LINES)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(redacting, "_here", [])  # As in a new process: what is secret is looked up once.
    return root


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "train.log"),
        ("diagnose", "nowhere-OPENAI_KEY=c4naryOne8sX2kLm9QpZ.log"),
        ("bundle", "train.log", "--yes", "--whole-log", "--command", f"x --api-key {VALUES['OPENAI_KEY']}"),
        ("bundle", "train.log", "--dry-run", "--tried", f"curl -u me:{VALUES['DB_PASS']} https://x"),
        ("check", "--against", f"vllm={VALUES['OPENAI_KEY']}"),
        ("status",),
        ("list",),
        ("explain", VALUES["MY_JWT"]),
        ("run", "standard", "--host", f"me:{VALUES['DB_PASS']}@nowhere.invalid"),
        ("job", "logs", f"https://u:{VALUES['OPENAI_KEY']}@nowhere.invalid"),
        ("symptoms", f"token={VALUES['OPENAI_KEY']}"),
        (VALUES["HF_TOKENS"],),
        ("apply", f"--{VALUES['OPENAI_KEY']}"),
    ],
    ids=lambda words: "-".join(words[:2])[:24],
)
def test_nothing_planted_comes_out(
    tree: Path, words: tuple[str, ...], output: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    run(["--root", str(tree), "--format", output, *words])
    out, err = capfd.readouterr()
    texts = [out, err]
    for archive in tree.glob("*.tar.gz"):
        with tarfile.open(archive) as found:
            members = [member for member in found.getmembers() if member.isfile()]
            for member in members:
                content = found.extractfile(member)
                assert content is not None
                texts.append(content.read().decode())
                if member.name.endswith(".json"):
                    json.loads(texts[-1])
    for text in texts:
        for value in VALUES.values():
            assert not left(text, value), text
    if output == "json" and out.strip():
        json.loads(out)


def test_another_scanner_finds_nothing_in_what_is_shown(tmp_path: Path) -> None:
    """detect-secrets shares no code with the product; what it finds in the forms is not there any more."""
    scan = pytest.importorskip("detect_secrets.core.scan")
    from detect_secrets.settings import transient_settings

    tokens = [
        "AKIA" + "IOSFODNN7EXAMPLQ",
        "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
        "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "SG." + "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf-09kqeF8tAmbihYzrnopKc-1s5cr",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        "https://user:p4ssw0rdp4ss@example.org/x",
        "password = 'Zq8Canary7Lw3Vb8ZcT1pR'",
        "-----BEGIN RSA PRIVATE KEY-----",
    ]
    names = ["AWSKey", "GitHubToken", "Slack", "Stripe", "SendGrid", "JwtToken", "BasicAuth", "Keyword", "PrivateKey"]
    found = {}
    with transient_settings({"plugins_used": [{"name": f"{name}Detector"} for name in names]}):
        for token in tokens:
            found[token] = (list(scan.scan_line(token)), list(scan.scan_line(Redactor().text(token))))
    assert sum(bool(before) for before, _ in found.values()) >= 7
    assert [token for token, (_, after) in found.items() if after] == []


HEALTHY = """
eos_token=</s> max_tokens=4096 num_tokens: 123456789 pad_token_id=0 token_level_loss: 0.123 total_tokens: 1234
'prompt_tokens': 12, 'completion_tokens': 34, "usage": {"total_tokens": 12345678901} num_key_value_heads: 4
tokenizer=AutoTokenizer.from_pretrained(path, trust_remote_code=True)
author: Somebody Else monkey=banana special_tokens_map={'eos_token': '<|im_end|>'}
tokens: ['Hello', 'world'] tokens=[151644, 872, 198] "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]
session_id: 0b0e5a2e-6f4a-4b4e-9d5e-0a8a6a1a2b3c session_dir=/tmp/ray/session_2026-11-22_00-23-34_832877_17444
HEAD is now at 4f2c9a7b1e8d3056af4c9b2e7d1058c3f6a90b7e
"before": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
verl/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0
fingerprint: SHA256:uNiVztksCsDhcc0u9e8BrqgAZ3l0j6b1VvKf3p2a7GQ
passed: 12 failed: 3 pass@1: 0.52 pass: 0.9 KeyError: 'raw_prompt'
primary_key=user_id sort_key: name prompt_key=prompt reward_fn_key: data_source
signature: (self, prompts: List[str], sampling_params: SamplingParams = None) -> List[RequestOutput]
    token = self.tokenizer.convert_ids_to_tokens(token_id)
def f(token: str, password: Optional[str] = None, api_key: str | None = None):
"pins": {"vllm": "0.20.2", "torch": "2.9.0"} pin_memory=True use_auth_token=False
Permission denied (publickey,password).
fatal: could not read Password for 'https://github.com': terminal prompts disabled
INFO: http://10.0.0.5:8000/v1 is up, see http://a:80/x@y user@host:/path git@github.com:volcengine/verl.git
Invalid token: unexpected end of input; token expired at 12:00; tokens per second: 1234.5
Token authentication is enabled for this Ray cluster. Set RAY_AUTH_MODE=disabled to opt out.
"""


@pytest.mark.parametrize("line", HEALTHY.strip().split("\n"))
def test_what_is_no_secret_stays(line: str) -> None:
    assert Redactor().text(line) == line


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*.log")), ids=lambda path: path.stem)
def test_nothing_is_hidden_in_logs_that_hold_no_secret(path: Path) -> None:
    text = path.read_text(errors="replace")
    assert Redactor().text(text) == text
