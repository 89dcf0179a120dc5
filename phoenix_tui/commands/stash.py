"""/stash: puts the draft aside and brings it back."""

from __future__ import annotations

import time
from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.features.draft_stash import NOT_KEPT, NOTHING, DraftStash, StashedDraft
from phoenix_tui.keys.active_keys import hint
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.text.labels import ago
from tools.wording import counted

DRAFT: Final = "draft"
"""Argument of the key: the draft in the composer is meant."""
TAKEN: Final = "Another Phoenix has taken this draft."


async def stash(ctx: CommandContext, text: str) -> None:
    """Put a text aside; without one list the drafts; by the key put the draft aside, or bring the newest back."""
    if not ctx.active.services.kept:
        ctx.tell(NOT_KEPT, bad=True)
        return
    kept = DraftStash(ctx.active.launch.state_folder, ctx.active.launch.cwd)
    try:
        if text == DRAFT:
            _toggle(ctx, kept)
        elif text:
            _told(ctx, kept, kept.put(text))
        else:
            await _choose(ctx, kept)
    except OSError as error:
        ctx.tell(f"The draft could not be put aside or taken: {error.strerror or error}.", bad=True)


def _toggle(ctx: CommandContext, kept: DraftStash) -> None:
    composer = ctx.dock.composer
    if composer.content.strip():
        _put_aside(ctx, kept)
    elif found := kept.all():
        _bring_back(ctx, kept, found[0])
    else:
        ctx.tell(NOTHING)


async def _choose(ctx: CommandContext, kept: DraftStash) -> None:
    found = {one.name: one for one in kept.all()}
    if not found:
        ctx.tell(NOTHING)
        return
    rows = [PickerRow(one.name, one.words, ago(time.time() - one.at), one.text) for one in found.values()]
    chosen = await ctx.sheets.show(PickerSheet("Drafts put aside", rows))
    if chosen and (draft := found.get(chosen)) is not None:
        if ctx.dock.composer.content.strip() and not _put_aside(ctx, kept):
            return
        _bring_back(ctx, kept, draft)


def _put_aside(ctx: CommandContext, kept: DraftStash) -> bool:
    composer = ctx.dock.composer
    if refused := kept.put(composer.content, tuple(composer.folds)):
        ctx.tell(refused, bad=True)
        return False
    composer.keys.take()
    _told(ctx, kept, "")
    return True


def _bring_back(ctx: CommandContext, kept: DraftStash, draft: StashedDraft) -> None:
    if not kept.take(draft):
        ctx.tell(TAKEN)
        return
    ctx.dock.composer.load(draft.text, draft.folds)
    ctx.dock.screen.set_focus(ctx.dock.composer)


def _told(ctx: CommandContext, kept: DraftStash, refused: str) -> None:
    count = counted(len(kept.all()), "draft")
    back = hint(("stash", "on an empty line brings it back"), "/stash lists them")
    ctx.tell(refused or f"Put aside ({count}). {back}.", bad=bool(refused))


RUNS: Final[dict[str, CommandFunction]] = {"stash": stash}
