"""Checks of this machine."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.front_end import FrontEnd

COLUMN: Final = 20
"""Cells before a finding of the doctor (`ServiceOpener._doctor`)."""


async def doctor(front: FrontEnd, _: str) -> None:
    """Show the working and broken parts of this machine."""
    front.read("Doctor", await front.services.system.doctor(), hang=COLUMN)
