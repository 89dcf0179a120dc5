"""The user's filter of a provider's list: `models = ["z-ai/*", "!*:free"]` in `[providers.NAME]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Final, cast

from phoenix_tui.config.settings import ConfigError

MOST: Final = 100
"""Patterns of one list."""
LONGEST: Final = 200
"""Characters of a pattern."""
NOT: Final = "!"
"""Beginning of a pattern that leaves models out."""


def check_patterns(value: object, where: str) -> tuple[str, ...]:
    """The patterns as they are kept.

    Raises:
        ConfigError: they are no list of short texts; `where` names file and line.
    """
    listed = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(one for one in listed if isinstance(one, str) and 0 < len(one.removeprefix(NOT)) <= LONGEST)
    if len(texts) != len(listed) or len(texts) > MOST:
        raise ConfigError(
            f"{where}: 'models' must be a list of at most {MOST} patterns, such as "
            'models = ["z-ai/*", "!*:free"]; * stands for any text, ! leaves models out.'
        )
    return texts


def admits(patterns: Sequence[str], model: str) -> bool:
    """True where one of the patterns has the model, or all of them begin with `!`, and none with `!` has it."""
    wanted = [one for one in patterns if not one.startswith(NOT)]
    unwanted = [one.removeprefix(NOT) for one in patterns if one.startswith(NOT)]
    name = model.lower()
    return (not wanted or any(_has(one, name) for one in wanted)) and not any(_has(one, name) for one in unwanted)


def _has(pattern: str, name: str) -> bool:
    return _compiled(pattern).match(name) is not None


@lru_cache(maxsize=4 * MOST)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.lower()))
