"""The user's own themes: `themes/NAME.toml`, colours by meaning over one of Phoenix's themes.

base = "phoenix-light"
background = "#fdf6e3"
needs_you = "#b58900"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from textual.theme import Theme

from phoenix_tui.config.load import line_of
from phoenix_tui.styles.known_themes import KNOWN_THEMES
from phoenix_tui.styles.themes import THEMES
from phoenix_tui.text.shown_paths import short_path
from tools.clean import clean_line
from tools.files.own_files import read_text

BASES: Final = {theme.name: theme for theme in (*THEMES, *KNOWN_THEMES)}
RESERVED: Final = frozenset(theme.name for theme in THEMES)
"""Names that no file can take; one named like a well-known theme replaces it."""
MEANINGS: Final = {"you": "accent", "work": "primary", "needs_you": "warning", "good": "success", "bad": "error"}
"""The five hues of docs/decisions/looks.md under their names in a theme file, and Textual's names for them."""
SURFACES: Final = ("background", "surface", "panel", "foreground")
VARIABLES: Final = {"quiet": "text-muted", "selection": "screen-selection-background", "scrollbar": "scrollbar"}
COLOURS: Final = (*SURFACES, *MEANINGS, *VARIABLES)
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3}")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
LONGEST_FILE: Final = 65_536


class ThemeError(ValueError):
    """Raised for an invalid theme; the message names file, line and the allowed values."""


def read_theme(path: Path) -> Theme:
    """The theme of one file, named like the file.

    Raises:
        ThemeError: it cannot be read or holds something that is no theme.
    """
    try:
        text = read_text(path, LONGEST_FILE)
        table = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise ThemeError(f"{short_path(path)}: {_reason(error)}") from error
    if _NAME.fullmatch(path.stem) is None or path.stem in RESERVED:
        names = ", ".join(theme.name for theme in THEMES)
        raise ThemeError(
            f"{short_path(path)}: a theme's name may have letters, digits, - and _, and cannot be any of {names}."
        )
    base = table.pop("base", THEMES[0].name)
    if base not in BASES:
        raise ThemeError(f"{_where(path, text, 'base')}: 'base' must be one of {', '.join(BASES)}, not {base!r}.")
    for name, value in table.items():
        if name not in COLOURS:
            raise ThemeError(
                f"{_where(path, text, name)}: '{clean_line(name)}' is not a theme colour. "
                f"Valid keys are base, {', '.join(COLOURS)}."
            )
        if not isinstance(value, str) or _COLOUR.fullmatch(value) is None:
            raise ThemeError(
                f"{_where(path, text, name)}: '{name}' must be a colour such as \"#6cb2ff\", not {value!r}."
            )
    return _made(path.stem, BASES[base], {name: str(value) for name, value in table.items()})


def theme_named(folder: Path | None, name: str) -> Theme | None:
    """The user's theme of this name, None for a missing or broken one; errors are shown later."""
    if folder is None or _NAME.fullmatch(name) is None:
        return None
    path = folder / f"{name}.toml"
    try:
        return read_theme(path) if path.exists() else None
    except ThemeError:
        return None


def theme_files(folder: Path | None) -> Iterator[Path]:
    """The theme files of a folder, by name; none where there is no folder."""
    if folder is None:
        return
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - a Path of every name would cost more, once a second
    except OSError:
        return
    yield from (folder / name for name in names if name.endswith(".toml") and not name.startswith("."))


def _made(name: str, base: Theme, colours: dict[str, str]) -> Theme:
    named = {MEANINGS.get(key, key): value for key, value in colours.items() if key not in VARIABLES}
    inner = {VARIABLES[key]: value for key, value in colours.items() if key in VARIABLES}
    grounds = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
    if "background" in colours:
        inner |= dict.fromkeys(grounds, colours["background"])
    if "you" in colours:
        inner["scrollbar-active"] = colours["you"]
    if "scrollbar" in colours:
        inner["scrollbar-hover"] = colours["scrollbar"]
    if "primary" in named:
        named["secondary"] = named["primary"]
    changes: dict[str, Any] = {**named, "name": name, "variables": {**base.variables, **inner}}
    return replace(base, **changes)


def _where(path: Path, text: str, key: str) -> str:
    return f"{short_path(path)}:{line_of(text, key)}"


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}."
    return f"is not valid TOML: {error}."
