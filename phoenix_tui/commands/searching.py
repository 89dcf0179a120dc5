"""Search everything that was said, and find in the open conversation."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.records import SearchHit
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.modals.find_bar import FindSheet
from phoenix_tui.modals.hit_bar import HitSheet
from phoenix_tui.modals.search import SearchMemory, SearchSheet
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import TranscriptView


class Stand(Struct, frozen=True):
    """Where one was before searching."""

    conversation_id: str
    following: bool
    slot: int
    row: int


async def search(bench: CommandContext, text: str) -> None:
    """Search all conversations; Enter goes to a hit, Esc from there to the results, Esc again to where one was."""
    memory, before, moved = SearchMemory(text), _stand(bench), False
    while await bench.sheets.show(SearchSheet(bench.desk.services.library, bench.desk.folder, memory)) is not None:
        moved = True
        if await _visit(bench, memory):
            return
    if moved:
        await _return(bench, before)


async def find(bench: CommandContext, text: str) -> None:
    """Find in the open conversation; where there is none yet, search all."""
    conversation = bench.desk.conversation
    if conversation is None or not conversation.record.message_count:
        await search(bench, text)
        return
    bar = FindSheet(bench.desk.services.library, conversation.id, bench.desk.parts.transcript, text)
    everywhere = await bench.sheets.show(bar)
    if everywhere is not None:
        await search(bench, f'"{everywhere}"' if " " in everywhere else everywhere)


async def _visit(bench: CommandContext, memory: SearchMemory) -> bool:
    """Show the chosen hit and those the user goes on to; True where the user stays."""
    hits = memory.found.hits
    while True:
        transcript = await _go(bench, hits[memory.chosen], memory.query.words)
        answer = await bench.sheets.show(HitSheet(transcript, memory.chosen, len(hits)))
        transcript.canvas.marks.look_for(())
        transcript.scroller.place_again()
        if answer is None or answer == "stay":
            return answer == "stay"
        step = 1 if answer == "next" else -1
        memory.chosen = (memory.chosen + step) % len(hits)


async def _go(bench: CommandContext, hit: SearchHit, words: tuple[str, ...]) -> TranscriptView:
    open_one = bench.desk.conversation
    if open_one is None or open_one.id != hit.conversation_id:
        await bench.desk.open(hit.conversation_id)
    transcript = bench.desk.parts.transcript
    transcript.canvas.marks.look_for(words)
    transcript.canvas.marks.go(Goal(hit.seq, hit.call_id))
    transcript.scroller.place_again()
    return transcript


def _stand(bench: CommandContext) -> Stand:
    conversation, viewport = bench.desk.conversation, bench.desk.parts.transcript.canvas.viewport
    return Stand(conversation.id if conversation is not None else "", viewport.following, *viewport.hold())


async def _return(bench: CommandContext, stand: Stand) -> None:
    conversation = bench.desk.conversation
    if not stand.conversation_id:
        await bench.desk.begin()
        return
    if conversation is None or conversation.id != stand.conversation_id:
        await bench.desk.open(stand.conversation_id)
    transcript = bench.desk.parts.transcript
    if not stand.following:
        transcript.canvas.viewport.stand_at(stand.slot, stand.row)
    transcript.canvas.viewport.following = stand.following
    transcript.scroller.place_again()


RUNS: Final[dict[str, Run]] = {"search": search, "find": find}
