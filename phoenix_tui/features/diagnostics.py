"""Files for debugging: listed, and one read from its end."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from engine.executor.requests import EngineError
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.text.statistics_text import size_in_words
from tools.clean import clean, clean_line

UNAVAILABLE: Final = "Nothing is recorded for debugging here."
NONE_YET: Final = "Nothing was recorded yet; the setting diagnostics says what is."
HANG: Final = 2


async def debug(front: FrontEnd, name: str) -> None:
    """Show a file of the logs, or ask for one.

    Raises:
        EngineError: there are none, there is no such file, or it cannot be read.
    """
    diagnostics = front.services.diagnostics
    if diagnostics is None:
        raise EngineError(UNAVAILABLE)
    try:
        found = await asyncio.to_thread(diagnostics.files)
        if not found:
            front.tell(NONE_YET)
            return
        options = [
            Option(one.name, clean_line(one.name), (size_in_words(one.size), _when(one.changed))) for one in found
        ]
        wanted = name.strip() or await front.pick("Files for debugging, newest first", options)
        if wanted:
            text = await asyncio.to_thread(diagnostics.end_of, wanted)
            front.read(clean_line(wanted), clean(text) or "It is empty.", hang=HANG)
    except FileNotFoundError as error:
        raise EngineError(f"There is no file {clean_line(name)} here; /debug lists all.") from error
    except OSError as error:
        raise EngineError(f"The file cannot be read: {error.strerror}.") from error


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
