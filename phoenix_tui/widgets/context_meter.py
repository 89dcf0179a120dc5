"""The context meter as text: how full the window is."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from phoenix_tui.text.labels import Tone, tokens

NOTICED: Final = 70
"""Per cent of the window at which the user is informed (SPEC DEC-12)."""
NEAR: Final = 75
"""Per cent from which the meter is a warning (SPEC BED-012)."""
FULL: Final = 90
CELLS: Final = 10


class ContextUse(Struct, frozen=True):
    """Tokens in the window, its size (0 unknown), and whether the count is an estimate."""

    tokens: int = 0
    window: int = 0
    estimated: bool = False

    @property
    def percent(self) -> int | None:
        """Fill level in per cent; None while the window is unknown."""
        return round(100 * self.tokens / self.window) if self.window else None

    @property
    def tone(self) -> Tone:
        """Quiet, then a warning, then bad."""
        percent = self.percent or 0
        if percent >= FULL:
            return Tone.BAD
        return Tone.NEEDS_YOU if percent >= NEAR else Tone.QUIET


def short_meter(use: ContextUse) -> str:
    """`ctx 42%`, or the tokens where the window is unknown; empty before the first message."""
    if not use.tokens:
        return ""
    about = "~" if use.estimated else ""
    return f"ctx {about}{tokens(use.tokens)}" if use.percent is None else f"ctx {about}{use.percent}%"


def wide_meter(use: ContextUse, plain: bool) -> str:
    """`ctx ▰▰▰▰▱▱▱▱▱▱ 42% 84k/200k`."""
    percent = use.percent
    if percent is None or not use.tokens:
        return short_meter(use)
    filled = min(round(percent * CELLS / 100), CELLS)
    full, empty = ("#", "-") if plain else ("▰", "▱")
    about = "~" if use.estimated else ""
    bar = full * filled + empty * (CELLS - filled)
    return f"ctx {bar} {about}{percent}% {tokens(use.tokens)}/{tokens(use.window)}"


def crossing(before: ContextUse, after: ContextUse) -> str:
    """Sentence when the window has just become nearly full, else empty; re-armed when the level falls."""
    was, now = before.percent or 0, after.percent or 0
    for limit in (FULL, NOTICED):
        if was < limit <= now:
            return f"The context window is {now} % full. /context shows what fills it and frees space."
    return ""
