"""What is sealed holds nothing that any rule takes for a secret, also where most of a text is passed over."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from patcher.bundle.contents import Section
from patcher.bundle.sealing import Sealed, Sealer, SealError
from patcher.i18n import phrase
from patcher.secrets.redacting import Redactor
from tests.bundle.test_bundle import LOG, TOKENS
from tests.secrets.test_suspects import SECRETS

HEALTHY = "(TaskRunner pid=7) step:3 - perf/total_num_tokens:512 - actor/pg_loss:0.1 KeyError max_token=3\n" * 40


def seal(content: str | Path, secrets: tuple[str, ...] = ()) -> str:
    with ExitStack() as stack:
        sealed = Sealer(secrets, None, stack).seal(Section("x", phrase("the log"), content))
        return b"".join(sealed.pieces()).decode()


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_among_much_else(text: str) -> None:
    shown = seal(f"{HEALTHY}{text}\n{HEALTHY}")
    assert "***" in shown
    assert Redactor().text(shown) == shown
    assert shown.count(HEALTHY.splitlines()[0]) >= 74


@pytest.mark.parametrize("secret", ["canary", "näive pass", "a\nsecond-line-7731", "…☃…☃…☃", "tok en-7"])
def test_a_known_secret_of_any_kind(secret: str) -> None:
    shown = seal(f"{HEALTHY}said {secret}, and {secret!r}\n{HEALTHY}", (secret,))
    assert not [line for line in secret.splitlines() if len(line) > 1 and line in shown]


def test_a_file_name_that_is_no_utf8_among_secrets() -> None:
    """As git lists it, and Python reads it: `b\\xe9.txt` is `b\\udce9.txt`."""
    shown = seal(f'"changed": ["b\udce9.txt"], HF_TOKEN={TOKENS["hub"]}\n')
    assert shown == '"changed": ["b?.txt"], HF_TOKEN=***\n'


def test_a_value_that_is_recognised_once_is_hidden_everywhere(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("env_vars: {'MY_SECRET': 'zzTopSecretValue1', 'DB_PASS': 'qwertyPASS9'}\n")
    error = Section("error", phrase("the log"), "ValueError: refused for zzTopSecretValue1 / qwertyPASS9 in layer_12\n")
    with ExitStack() as stack:
        sealer = Sealer((), None, stack)
        sealer.learn(log, [error, Section("x", phrase("the log"), "pass=layer_12\n")])
        shown = b"".join(sealer.seal(error).pieces()).decode()
    assert shown == "ValueError: refused for *** / *** in layer_12\n"


def test_a_large_file_is_sealed_as_a_text_is(tmp_path: Path) -> None:
    text = HEALTHY * 150 + LOG + HEALTHY * 150 + LOG
    path = tmp_path / "log"
    path.write_text(text)
    assert path.stat().st_size > 1 << 20
    shown = seal(path)
    assert shown == seal(text)
    unknown = {TOKENS["plain"], TOKENS["file"]}
    assert [token for token in TOKENS.values() if token in shown and token not in unknown] == []


def test_a_key_that_lies_across_two_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log"
    key = "-----BEGIN PRIVATE KEY-----\n" + "canarykey\n" * 20 + "-----END PRIVATE KEY-----\n"
    path.write_text("x" * ((1 << 20) - 40) + "\n" + key + "behind\n")
    shown = seal(path)
    assert "canary" not in shown
    assert shown.endswith("***\nbehind\n")


def test_what_would_hold_one_still_is_refused() -> None:
    with ExitStack() as stack:
        sealer = Sealer(["canary-known"], None, stack)
        for text in ("api_key=Zq8Canary7Lw3Vb8ZcT1pR", "it is canary-known"):
            file = Sealed(
                "x", phrase("the log"), len(text), text.encode(), sealer.seal(Section("y", phrase("x"), "")).replaced
            )
            with pytest.raises(SealError, match="Nothing was written"):
                sealer.prove([file])


def test_a_known_secret_that_begins_like_a_name() -> None:
    assert "abc123" not in seal(f"{HEALTHY}said keyabc123def\n{HEALTHY}", ("keyabc123def",))
