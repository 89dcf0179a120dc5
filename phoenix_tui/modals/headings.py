"""Heading of a sheet: its name, and as many of its keys as there is room for."""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len
from textual.content import Content

from phoenix_tui.text.labels import Tone

BETWEEN: Final = " · "
"""Separator of two keys of a hint, or of two facts."""
LEAST_FACT: Final = 12
"""Cells of a fact that tell something; fewer are left out."""


def heading(name: str, keys: str, width: int, place: str = "") -> Content:
    """Name, place in the list and keys; the last keys go where they do not fit, none is cut."""
    facts = f"   {place}" if place else ""
    room = width - Content(f"{name}{facts}").cell_length - 3
    parts = keys.split(BETWEEN) if keys else []
    while parts and Content(BETWEEN.join(parts)).cell_length > room:
        parts.pop()
    shown = f"{facts}   {BETWEEN.join(parts)}" if parts else facts
    return Content.assemble((name, "bold"), (shown, Tone.QUIET.value)).truncate(max(width, 1), ellipsis=True)


def whole_facts(text: str, room: int) -> str:
    """Facts without the last one where hardly any of it could be seen."""
    if cell_len(text) <= room:
        return text
    kept = text[:room].rfind(BETWEEN)
    return text[:kept] if kept > 0 and room - cell_len(text[:kept]) < LEAST_FACT + len(BETWEEN) else text
