"""Words that wait for a database in use elsewhere: after two seconds they are shown, and kept where Up finds them.

A slow machine is no busy database: only the wait itself counts, not the time since Enter.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from engine.ports.database_waits import DatabaseWaits
from phoenix_tui.text.labels import Tone
from phoenix_tui.text.server_text import on_this_loop
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.notices import DockNotice
from tools.clean import clean_line
from tools.wording import one_line

PATIENCE: Final = 2.0
"""Seconds of waiting for the database before one wonders where a message is."""
SHOWN: Final = 60
"""Characters of it that are shown."""
LOOKED_AT: Final = 1_000
"""Characters that are cleaned for it: a paste may have millions."""


@contextmanager
def waiting_words(dock: Dock, text: str, waits: DatabaseWaits) -> Generator[None]:
    """Around the sending of `text`."""
    notice = dock.notice
    before = notice.shown
    words: DockNotice | None = None

    def look(seconds: float) -> None:
        nonlocal words
        if seconds < PATIENCE or words is not None:
            return
        notice.shown = words = DockNotice(
            f"Not saved yet, the database is busy: “{one_line(clean_line(text[:LOOKED_AT]), SHOWN)}”",
            Tone.NEEDS_YOU,
            "Retrying for half a minute; then the text returns to the composer.",
        )
        if dock.composer.draft.prompts is not None:
            with suppress(OSError):  # the disk is already the trouble
                dock.composer.draft.prompts.add(text)

    leave = waits.listen(on_this_loop(look))
    try:
        yield
    finally:
        leave()
        if words is not None and notice.shown is words:
            notice.shown = before
