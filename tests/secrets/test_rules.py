"""The table of tokens is held against the rules of scanners that others maintain.

detect-secrets is in the group dev. A larger set, in the form of gitleaks' configuration, is tried with
`UKY_PATCH_SECRET_RULES=gitleaks.toml pytest tests/secrets/test_rules.py`. For each rule that knows a secret by its look
texts are drawn that it matches, and the secret may not be left in them.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from patcher.secrets.redacting import Redactor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

plugins = pytest.importorskip("detect_secrets.plugins")

NO_BEGINNING = "nothing that it must begin with, by which it could be found in a large log; its name or URL tells"
BY_NAME = "known by a name beside it, which the policy for names decides"
NO_SECRET = "no secret"
EXCEPT = {
    "artifactory:1": NO_BEGINNING,
    "aws:1": BY_NAME,
    "basic_auth:0": "matches passwords with quotes and brackets, which a URL has as %22 and %3C",
    "cloudant:0": BY_NAME,
    "cloudant:1": BY_NAME,
    "discord:0": NO_BEGINNING,
    "ip_public:0": NO_SECRET,
    "jwt:0": "matches parts of one letter, and letters that base64 of a URL has not",
    "mailchimp:0": NO_BEGINNING,
    "private_key:7": "PuTTY's files begin so; the key itself stands in lines under another head",
    "square_oauth:0": "its class of characters holds a backslash, which no token has",
    "softlayer:1": NO_BEGINNING,
    "telegram_token:0": NO_BEGINNING,
    "twilio:0": NO_BEGINNING,
    "twilio:1": NO_BEGINNING,
    # Of gitleaks 8.30.1.
    "airtable-personnal-access-token": NO_BEGINNING,
    "azure-ad-client-secret": NO_BEGINNING,
    "curl-auth-user": "matches commands without a password, such as -u=me:",
    "facebook-access-token": NO_BEGINNING,
    "flutterwave-public-key": NO_SECRET,
    "gitlab-session-cookie": BY_NAME,
    "hashicorp-tf-api-token": "what stands before `.atlasv1.` is its id, and stays",
    "jwt": "matches any two words that begin with ey; a token's parts begin with eyJ",
    "jwt-base64": "matches texts with backslashes in them, which no base64 has",
    "kubernetes-secret-yaml": "matches texts that are no YAML",
    "maxmind-license-key": NO_BEGINNING,
    "private-key": "matches heads that no program writes, such as BEGINPRIVATE KEY",
    "slack-config-access-token": "its dots match any character",
    "slack-webhook-url": "its dots match any character",
    "sourcegraph-access-token": "matches 40 hexadecimal digits alone, which are a commit",
    "twilio-api-key": NO_BEGINNING,
    "vault-service-token": "of Vault before 1.10 the beginning is `s.`, which stands in every text",
}
"""Rules that have no row in the table, and why."""
BESIDE_A_NAME = re.compile(r"\[\\w\.-\]\{0,50\}\?")
"""How gitleaks begins a rule that needs the name of a service before the value."""


def rules() -> Iterator[tuple[str, re.Pattern[str]]]:
    from detect_secrets.plugins.base import RegexBasedDetector

    for module in pkgutil.iter_modules(plugins.__path__):
        for one in vars(importlib.import_module(f"{plugins.__name__}.{module.name}")).values():
            if isinstance(one, type) and issubclass(one, RegexBasedDetector):
                patterns = one.__dict__.get("denylist")
                for number, pattern in enumerate(patterns if isinstance(patterns, (list, tuple)) else ()):
                    yield (
                        f"{module.name}:{number}",
                        re.compile(pattern.pattern, (pattern.flags & re.VERBOSE) | re.ASCII),
                    )
    if "UKY_PATCH_SECRET_RULES" in os.environ:
        for rule in tomllib.loads(Path(os.environ["UKY_PATCH_SECRET_RULES"]).read_text())["rules"]:
            if "regex" in rule and not BESIDE_A_NAME.search(rule["regex"]):
                text = rule["regex"].replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
                # Beginnings are drawn as services write them, and not as `gHp_`.
                text = re.sub(r"\(\?i\)|\(\?-?i:", lambda found: "(?:" if ":" in found[0] else "", text)
                yield rule["id"], re.compile(text, re.ASCII)


RULES = dict(rules())


@pytest.fixture(autouse=True)
def _without_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis also draws constants of the modules that are loaded, which are others in each process."""
    monkeypatch.setattr(providers, "_get_local_constants", lambda: providers.Constants(), raising=False)


@pytest.mark.parametrize("rule", RULES)
def test_what_a_maintained_rule_finds_is_hidden(rule: str) -> None:
    pattern = RULES[rule]
    drawn = st.from_regex(pattern, fullmatch=True, alphabet=st.characters(min_codepoint=32, max_codepoint=126))
    if rule.startswith("private_key"):  # The rule leaves out the lines around its words.
        drawn = drawn.map("-----{}-----".format)
    left: list[str] = []

    @settings(
        max_examples=8,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    # Patterns with `+` also match what no service gives out, such as xapp-0-0-0-0.
    @given(drawn.filter(lambda text: len(text) >= (50 if "://hooks." in text else 20)))
    def draw(text: str) -> None:
        found = pattern.fullmatch(text)
        secret = next(filter(None, found.groups()), text) if found is not None else text
        # Some rules' first group is the kind of the token, such as `ghp` or `r`.
        secret = secret if len(secret) >= 8 else text
        if secret in Redactor().text(f"x {text}\n"):
            left.append(text)

    draw()
    if rule in EXCEPT:
        assert left, "it is hidden by now: it needs no exception"
    else:
        assert not left


def test_each_exception_is_a_rule() -> None:
    if "UKY_PATCH_SECRET_RULES" in os.environ:
        assert set(EXCEPT) <= set(RULES)
    else:
        assert {rule for rule in EXCEPT if ":" in rule} <= set(RULES)
