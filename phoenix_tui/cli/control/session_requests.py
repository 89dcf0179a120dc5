"""Requests of a host about its conversation beside model and mode: title, reasoning, waiting messages, tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.effort import Effort
from engine.executor.requests import Accepted
from engine.ports import ConversationChanges, ProviderError, StorageError
from phoenix_tui.cli.control.flags import effort_of
from phoenix_tui.cli.control.handshake import LONGEST_TITLE
from phoenix_tui.cli.control.host_commands import HostCommands
from phoenix_tui.cli.control.requests import Handler, RequestError, text_of
from phoenix_tui.cli.control.turns import Turns
from tools.clean import clean, clean_line
from tools.contract import JsonObject, JsonValue

MOST_OUTPUT: Final = 8_192
"""Bytes of a task's output: its end."""


class SessionRequests(Struct, eq=False):
    """Answers these requests for one connection."""

    turns: Turns
    commands: HostCommands

    def handlers(self) -> Mapping[str, Handler]:
        """The requests that it answers."""
        return {
            "rename_session": self._rename,
            "set_max_thinking_tokens": self._set_thinking,
            "cancel_async_message": self._cancel_message,
            "get_task_output": self._task_output,
            "background_tasks": self._background,
            "reload_skills": self._reload_skills,
            "side_question": self._side_question,
        }

    async def _rename(self, request: JsonObject) -> JsonObject:
        title = clean_line(text_of(request, "title"))[:LONGEST_TITLE]
        if request.get("session_id") not in {None, self.turns.conversation.id}:
            raise RequestError("This connection has another session than the one to be renamed.")
        await self.turns.conversation.change(ConversationChanges(title))
        return {}

    async def _set_thinking(self, request: JsonObject) -> JsonObject:
        given = request.get("max_thinking_tokens")
        if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
            raise RequestError("max_thinking_tokens must be a number of tokens, or null.")
        effort = Effort.DEFAULT if given is None else Effort(effort_of(given))
        await self.turns.conversation.change(ConversationChanges(effort=effort))
        return {}

    async def _cancel_message(self, request: JsonObject) -> JsonObject:
        return {"cancelled": await self.turns.drop(text_of(request, "message_uuid"))}

    async def _task_output(self, request: JsonObject) -> JsonObject:
        task_id = text_of(request, "task_id")
        try:
            captured = self.turns.conversation.jobs.output(task_id)
        except KeyError as error:
            raise RequestError(f"There is no task {clean_line(task_id)[:60]}.") from error
        shown = (captured.tail or captured.head)[-MOST_OUTPUT:]
        total = len(captured.head) + captured.dropped + len(captured.tail)
        output = clean(shown.decode("utf-8", "replace"))
        return {"output": output, "total_bytes": total, "truncated": total > len(shown)}

    async def _background(self, request: JsonObject) -> JsonObject:
        del request
        return {"backgrounded": isinstance(self.turns.conversation.jobs.background(), Accepted)}

    async def _reload_skills(self, request: JsonObject) -> JsonObject:
        del request
        await self.commands.ready()
        skills: list[JsonValue] = self.commands.objects()
        return {"skills": skills}

    async def _side_question(self, request: JsonObject) -> JsonObject:
        try:
            answer = await self.turns.conversation.side.ask(text_of(request, "question"))
        except (ProviderError, StorageError) as error:
            raise RequestError(str(error)) from error
        return {"response": answer, "synthetic": False}
