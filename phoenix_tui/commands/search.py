"""Search in all messages, and find in the open conversation."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.records import SearchHit
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.modals.find_sheet import FindSheet
from phoenix_tui.modals.hit_sheet import HitSheet
from phoenix_tui.modals.search_sheet import SearchMemory, SearchSheet
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import TranscriptView


class SearchReturn(Struct, frozen=True):
    """Place to return to after a search."""

    conversation_id: str
    following: bool
    slot: int
    row: int


async def search(ctx: CommandContext, text: str) -> None:
    """Search all conversations; Enter goes to a hit, Esc from there to the results, Esc again to where one was."""
    memory, before, moved = SearchMemory(text), _stand(ctx), False
    while await ctx.sheets.show(SearchSheet(ctx.active.services.library, ctx.active.folder, memory)) is not None:
        moved = True
        if await _visit(ctx, memory):
            return
    if moved:
        await _return(ctx, before)


async def find(ctx: CommandContext, text: str) -> None:
    """Find in the open conversation; where there is none yet, search all."""
    conversation = ctx.active.conversation
    if conversation is None or not conversation.record.message_count:
        await search(ctx, text)
        return
    bar = FindSheet(ctx.active.services.library, conversation.id, ctx.active.parts.transcript, text)
    everywhere = await ctx.sheets.show(bar)
    if everywhere is not None:
        await search(ctx, f'"{everywhere}"' if " " in everywhere else everywhere)


async def _visit(ctx: CommandContext, memory: SearchMemory) -> bool:
    """Show the chosen hit and further ones that the user selects; True where the user stays."""
    hits = memory.found.hits
    while True:
        transcript = await _go(ctx, hits[memory.chosen], memory.query.words)
        answer = await ctx.sheets.show(HitSheet(transcript, memory.chosen, len(hits)))
        transcript.canvas.marks.look_for(())
        transcript.scroller.place_again()
        if answer is None or answer == "stay":
            return answer == "stay"
        step = 1 if answer == "next" else -1
        memory.chosen = (memory.chosen + step) % len(hits)


async def _go(ctx: CommandContext, hit: SearchHit, words: tuple[str, ...]) -> TranscriptView:
    open_one = ctx.active.conversation
    if open_one is None or open_one.id != hit.conversation_id:
        await ctx.active.open(hit.conversation_id)
    transcript = ctx.active.parts.transcript
    transcript.canvas.marks.look_for(words)
    transcript.canvas.marks.go(Goal(hit.seq, hit.call_id))
    transcript.scroller.place_again()
    return transcript


def _stand(ctx: CommandContext) -> SearchReturn:
    conversation, viewport = ctx.active.conversation, ctx.active.parts.transcript.canvas.viewport
    return SearchReturn(conversation.id if conversation is not None else "", viewport.following, *viewport.hold())


async def _return(ctx: CommandContext, stand: SearchReturn) -> None:
    conversation = ctx.active.conversation
    if not stand.conversation_id:
        await ctx.active.begin()
        return
    if conversation is None or conversation.id != stand.conversation_id:
        await ctx.active.open(stand.conversation_id)
    transcript = ctx.active.parts.transcript
    if not stand.following:
        transcript.canvas.viewport.stand_at(stand.slot, stand.row)
    transcript.canvas.viewport.following = stand.following
    transcript.scroller.place_again()


RUNS: Final[dict[str, CommandFunction]] = {"search": search, "find": find}
