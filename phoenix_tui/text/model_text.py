"""Words and columns about models in lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.ports import ModelInfo
from phoenix_tui.text.labels import tokens

UNKNOWN: Final = "unknown"
ESTIMATED: Final = "window estimated"
"""Part of the note of a model whose window is assumed."""
LEAST_NAME: Final = 24
"""Cells of a name for which columns are left out."""
YES: Final = {True: "yes", False: "no", None: "?"}
LEAST_PRICE: Final = 0.001
WHOLE_FROM: Final = 1_000


class ModelColumn(Struct, frozen=True):
    """A column: its heading, its cells, and its text for a model."""

    head: str
    cells: int
    gap: int
    """Cells before it."""
    text: Callable[[ModelInfo], str]


def price_text(model: ModelInfo) -> str:
    """Dollars per million tokens of input and output: 2/10; `free`; empty where a price is unknown."""
    if model.price_in is None or model.price_out is None:
        return ""
    return f"{_dollars(model.price_in)}/{_dollars(model.price_out)}" if model.price_in or model.price_out else "free"


def window_text(model: ModelInfo) -> str:
    """Tokens of the window, with a tilde where they are assumed; none for the guide, which reads no conversation."""
    if model.context_window:
        return f"{'~' if ESTIMATED in model.note else ''}{tokens(model.context_window)}"
    return "none" if model.reference == "demo/guide" else UNKNOWN


def filter_words(model: ModelInfo) -> str:
    able = (("image vision", model.vision), ("reasoning", model.reasoning), ("tools", model.tools))
    words = [word for word, yes in able if yes]
    words += ["on this machine"] * model.local + ["free"] * (price_text(model) == "free")
    return " ".join((*words, model.note))


def facts_line(model: ModelInfo) -> tuple[str, ...]:
    """The same facts as words, for rows without columns; unknown ones are named."""
    able = (("images", model.vision), ("reasoning", model.reasoning), ("tools", model.tools))
    price = price_text(model)
    return tuple(
        part
        for part in (
            "on this machine" if model.local else "",
            f"window {window_text(model)}",
            price if price == "free" else f"${price} per million tokens" if price else "price unknown",
            *(f"{'no ' if yes is False else ''}{word}" for word, yes in able if yes is not None),
            model.note,
        )
        if part
    )


def columns_within(cells: int) -> tuple[ModelColumn, ...]:
    """The columns beside a name of `LEAST_NAME` cells; the last ones are left out where there is little room."""
    shown = COLUMNS
    while shown and cells - width_of(shown) < LEAST_NAME:
        shown = shown[:-1]
    return shown


def width_of(columns: tuple[ModelColumn, ...]) -> int:
    return sum(column.gap + column.cells for column in columns)


def _dollars(price: float) -> str:
    if price >= WHOLE_FROM:
        return f"{price:,.0f}"
    return f"{price:.4g}" if price >= LEAST_PRICE or not price else f"<{LEAST_PRICE}"


def _price_column(model: ModelInfo) -> str:
    before, slash, behind = price_text(model).partition("/")
    return f"{before:>6}{slash}{behind:<6}" if slash else (before or UNKNOWN).center(13)


COLUMNS: Final[tuple[ModelColumn, ...]] = (
    ModelColumn("window", 7, 2, lambda model: f"{window_text(model):>7}"),
    ModelColumn("$/M in/out", 13, 2, _price_column),
    ModelColumn("image", 5, 2, lambda model: YES[model.vision]),
    ModelColumn("reason", 6, 1, lambda model: YES[model.reasoning]),
    ModelColumn("tools", 5, 1, lambda model: YES[model.tools]),
)
