"""Which names stand for a secret: of variables, options, keys of a table, headers and columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Container, Iterable

from patcher.secrets.patterns import Pattern, either


def _words(text: str) -> set[str]:
    return set(text.split("|"))


PASSWORD = "password"
"""Whatever it is given is hidden: `DB_PASS=12345`."""
SECRET = "secret"
"""What it is given is hidden, but for small numbers and words such as `none`: `HF_TOKEN`, `OPENAI_KEY`."""
MAYBE = "maybe"
"""Hidden where the value seems drawn at random: `my_key`, `session`, `signature`."""
PIN = "pin"
"""Hidden where the value is a few digits."""
NONE = ""

NEEDLES = (
    "token secret passw passphrase passcode pswd pswrd paswor pword key auth cred cookie jwt dsn sess csrf xsrf webhook netrc"
    " private signature bearer connstr conn_str connection_str conn-str connection-str connectionstr mnemonic license licence"
    " salt hmac ticket nonce psk pincode senha contrase dbpass dbpw userpass userpw rootpass rootpw adminpass adminpw mysqlpass"
    " mysqlpw loginpass loginpw pgpass redispass sshpass storepass codes"
    " pass pwd 密码 口令 密钥 秘钥 令牌 凭证 凭据 私钥 授权码 パスワード 비밀번호 пароль"
).split()
"""In small letters: a name that holds one of these may be a secret's, and `rank` says whether it is."""
NEEDLE = Pattern(lambda: either([*NEEDLES, "pat"]))
_WORDS = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_OTHER_LANGUAGES = "密码 口令 密钥 秘钥 令牌 凭证 凭据 私钥 授权码 パスワード 비밀번호 пароль contrase senha".split()
_PASSWORDS = set("PASSWORD PASSWORDS PASSWD PASSWDS PASSPHRASE PASSPHRASES PSWD PSWRD PASSCODE PWORD PASSWORT".split())
_PASSWORDS |= set("MNEMONIC PSK USERPASS USERPASSWD PASSWRD PASWORD PASSWRDS PASSWORDHASH".split())
_PASSWORD_ANYWHERE = ("PASSWORD", "PASSWD", "PASSPHRASE", "PASSWORT")
_SECRETS = set(
    "SECRET SECRETS CRED CREDS CREDENTIAL CREDENTIALS APIKEY APIKEYS JWT JWTS COOKIE COOKIES BEARER DSN DSNS NETRC AUTH"
    " AUTHORIZATION AUTHENTICATION AUTHTOKEN AUTHKEY CSRF XSRF CSRFTOKEN WEBHOOK WEBHOOKS OTP TOTP SAS CONNSTR PAT PATS"
    " SESSID SESSIONID PHPSESSID JSESSIONID SESSIONKEY PRIVKEY SECRETKEY ACCESSKEY PRIVATEKEY ACCOUNTKEY SIGNINGKEY"
    " ENCRYPTIONKEY MASTERKEY ACCESSKEYID SECRETACCESSKEY SHAREDACCESSKEY LICENSEKEY".split()
)
_SECRET_ANYWHERE = ("SECRET", "CREDENTIAL", "APIKEY", "AUTHTOKEN")
_BEFORE_TOKEN = _words(
    "HF|GH|GL|GIT|GITHUB|GITLAB|MY|BOT|AUTH|ACCESS|REFRESH|API|USER|BEARER|CSRF|XSRF|SESSION|SSO|JWT|OAUTH|APP|ADMIN"
    "|DEPLOY|CI|NPM|PYPI|WANDB|SLACK|LOGIN|WEB|SECURITY|SECRET|DEVICE|ID|PRIVATE|PERSONAL|ROOT|SAS"
)
"""In one word with TOKEN: `authtoken`."""
_BEFORE_PASS = _words(
    "DB|PG|USER|ROOT|ADMIN|MY|MYSQL|REDIS|SMTP|MAIL|EMAIL|FTP|LDAP|SSH|SUDO|LOGIN|KEYSTORE|TRUSTSTORE|STORE|SA|PROXY"
    "|HTTP|REGISTRY|DOCKER|RABBIT|MQ|AMQP|MONGO|POSTGRES"
)
"""In one word with a word for a password: `dbpass`."""
_PASS = {"PASS", "PWD", "PW", "PWDS"}
_PASS_ENDS = ("PASS", "PWD", "PW", "PASSWD")
_UNSURE = set(
    "SESSION SESSIONS SID SIG SIGNATURE SIGNATURES PRIVATE SALT HMAC CODE TICKET NONCE LICENSE LICENCE".split()
)
_KEYS = set(
    "ACCESS ACCOUNT ADMIN AES ANTHROPIC API APP ARK AUTH AWS AZURE BOT CLIENT COHERE COMET CONSUMER DASHSCOPE DATADOG DD"
    " DECRYPTION DEEPSEEK DEPLOY ENCRYPTION FERNET FIREWORKS GCP GEMINI GITHUB GITLAB GOOGLE GPG GROQ HF HMAC HUGGINGFACE"
    " INGEST INTEGRATION JWT KIMI LANGCHAIN LANGSMITH LICENSE MAILGUN MASTER MINIMAX MINIO MISTRAL MOONSHOT NEPTUNE NGC"
    " NVIDIA OPENAI OPENROUTER OSS PGP PINECONE PRESHARED PRIVATE QDRANT QWEN REPLICATE ROOT RSA S SECRET SENDGRID SENTRY"
    " SERPAPI SERPER SERVICE SESSION SHARED SIGN SIGNING SSH SSL STORAGE STRIPE SUBSCRIPTION SWANLAB TAVILY TLS TOGETHER"
    " TWILIO VAULT VOLC WANDB WEBHOOK WRITE XAI ZHIPU".split()
)
"""Before KEY."""
_OTHER_KEYS = set(
    "ADDITIONAL BATCH CACHE COLUMN CONFIG CONTENT DATA DEDUP DICT EXTRA FEATURE FIELD FIRST FN FOREIGN FUNCTION GROUP HASH"
    " HOT ID IMAGE INDEX INPUT JSON LABEL LAST LOOKUP META METRIC MISSING MODEL NEXT NO NON OBJECT OUTPUT PARTITION PREFIX"
    " PRIMARY PROMPT PUBLIC QUERY RAW RESPONSE REWARD ROW SORT SOURCE STATE TASK TENSOR TEST TEXT TOPIC TRANSFORM UNEXPECTED"
    " UNIQUE UNKNOWN VALUE VIDEO WEIGHT".split()
)
"""Before KEY, where it is a key of something, and nobody's own."""
_MODELS = _words(
    "BOS|CLS|EOS|EOT|EOD|EOM|SOT|IM|IMAGE|MASK|MAX|MIN|NUM|N|PAD|PER|SEP|SPECIAL|START|END|STOP|UNK|VIDEO|AUDIO|NEXT|LAST"
    "|TOTAL|PROMPT|RESPONSE|COMPLETION|GENERATED|GENERATION|OUTPUT|INPUT|CACHED|CACHE|REASONING|THINK|THINKING|VISION"
    "|VALID|AVG|MEAN|SUM|COUNT|BATCH|BATCHED|BUDGET|CHUNK|CHUNKED|DECODE|DECODED|PREFILL|DRAFT|ACCEPTED|SPEC|SEQ|SEQUENCE"
    "|LEVEL|LOSS|TRAIN|TRAINED|TRAINING|GPU|SECOND|SECONDS|SEC|MICRO|MINI|PPO|KV|BLOCK|PARTIAL|SAMPLED|SAMPLE|LOGPROBS"
    "|IGNORE|EXTRA|ADDED|ADDITIONAL|PREV|CURRENT|UNEXPECTED|FINAL|FIRST|NONPAD|PADDED|PADDING|GLOBAL|LOCAL|SCHEDULED|PROCESSED"
    "|TEXT|VOCAB|TILE|PLACEHOLDER|MM|MULTIMODAL|DUMMY|BLANK|NEWLINE|COMPUTED|MISSING|CONTEXT|COLLAPSED|DELIMITER|EMPTY|STR|EMBED|WORD|POS|IDX|GROUPED|EXPECTED|ACTUAL|FULL|OUT|IN|DROPPED|LEFT|REAL"
)
"""Beside TOKEN: a language model's, and no secret."""
_PLACES = set(
    "FILE FILES PATH PATHS DIR DIRS FOLDER NAME NAMES ID IDS URL URI URLS TYPE TYPES TTL TIMEOUT LENGTH LEN COUNT COUNTS"
    " ENABLED MODE SIZE NUM LIMIT INDEX LEVEL LOSS MASK MEAN MAX MIN RATE PER SEC SECS SECOND SECONDS EXPIRY EXPIRES AGE"
    " POLICY PROVIDER MANAGER CLASS ENCODER STYLE FORMAT VERSION ALGORITHM ALGO METHOD REQUIRED SOCK SOCKET PORT HOST"
    " PARALLELISM STRATEGY COLUMN FIELD PROMPT ERROR ERRORS SCOPE ISSUER SERVICE ENDPOINT BACKEND HEADS DIM RATIO STATUS"
    " NOUN INTERVAL LOADER HANDLER CHECK CHECKS VALID FOUND USED USAGE THROUGHPUT HELPER CACHE STORE".split()
)
"""Last in a name that tells where or how, and not what."""
_BEHIND = set(
    "VALUE VALUES STR STRING DATA TEXT PLAIN PLAINTEXT RAW B BASE ENC ENCODED ENV VAR V PROD PRODUCTION DEV STAGING OLD NEW"
    " BACKUP MAIN DEFAULT TEST CN US EU READ RW RO WRITE ADMIN ROOT X PRIMARY SECONDARY BAK TMP HEX LIVE CURRENT PREVIOUS"
    " ONE TWO HASH HEADER HEADERS CONTENT ADM INTERNAL EXTERNAL LOCAL PERSONAL PUB".split()
)
"""Behind a name, without a change of what it means: `HF_TOKEN_PROD`, `token_v2`."""


@lru_cache(maxsize=8192)
def rank(name: str) -> str:
    """PASSWORD, SECRET, PIN, MAYBE or NONE. Tokens of a language model are none: `max_tokens`, `eos_token`.

    The last word decides, behind words that add nothing: `HF_TOKEN_PROD` is a TOKEN, `token_file` is a file. Of dotted
    names the last part counts, and the part before it where the last one says too little: `openai.key`.
    """
    small = name.lower()
    if any(word in small for word in _OTHER_LANGUAGES):
        return PASSWORD
    words: list[str] = []
    for part in reversed(name.strip(".-_").split(".")):
        words = [word.upper() for word in _WORDS.findall(part)] + words
        while words and (words[-1].isdigit() or words[-1] in _BEHIND) and not _tells(words):
            words.pop()
        if words and words not in (["KEY"], ["KEYS"], ["ID"], ["TOKEN"]):
            break
    return _rank(words, name) if words else NONE


def is_secret(name: str) -> bool:
    """Whether what a variable, option or key of this name holds is always a secret."""
    return rank(name) in (PASSWORD, SECRET)


def may_be_secret(name: str) -> bool:
    """Whether a name may stand for a secret: where nothing but the name is looked at, such as in lists of variables."""
    return bool(rank(name))


def _tells(words: list[str]) -> bool:
    """Whether a word that may stand behind a name is part of it: `CONNECTION_STRING`."""
    return words[-1] in ("STRING", "STR") and len(words) > 1 and words[-2] in ("CONNECTION", "CONN")


def _rank(words: list[str], name: str) -> str:
    last, before, whole = words[-1], words[-2] if len(words) > 1 else "", "".join(words)
    if words[-3:] == ["ACCESS", "KEY", "ID"] or whole.endswith("ACCESSKEYID"):
        return SECRET
    if last in _PLACES:
        if last == "ID" and before in ("SESSION", "SESS", "SECRET", "CLIENTSECRET"):
            return MAYBE
        return MAYBE if last in ("URL", "URI", "URLS") and before == "WEBHOOK" else NONE
    if (
        any(word in whole for word in _PASSWORD_ANYWHERE)
        or last in _PASSWORDS
        or _glued(last, _BEFORE_PASS, _PASS_ENDS)
    ):
        return PASSWORD
    if last in _PASS:
        if before in ("OLD", "FIRST", "SECOND", "FORWARD", "BACKWARD", "SINGLE", "MULTI", "ONE", "TWO", "BY", "EACH"):
            return NONE
        return PASSWORD if before else MAYBE if name in ("PWD", "OLDPWD") else SECRET
    if last in _SECRETS or any(word in whole for word in _SECRET_ANYWHERE):
        return MAYBE if last in ("PAT", "PATS", "SAS", "AUTHENTICATION", "OTP") and not before else SECRET
    if before in ("CONNECTION", "CONN") and last in ("STRING", "STR"):
        return SECRET
    if last in ("TOKEN", "TOKENS") or _glued(last, _BEFORE_TOKEN, ("TOKEN", "TOKENS")):
        return _token(words)
    if last in ("PIN", "PINCODE", "PINS"):
        return PIN
    if last in ("KEY", "KEYS"):
        return _key(before, name)
    if last in _UNSURE:
        return MAYBE if last != "CODE" or before in ("AUTH", "AUTHORIZATION", "SECURITY", "VERIFICATION") else NONE
    if last.endswith("KEY") and last not in ("MONKEY", "HOTKEY", "TURKEY", "DONKEY", "HOCKEY", "WHISKEY"):
        return MAYBE
    return MAYBE if last.endswith("TOKEN") and last[:-5] not in _MODELS else NONE


def _glued(word: str, beginnings: Container[str], ends: Iterable[str]) -> bool:
    """Whether two words are written as one: `dbpass`, `authtoken`."""
    return any(word.endswith(end) and word[: -len(end)] in beginnings for end in ends)


def _token(words: list[str]) -> str:
    if any(word in _MODELS for word in words[:-1]):
        return NONE
    return MAYBE if words == ["TOKENS"] else SECRET


def _key(before: str, name: str) -> str:
    if before in _OTHER_KEYS:
        return NONE
    if before in _KEYS or (before and name.isupper() and "_" in name):
        return SECRET
    return MAYBE
