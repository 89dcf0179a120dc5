"""Options of new sessions, and texts that are not saved in the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import ConversationOptions
from engine.ports.extensions import (
    HookEvent,
    HookObserver,
    HookOutcome,
    HookPermission,
    HookReply,
    HookRequest,
    HookVerdict,
)
from engine.records import AgentFacts, ConversationRecord
from engine.updates import Update
from tools.clean import clean, reveal_name
from tools.contract import JsonValue
from tools.files.content import diff_lines
from tools.files.own_files import read_regular

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from phoenix_tui.acp.connection import Client

AgentFollower = Callable[["Conversation", AgentFacts, Update], None]


class NewSession(Struct, frozen=True):
    """Options of a conversation in a folder, and sentences for the user about that folder."""

    options: ConversationOptions
    notices: tuple[str, ...]


NAME: Final = "unsaved changes in the editor"
READS: Final = frozenset({"Read"})
CHANGES: Final = frozenset({"Write", "Edit", "MultiEdit"})
LARGEST: Final = 512 * 1024
"""Bytes of a text that is compared."""
MOST_SHOWN: Final = 16_000
"""Characters of a difference."""
WITHIN: Final = 3.0
"""Seconds for the editor's answer; after that its text counts as saved."""
SHOWN: Final = (
    "The user has this file open in an editor with changes that are not saved. What you read is the file on disk; this "
    "is the difference to the text in the editor:\n{difference}"
)
TOO_LONG: Final = "[the rest is left out: {count:,} characters]"
ASKED: Final = "{name} has unsaved changes in the editor, and this changes the file on disk: save or discard them first"


class UnsavedTexts:
    """A `HookRunner`: a check by the editor around calls that read or change a file."""

    def __init__(self) -> None:
        self.editor: Client | None = None
        self.session_of: Callable[[ConversationRecord], str] = lambda _: ""
        """Session of a conversation or a sub-agent; empty: none."""

    def wants(self, record: ConversationRecord, event: HookEvent) -> bool:
        """True around calls of sessions whose editor can be asked."""
        around = event in {HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE}
        return around and self.editor is not None and self.editor.reads_text and bool(self.session_of(record))

    async def prepare(self, record: ConversationRecord) -> None:
        """Return at once."""

    async def run(self, request: HookRequest, observer: HookObserver) -> Sequence[HookReply]:
        """Compare the file of a call with the editor's text; nothing to say where they are the same."""
        del observer
        tools = CHANGES if request.event is HookEvent.PRE_TOOL_USE else READS
        path = _find_path(request.fields.get("tool_input"))
        if path is None or not tools.intersection(request.subjects):
            return ()
        found = await self._difference(request.record, path)
        if not found:
            return ()
        if request.event is HookEvent.PRE_TOOL_USE:
            reason = ASKED.format(name=reveal_name(path.name))
            return (_reply(request.event, HookVerdict(permission=HookPermission.ASK, reason=reason)),)
        return (_reply(request.event, HookVerdict(context=SHOWN.format(difference=found), is_quiet=True)),)

    def stop(self, conversation_id: str) -> None:
        """Stop none: each check is waited for."""

    async def close(self, conversation_id: str) -> None:
        """Forget nothing: no check keeps anything."""

    async def _difference(self, record: ConversationRecord, path: Path) -> str:
        """The difference from the file on disk to the editor's text; empty where there is none, or it is unknown."""
        if self.editor is None:
            return ""
        content = await asyncio.to_thread(read_regular, path, LARGEST + 1)
        if content is None or len(content) > LARGEST:
            return ""
        try:
            async with asyncio.timeout(WITHIN):
                text = await self.editor.read_text(self.session_of(record), str(path))
        except TimeoutError:
            return ""
        if text is None or len(text) > LARGEST:
            return ""
        saved = _lines(content.decode("utf-8", "replace"))
        held = _lines(text)
        return "" if saved == held else await asyncio.to_thread(_compare_texts, saved, held)


def _find_path(given: JsonValue) -> Path | None:
    name = given.get("file_path") if isinstance(given, dict) else None
    path = Path(name) if isinstance(name, str) and "\0" not in name else None
    return path if path is not None and path.is_absolute() else None


def _lines(text: str) -> list[str]:
    """Lines without their ends, and without the empty one that some editors add."""
    return text.rstrip("\n").splitlines()


def _compare_texts(saved: Sequence[str], held: Sequence[str]) -> str:
    whole = clean("\n".join(diff_lines(saved, held, "on disk", "in the editor", 2)))
    rest = len(whole) - MOST_SHOWN
    return whole if rest <= 0 else f"{whole[:MOST_SHOWN]}\n{TOO_LONG.format(count=rest)}"


def _reply(event: HookEvent, verdict: HookVerdict) -> HookReply:
    return HookReply(event, NAME, NAME, HookOutcome.SUCCESS, verdict, goes_on=True)
