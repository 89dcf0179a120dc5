"""The keys that count now, as hints name them. A process has one keyboard, so it has one of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.cells import cell_len

from phoenix_tui.keys.keymap import KEYS_BY_ID, UNBOUND, key_names

GAP: Final = " · "
"""Separator of two hints."""
ARROWS: Final = {"Up": "↑", "Down": "↓", "Left": "←", "Right": "→"}
_own: dict[str, str] = {}
"""The user's, by action."""


def take(keymap: Mapping[str, str]) -> bool:
    """Set the user's keys, every other action keeps its own; returns True for a change."""
    is_news = _own != keymap
    _own.clear()
    _own.update(keymap)
    return is_news


def own() -> Mapping[str, str]:
    """The keys that the user gave, by action."""
    return dict(_own)


def key(name: str) -> str:
    """The first key of an action, as people write it; empty where it has none."""
    first = _own.get(name, KEYS_BY_ID[name].keys).partition(",")[0].strip()
    if first == UNBOUND:
        return ""
    before, plus, last = key_names(first).rpartition("+")
    return f"{before}{plus}{ARROWS.get(last, last)}" if last else key_names(first)


def short_key(name: str) -> str:
    """The same where there is little room: ^L."""
    return key(name).replace("Ctrl+", "^")


def keys(*names: str) -> str:
    """The keys of actions that belong together: `↑ ↓`, or `Shift+↑↓` where they are held with the same one."""
    found = [one for name in names if (one := key(name))]
    held = {one.rpartition("+")[0] for one in found}
    if len(held) == 1 and (together := held.pop()) and len(found) > 1:
        return f"{together}+{''.join(one.rpartition('+')[2] for one in found)}"
    return " ".join(found)


def meanings(actions: Mapping[str, str]) -> dict[str, str]:
    """Texts of `actions` by the key of each action."""
    return {one: word for name, word in actions.items() for one in _own.get(name, KEYS_BY_ID[name].keys).split(",")}


def hint(*parts: tuple[str, str] | str) -> str:
    """Join hints: an action, or several with a blank between, and its meaning; plain text stays unchanged.

    Actions without a key are left out.
    """
    words = [one if isinstance(one, str) else _said(*one) for one in parts]
    return GAP.join(one for one in words if one)


def fitting(cells: int, *parts: tuple[str, str] | str) -> str:
    """Join as many hints as fit into `cells`; the last ones are left out."""
    shown = list(parts)
    while shown and cell_len(hint(*shown)) > cells:
        shown.pop()
    return hint(*shown)


def _said(names: str, does: str) -> str:
    shown = keys(*names.split())
    return f"{shown} {does}" if shown else ""
