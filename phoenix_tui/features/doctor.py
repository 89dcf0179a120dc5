"""Checks of this machine."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.front_end import FrontEnd

COLUMN: Final = 20
"""Cells before what the doctor found (`ServiceOpener._doctor`)."""


async def doctor(front: FrontEnd, _: str) -> None:
    """Show what works on this machine and what does not."""
    front.read("Doctor", await front.services.system.doctor(), hang=COLUMN)
