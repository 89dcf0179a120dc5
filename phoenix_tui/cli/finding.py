"""Finds the one conversation that a word on the command line names."""

from __future__ import annotations

from typing import Final

from engine.ports import Store
from engine.records import ConversationQuery, ConversationSummary
from phoenix_tui.cli.exits import CommandError
from tools.clean import clean_line

SHORT_ID: Final = 8
"""Characters of an id in tables: a prefix that `--resume` takes."""
MOST_SHOWN: Final = 10
"""Candidates that are listed."""


async def find_one(store: Store, reference: str, *, deleted: bool = False, partly: bool = False) -> ConversationSummary:
    """The one conversation that `reference` names; with `deleted` a deleted one where no other does.

    With `partly` the beginning of a title will do, else a part of it, whatever the case: for what changes nothing.

    Raises:
        CommandError: there is none, or more than one; then they are listed.
    """
    found = await store.find(reference)
    if not found and partly and reference.strip():
        found = await _by_part(store, reference.strip())
    if not found and deleted:
        trash = await store.conversations(ConversationQuery(deleted=True, limit=10_000))
        found = [each for each in trash if each.id.startswith(reference) or each.title == reference]
    if not found:
        raise CommandError(f"No conversation matches '{reference}'; `phoenix conversations list` shows them.")
    if len(found) > 1:
        raise CommandError(
            f"'{reference}' matches {len(found)} conversations; give more of the title, or an id:",
            below=[f"{one.id[:SHORT_ID]}  {clean_line(one.title) or 'Untitled'}" for one in found[:MOST_SHOWN]],
        )
    return found[0]


async def _by_part(store: Store, part: str) -> list[ConversationSummary]:
    found = list(await store.conversations(ConversationQuery(title_contains=part, limit=1_000)))
    beginning = [one for one in found if one.title.casefold().startswith(part.casefold())]
    return beginning or found
