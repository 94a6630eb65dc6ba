"""Anonymise: people, machines, mail and IP addresses get other names; `mallory` is `user1` in every file of the
archive.

Ordinary words (`root`, `trainer`, `worker`) and versions that look like addresses (`12.8.4.1`) are no false positives.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

_ORDINARY = re.compile(
    r"actor|admin|administrator|app|base|bin|build|ci|cluster|common|conda|container|cpu|daemon|data|dev"
    r"|dataset|datasets|docker|gpu|guest|head|home|host|jovyan|lib|linux|local|localhost|machine|main|master|mnt|model"
    r"|models|nobody|node|opt|python|ray|root|run|runner|server|service|share|shared|srv|ssh|sys|system"
    r"|test|tester|tmp|torch|train|trainer|training|ubuntu|user|users|usr|var|verl|vllm|work|worker|workspace"
    r"|azureuser|checkpoints|code|coder|ec2-user|llm|ma-user|project|projects|public|storage|vscode"
)
"""Words that name nobody, and stand in logs in their own right."""
_PUBLIC = re.compile(
    r"(?:^|\.)(?:github\.com|gitlab\.com|bitbucket\.org|gitee\.com|huggingface\.co|hf-mirror\.com|modelscope\.cn"
    r"|pytorch\.org|pypi\.org|python\.org|nvidia\.com|ray\.io|wandb\.ai|docker\.io|vllm\.ai|example\.(?:com|org))$"
)
_HOME = re.compile(
    r"(?P<before>/(?:home|Users|nfs/home|mnt/home|data/home|export/home|u/home)/)(?P<name>[^\s/:;,'\"<>|\\)\]}]+)"
)
# `me@corp.net`, but not `git@github.com:…` (see `_mail`) nor a decorator such as `@torch.no_grad`.
_MAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]*@(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})(?![\w-])"
)
# `10.0.0.7:6379` is an address; `vllm==0.28.0.1`, `cu12.8.4.1` and `libnccl.so.2.27.5.1` are versions of four parts.
_FOUR = re.compile(r"(?<![\w.-])(?P<address>(?:\d{1,3}\.){3}\d{1,3})(?![\w.]*\d*\.\d)(?![\w-])")
# What names somebody, or a machine, beside a folder: `wandb: Currently logged in as: alice.liddell (team)`.
# Each begins with a plain text, for which a log of 100 MB is searched ten times as fast.
_LOGGED_IN = re.compile(r"logged in as:? (?:\x1b\[[\d;]*m)?(?P<name>[A-Za-z][\w.-]*\w)")
_AT = re.compile(r"@(?P<host>[A-Za-z][\w-]*)(?![\w-]|\.[A-Za-z])")
_BEFORE_AT = re.compile(r"(?<![\w.+-])[A-Za-z][\w.-]{0,60}\Z")
_ON = re.compile(r" on (?:node|host|machine) (?P<host>(?=[\w.-]*\d)[A-Za-z][\w-]*(?:\.[\w-]+)*)")
_PACKAGE = re.compile(r"(?:[=<>!~]=|[<>~^]|\bv|[Vv]ersion[ :=]+|-cu\d+\S*\s+)$")
_WORD = re.compile(r"[A-Za-z]\w* $")
_IP_WORDS = re.compile(
    r"(?:ip|addr|address|host|node|to|from|at|on|peer|server|master|connect|listening)[ :='\"\[(-]*$", re.IGNORECASE
)
_SIX = re.compile(r"(?<![\w:.])(?:fe80|f[cd][0-9a-f]{2}|2[0-9a-f]{3})(?::[0-9a-f]{0,4}){2,7}(?![\w:])", re.IGNORECASE)
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])", re.IGNORECASE)


class Pseudonyms:
    """Replaces what names people and machines. One object for all texts, so that each keeps its other name.

    Of names that nobody gave, such as `/home/alice`, only the folder is replaced, unless `learn` has seen them.
    """

    def __init__(self, users: Iterable[str] = (), homes: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self.count: Counter[str] = Counter()
        self._given: dict[tuple[str, str], str] = {}
        homes = [home.rstrip("/") for home in dict.fromkeys(homes) if home.rstrip("/") not in ("", "/root")]
        self._homes = _either(homes, r"(?=/|$|[^\w.-])")
        self._named = [user for user in dict.fromkeys(users) if _is_name(user)]
        self._hosts = [host.lower() for host in dict.fromkeys(hosts) if host]
        self._prepare()

    def _prepare(self) -> None:
        self._people = _either(self._named, r"(?![A-Za-z0-9])", r"(?<![A-Za-z0-9])")
        short = [host.partition(".")[0] for host in self._hosts if not _is_address(host)]
        known = [host for host in (*self._hosts, *short) if _is_name(host) and not _is_address(host)]
        self._machines = _either(known, r"(?![A-Za-z0-9])", r"(?<![A-Za-z0-9])", re.IGNORECASE)

    def learn(self, texts: Iterable[str]) -> None:
        """Know the names that these texts show, to replace them everywhere: `alice` by `/home/alice`."""
        people, hosts, logins = set[str](), set[str](), set[tuple[str, str]]()
        for text in texts:
            people.update(found["name"] for pattern in (_HOME, _LOGGED_IN) for found in pattern.finditer(text))
            hosts.update(found["host"] for found in _ON.finditer(text))
            for found in _AT.finditer(text):
                name = _BEFORE_AT.search(text, max(0, found.start() - 64), found.start())
                if name is not None:
                    logins.add((name[0], found["host"]))
        self._named += sorted({name for name in people if _is_name(name)} - set(self._named))
        hosts.update(host for name, host in logins if name in self._named)
        self._hosts += sorted({host.lower() for host in hosts if _is_name(host)} - set(self._hosts))
        self._prepare()

    def text(self, text: str) -> str:
        """`text` with other names. Doing it twice changes nothing more."""
        text = _MAIL.sub(self._mail, text)
        if self._homes is not None:
            own = self._named[0] if self._named else ""
            text = self._homes.sub(lambda _: self._counted("users", "/home/" + self._other("user", own)), text)
        text = _HOME.sub(self._home, text)
        if self._people is not None:
            text = self._people.sub(lambda found: self._counted("users", self._other("user", found[0])), text)
        if self._machines is not None:
            text = self._machines.sub(
                lambda found: self._counted("hosts", self._other("host", found[0].lower().partition(".")[0])), text
            )
        text = _FOUR.sub(self._four, text)
        text = _SIX.sub(lambda found: self._counted("addresses", self._other("ip", found[0].lower())), text)
        return _MAC.sub(lambda found: self._counted("addresses", self._other("mac", found[0].lower())), text)

    def _other(self, kind: str, name: str) -> str:
        known = sum(1 for other, _ in self._given if other == kind)
        return self._given.setdefault((kind, name), f"{kind}{known + 1}")

    def _counted(self, kind: str, other: str) -> str:
        self.count[kind] += 1
        return other

    def _home(self, found: re.Match[str]) -> str:
        name = found["name"]
        if _OTHER_NAME.fullmatch(name) or _ORDINARY.fullmatch(name.lower()) or name.startswith("$"):
            return found[0]
        return self._counted("users", found["before"] + self._other("user", name))

    def _mail(self, found: re.Match[str]) -> str:
        host = found["host"]
        if host.lower() == "users.noreply.github.com" or found[0].startswith("git@"):
            return found[0]
        return self._counted("mails", self._other("mail", found[0].lower()))

    def _four(self, found: re.Match[str]) -> str:
        text, before = found["address"], found.string[max(0, found.start() - 40) : found.start()]
        if not _is_address(text):
            return found[0]
        address = ipaddress.ip_address(text)
        if address.is_loopback or address.is_unspecified or text.startswith("255."):
            return found[0]
        sure = _IP_WORDS.search(before) or re.match(r":\d{2,5}\b", found.string[found.end() : found.end() + 6])
        if not sure and (_PACKAGE.search(before) or (not address.is_private and _WORD.search(before))):
            return found[0]  # A version may have four parts too.
        return self._counted("addresses", self._other("ip", text))


_OTHER_NAME = re.compile(r"(?:user|host)\d+")


def _is_name(text: str) -> bool:
    """Whether a text names somebody or a machine, and is no word that a log has in its own right."""
    known = _ORDINARY.fullmatch(text.lower()) or _OTHER_NAME.fullmatch(text.lower())
    return len(text) > 2 and re.search(r"[A-Za-z]", text) is not None and "$" not in text and known is None


def machine_of(url: str) -> str | None:
    """The machine that a repository's URL names, unless everybody knows it."""
    found = re.match(r"(?:[a-z+]+://)?(?:[^@/]*@)?([A-Za-z0-9.-]+)[:/]", url)
    if found is None or _PUBLIC.search(found[1]) or "." not in found[1]:
        return None
    return found[1]


def _either(words: Iterable[str], after: str, before: str = "", flags: int = 0) -> re.Pattern[str] | None:
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return re.compile(f"{before}(?:{'|'.join(map(re.escape, ordered))}){after}", flags) if ordered else None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
