"""What mostly causes a failure whose exception no record covers, where its form or its code shows that."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patcher.diagnose.code_sentences import are_of_tokens, has_empty, unpacked_of
from patcher.diagnose.evidence import Call
from patcher.diagnose.exception_message import MessageParts, is_of_two_releases, is_plain_for_own
from patcher.diagnose.frame import Frame
from patcher.diagnose.parties import Given, asked_party, party
from patcher.i18n import Phrase, phrase

_ROTARY = re.compile(r", in apply_\w*rotary_pos_emb\w*$")


def usual_cause(parts: MessageParts, at: Frame | None, calls: Sequence[Call], given: Given | None) -> Phrase | None:
    """What mostly causes failures of this form; None where nothing does."""
    if given is not None:
        return phrase(
            "the key is misspelled, or the configuration was written for another release: take the key out, or install "
            "the release that knows it"
        )
    if has_empty(parts):
        return phrase("a tensor of size 0 is empty: this rank, or this batch, got no tokens, samples or rows")
    if are_of_tokens(parts, calls):
        return phrase("the two come from sequences of different lengths: tokenized, cut or padded in different ways")
    if parts.matter == "shape" and calls and _ROTARY.search(calls[-1].frame):
        return phrase("cos and sin are made from position_ids, whose shape does not fit that of the tokens here")
    if parts.matter == "claim" and "torch.Size([])" in parts.found:
        return phrase("torch.Size([]) is the shape of a single number, where a tensor with dimensions is expected")
    if parts.matter == "unpacking" and (called := unpacked_of(at, calls)) is not None:
        callee, package = called
        if package:
            text = "{callee} of {package} returns something else in another release, for which this code was written"
            return phrase(text, callee=callee, package=package)
        text = (
            "where {callee} is of an installed package, it returns something else in another release, "
            "for which this code was written"
        )
        return phrase(text, callee=callee)
    if at is not None and at.installed and is_plain_for_own(parts):
        text = (
            "what calls {package} passes a plain {kind} where this release expects an object that has {name}: "
            "the caller is written for another release, or passes a wrong value"
        )
        return phrase(text, package=party(at), kind=parts.symbol, name=parts.names[0]) if party(at) else None
    if not is_of_two_releases(parts):
        return None
    asker, asked = party(at), asked_party(parts, calls)
    if asked and asker == asked:
        if parts.matter == "missing-attribute":
            text = (
                "both sides are of {package}: the object is not set up as this code expects, or this release has a "
                "mistake"
            )
            return phrase(text, package=asked)
        text = "both sides are of {package}: this release has a mistake, or files of two releases are mixed"
        return phrase(text, package=asked)
    if asked:
        return phrase("the code that asks and the installed {package} are of releases that do not fit", package=asked)
    return phrase("the code that asks and what it asks are of releases that do not fit together")
