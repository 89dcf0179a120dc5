"""The view of a whole conversation made at once: what the growing view is held against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.context.assemble import build_messages, build_partial_reply, finish, settle
from engine.machine.messages import Block
from engine.ports import ModelMessage
from engine.records import StoredMessage


def build_view(
    messages: Iterable[StoredMessage], partial: Sequence[Block] = (), transient: str = "", summary: str = ""
) -> tuple[ModelMessage, ...]:
    """The request's messages: alternating, starting with the user, every tool use answered at once.

    `summary` stands for what came before `messages`; `partial` is the unfinished reply being continued; `transient`
    goes to the end of the last user message and is never stored (SPEC UNI-33).
    """
    return finish(settle([*build_messages(messages), *build_partial_reply(partial)], summary), transient)
