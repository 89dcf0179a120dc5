"""Leaves Textual's own command palette out of a start: Phoenix has another one, and never opens this."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final

PALETTE: Final = "textual.command"
NAMES: Final = (
    "CommandListItem",
    "CommandPalette",
    "DiscoveryHit",
    "Hit",
    "Hits",
    "Matcher",
    "Provider",
    "SimpleProvider",
)
"""Names that Textual 8.2.8 imports of it, for types and for providers that only the palette asks."""


def leave_out_palette() -> None:
    """Put empty classes in the place of the palette; nothing once Textual is loaded.

    With the palette come inputs, trees and selects, 13 modules that take 10 ms before the first frame.
    """
    if PALETTE in sys.modules:
        return
    module = ModuleType(PALETTE, "Empty classes in the place of a palette that is never opened.")
    vars(module).update((name, type(name, (), {"__module__": PALETTE})) for name in NAMES)
    sys.modules[PALETTE] = module
