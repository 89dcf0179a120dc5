"""Two repairs of Textual: the rows that a widget painted go with the widget, and each with the next that replaces it.

Textual 8 keeps, for 1,024 calls of a method, the object it was called on, and with it all rows of a widget that is
long gone: 420 KB for each sheet that was opened. And a row that is cut at its own end keeps itself as the result, so
that it goes only with a collection of all objects: 76 rows of a turn, 24 kB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from textual._styles_cache import StylesCache
from textual.color import Color
from textual.strip import Strip

KEPT: Final = 1024
"""Pairs of colours, as many as Textual keeps."""


_divided: Final = Strip.divide


def let_painted_rows_go() -> None:
    """Keep neither a widget for its colours nor a row for its own sake."""
    _keep_colours_alone()
    setattr(Strip, "divide", _divide)  # noqa: B010 - a method in the place of a method


def _divide(strip: Strip, cuts: Iterable[int]) -> Sequence[Strip]:
    within = [cut for cut in cuts if cut <= strip.cell_length]
    return [strip] if within == [strip.cell_length] else _divided(strip, within)


def _keep_colours_alone() -> None:
    method: Any = StylesCache.get_inner_outer
    computed: Any = getattr(method, "__wrapped__", None)
    if computed is None:  # done before, or fixed in Textual
        return

    @lru_cache(KEPT)
    def colours(base: Color, background: Color) -> Any:
        return computed(None, base, background)  # it does not use its object

    def get_inner_outer(_: StylesCache, base: Color, background: Color) -> Any:
        return colours(base, background)

    setattr(StylesCache, "get_inner_outer", get_inner_outer)  # noqa: B010 - a method in the place of a method
