"""Context of a slash command of the linear front end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from engine.api.conversation import ConversationApi
from phoenix_tui.features.memory import NoteChanges, notes_of
from phoenix_tui.features.prompt_history import PromptHistory
from phoenix_tui.features.rule_changes import RuleChanges
from phoenix_tui.lifecycle.launch import Launch, Services
from phoenix_tui.linear.asker import LineAsker
from phoenix_tui.linear.conversation import LinearConversation
from phoenix_tui.linear.side_questions import LinearSideQuestions
from phoenix_tui.linear.terminal import LineTerminal

NOTHING_SENT: Final = "Nothing was sent yet."
LAST_MESSAGES: Final = 2
"""Messages read out when a conversation is opened."""


class LinearContext(LineAsker):
    """The open conversation, the lines on the terminal, and the session's state beside both: a `FrontEnd`."""

    def __init__(self, services: Services, launch: Launch, terminal: LineTerminal) -> None:
        self.active = LinearConversation(services, launch, terminal)
        super().__init__(terminal, self.active)
        self.side_questions = LinearSideQuestions(self.active)
        self.rule_changes = RuleChanges(services.engine.rules, "/rules undo restores it")
        self._note_changes: NoteChanges | None = None
        self.history = PromptHistory(launch.state_folder, launch.cwd)

    @property
    def note_changes(self) -> NoteChanges:
        """Deletions of notes in this session. Raises EngineError where there are no notes."""
        if self._note_changes is None:
            self._note_changes = NoteChanges(notes_of(self), "/memory undo restores it")
        return self._note_changes

    @property
    def opened(self) -> ConversationApi | None:
        """The open conversation; None after a notice."""
        if self.conversation is None:
            self.say(NOTHING_SENT)
        return self.conversation

    async def open(self, conversation_id: str) -> None:
        """Switch to another conversation; its draft becomes the typed line. Raises EngineError."""
        draft = await self.active.open(await self.services.engine.open(conversation_id), LAST_MESSAGES)
        if draft:
            self.active.invite()
            self.terminal.put(draft)

    async def begin_anew(self) -> None:
        """Put a new conversation in the place of an empty one; its images stay."""
        images = list(self.active.images)
        self.active.images = []
        await self.active.put_away("")
        self.active.images = images

    def stop(self) -> bool:
        """Stop the run; False where there was none."""
        return self.active.stop()

    def leave(self, code: int) -> None:
        """End the front end, and drop pending side questions."""
        self.side_questions.drop()
        super().leave(code)


LineCommand: TypeAlias = Callable[[LinearContext, str], Awaitable[None]]
