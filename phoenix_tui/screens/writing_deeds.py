"""What is asked for around the composer, done with the services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.executor.requests import Refused
from engine.records import QueuedMessage
from phoenix_tui.screens.edit_sheet import EditSheet

if TYPE_CHECKING:
    from phoenix_tui.commands.bench import Bench
    from phoenix_tui.screens.stage import Stage


class WritingDeeds:
    """Queue, pasted texts and images of the next message."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def queued(self, bench: Bench, action: str, message: QueuedMessage, by: int) -> None:
        """Edit, move, remove or send a queued message."""
        conversation = bench.desk.conversation
        if conversation is None:
            return
        queue = conversation.queue
        match action:
            case "edit":
                await self._edit_queued(bench, message)
            case "move":
                place = [one.id for one in queue.waiting].index(message.id)
                await bench.desk.attempt(lambda one: one.queue.move(message.id, place + by))
            case "remove":
                receipt = await queue.remove(message.id)
                if isinstance(receipt, Refused):
                    bench.tell(receipt.reason, bad=True)
                else:
                    _remember(bench, message.text)
                    bench.tell("Removed from the queue; Up brings it back.")
            case _:
                await bench.desk.attempt(lambda one: one.queue.send_now(message.id, bench.desk.launch.caps))

    async def _edit_queued(self, bench: Bench, message: QueuedMessage) -> None:
        text: str | None = await self._stage.app.push_screen_wait(EditSheet("Queued message", message.text))
        if text is not None and text != message.text:
            await bench.desk.attempt(lambda one: one.queue.edit(message.id, text))


def _remember(bench: Bench, text: str) -> None:
    history = bench.dock.composer.history_of_prompts
    try:
        if history is not None:
            history.add(text)
    except OSError as error:
        bench.tell(f"The prompt history cannot be written: {error.strerror}.", bad=True)
