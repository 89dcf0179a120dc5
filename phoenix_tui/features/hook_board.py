"""The hooks of a folder, their newest runs, and trying one out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.extensions.hooks.definitions import Hook, HookSet
from engine.extensions.hooks.file_hooks import FileHooks, HookRun
from engine.ports.extensions import HookEvent, HookReply, HookRequest
from engine.records import ConversationRecord, PermissionMode
from tools.contract import AS_IN_A_SHELL, JsonObject, Sandbox, SandboxMode

_CALL: Final[JsonObject] = {
    "tool_name": "Bash",
    "tool_input": {"command": "echo sample"},
    "tool_use_id": "toolu_sample",
}
_RAN: Final[JsonObject] = {"stdout": "sample\n", "stderr": "", "interrupted": False, "isImage": False}
SAMPLES: Final[dict[HookEvent, JsonObject]] = {
    HookEvent.SESSION_START: {"source": "startup"},
    HookEvent.SESSION_END: {"reason": "other"},
    HookEvent.USER_PROMPT_SUBMIT: {"prompt": "a sample message"},
    HookEvent.PRE_TOOL_USE: _CALL,
    HookEvent.PERMISSION_REQUEST: _CALL,
    HookEvent.POST_TOOL_USE: {**_CALL, "tool_response": _RAN, "duration_ms": 1},
    HookEvent.POST_TOOL_USE_FAILURE: {**_CALL, "error": "a sample error", "is_interrupt": False},
    HookEvent.POST_TOOL_BATCH: {"tool_calls": [{**_CALL, "tool_response": "sample"}]},
    HookEvent.STOP: {"stop_hook_active": False, "last_assistant_message": "a sample answer"},
    HookEvent.SUBAGENT_STOP: {"stop_hook_active": False, "last_assistant_message": "a sample result"},
    HookEvent.PRE_COMPACT: {"trigger": "manual", "custom_instructions": ""},
    HookEvent.POST_COMPACT: {"trigger": "manual", "compact_summary": "a sample summary"},
    HookEvent.INSTRUCTIONS_LOADED: {
        "file_path": "/sample/AGENTS.md",
        "memory_type": "Project",
        "load_reason": "session_start",
    },
    HookEvent.NOTIFICATION: {"message": "a sample notice", "notification_type": "idle_prompt"},
}


class HookBoard(Struct, frozen=True):
    """Hooks of a folder, and their newest runs."""

    hooks: FileHooks
    read: Callable[[Path], HookSet]
    """Reads the hooks of a folder, in a thread."""

    async def look(self, folder: Path) -> HookSet:
        """Hooks of a folder as it is now."""
        return await asyncio.to_thread(self.read, folder)

    def runs(self) -> Sequence[HookRun]:
        """The last runs, newest first."""
        return self.hooks.history.runs

    async def try_out(self, hook: Hook, record: ConversationRecord) -> HookReply:
        """Run a hook with a sample of its input; one of the project in the conversation's sandbox."""
        online = record.permission_mode is PermissionMode.AUTO
        sandbox = AS_IN_A_SHELL if record.sandbox is SandboxMode.OFF else Sandbox(record.sandbox, network=online)
        request = HookRequest(hook.event, record, fields=SAMPLES.get(hook.event, {}), sandbox=sandbox)
        try:
            return await self.hooks.try_out(hook, request, _Unwatched())
        except OSError as error:
            raise EngineError(f"The hook cannot be run: {error}.") from error


class _Unwatched:
    """Follows no hook."""

    def hook_started(self, hook_id: str, event: HookEvent, name: str, status: str = "") -> None:
        """Do nothing."""

    def hook_ended(self, hook_id: str, reply: HookReply | None) -> None:
        """Do nothing."""
