"""Words that were sent and are not stored yet: after a second they are shown as such, and kept where Up finds them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from phoenix_tui.text.labels import Tone
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import DockNotice
from tools.clean import clean_line
from tools.wording import one_line

PATIENCE: Final = 1.0
"""Seconds a message may take to be stored before one wonders where it is."""
SHOWN: Final = 60
"""Characters of it that are shown."""
LOOKED_AT: Final = 1_000
"""Characters that are cleaned for it: a paste may have millions."""


@contextmanager
def waiting_words(dock: Dock, text: str) -> Generator[None]:
    """Around the sending of `text`."""
    notice = dock.notice
    before = notice.shown
    words: DockNotice | None = None

    def show() -> None:
        nonlocal words
        notice.shown = words = DockNotice(
            f"Not saved yet, the database is busy: “{one_line(clean_line(text[:LOOKED_AT]), SHOWN)}”",
            Tone.NEEDS_YOU,
            "Retrying for half a minute; then the text returns to the composer.",
        )
        if dock.composer.draft.prompts is not None:
            with suppress(OSError):  # the disk is already the trouble
                dock.composer.draft.prompts.add(text)

    timer = asyncio.get_running_loop().call_later(PATIENCE, show)
    try:
        yield
    finally:
        timer.cancel()
        if words is not None and notice.shown is words:
            notice.shown = before
