"""What the steps of a migration report, as lines for people. Pure functions of what the steps have found."""

from __future__ import annotations

from collections.abc import Iterator

from patcher.i18n import Phrase, Phrases, listed, phrase
from patcher.migrate.listing import Listing
from patcher.migrate.payload import Payload
from patcher.migrate.transfer import Difference, Sent
from patcher.migrate.wording import first_few, first_paths, readable_size
from patcher.profiles.rendered_file import Text, WrittenFile
from patcher.remote.slurm import Slurm
from patcher.remote.survey import Gpu, Survey

_REPORTED_PACKAGES = ("vllm", "torch", "transformers", "triton", "ray")
LARGE = 100 << 20
"""Bytes from which on a file that git does not track is reported before it is sent. A guess: a minute at 2 MB/s."""


def versions(survey: Survey) -> Phrase | str:
    """The versions in the host's interpreter for training: `vllm 0.11.0, torch 2.8.0, python 3.12.3`."""
    chosen = survey.interpreter
    if chosen is None:
        return phrase("no environment for training")
    known = [f"{name} {chosen.packages[name].version}" for name in _REPORTED_PACKAGES if name in chosen.packages]
    return ", ".join([*known, f"python {chosen.version}"])


def asked_of_slurm(slurm: Slurm) -> Phrase:
    """What a job asks Slurm for. The GPUs of the login node, which is surveyed, do not matter."""
    per_node = slurm.gpus_per_node or 0
    return phrase("jobs by Slurm, nodes: {nodes}, GPUs of each: {gpus}", nodes=slurm.nodes, gpus=per_node)


def gpus(found: tuple[Gpu, ...]) -> Phrase:
    """The GPUs by model, and how many are busy: `8 x NVIDIA H100, 2 busy`."""
    if not found:
        return phrase("no GPU")
    names = dict.fromkeys(gpu.name for gpu in found)
    kinds = ", ".join(f"{sum(gpu.name == name for gpu in found)} x {name}" for name in names)
    busy = sum(bool(gpu.busy) for gpu in found)
    return phrase("{kinds}, {busy} busy", kinds=kinds, busy=busy) if busy else phrase("{kinds}, idle", kinds=kinds)


def not_as_expected(listing: Listing) -> Iterator[Text]:
    """What is not sent and may be missed on the host, and large files that may be sent by mistake."""
    own = [left.path for left in listing.left_out if left.kind == "repository"]
    if own:
        template = "not sent, repositories of their own: {names}; name them in include to send them"
        yield phrase(template, names=first_paths(own))
    unreadable = [left.path for left in listing.left_out if left.kind == "unreadable"]
    if unreadable:
        yield phrase("not sent, cannot be read: {names}", names=first_paths(unreadable))
    large = [item for item in listing.items.values() if item.size >= LARGE and item.path in listing.untracked]
    if large:
        named = [phrase("{path} ({size})", path=item.path, size=readable_size(item.size)) for item in large]
        template = "sent though git does not track it, and large: {names}; .gitignore keeps it here"
        yield phrase(template, names=first_few(named))


def differences(payload: Payload) -> Phrases:
    """The records whose outcome on the host differs from that here, grouped by both outcomes."""
    kinds = {outcome.id: outcome.kind for outcome in payload.result.plan.outcomes}
    groups: dict[tuple[str, str], list[str]] = {}
    for name in payload.differs:
        pair = kinds[name].replace("-", " "), payload.here.get(name, "").replace("-", " ")
        groups.setdefault(pair, []).append(name)
    parts = [
        phrase("{there}, here {here}: {records}", there=listed(there), here=listed(here), records=first_paths(names))
        for (there, here), names in groups.items()
    ]
    return Phrases(tuple(parts))


def nothing_to_send(payload: Payload) -> Phrase:
    """The tree on the host is as planned."""
    return phrase("{files} {files:file|files}, nothing to send", files=len(payload.items))


def would_send(payload: Payload, difference: Difference) -> Phrase:
    """What a dry run would send."""
    if difference.nothing:
        return nothing_to_send(payload)
    return phrase(
        "{files} {files:file|files}, {size} would be sent; {same} are there",
        files=len(difference.send),
        size=readable_size(sum(payload.items[path].size for path in difference.send)),
        same=difference.same,
    )


def would_change(difference: Difference) -> tuple[Text, ...]:
    """The files on the host that a dry run would move aside or replace."""
    notes: list[Text] = []
    if difference.retire:
        notes.append(phrase("no longer sent, would be moved aside: {names}", names=first_paths(difference.retire)))
    if difference.overwritten:
        notes.append(phrase("changed on the host, needs --yes: {names}", names=first_paths(difference.overwritten)))
    return (*notes, *brought_back(difference))


def brought_back(difference: Difference) -> tuple[Text, ...]:
    """The files that somebody has removed on the host. They come again, which undoes that."""
    if not difference.removed:
        return ()
    return (phrase("removed on the host, sent again: {names}", names=first_paths(difference.removed)),)


def sent_files(difference: Difference, sent: Sent) -> Phrases:
    """How much was sent, and by which way."""
    size = readable_size(sent.bytes)
    parts: list[Text] = [
        phrase("{files} {files:file|files}, {size} sent ({way})", files=sent.files, size=size, way=sent.way)
        if sent.files
        else phrase("no file sent")
    ]
    if difference.same:
        parts.append(phrase("{same} were there", same=difference.same))
    return Phrases(tuple(parts), ", ")


def moved_aside(sent: Sent) -> tuple[Text, ...]:
    """The files on the host that were moved to the kept copies, and the folder."""
    if sent.aside is None:
        return ()
    return (phrase("moved aside into {folder}: {names}", folder=sent.aside, names=first_paths(sent.moved)),)


_WRITE_OUTCOMES = {
    "written": phrase("written"),
    "updated": phrase("updated"),
    "unchanged": phrase("unchanged"),
    "kept": phrase("edited there, kept"),
    "foreign": phrase("the host's own, kept"),
}
_PREVIEWED = {**_WRITE_OUTCOMES, "written": phrase("would be written"), "updated": phrase("would be updated")}


def rendered_files(written: tuple[WrittenFile, ...], *, dry: bool) -> Phrases:
    """What became of each rendered file, or in a dry run would."""
    outcomes = _PREVIEWED if dry else _WRITE_OUTCOMES
    parts = (phrase("{path} {how}", path=one.path, how=outcomes[one.outcome]) for one in written)
    return Phrases(tuple(parts), ", ")


def left_out(payload: Payload) -> tuple[Text, ...]:
    """The first few things in the tree here that are not sent, with reason and size."""
    left = payload.listing.left_out
    if not left:
        return ()
    parts = [
        phrase("{path} ({reason}, {size})", path=item.path, reason=item.reason, size=readable_size(item.size))
        if item.size is not None
        else phrase("{path} ({reason})", path=item.path, reason=item.reason)
        for item in left
    ]
    return (phrase("left out: {items}", items=first_few(parts)),)
