"""What is secret, and text without it."""

from __future__ import annotations

import json
import shlex
import subprocess
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patcher.secrets.contexts import is_secret_value
from patcher.secrets.names import is_secret
from patcher.secrets.redacting import Redactor
from patcher.secrets.values import HIDDEN

SECRET = (
    "HF_TOKEN WANDB_API_KEY OPENAI_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID MYSQL_PWD PGPASSWORD apiKey "
    "accessToken token password DB_PASS api-key trainer.api_key GITHUB_TOKEN1 HTTP_AUTHORIZATION NEW_SECRET_V2 "
    "SWANLAB_API_KEY hf_token"
)
PLAIN = (
    "TOKENIZERS_PARALLELISM max_num_batched_tokens eos_token pad_token_id data.prompt_key image_key PWD OLDPWD "
    "HF_TOKEN_PATH CUDA_VISIBLE_DEVICES tokenizer PYTHONPATH NCCL_DEBUG SSH_AUTH_SOCK KEY reward_key MONKEY compass "
    "max_token num_token WANDB_MODE VLLM_API_KEY_FILE special_token"
)


@pytest.mark.parametrize("name", SECRET.split())
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", PLAIN.split())
def test_names_of_other_things(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git clone https://me:p@ss@h/x", "git clone https://me:***@h/x"),
        ("run --token=abc --token abc2 --api-key 'a b' -x", "run --token=*** --token *** --api-key '***' -x"),
        ("export WANDB_API_KEY=abc HF_TOKEN='x y' N=3", "export WANDB_API_KEY=*** HF_TOKEN='***' N=3"),
        ("['main.py', '--OPENAI_KEY', '1234PW', '--x']", "['main.py', '--OPENAI_KEY', '***', '--x']"),
        ("run --token hunter2secret -v", "run --token *** -v"),
        ("add_argument('--token', '--api-key')", "add_argument('--token', '--api-key')"),
        ("option('--token', 'HF_TOKEN')", "option('--token', 'HF_TOKEN')"),
        ('{"password": "hunter2", "n": 1}', '{"password": "***", "n": 1}'),
        ('"{\\"password\\": \\"hunter2\\"}"', '"{\\"password\\": \\"***\\"}"'),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: *** ***"),
        ("clone https://ghp_abcdefghijklmnopqrstuvwxyz@github.com/x", "clone https://***@github.com/x"),
        ("k is hf_abcdefghijklmnopqrstuvwxyzABCD.", "k is ***."),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----\nrest",
            "***\n***\n***\n***\nrest",
        ),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown
    assert Redactor().text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=$HF_TOKEN",
        "data.prompt_key=prompt actor.max_token=3 eos_token=</s>",
        "INFO: http://10.0.0.5:8000/v1 is up, see http://a:80/x@y",
        "(WorkerDict pid=12) step:3 - actor/pg_loss:0.12 - response_length/mean:512.0 - timing_s/gen:3.2",
        "token: 12 of 512",
        "password=None secret=",
        'File "/a/b.py", line 3, in get_token',
        "rsync://host/module user@host:/path",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert Redactor().text(text) == text


@given(st.text(min_size=6).filter(lambda text: len(text.strip()) >= 6))
def test_a_known_secret_is_hidden_however_it_is_written(secret: str) -> None:
    redact = Redactor([secret]).text
    for form in (secret, json.dumps(secret), repr(secret), shlex.quote(secret)):
        assert secret not in redact(f"a={form} b")
    encodable = secret.encode("utf-8", "surrogatepass").decode("utf-8", "replace") == secret
    if encodable and quote(secret, safe="") not in ("a", "b"):
        assert quote(secret, safe="") not in redact(f"u/{quote(secret, safe='')}/")


def test_a_short_secret_takes_no_words_apart() -> None:
    assert Redactor(["abc"]).text("abc, abcd and 'abc'") == "***, abcd and '***'"
    assert Redactor(["", " "]).text("a b") == "a b"


def test_each_line_of_a_long_secret_is_hidden() -> None:
    assert Redactor(["first line\nsecond line"]).text("- first line\n- second line") == "- ***\n- ***"


def test_tables_and_lists() -> None:
    found = Redactor(["hunter22"]).value({"a": ["x hunter22", 1], "HF_TOKEN": "q", "API_KEY": "", "t": ("hunter22",)})
    assert found == {"a": [f"x {HIDDEN}", 1], "HF_TOKEN": HIDDEN, "API_KEY": "", "t": (HIDDEN,)}


def test_values_that_give_themselves_away() -> None:
    assert is_secret_value("https://me:pw@host/")
    assert is_secret_value("hf_abcdefghijklmnopqrstuvwxyzABCD")
    assert not is_secret_value("https://host:80/")
    assert not is_secret_value("/data/models")


def test_what_a_shell_says_of_a_command_is_without_its_secret() -> None:
    done = subprocess.run(["bash", "-xc", "HF_TOKEN='my own secret' true"], capture_output=True, text=True, check=True)
    assert "own" in done.stderr
    assert "own" not in Redactor().text(done.stderr)


def test_a_long_report_in_json_is_searched_to_its_end_and_what_is_hidden_is_counted() -> None:
    redactor = Redactor()
    report = json.dumps({"lines": ["nothing of note"] * 9000, "last": {"password": "hunter2-and-more"}})
    shown = redactor.document(report)
    assert "hunter2" not in shown
    assert json.loads(shown)["last"] == {"password": "***"}
    assert redactor.count == 1
    assert "hunter2-and-more" in redactor.recognised
