"""Well-known palettes as themes; loaded behind the first frame, or for the one that is in force.

Their hues are those of the palettes. Lightness is moved where a colour had less than 4.5:1 on the background or the
surface, mostly in light themes (docs/decisions/looks.md).
"""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

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


def known_theme(name: str) -> Theme | None:
    """The well-known theme of this name."""
    return next((theme for theme in KNOWN_THEMES if theme.name == name), None)
