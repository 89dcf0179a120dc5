"""Commands that look or go back: search, earlier prompts, changes on disk, rewinding, branches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual.app import App

from engine.ports.files import BranchRow
from engine.records import SearchHit
from engine.rewind.rewind import Preview, RewindList, RewindPoint, RewindScope
from phoenix_tui.commands.context import run_compact
from phoenix_tui.commands.run import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.changes import changes_in_view
from phoenix_tui.features.rewind import NOTHING_SAID, HowFar, Instead, RewindCommands, RewindTarget, Way
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.changes_sheet import ChangesSheet
from phoenix_tui.modals.find_sheet import FindSheet, HistorySheet, HitSheet
from phoenix_tui.modals.rewind_sheet import BranchesSheet, LastLook, RewindConfirmSheet, RewindSheet
from phoenix_tui.modals.search_sheet import SearchMemory, SearchSheet
from phoenix_tui.terminal.lending import open_outside
from phoenix_tui.widgets.transcript.marks import Goal
from phoenix_tui.widgets.transcript.view import TranscriptView
from tools.clean import clean_line

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.rewind.rewind import Rewinding


async def run_history(ctx: CommandContext, argument: str) -> None:
    """Search them; the chosen one takes the place of the draft, which undo brings back."""
    composer = ctx.dock.composer
    prompts = composer.draft.prompts
    if prompts is None:
        return
    chosen = await ctx.sheets.show(HistorySheet(prompts, ctx.dock, argument))
    if chosen is not None:
        composer.put(chosen)


class SearchReturn(Struct, frozen=True):
    """Place to return to after a search."""

    conversation_id: str
    following: bool
    slot: int
    row: int


async def run_search(ctx: CommandContext, text: str) -> None:
    """Search all conversations; Enter goes to a hit, Esc from there to the results, Esc again to where one was."""
    conversation, viewport = ctx.active.conversation, ctx.active.parts.transcript.canvas.viewport
    before = SearchReturn(conversation.id if conversation is not None else "", viewport.following, *viewport.hold())
    memory, moved = SearchMemory(text), False
    while await ctx.sheets.show(SearchSheet(ctx.active.services.library, ctx.active.folder, memory)) is not None:
        moved = True
        if await _visit(ctx, memory):
            return
    if moved:
        await _return(ctx, before)


async def run_find(ctx: CommandContext, text: str) -> None:
    """Find in the open conversation; where there is none yet, search all."""
    conversation = ctx.active.conversation
    if conversation is None or not conversation.record.message_count:
        await run_search(ctx, text)
        return
    bar = FindSheet(ctx.active.services.library, conversation.id, ctx.active.parts.transcript, text)
    everywhere = await ctx.sheets.show(bar)
    if everywhere is not None:
        await run_search(ctx, f'"{everywhere}"' if " " in everywhere else everywhere)


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


async def run_diff(ctx: CommandContext, _: str) -> None:
    """Show the changes of this conversation and its turns, and the uncommitted ones in git."""
    changes = changes_in_view(ScreenFrontEnd(ctx))
    if changes is None:
        return
    folder = changes.folder

    async def open_file(app: App[object], name: str) -> None:
        if not await asyncio.to_thread((folder / name).is_file):
            ctx.tell(f"{clean_line(name)} no longer exists.", bad=True)
        elif not await open_outside(app, folder / name, 1):
            ctx.tell("The editor cannot be started; set VISUAL or EDITOR.", bad=True)

    async def copy(text: str) -> None:
        ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")

    await ctx.sheets.show(ChangesSheet(changes, open_file, copy, ctx.dock.composer.add))


WORDS: Final = {
    RewindScope.BOTH: "both           conversation and files, back to before this prompt",
    RewindScope.CONVERSATION: "conversation   back to before this prompt; files are kept",
    RewindScope.FILES: "files          back to before this prompt; the conversation is kept",
}
UNDO: Final = ((RewindScope.BOTH, "undo           everything the last rewind did"),)


class SheetRewindAsker:
    """Asks with sheets over the workspace."""

    def __init__(self, ctx: CommandContext, rewinding: Rewinding) -> None:
        self._ctx = ctx
        twice = f"{key('stop')} {key('stop')}"
        self.undo_keys = f"/rewind, then {key('rewind_undo')}"
        self.undo_keys_over_text = f"{twice} to empty the line, then {self.undo_keys}"
        self.branching_keys = f"rewinding ({twice}) or /fork"
        self.tell = ctx.tell
        self._rewinding = rewinding
        self._plain = ctx.active.launch.plain

    async def which_prompt(self, found: RewindList) -> RewindTarget | None:
        """The list of prompts."""
        return await self._ctx.sheets.show(RewindSheet(found, plain=self._plain))

    async def how_far(self, point: RewindPoint, preview: Preview, ways: Sequence[Way]) -> HowFar | None:
        """The files and the ways."""
        told = tuple((way, WORDS[way]) for way in ways if isinstance(way, RewindScope))
        heading = f"Rewind to before “{clean_line(point.text)}”"
        return await self._last_look(heading, preview, told, summarizes=Instead.SUMMARY in ways)

    async def summarize_before(self, seq: int) -> None:
        """Show a summary before it takes effect."""
        await run_compact(self._ctx, before=seq)

    async def overwritten_by_undo(self, preview: Preview) -> frozenset[bytes] | None:
        """Ask only when files were changed by others."""
        if not any(file.conflict for file in preview.files):
            return frozenset()
        choice = await self._last_look("Undo the last rewind", preview, UNDO)
        return choice.overwrite if choice is not None else None

    async def which_branch(self, branches: Sequence[BranchRow]) -> str | None:
        """The tree of branches."""
        here = self._ctx.active.conversation
        sheet = BranchesSheet(branches, here.id if here is not None else "", plain=self._plain)
        return await self._ctx.sheets.show(sheet)

    async def show(self, branch: Conversation) -> None:
        """Show the branch, and list it."""
        await self._ctx.active.show(branch)
        await self._ctx.active.index.reload()

    async def _last_look(
        self, heading: str, preview: Preview, ways: tuple[tuple[RewindScope, str], ...], *, summarizes: bool = False
    ) -> HowFar | None:
        look = LastLook(heading, preview, ways, summarizes=summarizes)
        sheet = RewindConfirmSheet(look, self._rewinding.diff, plain=self._plain)
        return await self._ctx.sheets.show(sheet)


def _run(way: Callable[[RewindCommands], Awaitable[None]]) -> CommandFunction:
    async def run(ctx: CommandContext, _: str) -> None:
        active = ctx.active
        conversation, rewinding = active.conversation, active.services.rewinding
        if conversation is None or rewinding is None:
            ctx.tell(NOTHING_SAID)
        else:
            await way(RewindCommands(SheetRewindAsker(ctx, rewinding), active.services.engine, conversation, rewinding))

    return run


run_rewind: Final = _run(RewindCommands.rewind)
run_undo: Final = run_rewind
"""/undo shows the list too, which says what `u` would undo."""
run_branches: Final = _run(RewindCommands.branches)
