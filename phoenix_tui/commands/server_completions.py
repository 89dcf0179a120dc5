"""Completions from MCP servers: prompts as `/mcp__SERVER__PROMPT` with values, resources as `@SERVER:URI`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from engine.ports.server_texts import ServerPrompt, ServerResource, ServerTextError, ServerTexts
from engine.records import ConversationRecord
from engine.records.unstored import unstored_record
from phoenix_tui.widgets.completion_popup import Completion
from tools.clean import clean_line

if TYPE_CHECKING:
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
    return unstored_record(launch.cwd, active.sandbox or launch.sandbox, required=required)


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
