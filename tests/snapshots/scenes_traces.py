"""The runs of a conversation, the tree of one, its filter, and one span to read."""

from __future__ import annotations

from typing import Final

from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.modals.statistics_sheet import TraceSheet
from phoenix_tui.modals.text_sheet import TextSheet
from tests.snapshots.booth import SMALL, Booth
from tests.support.fake_traces import some_traces


async def trace(place: Booth) -> None:
    """The list, the tree at every size, a filter, input and output of a call."""
    async with place.opened() as shell:
        conversation = await shell.say("why does make fail?")
        conversation.answer_with("There is no such rule.")
        place.engine.traces = some_traces(conversation.id)
        await shell.type("/trace")
        await shell.pilot.press("space", "enter")
        await shell.until(lambda: isinstance(shell.top, PickerSheet))
        await place.take(shell, "runs", (SMALL,))
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TraceSheet) and "spawn_agents" in shell.text)
        await place.take(shell, "tree")
        await shell.pilot.press("slash", *"error")
        await shell.until(lambda: "1 / 1" in shell.text)
        await place.take(shell, "filter", (SMALL,))
        await shell.pilot.press("enter", "enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await place.take(shell, "span", (SMALL,))


SCENES: Final = {"trace": trace}
