"""What looks like a secret is found; a log's ordinary words and numbers are not."""

from __future__ import annotations

import pytest

from patcher.secrets.redacting import Redactor
from patcher.secrets.values import HIDDEN

HEX = "0123456789abcdef0123456789abcdef01234567"


SECRETS = [
    "my_key = 9fK2mQ7xLw3Vb8ZcT1pR",
    'cfg: {"service_token": "Qm7Yx2Lk9Pz4Wv8Bn3Ht"}',
    "client_secret=aGVsbG8gd29ybGQgMTIzNDU2Nzg5MA==",
    "storage_key: '8f14e45fceea167a5a36dedd4bea2543'",
    f"wandb login {HEX}",
    f"machine api.wandb.ai login user password {HEX}",
    f"WANDB api key {HEX}",
    "machine gitlab.corp.net login me password hunter2x",
    "curl -s -u me:pa55word https://host/x",
    "sshpass -p pa55word ssh host",
    "https://b.s3.amazonaws.com/x?X-Amz-Credential=abc%2F2024&X-Amz-Signature=0f3e5c",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "xoxb-123456789012-abcdefghij wandb_v1_AbCdEfGhIjKlMnOpQrStUv",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_found(text: str) -> None:
    shown = Redactor().text(text)
    assert HIDDEN in shown
    assert Redactor().text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        f"HEAD is now at {HEX}, wandb: git commit {HEX}",
        "data.prompt_key=prompt reward_fn_key: data_source key=actor_rollout_ref.model.path",
        "cache_key: torch_compile_cache/3bb0ab/rank_0_0",
        "max_num_batched_tokens=8192 eos_token_id: 151645 pad_token: '<|endoftext|>'",
        "step:3 - actor/pg_loss:0.12 - response_length/mean:512.0",
        "KeyError: 'raw_prompt' token=None use_auth_token: False",
        'File "/a/tokenization_utils_base.py", line 2314, in from_pretrained',
        "key: QWEN_VL_3B_BASE",
        "tokenizer=AutoTokenizer.from_pretrained(path, trust_remote_code=True)",
    ],
)
def test_what_is_none_is_not(text: str) -> None:
    assert Redactor().text(text) == text
