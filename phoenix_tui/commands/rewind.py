"""Commands that go back: /rewind, /undo, /branches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from engine.api.conversation import ConversationApi
from engine.api.engine import RewindApi
from engine.ports.turns import BranchRow
from engine.rewind.values import Preview, RewindList, RewindPoint, RewindScope
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.context import summarize
from phoenix_tui.features.rewind import NOTHING_SAID, HowFar, Instead, RewindCommands, RewindTarget, Way
from phoenix_tui.keys.active_keys import key
from phoenix_tui.modals.branches_sheet import BranchesSheet
from phoenix_tui.modals.rewind_confirm_sheet import LastLook, RewindConfirmSheet
from phoenix_tui.modals.rewind_sheet import RewindSheet
from tools.clean import clean_line

WORDS: Final = {
    RewindScope.BOTH: "both           conversation and files, back to before this prompt",
    RewindScope.CONVERSATION: "conversation   back to before this prompt; files are kept",
    RewindScope.FILES: "files          back to before this prompt; the conversation is kept",
}
UNDO: Final = ((RewindScope.BOTH, "undo           everything the last rewind did"),)


class SheetRewindAsker:
    """Asks with sheets over the workspace."""

    def __init__(self, ctx: CommandContext, rewinding: RewindApi) -> None:
        self._ctx = ctx
        twice = f"{key('stop')} {key('stop')}"
        self.undo_keys = f"{twice}, then {key('rewind_undo')}"
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
        await summarize(self._ctx, before=seq)

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

    async def show(self, branch: ConversationApi) -> None:
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


RUNS: Final[dict[str, CommandFunction]] = {
    "rewind": _run(RewindCommands.rewind),
    "undo": _run(RewindCommands.rewind),
    "branches": _run(RewindCommands.branches),
}
"""Commands; /undo shows the list too, which says what `u` would undo."""
