"""Vim's keys as a pure function: from a draft and a key to an edit, a place and the next state."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from phoenix_tui.widgets.vim_commands import command, operate, overwritten
from phoenix_tui.widgets.vim_motions import (
    BIG_WORD,
    MOTIONS,
    WORD,
    CharSearch,
    MotionKind,
    find,
    on_a_sign,
    row,
    taken_word,
    word_last,
)
from phoenix_tui.widgets.vim_objects import around
from phoenix_tui.widgets.vim_state import MOST, Draft, Mode, VimState, VimStep

OPERATORS: Final = "dcy"
SHORT: Final = {"x": ("d", "l"), "X": ("d", "h"), "D": ("d", "$"), "C": ("c", "$")} | {
    "Y": ("y", "y"),
    "s": ("c", "l"),
    "S": ("c", "c"),
}
"""Keys that are an operator with its motion."""
SELECTING: Final = {"v": Mode.VISUAL, "V": Mode.LINES}
"""Keys that begin to select; in their own mode they end it."""
VISUAL: Final = {"x": "d", "s": "c"}
"""Keys that are an operator on the selection."""


def press(state: VimState, key: str, draft: Draft) -> VimStep:
    """One key in NORMAL or VISUAL; a key without meaning drops an unfinished command."""
    keys = state.keys + key
    step = _pressed(state, key, replace(draft, at=on_a_sign(draft.text, draft.at)))
    if step.state.is_waiting:
        return replace(step, state=replace(step.state, keys=keys))
    is_change = state.mode is Mode.NORMAL and (step.edit is not None or step.state.mode is Mode.INSERT)
    return replace(step, state=replace(step.state, keys="", change=keys if is_change else state.change))


def _pressed(state: VimState, key: str, draft: Draft) -> VimStep:
    if state.prefix:
        return _after_prefix(state, key, draft)
    if key in "123456789" or (key == "0" and state.count):
        return VimStep(replace(state, count=min(state.count * 10 + int(key), MOST)), draft.at)
    if key in _prefixes(state):
        return VimStep(replace(state, prefix=key), draft.at)
    if key in ";,":
        return _again(state, key, draft)
    if state.mode is not Mode.NORMAL and VISUAL.get(key, key) in OPERATORS:
        start, end = sorted((state.anchor, draft.at))
        lines = state.mode is Mode.LINES
        state = replace(state, operator=VISUAL.get(key, key))
        return operate(state, draft, start, min(end + 1, len(draft.text)), lines=lines)
    if key in OPERATORS:
        return _operator(state, key, draft)
    if key in MOTIONS:
        return _motion(state, key, draft)
    return VimStep(state.rest(state.mode), draft.at) if state.operator else _other(state, key, draft)


def _prefixes(state: VimState) -> str:
    """The keys that wait for another one."""
    takes_objects = state.operator or state.mode is not Mode.NORMAL
    return "fFtTg" + ("ia" if takes_objects else "r")


def _other(state: VimState, key: str, draft: Draft) -> VimStep:
    """Handle a key that is neither a motion nor an operator."""
    if state.mode is not Mode.NORMAL:
        wanted = SELECTING.get(key, state.mode)
        return VimStep(state.rest(Mode.NORMAL if key in SELECTING and wanted is state.mode else wanted), draft.at)
    if key in SHORT:
        operator, motion = SHORT[key]
        return press(press(state, operator, draft).state, motion, draft)
    return command(state, key, draft)


def _after_prefix(state: VimState, key: str, draft: Draft) -> VimStep:
    prefix, state = state.prefix, replace(state, prefix="")
    if prefix == "g":
        return _motion(state, "gg", draft) if key == "g" else VimStep(state.rest(state.mode), draft.at)
    if prefix == "r":
        return overwritten(state, draft, lambda old: key * len(old))
    if prefix in "ia":
        return _object(state, key, draft, whole=prefix == "a")
    found = CharSearch(prefix, key)
    target = find(draft.text, draft.at, found, state.number or 1)
    return _go(replace(state, found=found), draft, target, _kind_of(found))


def _object(state: VimState, key: str, draft: Draft, *, whole: bool) -> VimStep:
    """Taken by the operator that waits, else selected."""
    place = draft.at if state.operator else max(draft.at, state.anchor)
    span = around(draft.text, place, key, state.number or 1, whole=whole)
    if span is None:
        return VimStep(state.rest(state.mode), draft.at)
    if state.operator:
        return operate(state, draft, *span, lines=key == "p")
    return VimStep(replace(state.rest(state.mode), anchor=span[0]), max(span[1] - 1, span[0]))


def _again(state: VimState, key: str, draft: Draft) -> VimStep:
    """The sign that was looked for last, once more or the other way."""
    if state.found is None:
        return VimStep(state.rest(state.mode), draft.at)
    found = state.found if key == ";" else state.found.other_way
    target = find(draft.text, draft.at, found, state.number or 1, again=True)
    return _go(state, draft, target, _kind_of(found))


def _kind_of(found: CharSearch) -> MotionKind:
    return MotionKind.WITH if found.how in "ft" else MotionKind.BEFORE


def _operator(state: VimState, key: str, draft: Draft) -> VimStep:
    """The first time it waits; twice it takes whole lines."""
    if not state.operator:
        return VimStep(replace(state, operator=key, times=state.count, count=0), draft.at)
    if state.operator != key:
        return VimStep(state.rest(), draft.at)
    last = row(draft.text, draft.at, state.number - 1) if state.number > 1 else None
    return operate(state, draft, draft.at, draft.at if last is None else last, lines=True)


def _motion(state: VimState, key: str, draft: Draft) -> VimStep:
    motion, kind = MOTIONS[key]
    count = state.number
    if state.operator and key in "wW":
        is_word = draft.text[draft.at : draft.at + 1].strip() != ""
        pattern = WORD if key == "w" else BIG_WORD
        if state.operator == "c" and is_word:  # as vim: the blanks behind the word stay
            last = word_last(draft.text, draft.at - 1, count or 1, pattern)
            return _go(state, draft, last, MotionKind.WITH)
        return _go(state, draft, taken_word(draft.text, draft.at, count or 1, pattern), kind)
    target = motion(draft.text, draft.at, count)
    if target is None and key in "jk" and not state.operator and state.mode is Mode.NORMAL:
        return VimStep(state.rest(), draft.at, request="newer" if key == "j" else "older")
    return _go(state, draft, target, kind)


def _go(state: VimState, draft: Draft, target: int | None, kind: MotionKind) -> VimStep:
    """Move, or apply the waiting operator to the range between."""
    if target is None:
        return VimStep(state.rest(state.mode), draft.at)
    if not state.operator:
        return VimStep(state.rest(state.mode), on_a_sign(draft.text, target))
    start, end = sorted((draft.at, target))
    return operate(state, draft, start, end + (kind is MotionKind.WITH), lines=kind is MotionKind.LINES)
