"""Secrets that are known by where they stand: private keys, URLs, headers, cookies, options and files of programs."""

from __future__ import annotations

import re
from typing import Iterator

from patcher.secrets.names import PASSWORD
from patcher.secrets.patterns import Pattern, either
from patcher.secrets.tokens import STARTS, match_token
from patcher.secrets.values import Span, hidden, line_end, spans_of

_START = Pattern(lambda: "(?<![A-Za-z0-9])" + either(STARTS))
_BEGIN = Pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = Pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINES = 400
"""Lines that a private key may have: one of RSA with 16,384 bits has some 200."""
_PREFIX = r"[ \t]*(?:\([^()\n]{1,60}\)[ \t]*|\[[^\[\]\n]{1,60}\][ \t]*|\d[\d:.,TZ/ -]{5,40}[ \t]|[|>#+-][ \t]+)*"
_BODY = Pattern(
    _PREFIX
    + r"[\"']?((?:[A-Za-z0-9+/]{1,100}={0,3}|=[A-Za-z0-9+/]{4}|(?:Proc-Type|DEK-Info|Comment|Version|Hash):[^\n]*)(?:\\{1,8}[nr])*)"
    r"[\"',;+\\]*[ \t]*\r?"
)
_FULL = Pattern(_PREFIX + r"[\"']?([A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})(?:\\n)?[\"',]*[ \t]*\r?")

_URL = Pattern(
    r"://(?:[^\s/?#:@'\"`<>|]{0,200}:(?!\d{1,5}[/?#]|//)([^\s'\"`<>|@]{1,300}(?:@[^\s'\"`<>|@/:]{1,200}(?=@))*)"
    r"|([^\s/?#:@'\"`<>|]{1,300}))@(?=[\w\[.%$-])"
)
_FETCHED = Pattern(r"(?:https?|git|svn|dav|ftp)s?(?:\+\w+)?\Z")
# `https://hooks.slack.com/services/T0/B0/SECRET`, `https://api.telegram.org/bot123456:SECRET/sendMessage`: the path itself
# is the password. Hosts that have nothing else are named in _SITES.
_HOOK = Pattern(
    r"(?i)://(?:hooks\.slack(?:-gov)?\.com/[\w.-]{1,40}/|maker\.ifttt\.com/trigger/[^/\s]{1,100}/(?:json/)?with/key/|[^\s/\"'<>]{1,200}/"
    r"(?:[\w.%~-]{1,100}/){0,6}?(?:(?:hooks?|webhooks?|webhookb2|incomingwebhook|catch)/|bot(?=\d{6,12}:)))([^\s\"'<>|,;)\]}\\`]{8,})"
)
_SITES = Pattern(
    r"(?i)://(?:hc-ping\.com|sctapi\.ftqq\.com|sc\.ftqq\.com|api\.day\.app|api2?\.pushdeer\.com)/([^\s\"'<>|,;)\]}\\`]{8,})"
)
_QUERY = Pattern(
    r"(?i)[?&;](?:(?:sig|signature|key|code|auth|x-(?:amz|goog|oss|tos|cos)-(?:signature|credential|security-token))|"
    r"(?:q-signature|awsaccesskeyid|ossaccesskeyid|securitytoken))=([^&\s\"'<>*|\\`]{1,2000})"
)
_SCHEMES = Pattern(
    r"(?i)(?<![\w-])(?:bearer|basic|token|digest|negotiate|ntlm|apikey)[ \t]{1,8}[\"']?(?=[A-Za-z._~+/=:-]{0,200}\d|(?-i:[a-z]{1,200}[A-Z])|[A-Za-z]{1,200}=)([A-Za-z0-9._~+/=:-]{12,})"
)
_HEADER = Pattern(
    r"(?i)(?:authorization|proxy-authorization|x-amz-security-token)(?:\\{0,15}[\"'])?[ \t]{0,8}[:=][ \t]{0,8}(?:\\{0,15}[\"'])?"
    r"(?:((?:bearer|basic|token|digest|negotiate|ntlm|apikey|aws4-hmac-sha256|key|pat|splunk|oauth|hawk|discogs|genie(?:key)?)\b)"
    r"[ \t]{1,8})([^\n\"'`\\]{1,4000}(?:\"[^\n\"]{0,2000}\"[^\n\"'`\\]{0,2000})*)"
)
_COOKIES = Pattern(
    r"(?i)(?:set-)?cookie2?(?:\\{0,15}[\"'])?[ \t]{0,8}(?::|=(?=[ \t]{0,8}[\"'\\]))[ \t]{0,8}(?:b?\\{0,15}[\"'])?([^\n\"'`\\=]{1,200}=[^\n\"'`\\]{1,8000})"
)
# A line of a cookie jar, as curl and Netscape write it: domain, TRUE, path, TRUE, expiry, name, value.
_JAR = Pattern(
    r"^[^\s]{1,200}\t(?:TRUE|FALSE)\t[^\t\n]{0,300}\t(?:TRUE|FALSE)\t\d{1,20}\t[^\t\n]{1,300}\t([^\t\n]+)", re.MULTILINE
)
# A line of ~/.pgpass: `host:5432:database:user:password`.
_PGPASS = Pattern(r"^[ \t]*[\w.*-]{1,100}:(?:\d{1,5}|\*):[^:\s]{1,100}:[^:\s]{1,100}:(\S+)[ \t]*$", re.MULTILINE)
# A key of wandb has no mark of its own, 40 hexadecimal digits like a commit, so "wandb" or "api key" must stand before it
# on its line, and no word that tells of a commit between them.
_WANDB = Pattern(
    r"(?i)(?<![a-z0-9])(?:wandb|swanlab|api[ _-]?key)(?![a-z0-9])(?:(?!\b(?:commit|sha1?|revision|head|hash)\b)[^\n]){0,60}?"
    r"((?<![0-9a-z])[0-9a-f]{40}(?![0-9a-z]))"
)
# AWS prints a secret key beside its id: 40 characters that are no word, within 400 characters behind the id.
_AWS_PAIR = Pattern(r"(?<![A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")

# Words of a command line, as a shell has them or as a program prints its list of arguments: `-p X`, `'-p', 'X'`.
_GAP = r"(?:[\"']?,?[ \t]+[\"']?)"
_ARG = r"(?:\\?\"([^\"\n]{1,500}?)\\?\"|'([^'\n]{1,500})'|([^\s\"';|&,)\]]{1,500}))"
_ON = r"(?:[^\n|;&]{0,160}?" + _GAP + r")"
_COMMANDS = tuple(
    (needle, Pattern(pattern))
    for needle, pattern in (
        (
            "login",
            rf"\b(?:docker|podman|nerdctl|helm|skopeo|buildah|oras|crane|az|cf|oc|ctr|singularity|apptainer|twine|vault|registry|modelscope|swanlab|argocd)\b[^\n|;&]{{0,80}}?\blogin{_GAP}(?:{_ON})?-(?:p|k|t)[= \t]?{_GAP}?{_ARG}",
        ),
        (
            "login",
            rf"\b(?:wandb|swanlab|vault|hf|kaggle|comet|neptune|clearml){_GAP}login{_GAP}(?:{_ON})?(?!-)(?=[^\s\"']*\d){_ARG}",
        ),
        ("mysql", rf"\b(?:mysql\w*|mariadb\w*){_GAP}(?:{_ON})?-p(?![ \t\"',]|ort\b|rotocol\b){_ARG}"),
        ("maria", rf"\bmariadb\w*{_GAP}(?:{_ON})?-p(?![ \t\"',]|ort\b|rotocol\b){_ARG}"),
        ("mongo", rf"\bmongo\w*{_GAP}(?:{_ON})?-p{_GAP}?{_ARG}"),
        ("sshpass", rf"\bsshpass{_GAP}-p[ \t]*{_GAP}?{_ARG}"),
        (
            "curl",
            rf"\bcurl\b(?:{_ON}|{_GAP})(?:-[a-zA-Z]*[uU]|--user|--proxy-user)(?:[= \t]|{_GAP})?[\"']?[^\s:\"']{{1,200}}:([^\s\"']{{1,500}})",
        ),
        ("curl", rf"\bcurl\b(?:{_ON}|{_GAP})(?:-b|--cookie){_GAP}[\"']?([^\s\"'=]{{1,200}}=[^\n\"']{{1,2000}})"),
        (
            "--user",
            r"--(?:proxy-)?user(?:[= \t]|[\"']?,[ \t]*[\"']?)[\"']?[^\s:\"'/=]{1,200}:([^\s\"':/]{3,500})(?=[\s\"']|\Z)",
        ),
        (
            " -a",
            rf"\b(?:http|https|httpie|xh)\b(?:{_ON}|{_GAP})(?:-a|--auth){_GAP}[\"']?[^\s:\"']{{0,200}}:([^\s\"']{{1,500}})",
        ),
        ("creds", rf"--(?:src-|dest-)?creds(?:[= \t]|{_GAP})[\"']?[^\s:\"']{{1,200}}:([^\s\"']{{1,500}})"),
        ("basicauth", r"BasicAuth\([ \t]*[\"'][^\"'\n]{0,200}[\"'][ \t]*,[ \t]*[\"']([^\"'\n]{1,500})[\"']"),
        ("gh secret", rf"\bgh{_GAP}secret{_GAP}set{_GAP}(?:{_ON})?(?:-b|--body)[= \t]?{_GAP}?{_ARG}"),
        ("redis-cli", rf"\bredis-cli\b(?:{_ON}|{_GAP})(?:-a|--pass){_GAP}{_ARG}"),
        ("ldap", rf"\bldap\w+{_GAP}(?:{_ON})?-w{_GAP}?{_ARG}"),
        ("7z", rf"\b7z[ar]?{_GAP}(?:{_ON})?-p{_ARG}"),
        ("zip", rf"\b(?:un)?zip{_GAP}(?:{_ON})?-P{_GAP}{_ARG}"),
        ("openssl", rf"\bopenssl\b(?:{_ON}|{_GAP})-(?:k|K){_GAP}{_ARG}"),
        ("pass:", r"(?<![\w-])pass:([^\s\"';|&,)\]]{1,500})"),
        ("smb", rf"\bsmb\w+{_GAP}(?:{_ON})?-U{_GAP}[\"']?[^\s%\"']{{1,100}}%([^\s\"']{{1,500}})"),
        ("xfreerdp", rf"\bxfreerdp\b(?:{_ON}|{_GAP})/p:{_ARG}"),
        ("ssh-keygen", rf"\bssh-keygen\b(?:{_ON}|{_GAP})-[NP]{_GAP}{_ARG}"),
        (
            "chpasswd",
            rf"\becho(?:{_GAP}-\w+)*{_GAP}[\"']?[^\s:\"']{{1,100}}:([^\s\"'|]{{1,500}})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd",
        ),
        (
            "alias",
            rf"\bmc{_GAP}(?:alias{_GAP}set|config{_GAP}host{_GAP}add){_GAP}\S+{_GAP}\S+{_GAP}([^\s\"',]+){_GAP}([^\s\"',]+)",
        ),
        ("<<<", r"(?:login|--password-stdin|--with-token|sudo[ \t]+-S|--stdin|passwd)[^\n|;&<]{0,200}<<<[ \t]*" + _ARG),
        (
            "--password-stdin",
            r"(?:--password-stdin|--with-token|--stdin)[^\n<]{0,200}<<-?[ \t]*[\"']?\w+[\"']?[^\n]{0,100}\n([^\n]{1,500})",
        ),
        (
            "echo",
            r"\b(?:echo|printf)(?:[ \t]+-\w+)*(?:[ \t]+[\"']%s(?:\\n)?[\"'])?[ \t]+"
            + _ARG
            + r"[ \t]*\|[ \t]*(?:\w[^\n|]{0,200}(?:--password-stdin|--with-token|login|--stdin)\b|sudo[ \t]+-\w*S|[^\n|]{0,60}passwd\b)",
        ),
        (
            "printf",
            r"\bprintf(?:[ \t]+[\"']%s(?:\\n)?[\"'])?[ \t]+"
            + _ARG
            + r"[ \t]*\|[ \t]*(?:\w[^\n|]{0,200}(?:--password-stdin|--with-token|login|--stdin)\b|sudo[ \t]+-\w*S)",
        ),
        (
            "machine",
            r"\b(?:machine[ \t]+\S{1,200}|default)(?:\s+(?:login|account)\s+\S{1,200}){0,2}\s+password\s+(\S{1,500})",
        ),
        ("password", r"\blogin\s+\S{1,200}\s+password\s+(\S{1,500})"),
        (
            "identified",
            r"(?i)\bidentified\s+(?:with\s+\S{1,60}\s+)?(?:by|as)\s+(?:password\s+)?[\"']([^\"'\n]{1,500})[\"']",
        ),
        ("password", r"(?i)\b(?:with\s+)?(?:encrypted\s+)?password\s+'([^'\n]{1,500})'"),
        (
            "client-key-data",
            r"(?:client-key-data|client-certificate-data)\\?[\"']?:[ \t]*\\?[\"']?([A-Za-z0-9+/=_-]{16,})",
        ),
        ("_auth", r"_auth(?:Token)?[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"'#,]{4,})"),
        ("auths", r"\\?[\"']auth\\?[\"'][ \t]*:[ \t]*\\?[\"']([A-Za-z0-9+/=]{4,})"),
        (
            "accountkey",
            r"(?i)(?:accountkey|sharedaccesskey|sharedaccesssignature|sharedsecret)[ \t]{0,4}=[ \t]{0,4}([^;\s\"']{4,})",
        ),
        ("send", r"\bsend(?:line)?\b[ \t]+(?:-\w+[ \t]+)*--?[ \t]*\"([^\"\\\n]{4,200})\\[rn]\""),
    )
)
_SECRET_KIND = Pattern(r"(?m)[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?Secret\b")
_DATA = Pattern(r"(?m)^([ \t]*)(?:string)?[dD]ata:[ \t]*\r?\n")
_DATA_JSON = Pattern(r"\\?\"(?:stringD|d)ata\\?\"[ \t]*:[ \t]*\{([^{}]{1,20000})\}")


def find_in_context(text: str, small: str) -> Iterator[Span]:
    """Where a secret stands by its look or its place. `small` is the same text in small letters."""
    done = 0
    for begun in _START.finditer(text) if any(start in text for start in STARTS) else ():
        end = match_token(text, begun.start()) if begun.start() >= done else -1
        if end < 0:
            continue
        done = end
        yield begun.start(), end
        if text[begun.start() : begun.start() + 4] in ("AKIA", "ASIA"):
            for other in _AWS_PAIR.finditer(text, end, min(len(text), end + 400)):
                if re.search(r"\d", other[1]) and re.search("[a-z]", other[1]) and re.search("[A-Z]", other[1]):
                    yield other.span(1)
    if "-----" in text:
        yield from _private_keys(text)
    if "://" in text:
        yield from _addresses(text)
    for needle, shape in _BY_WORD:
        for found in _near(text, small, needle, shape):
            yield from (span for span in spans_of(found) if "***" not in text[slice(*span)])
    for needle, shape in _COMMANDS:
        for found in _near(text, small, needle, shape, 300, 700):
            yield from (span for span in spans_of(found) if hidden(PASSWORD, text[slice(*span)], quoted=False))
    if "\ttrue\t" in small or "\tfalse\t" in small:
        for found in _JAR.finditer(text):
            yield found.span(1)
    if "secret" in small and "kind" in small:
        yield from _manifests(text)
    if ":5432:" in small or ":*:" in small or "pgpass" in small:
        for found in _PGPASS.finditer(text):
            yield found.span(1)


_BY_WORD = tuple(
    (needle, shape)
    for needles, shape in (
        (("bearer ", "basic ", "token ", "digest ", "negotiate ", "ntlm ", "apikey "), _SCHEMES),
        (("authorization", "x-amz-security-token"), _HEADER),
        (("cookie",), _COOKIES),
        (("sig=", "signature=", "key=", "code=", "auth=", "credential=", "keyid=", "token="), _QUERY),
        (("wandb", "swanlab", "api key", "api_key", "api-key", "apikey"), _WANDB),
    )
    for needle in needles
)


WORDS = {needle for needle, _ in (*_BY_WORD, *_COMMANDS)}
NEEDLES = (
    WORDS
    | {start.lower() for start in STARTS}
    | {"-----begin", "-----end", "://", "\ttrue\t", "\tfalse\t", ":5432:", ":*:", "pgpass"}
)
"""In small letters: where none of these stands, nothing is found here."""


def _near(
    text: str, small: str, needle: str, shape: Pattern, before: int = 1 << 30, behind: int = 1 << 30
) -> Iterator[re.Match[str]]:
    """Matches of a pattern in the lines that hold its word, and in the one behind each; of a long line what is near."""
    at = small.find(needle)
    while at >= 0:
        end = min(line_end(text, at), at + behind)
        begin = max(text.rfind("\n", 0, at) + 1, at - before, 0)
        until = min(line_end(text, end + 1), end + 500) if end < len(text) and text[end] == "\n" else end
        last = end
        for found in shape.finditer(text, begin, until):
            yield found
            last = max(last, found.end())
        at = small.find(needle, max(at + 1, last))


def _private_keys(text: str) -> Iterator[Span]:
    """The lines of private keys. Other lines that came between them stay; a key whose end or beginning is missing goes too."""
    done = 0
    for begun in _BEGIN.finditer(text):
        if begun.start() < done:
            continue
        line = line_end(text, begun.start())
        ended = _END.search(text, begun.end(), line)
        if ended is not None:
            yield begun.start(), ended.end()
            done = ended.end()
            continue
        yield begun.start(), line
        done = line
        for _ in range(_KEY_LINES):
            if line >= len(text):
                break
            at, line = line + 1, line_end(text, line + 1)
            ended = _END.search(text, at, min(line, at + 1000))
            if ended is not None:
                before = _BODY.match(text, at, ended.start())
                yield (before.start(1) if before else ended.start()), ended.end()
                done = ended.end()
                break
            body = _BODY.fullmatch(text, at, line) if line - at < 400 else None
            if body is not None:
                yield body.span(1)
                done = line
            elif _BEGIN.search(text, at, min(line, at + 1000)):
                break
    for ended in _END.finditer(text):
        at = text.rfind("\n", 0, ended.start()) + 1
        yield ended.span()
        for _ in range(_KEY_LINES):
            line = at - 1
            at = text.rfind("\n", 0, max(0, line)) + 1
            body = _FULL.fullmatch(text, at, line) if 0 < line - at < 400 else None
            if body is None:
                break
            yield body.span(1)


def is_secret_value(value: str) -> bool:
    """Whether a value gives itself away as a secret: a password in a URL, a private key, a token of a known service."""
    at = value.find("://")
    if any(is_token(value, found.start()) for found in _START.finditer(value)) or _BEGIN.search(value):
        return True
    return bool(_SCHEMES.match(value)) or (at >= 0 and next(_addresses(value), None) is not None)


def is_token(text: str, at: int) -> bool:
    """Whether the token of a service begins at `at`."""
    inside = at and text[at - 1].isalnum() and text[at - 1].isascii()
    return not inside and match_token(text, at, 1000) >= 0


def is_address(text: str, at: int) -> bool:
    """Whether the `://` at `at` belongs to a URL that may hold a secret."""
    return any(shape.match(text, at) for shape in (_URL, _HOOK, _SITES))


def _addresses(text: str) -> Iterator[Span]:
    at = text.find("://")
    while at >= 0:
        found = _URL.match(text, at)
        if found is not None:
            if found.start(1) >= 0 and hidden(PASSWORD, found[1], quoted=True):
                yield found.span(1)
            elif found.start(2) >= 0 and _FETCHED.search(text[max(0, at - 12) : at].lower()) and _is_token(found[2]):
                yield found.span(2)
        for shape in (_HOOK, _SITES):
            hook = shape.match(text, at)
            if hook is not None and "***" not in hook[1] and re.search(r"\d|[A-Z]", hook[1]):
                yield hook.span(1)
        at = text.find("://", at + 3)


def _is_token(user: str) -> bool:
    return len(user) >= 16 or bool(re.search(r"\d", user) and re.search("[A-Za-z]", user) and len(user) >= 8)


def _manifests(text: str) -> Iterator[Span]:
    """The data of Kubernetes' secrets, whatever their names."""
    done = -1
    for kind in _SECRET_KIND.finditer(text):
        if kind.start() < done:
            continue
        begin = max(0, text.rfind("\n---", 0, kind.start()), kind.start() - 20000)
        ended = text.find("\n---", kind.end())
        end = min(ended if ended >= 0 else len(text), kind.end() + 20000)
        done = end
        for data in _DATA_JSON.finditer(text, begin, end):
            for entry in re.compile(r":[ \t]*\\?\"([^\"\\\n]+)\\?\"").finditer(text, *data.span(1)):
                if "***" not in entry[1]:
                    yield entry.span(1)
        for data in _DATA.finditer(text, begin, end):
            at, outer = data.end(), len(data[1])
            while at < end:
                line = line_end(text, at)
                entry_line = text[at:line]
                indent = len(entry_line) - len(entry_line.lstrip())
                if entry_line.strip() and indent <= outer:
                    break
                held = re.compile(r"[ \t]*(?:[\w.\"'-]{1,200}:[ \t]*(?:[|>][+-]?[ \t]*\Z)?)?[\"']?([^\"'\s]*)").match(
                    text, at, line
                )
                if held is not None and held[1] and "***" not in held[1]:
                    yield held.span(1)
                at = line + 1
