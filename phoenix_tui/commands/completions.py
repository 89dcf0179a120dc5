"""Sources of completions, joined to the composer once loaded: conversations, models, settings, texts of servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.executor.requests import NeedsYes
from engine.ports.extensions import EMPTY
from engine.ports.mcp import ServerPrompt, ServerResource, ServerTextError, ServerTexts
from engine.records import (
    ConversationQuery,
    ConversationRecord,
    ConversationSummary,
    PermissionMode,
    build_unstored_record,
)
from engine.run_options import LEVELS, Effort
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.features.custom_commands import CustomCommands, InvocablesApi, question
from phoenix_tui.features.model import MEANINGS
from phoenix_tui.models.offers import ProviderState
from phoenix_tui.text.labels import MODE_MEANINGS, SANDBOX_MEANINGS, age
from phoenix_tui.widgets.completer import CustomSource
from phoenix_tui.widgets.completion_popup import Completion
from tools.clean import clean_line
from tools.contract import SandboxMode

if TYPE_CHECKING:
    from phoenix_tui.widgets.completer import Arguments
    from phoenix_tui.workspace.active_conversation import ActiveConversation


MOST_FOUND: Final = 50
LOOKING: Final = 0.5
"""Seconds that completions wait for the definitions of servers."""
NOTHING: Final[tuple[ServerPrompt, ...]] = ()


class ServerCompletions:
    """Completions from the servers of the conversation in view; a new one has those of its folder."""

    def __init__(self, active: ActiveConversation) -> None:
        self._active = active

    @property
    def _texts(self) -> ServerTexts | None:
        servers = self._active.services.mcp
        return servers.texts if servers is not None else None

    def _record(self) -> ConversationRecord:
        return server_record(self._active)

    def prompts(self) -> Sequence[ServerPrompt]:
        """Prompts, as they are known."""
        return self._texts.prompts(self._record()) if self._texts is not None else NOTHING

    async def look(self) -> None:
        """Look at the definitions, and begin to connect where a server was never connected."""
        if self._texts is not None:
            looking = asyncio.ensure_future(self._texts.look(self._record()))
            await asyncio.wait((looking,), timeout=LOOKING)

    async def values(self, line: str) -> Sequence[Completion]:
        """Values for the last argument of a call, as its server completes them."""
        name, _, written = line.removeprefix("/").partition(" ")
        texts, record = self._texts, self._record()
        prompt = next((one for one in self.prompts() if one.command == name), None)
        if texts is None or prompt is None:
            return ()
        *before, value = written.split(" ")
        if len(before) >= len(prompt.fields):
            return ()
        others = {one.name: text for one, text in zip(prompt.fields, before, strict=False)}
        found = await texts.values(record, prompt, prompt.fields[len(before)].name, value, others)
        lead = "".join(f"{text} " for text in before)
        return [Completion(lead + _word(text), prompt.fields[len(before)].name) for text in found if text][:MOST_FOUND]

    def names(self, query: str) -> Sequence[Completion]:
        """Servers with resources for the text behind an `@`."""
        if self._texts is None or not query:
            return ()
        names = self._texts.resource_servers(self._record())
        found = [name for name in names if name.lower().startswith(query.lower()) and " " not in name]
        return [Completion(f"@{name}:", "resources of a server", goes_on=True) for name in found]

    async def mentions(self, query: str) -> Sequence[Completion] | None:
        """Resources for `SERVER:` and what follows it; None where no server is named."""
        texts, record = self._texts, self._record()
        if texts is None or ":" not in query:
            return None
        wanted = query.strip('"')
        names = texts.resource_servers(record)
        server = next((name for name in names if wanted.startswith(f"{name}:")), None)
        if server is None:
            return None
        try:
            found = await texts.resources(record, server)
        except ServerTextError as error:
            return [Completion(clean_line(str(error)), hint=True)]
        return _matching(server, wanted[len(server) + 1 :].lower(), found)


def server_record(active: ActiveConversation) -> ConversationRecord:
    """The conversation in view; before it is stored one of its folder, whose servers it will have."""
    if active.conversation is not None:
        return active.conversation.record
    launch = active.launch
    required = launch.sandbox_required or active.sandbox is not None
    return build_unstored_record(launch.cwd, active.sandbox or launch.sandbox, required=required)


def _matching(server: str, wanted: str, found: Sequence[ServerResource]) -> Sequence[Completion]:
    """Addresses with this beginning first, then those that contain it, or whose name does."""
    ranked = [
        (not one.uri.lower().startswith(wanted), one.uri, one)
        for one in found
        if wanted in one.uri.lower() or wanted in one.name.lower()
    ]
    ranked.sort(key=lambda entry: entry[:2])
    return [_completion(server, one) for _, _, one in ranked[:MOST_FOUND]]


def _completion(server: str, one: ServerResource) -> Completion:
    meaning = " · ".join(filter(None, (one.name, one.description)))
    uri = one.uri.partition("{")[0] if one.is_template else one.uri
    name = f"{server}:{uri}"
    text = f'@"{name}"' if " " in name and not one.is_template else f"@{name}"
    return Completion(text, clean_line(meaning), goes_on=one.is_template, shown=f"@{server}:{one.uri}")


def _word(text: str) -> str:
    return f'"{text}"' if " " in text and '"' not in text else text


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

    ctx.dock.completer.used = lambda: ctx.used.commands
    ctx.dock.completer.mentions = mentions
    ctx.dock.completer.arguments = _arguments(ctx)
    if ctx.active.services.invocables is not None:
        custom = _Custom(ctx, ctx.active.services.invocables, servers)
        ctx.dock.completer.offer_custom(CustomSource(custom.now, custom.look, servers.values))

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


def _mention(one: ConversationSummary) -> Completion:
    title = clean_line(one.title) or "without a title"
    return Completion(f"{REFERENCE}{one.id[:SHORT_ID]}", f"conversation · {_ago(one)}", shown=f"@{title}")


def _ago(one: ConversationSummary) -> str:
    return f"{age(max(time.time() - one.updated_at, 0.0))} ago"


def _arguments(ctx: CommandContext) -> Mapping[str, Arguments]:
    async def models() -> Sequence[Completion]:
        board = ctx.active.services.models
        offers = {one.name: one for one in await board.list_known()}
        if any(one.state is ProviderState.ASKING for one in offers.values()):
            offers |= {one.name: one async for one in board.ask_all()}
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
