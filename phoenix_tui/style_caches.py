"""A repair of Textual: the rows that a widget painted go with the widget.

Textual 8 keeps, for 1,024 calls of a method, the object it was called on, and with it all rows of a widget that is
long gone: 420 KB for each sheet that was opened.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from textual._styles_cache import StylesCache
from textual.color import Color

KEPT: Final = 1024
"""Pairs of colours, as many as Textual keeps."""


def let_painted_rows_go() -> None:
    """Keep the colours of that method by the colours alone."""
    method: Any = StylesCache.get_inner_outer
    computed: Any = getattr(method, "__wrapped__", None)
    if computed is None:  # done before, or mended by Textual
        return

    @lru_cache(KEPT)
    def colours(base: Color, background: Color) -> Any:
        return computed(None, base, background)  # it does not look at its object

    def get_inner_outer(_: StylesCache, base: Color, background: Color) -> Any:
        return colours(base, background)

    setattr(StylesCache, "get_inner_outer", get_inner_outer)  # noqa: B010 - a method in the place of a method
