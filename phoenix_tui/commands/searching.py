"""Search everything that was said, and find in the open conversation."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.screens.search_sheet import SearchMemory, SearchSheet


async def search(bench: Bench, text: str) -> None:
    """Search all conversations; a chosen hit is opened."""
    memory = SearchMemory(text)
    hit = await bench.sheets.show(SearchSheet(bench.desk.services.library, bench.desk.folder, memory))
    if hit is not None:
        await bench.desk.open(hit.conversation_id)


RUNS: Final[dict[str, Run]] = {"search": search}
