"""Sources of the completions of conversations, models, themes and modes; joined to the composer once loaded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.executor.requests import NeedsYes
from engine.ports.invocables import EMPTY
from engine.records import ConversationQuery, ConversationSummary, PermissionMode
from engine.run_options import LEVELS, Effort
from phoenix_tui.commands.command_context import CommandContext
from phoenix_tui.commands.server_completions import ServerCompletions
from phoenix_tui.features.custom_commands import CustomCommands, InvocablesApi, question
from phoenix_tui.features.effort import MEANINGS
from phoenix_tui.models.offers import ProviderState
from phoenix_tui.text.labels import MODE_MEANINGS, SANDBOX_MEANINGS, age
from phoenix_tui.widgets.completion_popup import Completion
from tools.clean import clean_line
from tools.contract import SandboxMode

if TYPE_CHECKING:
    from phoenix_tui.widgets.completer import Arguments

FEWEST_LETTERS: Final = 2
"""Letters behind an `@` from which conversations are offered beside files."""
MOST_MENTIONS: Final = 4
SHORT_ID: Final = 8
REFERENCE: Final = "@conversation:"


def join(ctx: CommandContext) -> None:
    """Give the composer its sources of completions."""
    servers = ServerCompletions(ctx.active)

    async def mentions(query: str) -> Sequence[Completion]:
        if (of_server := await servers.mentions(query)) is not None:
            return of_server
        wanted = query.removeprefix(REFERENCE[1:])
        if len(wanted) < FEWEST_LETTERS:
            return ()
        engine = ctx.active.services.engine
        found = await engine.list(ConversationQuery(title_contains=wanted, limit=MOST_MENTIONS + 1))
        here = ctx.active.conversation.id if ctx.active.conversation is not None else ""
        others = [_mention(one) for one in found if one.id != here][:MOST_MENTIONS]
        return [*servers.names(query), *others]

    ctx.dock.completer.mentions = mentions
    ctx.dock.completer.arguments = _arguments(ctx)
    if ctx.active.services.invocables is not None:
        ctx.dock.completer.offer_custom(_Custom(ctx, ctx.active.services.invocables, servers))

    async def agrees(needs: NeedsYes) -> bool:
        return await ctx.sheets.confirm(question(needs), "send it", "do not")

    ctx.sending.agrees = agrees


class _Custom:
    """Skills, command files and prompts of servers in view, with a list made once for each catalogue."""

    def __init__(self, ctx: CommandContext, invocables: InvocablesApi, servers: ServerCompletions) -> None:
        self._ctx, self._servers = ctx, servers
        self._invocables = invocables
        self._made: CustomCommands | None = None

    def now(self) -> CustomCommands | None:
        """Catalogue found last; None before the first look."""
        catalogue = self._invocables.catalogue(self._ctx.active.folder)
        if catalogue is EMPTY:
            return None
        prompts, made = self._servers.prompts(), self._made
        if made is None or made.catalogue is not catalogue or made.prompts is not prompts:
            self._made = made = CustomCommands(catalogue, prompts)
        return made

    async def look(self) -> None:
        """Look at the files."""
        await asyncio.gather(self._invocables.look(self._ctx.active.folder), self._servers.look())

    async def values(self, line: str) -> Sequence[Completion]:
        """Values for the last argument of a prompt."""
        return await self._servers.values(line)


def _mention(one: ConversationSummary) -> Completion:
    title = clean_line(one.title) or "without a title"
    return Completion(f"{REFERENCE}{one.id[:SHORT_ID]}", f"conversation · {_ago(one)}", shown=f"@{title}")


def _ago(one: ConversationSummary) -> str:
    return f"{age(max(time.time() - one.updated_at, 0.0))} ago"


def _arguments(ctx: CommandContext) -> Mapping[str, Arguments]:
    async def models() -> Sequence[Completion]:
        board = ctx.active.services.models
        offers = {one.name: one for one in await board.known()}
        if any(one.state is ProviderState.ASKING for one in offers.values()):
            offers |= {one.name: one async for one in board.asked()}
        offered = [one for offer in offers.values() for one in offer.models]
        return [Completion(f"{one.provider}/{one.name}", one.note, runs=True) for one in offered]

    async def themes() -> Sequence[Completion]:
        return [Completion(name, runs=True) for name in ctx.environment.colours.names()]

    async def modes() -> Sequence[Completion]:
        return [Completion(mode.value, MODE_MEANINGS[mode], runs=True) for mode in PermissionMode]

    async def sandboxes() -> Sequence[Completion]:
        return [Completion(one.value, SANDBOX_MEANINGS[one], runs=True) for one in SandboxMode]

    async def efforts() -> Sequence[Completion]:
        active = ctx.active
        model = active.conversation.record.model if active.conversation is not None else active.model
        known = {Effort.DEFAULT, *active.services.system.efforts(model)}
        return [Completion(one.value, MEANINGS[one], runs=True) for one in LEVELS if one in known]

    async def profiles() -> Sequence[Completion]:
        return [Completion(one.name, one.description, runs=True) for one in ctx.active.services.profiles.all()]

    async def conversations() -> Sequence[Completion]:
        found = await ctx.active.services.engine.list(ConversationQuery())
        return [Completion(one.id[:SHORT_ID], _ago(one), runs=True, shown=clean_line(one.title)) for one in found]

    return {
        "model": models,
        "effort": efforts,
        "theme": themes,
        "permissions": modes,
        "sandbox": sandboxes,
        "profile": profiles,
        "resume": conversations,
        "split": conversations,
    }
