"""Keeps single settings for whoever changes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from phoenix_tui.config.write import set_value


def default_setter(config_file: Path) -> Callable[[str], None]:
    """What makes a model reference the default of new conversations."""
    return partial(set_value, config_file, "model")
