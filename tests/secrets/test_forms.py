"""Secrets in generated forms are hidden: container, encoding, colour, prefix, name and value are drawn at random.

The search for what is left shares nothing with the product: it decodes the whole output in many ways and looks for the
value that was planted, or for a part of it.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from urllib.parse import quote, unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patcher.secrets.redacting import Following, Redactor

NAMES = [
    "OPENAI_KEY",
    "MY_JWT",
    "HF_TOKENS",
    "COOKIES",
    "SENTRY_DSN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "HF_TOKEN",
    "HF_TOKEN_2",
    "hfToken",
    "WANDB_API_KEY",
    "wandb-api-key",
    "wandb.api.key",
    "dbPassword",
    "db-password",
    "spring.datasource.password",
    "DB_PASS",
    "DB_PASS_PROD",
    "userPwd",
    "MYSQL_PWD",
    "passwd",
    "pswd",
    "passphrase",
    "GITHUB_PAT",
    "bearer_token",
    "session_token",
    "csrf_token",
    "xsrfToken",
    "sas_token",
    "connection_string",
    "CONN_STR",
    "slack_webhook",
    "signing_key",
    "SIGNING_SECRET",
    "private_key",
    "client_secret",
    "clientSecret",
    "otp_secret",
    "totp_secret",
    "apiKey",
    "api_keys",
    "x-api-key",
    "authToken",
    "refresh_token_v2",
    "credentials",
    "AUTH",
    "X_AUTH_TOKEN",
    "secret",
    "app.secret",
    "SECRET_1",
    "master_key",
    "accountKey",
    "密码",
    "数据库密码",
    "口令",
    "密钥",
    "访问令牌",
]


def token(alphabet: str, low: int, high: int) -> st.SearchStrategy[str]:
    drawn = st.text(alphabet, min_size=low, max_size=high)
    return drawn.filter(lambda text: len(set(text)) > 6 and any(sign.isdigit() for sign in text))


HEX, LETTERS = "0123456789abcdef", "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789"
VALUES = st.one_of(
    token(HEX, 32, 64),
    token(LETTERS, 16, 48),
    token(LETTERS + "-_", 16, 48).filter(lambda text: text[0].isalnum() and text[-1].isalnum()),
    token(LETTERS + "+/", 24, 64).filter(lambda text: text[0].isalnum() and text[-1].isalnum()),
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["correct-horse-", "Winter", "tr0ub4dor", "letmein_", "qwerty.", "Sommer!"]),
        st.integers(1000, 99999),
        st.sampled_from(["x", "Zz", "q7"]),
    ),
    st.builds("hf_{}".format, token(LETTERS, 30, 36)),
    st.builds("sk-proj-{}".format, token(LETTERS, 30, 40)),
    st.builds("ghp_{}".format, token(LETTERS, 36, 36)),
)
CONTAINERS = {
    "env": "{n}={v}",
    "export": "export {n}='{v}'",
    "declare": 'declare -x {n}="{v}"',
    "json": '{{"x": 1, "{n}": "{v}", "y": [2]}}',
    "json lines": '{{\n  "{n}":\n    "{v}"\n}}',
    "repr": "{{'a': 1, '{n}': '{v}'}}",
    "bytes": "{n}=b'{v}'",
    "yaml": "a: 1\n{n}: {v}\nb: 2",
    "yaml quoted": "a: 1\n  {n}: '{v}'  # why\n",
    "yaml block": "{n}: |\n  {v}\nb: 2",
    "yaml list": "{n}:\n  - {v}\nb: 2",
    "toml": 'a = 1\n{n} = "{v}"',
    "ini": "[x]\n{n} = {v}\n",
    "logfmt": 'level=info {n}="{v}" took=3',
    "logfmt bare": "level=info {n}={v} took=3",
    "namespace": "Namespace(a=1, {n}='{v}', b=None)",
    "call": "login({n}='{v}')",
    "secret str": "{n}=SecretStr('{v}')",
    "tuple": "[('{n}', '{v}'), ('a', 'b')]",
    "arguments": "['main.py', '--{n}', '{v}', '--x']",
    "arguments =": "['main.py', '--{n}={v}', '--x']",
    "option": "main.py --{n} {v} --x 3",
    "option =": "main.py --{n}='{v}' --x 3",
    "hydra": "+trainer.{n}={v}",
    "docker": "ENV {n}={v}",
    "docker -e": "docker run -e {n}={v} image",
    "kubernetes": "- name: {n}\n  value: {v}",
    "kubernetes json": '{{"name": "{n}", "value": "{v}"}}',
    "markdown": "| name | value |\n|---|---|\n| {n} | {v} |",
    "column": "| user | {n} |\n|------|-----|\n| me | {v} |",
    "psql": " id | {n}\n----+----\n 1 | {v}\n(1 row)",
    "box": "│ {n} │ {v} │",
    "tabs": "{n}\t{v}",
    "csv": "user,{n}\nme,{v}\n",
    "xml": "<a><{n}>{v}</{n}></a>",
    "property": "<property><name>{n}</name><value>{v}</value></property>",
    "subscript": "os.environ['{n}'] = '{v}'",
    "setenv": 'setenv("{n}", "{v}")',
    "default": "${{{n}:-{v}}}",
    "arrow": "'{n}' => '{v}'",
    "header": "{n}: {v}",
    "nested": "{{'a': {{'{n}': ['{v}']}}}}",
    "code": "`{n}`: `{v}`",
}
PREFIXES = (
    "",
    "(pid=123) ",
    "\x1b[36m(TaskRunner pid=7)\x1b[0m ",
    "2026-11-22 10:00:00,123 INFO x.py:3 -- ",
    "    ",
    "> ",
    "# ",
)
ENCODINGS = {
    "plain": lambda text: text,
    "json": json.dumps,
    "json twice": lambda text: json.dumps(json.dumps({"message": text})),
    "url": lambda text: "GET /x?q=" + quote(text, safe=""),
    "shell": lambda text: f"sh -c {shlex.quote(text)}",
    "repr": repr,
    "html": html.escape,
    "bytes": lambda text: repr(text.encode()) if text.isascii() else text,
}


def left(shown: str, value: str) -> bool:
    """Whether the value, or half of it, can still be read somehow."""
    texts = {shown, unquote(shown), html.unescape(shown), re.sub(r"\x1b\[[0-9;]*m", "", shown)}
    texts |= {re.sub(r"\\+(?:u001b|x1b)\[[0-9;]*m", "", text) for text in texts}
    texts |= {text.replace("\\", "") for text in texts}
    packed = base64.b64encode(value.encode()).decode().rstrip("=")
    half = value[: max(7, len(value) // 2 + 1)], value[-max(7, len(value) // 2 + 1) :]
    return any(part in text for text in texts for part in (*half, packed))


def coloured(value: str, how: int) -> str:
    if how == 0:
        return value
    return f"\x1b[32m{value[:5]}\x1b[1m{value[5:]}\x1b[0m" if how == 1 else f"\x1b[1;31m{value}\x1b[0m"


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(CONTAINERS)),
    st.sampled_from(NAMES),
    VALUES,
    st.sampled_from(PREFIXES),
    st.sampled_from(sorted(ENCODINGS)),
    st.integers(0, 2),
)
def test_no_generated_form_leaks(
    container: str, name: str, value: str, prefix: str, encoding: str, colour: int
) -> None:
    form = CONTAINERS[container].format(n=name, v=coloured(value, colour))
    if prefix and "\n" not in form:
        form = prefix + form
    text = f"step:1 - loss:0.1\n{ENCODINGS[encoding](form)}\nstep:2 - loss:0.2"
    shown = Redactor().text(text)
    assert not left(shown, value), (text, shown)
    assert Redactor().text(shown) == shown
    assert shown.count("\n") == text.count("\n")
    assert "step:1 - loss:0.1" in shown
    assert "step:2 - loss:0.2" in shown


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(CONTAINERS)), st.sampled_from(NAMES), VALUES, st.lists(st.integers(1, 60), max_size=8))
def test_a_secret_is_hidden_wherever_a_stream_is_cut(container: str, name: str, value: str, cuts: list[int]) -> None:
    text = f"before\n{CONTAINERS[container].format(n=name, v=value)}\nbehind\n"
    following, shown, at = Following(Redactor()), "", 0
    for cut in cuts:
        shown += following.feed(text[at : at + cut])
        at += cut
    shown += following.feed(text[at:]) + following.rest()
    assert not left(shown, value)
    assert shown.count("\n") == text.count("\n")


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([*NAMES, "loss", "max_tokens"]), VALUES | st.integers() | st.lists(VALUES)))
def test_json_stays_json(table: dict[str, object]) -> None:
    for text in (json.dumps(table), json.dumps(table, indent=2, ensure_ascii=False) + "\n"):
        shown = json.loads(Redactor().document(text))
        assert list(shown) == list(table)
        for name, value in table.items():
            if name in ("loss", "max_tokens") and not isinstance(value, str | list):
                assert shown[name] == value
            if name in NAMES and isinstance(value, str):
                assert not left(shown[name], value)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from(sorted(ENCODINGS)), st.integers(0, 2))
def test_a_known_secret_is_hidden_without_a_name(value: str, encoding: str, colour: int) -> None:
    text = ENCODINGS[encoding](f"said {coloured(value, colour)} to them")
    assert not left(Redactor([value]).text(text), value)
    packed = base64.b64encode(f"user:{value}".encode()).decode()
    assert packed[8:-4] not in Redactor([value]).text(f"x {packed} y")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "token" * 20_000,
        "token=" * 16_000,
        "=" * 100_000,
        "\\" * 100_000,
        '"' * 100_000,
        "://a:" * 20_000,
        "eyJ-" * 25_000,
        "sk-" * 30_000,
        "| token " * 12_000,
        "a,token\n1,2\n" * 8_000,
        "-----BEGIN PRIVATE KEY-----\n" * 3_000,
        "curl -u " * 12_000,
        "password: |\n" * 8_000,
        "%41" * 30_000,
        "\x1b[31m" * 20_000,
        "密码" * 30_000,
        "token=(" * 14_000,
    ],
    ids=lambda text: text[:12].strip().replace("/", ""),
)
def test_hostile_lines_take_time_as_their_length_does(text: str) -> None:
    """Ten times the length takes about ten times as long: a pattern that tries all places from all places takes 100."""
    import time

    def took(part: str) -> float:
        begun = time.process_time()
        Redactor(["hunter2zzz"]).text(part)
        return time.process_time() - begun

    took(text[:100])
    short = took(text[: len(text) // 10])
    assert took(text) < 40 * max(short, 0.02)
