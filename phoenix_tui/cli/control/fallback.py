"""`--fallback-model`: answers where the model of the conversation has too much to do, for one turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.conversation import Conversation
from engine.executor.requests import Refused, RunCaps
from engine.machine.states import Errored
from engine.ports import ConversationChanges, ProviderError
from phoenix_tui.cli.control.model_finder import ModelFinder
from phoenix_tui.config.claude_words import known_model

BUSY: Final = frozenset({"overloaded", "rate_limit", "server"})
"""Kinds of failures after which another model is asked."""
TOLD: Final = "phoenix: {model} failed ({kind}); {other} answers this turn."


class Fallback(Struct, eq=False):
    """The other model of one conversation."""

    reference: str
    """Value of the flag; empty: there is none."""
    find_model: ModelFinder
    say: Callable[[str], None]
    """Writes a line for the user."""
    _before: str = ""
    """Model to go back to; empty while the conversation has its own."""

    async def tries(self, conversation: Conversation, failed: Errored | None, caps: RunCaps) -> bool:
        """Run a failed turn again with the other model; False where that is no way out."""
        if not self.reference or self._before or failed is None or failed.kind not in BUSY:
            return False
        model = conversation.record.model
        try:
            other = await self.find_model(known_model(self.reference))
        except ProviderError as error:
            self.say(f"phoenix: --fallback-model cannot be used: {error.message}")
            return False
        if other == model:
            return False
        await conversation.change(ConversationChanges(model=other))
        self._before = model
        self.say(TOLD.format(model=model, kind=failed.kind, other=other))
        return not isinstance(await conversation.retry(caps), Refused)

    async def leave(self, conversation: Conversation) -> None:
        """Go back to the model from before, unless the host has chosen one since."""
        if self._before and conversation.record.model == await self.find_model(known_model(self.reference)):
            await conversation.change(ConversationChanges(model=self._before))
        self._before = ""
