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
from phoenix_tui.styles.themes import THEMES
from phoenix_tui.text.labels import short_path
from tools.clean import clean_line
from tools.files.own_files import read_text

_PALETTES: Final = {
    "catppuccin-mocha": (True, "1e1e2e 181825 313244 cdd6f4 cba6f7 89b4fa f9e2af a6e3a1 f38ba8 9399b2 45475a 45475a"),
    "catppuccin-latte": (False, "eff1f5 e6e9ef dce0e8 4c4f69 8635ef 0c5af4 915d13 2f7620 ce0f38 65677c ccd0da bcc0cc"),
    "gruvbox-dark": (True, "282828 32302f 3c3836 ebdbb2 c387a2 83a598 fabd2f 8ec07c fc6958 a89984 504945 504945"),
    "gruvbox-light": (False, "fbf1c7 f2e5bc ebdbb2 3c3836 8f3f71 076678 8d5c10 3c7050 9d0006 70645a d5c4a1 d5c4a1"),
    "nord": (True, "2e3440 343b49 434c5e d8dee9 bd9bb7 8ba8c6 ebcb8b a3be8c d4949a 9ba6bb 4c566a 4c566a"),
    "dracula": (True, "282a36 21222c 343746 f8f8f2 bd93f9 8be9fd ffb86c 50fa7b ff5757 8591b8 44475a 44475a"),
    "tokyo-night": (True, "1a1b26 16161e 292e42 c0caf5 bb9af7 7aa2f7 e0af68 9ece6a f7768e 7c82a8 33467c 3b4261"),
    "solarized-dark": (True, "002b36 04303c 073642 96a4a4 999dd6 57a8e1 cb9a00 2fb3a9 ea8583 859698 1c4a57 2f5661"),
    "solarized-light": (False, "fdf6e3 eee8d5 e4ddc8 4c5f65 4b51b7 1a6192 745800 1b6761 b2211e 586b72 d9d2bd cfc8b3"),
    "rose-pine": (True, "191724 1f1d2e 26233a e0def4 c4a7e7 3f90b2 f6c177 95b1ac eb6f92 908caa 403d52 403d52"),
    "rose-pine-dawn": (False, "faf4ed fffaf3 f2e9e1 575279 7e659b 286983 9e6210 59746f ac536c 706c8a dfdad9 cecacd"),
    "monokai": (True, "272822 1e1f1c 3e3d32 f8f8f2 ae81ff 66d9ef fd971f a6e22e fa4c8b 918f81 49483e 49483e"),
}
"""Dark or not, and the colours in the order in which `_theme` takes them apart."""


def _theme(name: str, dark: bool, text: str) -> Theme:
    background, surface, panel, text_colour, you, work, needs_you, good, bad, quiet, selection, bar = (
        f"#{colour}" for colour in text.split()
    )
    return Theme(
        name=name,
        dark=dark,
        background=background,
        surface=surface,
        panel=panel,
        foreground=text_colour,
        accent=you,
        primary=work,
        secondary=work,
        warning=needs_you,
        success=good,
        error=bad,
        variables={
            "text-muted": quiet,
            "screen-selection-background": selection,
            "scrollbar": bar,
            "scrollbar-hover": bar,
            "scrollbar-active": you,
            "scrollbar-background": background,
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
        },
    )


KNOWN_THEMES: Final = tuple(_theme(name, dark, text) for name, (dark, text) in _PALETTES.items())
"""All of them, by name."""


def find_known_theme(name: str) -> Theme | None:
    """The well-known theme of this name."""
    return next((theme for theme in KNOWN_THEMES if theme.name == name), None)


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
    except OSError as error:
        raise ThemeError(f"{short_path(path)}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ThemeError(f"{short_path(path)}: is not valid TOML: {error}.") from error
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
    return _derive(path.stem, BASES[base], {name: str(value) for name, value in table.items()})


def find_theme(folder: Path | None, name: str) -> Theme | None:
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


def _derive(name: str, base: Theme, colours: dict[str, str]) -> Theme:
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
