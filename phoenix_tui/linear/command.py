"""What a slash command of the linear front end is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.api.conversation import ConversationApi
from engine.executor.requests import Refused
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

NOTHING_SENT = "Nothing was sent yet."


class LinearCommand(Struct, frozen=True):
    """One command: what it does in words, and the work."""

    meaning: str
    run: Callable[[LinearFront, str], Awaitable[None]]


def open_conversation(front: LinearFront) -> ConversationApi | None:
    """The conversation in front; where there is none, that is said."""
    if front.talk.conversation is None:
        front.say(NOTHING_SENT)
    return front.talk.conversation


def tell_outcome(front: LinearFront, outcome: object, done: str) -> None:
    """What came of a request: why not, or these words."""
    front.say(f"Refused: {clean_line(outcome.reason)}" if isinstance(outcome, Refused) else done)
