"""Which fixes of a symptom apply to the versions at hand, and the status of their patch records on the tree at hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from patcher.diagnose.diagnosis import Offer
from patcher.diagnose.frame import distribution
from patcher.i18n import NOTHING, Phrase, Phrases, phrase
from patcher.packages.versions import Kind, No, satisfies
from patcher.plan.outcome import FAILED, RecordOutcome
from patcher.records.symptoms import Fix, Symptom


@dataclass(frozen=True, slots=True)
class FixContext:
    """What decides which fixes apply: versions by distribution, and the status of patch records by id."""

    versions: Mapping[str, str] = field(default_factory=dict)
    outcomes: Mapping[str, RecordOutcome] = field(default_factory=dict)
    """Empty without a tree."""
    root: str = ""
    """The tree, where the user named one."""
    foreign: bool = False
    """Whether the log is of another trainer than verl, so that settings of verl do not help."""
    unsigned: bool = False
    """Whether the log does not show whose trainer wrote it, so that settings of verl are named as such."""
    sglang: bool = False
    """Whether the log names SGLang and not vLLM, so that commands of vLLM do not help."""
    log: str = ""
    """The file that is diagnosed, if it is a plain file. It replaces `LOG` in commands."""


def fixes_for(symptom: Symptom, context: FixContext, line: str = "", around: Sequence[str] = ()) -> tuple[Offer, ...]:
    """The fixes of a symptom that the versions do not exclude, in the record's order, except where `around` decides it.

    For the log of another trainer they are without the settings of verl, and what only verl understands comes last,
    where there is nothing else.

    Args:
        line: the line of the log that the symptom matched, for commands with a word of it: `pip install PACKAGE`.
        around: frames of its traceback, or lines around it: a fix whose `where` one of them shows comes first.
    """
    words = _words(symptom, line)
    allowed = [fix for fix in symptom.fixes if versions_allow(fix.when, context.versions)]
    if context.sglang:
        allowed = _without_vllm(allowed)
    if context.foreign:
        allowed = _without_verl(allowed)
    elif context.unsigned:
        allowed = [_named_as_of_verl(fix) if _keys_of_verl(fix) else fix for fix in allowed]
    return tuple(_prepare_fix(fix, context, words) for fix in _shown_first(allowed, around))


def _shown_first(fixes: Sequence[Fix], around: Sequence[str]) -> Sequence[Fix]:
    """First the fixes whose case the lines show, then those for any case, and last those of other cases.

    Without a traceback, and where no line shows a case, a case that frames show may be this one: it keeps its place."""
    if not around:
        return fixes
    text = "\n".join(around)
    shown = [fix for fix in fixes if fix.where and re.search(fix.where, text, re.IGNORECASE | re.MULTILINE)]
    decided = shown or any(one.startswith(LAST_FRAME) for one in around)
    others = [fix for fix in fixes if fix.where and fix not in shown and (decided or not _shown_by_frames(fix))]
    return [*shown, *(fix for fix in fixes if fix not in shown and fix not in others), *others]


def _shown_by_frames(fix: Fix) -> bool:
    """Whether frames show the case, by who asks, by a path, or as its text says: `The frames are of a backward`."""
    return "frames" in fix.text.lower() or _BY_FRAMES.search(fix.where) is not None


LAST_FRAME = "last frame: "
"""Begins the line above the frames of a traceback that says whose the last one is."""
_BY_FRAMES = re.compile(r"last frame|\[/|\.py\b")
"""`^last frame: own`, `[/\\]vllm[/\\]`, `metrics[.]py`."""


_KEY = re.compile(
    r"[+~]*(?:actor_rollout_ref|trainer|data|algorithm|reward|reward_model|critic|ray_kwargs|ray_init|global_profiler"
    r"|custom_reward_function|transfer_queue)(?:\.|$)"
)
"""A key of verl's configuration."""
_IN_VERL = re.compile(r"[;,]? in verl\b[^;]*:$| \(in verl by the key below\)$")
_IN_VERL_ZH = re.compile(r"[；，]? ?verl 中[^；]*：$|（verl 用下面的键）$")
"""What introduces the settings of verl below a text."""
_RUNS_VERL = re.compile(r"verl\.trainer|install .*\bverl\b(?!/)")


def _keys_of_verl(fix: Fix) -> bool:
    return any(_KEY.match(key) for key in fix.set)


_RUNS_VLLM = re.compile(r"\bvllm serve\b|--against vllm==|from vllm import")
_FOR_VLLM = re.compile(r"[;,]? for vLLM's server:$")
_FOR_VLLM_ZH = re.compile(r"[；，]? ?vLLM 服务为：$")
"""What introduces a command of vLLM below a text."""


def _without_vllm(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes without commands of vLLM; without those that are for vLLM alone, except where all are such."""
    found = []
    for fix in fixes:
        if _RUNS_VLLM.search(fix.run):
            text, zh = _FOR_VLLM.sub("", fix.text), _FOR_VLLM_ZH.sub("", fix.zh)
            fix = replace(fix, text=text, zh=zh, run="")
            if "vLLM" in text:
                continue
        found.append(fix)
    return found or list(fixes)


def _named_as_of_verl(fix: Fix) -> Fix:
    """The fix, whose text says that the settings below it are verl's."""
    if re.search(r"\bverl\b", fix.text):
        return fix
    return replace(fix, text=f"{fix.text.rstrip('.:')}; in verl:", zh=f"{fix.zh.rstrip('。：')}；verl 中：")


def _without_verl(fixes: Sequence[Fix]) -> list[Fix]:
    """The fixes without settings of verl.

    Those that say nothing but for verl are left out, except where all are such. Those whose text was written for verl's
    settings alone come last.
    """
    found: list[Fix] = []
    for_settings: list[Fix] = []
    for fix in fixes:
        left = _for_any_trainer(fix)
        does_something = left is not None and bool(left.run or left.env or left.set)
        if left is None or (not does_something and left.text in {one.text for one in (*found, *for_settings)}):
            continue
        lost = left.set != fix.set and left.text == fix.text and not does_something
        (for_settings if lost else found).append(left)
    return [*found, *for_settings] or list(fixes)


def _for_any_trainer(fix: Fix) -> Fix | None:
    """What a fix says for other trainers than verl; None where that is nothing."""
    # A setting of run scripts is verl's; the variable that it names is anybody's: CUDA_LAUNCH_BLOCKING=1.
    if (fix.setting and not (fix.env or fix.run)) or fix.patch or _RUNS_VERL.search(fix.run):
        return None
    left = replace(
        fix,
        setting=None,
        text=_IN_VERL.sub("", fix.text),
        zh=_IN_VERL_ZH.sub("", fix.zh),
        set={key: value for key, value in fix.set.items() if not _KEY.match(key)},
        when={name: specifier for name, specifier in fix.when.items() if name != "verl"},
    )
    is_about_verl = re.search(r"\bverl\b", left.text) is not None
    return None if is_about_verl and (left.set != fix.set or left.when != fix.when) else left


_PLAIN = re.compile(r"[\w.+-]+(?:[<>=!~]=?[\w.*+-]+,?)*")
"""A name, or what pip is asked for: `transformers>=4.41.2,<=4.45.0`."""


def _words(symptom: Symptom, line: str) -> dict[str, str]:
    """The words that named groups of the symptom's pattern match on the line: `(?P<module>\\w+)` is MODULE in a
    command.

    PACKAGE is the distribution that installs that module. Text with a special meaning in a shell is not used.
    """
    for match in symptom.matches if line else ():
        if "(?P<" in match.line and (found := re.search(match.line, line, re.IGNORECASE)) is not None:
            words = {name.upper(): text for name, text in found.groupdict().items() if text and _PLAIN.fullmatch(text)}
            if "MODULE" in words:
                words["PACKAGE"] = distribution(words["MODULE"].partition(".")[0])
            return words
    return {}


def versions_allow(when: Mapping[str, str], versions: Mapping[str, str]) -> bool:
    """Whether all known versions fit the specifiers of `when`."""
    return not any(
        name in versions and isinstance(satisfies(versions[name], specifier, kind=_kind(name)), No)
        for name, specifier in when.items()
    )


def _kind(name: str) -> Kind:
    return "tree" if name == "verl" else "dependency"


def _prepare_fix(fix: Fix, context: FixContext, words: Mapping[str, str]) -> Offer:
    commands, note = _apply(fix.patch, context) if fix.patch else ([], NOTHING)
    words = {**words, "LOG": context.log} if context.log else words
    run = re.sub(r"\b[A-Z]{3,}\b", lambda found: shlex.quote(words.get(found[0], found[0])), fix.run)
    commands += run.splitlines()
    commands += [f"export {name}={shlex.quote(value)}" for name, value in fix.env.items()]
    commands += [f"{key}={shlex.quote(value)}" for key, value in fix.set.items()]
    undecided = {name: spec for name, spec in fix.when.items() if name not in context.versions}
    if undecided and not note:
        note = phrase("only with {versions}", versions=", ".join(f"{name}{spec}" for name, spec in undecided.items()))
    return Offer(fix.text, fix.zh, tuple(commands), fix.patch, fix.setting, note)


def _apply(patch: str, context: FixContext) -> tuple[list[str], Phrase | Phrases]:
    """The command, if there is something to do, and the status of the record on the tree."""
    tree = f"--root {shlex.quote(context.root)} " if context.root else ""
    outcome = context.outcomes.get(patch)
    if outcome is None:
        return [f"uky-patch {tree}apply {patch}"], NOTHING
    message = phrase(
        "{record} on this tree: {outcome}, {detail}",
        record=patch,
        outcome=Phrases((outcome.kind.replace("-", " "),)),
        detail=outcome.detail,
    )
    if outcome.kind == "pending":
        return [f"uky-patch {tree}apply {patch}"], message
    return ([f"uky-patch {tree}explain {patch}"] if outcome.kind in FAILED else []), message
