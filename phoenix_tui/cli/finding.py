"""Finds the one conversation that a word on the command line names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.cli.exits import CommandError
from tools.clean import clean_line
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.store.store import Store


SHORT_ID: Final = 8
"""Characters of an id in tables: a prefix that `--resume` takes."""
MOST_SHOWN: Final = 10
"""Candidates that are listed."""
TITLE: Final = 60
"""Characters of a candidate's title."""


class UnknownConversationError(CommandError):
    """Raised where no conversation matches."""


async def find_one(store: Store, reference: str, *, deleted: bool = False, partly: bool = False) -> ConversationSummary:
    """Find the one conversation that `reference` names; with `deleted` a deleted one where no other matches.

    With `partly` the beginning of a title or slug will do, else a part of the title: for what changes nothing.

    Raises:
        CommandError: there is none, or more than one; then they are listed.
    """
    found = await store.find(reference, partly=partly)
    if not found and deleted:
        trash = await store.conversations(ConversationQuery(deleted=True, limit=10_000))
        found = [each for each in trash if each.id.startswith(reference) or reference in {each.title, each.slug}]
    if not found:
        raise UnknownConversationError(
            f"No conversation matches '{reference}'; `phoenix conversations list` shows them."
        )
    if len(found) > 1:
        raise CommandError(
            f"'{reference}' matches {len(found)} conversations; give more of the title, or one of these:",
            below=[  # without columns, since runs of blanks are spelled out in lines with a title
                f"{one.id[:SHORT_ID]}  {one.slug}  {one_line(clean_line(one.title), TITLE) or 'Untitled'}"
                for one in found[:MOST_SHOWN]
            ],
        )
    return found[0]


async def find_conversation_id(store: Store, reference: str) -> str:
    """The id of the one conversation that `reference` names, also of a sub-agent by its whole id.

    Raises:
        CommandError: there is none, or more than one.
    """
    exact = await store.conversation(reference)
    return reference if exact is not None else (await find_one(store, reference, deleted=True, partly=True)).id
