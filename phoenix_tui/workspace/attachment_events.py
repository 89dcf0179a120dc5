"""What stands around the text of the next message: pastes and images in it, the queue and a question above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.image_chips import ImageChips
from phoenix_tui.widgets.pasting import remark_on
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.queue_panel import QueuePanel

if TYPE_CHECKING:
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.workspace.startup import Startup
    from phoenix_tui.workspace.toasts import Toasts
    from phoenix_tui.workspace.widgets import WorkspaceWidgets

AttachmentEvent: TypeAlias = (
    Composer.ImagesDropped
    | Composer.KeyPasted
    | Composer.PasteOpened
    | Composer.PasteTaken
    | ImageChips.Opened
    | QueuePanel.Left
    | QueuePanel.Wanted
    | QuestionPanel.Answered
)


class AttachmentEvents:
    """Hands it on to the services as soon as they are there."""

    def __init__(self, screen: PhoenixScreen[None], parts: WorkspaceWidgets, ready: Startup, words: Toasts) -> None:
        self._screen = screen
        self._parts = parts
        self._ready = ready
        self._words = words

    def take(self, asked: AttachmentEvent) -> None:
        """Do what is asked for."""
        match asked:
            case Composer.ImagesDropped():
                self._ready.then(lambda ctx: ctx.sending.attach(asked.paths))
            case Composer.KeyPasted():
                self._key_pasted(asked.key)
            case Composer.PasteOpened():
                self._ready.then(lambda ctx: ctx.actions.writing.paste(ctx, asked.mark))
            case Composer.PasteTaken():
                self._remark_on(asked)
            case ImageChips.Opened():
                self._ready.command(f"images {asked.number}")
            case QueuePanel.Left():
                self._leave_queue(older=asked.older)
            case QueuePanel.Wanted():
                self._ready.then(lambda ctx: ctx.actions.writing.queued(ctx, asked.action, asked.message, asked.by))
            case QuestionPanel.Answered():
                self._ready.then(lambda ctx: ctx.actions.answer(ctx, asked.call_id, asked.answer))
            case _:
                assert_never(asked)

    def _key_pasted(self, secret: str) -> None:
        """Where the welcome asks for a key it is kept; elsewhere it is text like any other."""
        welcome = self._parts.welcome.welcome
        if welcome is not None and welcome.needs_model:
            self._ready.then(lambda ctx: ctx.actions.keep_key(ctx, secret))
        else:
            self._parts.dock.composer.insert(secret)

    def _remark_on(self, paste: Composer.PasteTaken) -> None:
        """Say what of a paste is gone, or more than the model reads."""
        conversation = self._ready.ctx.active.conversation if self._ready.ctx is not None else None
        window = conversation.record.context_window if conversation is not None else 0
        if words := remark_on(paste.taken, paste.length, window):
            self._words.tell(words, bad=paste.taken.is_binary)

    def _leave_queue(self, *, older: bool) -> None:
        """Back to the composer, or past the queue to older prompts."""
        composer = self._parts.dock.composer
        self._screen.set_focus(composer)
        if older:
            composer.keys.walk(-1)
