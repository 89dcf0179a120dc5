"""Traces of the conversation in view."""

from __future__ import annotations

from engine.records.traces import Trace, TraceSummary
from phoenix_tui.features.front_end import FrontEnd

NO_RUNS = "There are no runs to trace yet."


async def traces_in_view(front: FrontEnd) -> list[TraceSummary]:
    """The runs of the conversation in view, newest first; without any, says so. Raises StorageError."""
    conversation = front.conversation
    found = list(await front.services.library.traces.of_conversation(conversation.id)) if conversation else []
    if not found:
        front.tell(NO_RUNS)
    return found


async def newest_trace(front: FrontEnd) -> Trace | None:
    """The tree of the newest run; None without one, which is said. Raises StorageError."""
    found = await traces_in_view(front)
    return await front.services.library.traces.of_run(found[0].run_id) if found else None
