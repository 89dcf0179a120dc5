"""Words about models in lists."""

from __future__ import annotations

from engine.ports import ModelInfo
from phoenix_tui.text.labels import tokens


def price_text(model: ModelInfo) -> str:
    """Dollars per million tokens of input and output: 2/10; `free`; empty where a price is unknown."""
    if model.price_in is None or model.price_out is None:
        return ""
    return f"{model.price_in:g}/{model.price_out:g}" if model.price_in or model.price_out else "free"


def columns(model: ModelInfo) -> str:
    """Window, price and abilities in columns; an unknown one stays empty."""
    window = tokens(model.context_window) if model.context_window else ""
    price = price_text(model)
    reasons = bool(model.efforts) if model.reasoning is None else model.reasoning
    able = (("vision", model.vision), ("reasoning", reasons), ("tools", model.tools))
    words = " ".join(word if yes else " " * len(word) for word, yes in able)
    return f"{window:>6}  {f'${price}' if price[:1].isdigit() else price:<12} {words}".rstrip()
