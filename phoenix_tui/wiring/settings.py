"""Settings as others need them, and kept for whoever changes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.executor.requests import RunCaps
from phoenix_tui.config.settings import Settings
from phoenix_tui.config.write import set_value


def caps_of(settings: Settings) -> RunCaps:
    """The limits of every run."""
    return RunCaps(int(settings.number("max_turns")), settings.number("max_budget_usd"), settings.number("timeout"))


def default_setter(config_file: Path) -> Callable[[str], None]:
    """What makes a model reference the default of new conversations."""
    return partial(set_value, config_file, "model")
