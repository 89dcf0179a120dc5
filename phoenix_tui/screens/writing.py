"""What the composer and its neighbours ask for beyond sending: the queue, pasted texts, images."""

from __future__ import annotations

from textual import on

from phoenix_tui.commands.catalogue import is_command
from phoenix_tui.screens.workspace_keys import WorkspaceKeys
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.image_chips import ImageChips
from phoenix_tui.widgets.pasting import remark_on
from phoenix_tui.widgets.queue_panel import QueuePanel


class Writing(WorkspaceKeys):
    """Between a draft and a message."""

    @on(Composer.QueueWanted)
    def queue_draft(self, event: Composer.QueueWanted) -> None:
        """Tab while the agent works: the draft waits; a command needs no waiting."""
        text = event.text
        if is_command(text):
            self.post_message(Composer.Submitted(text))
        else:
            self.when_ready(lambda bench: bench.sending.send(text, queue=True))

    @on(Composer.PasteOpened)
    def open_paste(self, event: Composer.PasteOpened) -> None:
        """View and change a long paste."""
        self.when_ready(lambda bench: bench.deeds.writing.paste(bench, event.mark))

    @on(Composer.PasteTaken)
    def remark_on_paste(self, event: Composer.PasteTaken) -> None:
        """Say what of a paste is gone, or more than the model reads."""
        conversation = self.bench.desk.conversation if self.bench is not None else None
        window = conversation.record.context_window if conversation is not None else 0
        if words := remark_on(event.taken, event.length, window):
            self.tell(words, bad=event.taken.is_binary)

    @on(ImageChips.Opened)
    def open_image(self, event: ImageChips.Opened) -> None:
        """Look at an image of the next message."""
        self.when_ready(lambda bench: bench.deeds.command(bench, f"images {event.number}"))

    @on(QueuePanel.Left)
    def leave_queue(self, event: QueuePanel.Left) -> None:
        """Back to the composer, or past the queue to older prompts."""
        self.set_focus(self.parts.dock.composer)
        if event.older:
            self.parts.dock.composer.walk_history(-1)

    @on(QueuePanel.Wanted)
    def change_queue(self, event: QueuePanel.Wanted) -> None:
        """Edit, move, remove or send a queued message."""
        self.when_ready(lambda bench: bench.deeds.writing.queued(bench, event.action, event.message, event.by))
