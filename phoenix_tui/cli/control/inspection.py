"""Requests of a host about the window, the files and the sub-agents of its conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.context.measure import Filling
from engine.engine import Engine
from engine.ports import StorageError
from engine.ports.files import FilesError
from engine.rewind.rewind import CannotRewind
from engine.rewind.values import Preview, RewindScope
from phoenix_tui.cli.control.host_agents import HostAgents
from phoenix_tui.cli.control.names import bare_model
from phoenix_tui.cli.control.requests import Handler, RequestError, text_of
from phoenix_tui.cli.control.turns import Turns
from phoenix_tui.cli.control.window_lists import agent_types, mcp_tools, memory_files
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

COLORS: Final = ("promptBorder", "inactive", "claude", "warning", "permission", "success", "text")
"""Names of colours that hosts know, for the shares in order."""
NO_CHECKPOINT: Final = "No file checkpoint found for this message."


class Inspection(Struct, eq=False):
    """Answers these requests for one connection."""

    engine: Engine
    turns: Turns
    agents: HostAgents

    def handlers(self) -> Mapping[str, Handler]:
        """The requests that it answers."""
        return {
            "get_context_usage": self._context_usage,
            "rewind_files": self._rewind_files,
            "stop_task": self._stop_task,
        }

    async def _context_usage(self, request: JsonObject) -> JsonObject:
        del request
        conversation = self.turns.conversation
        report, prompt = await conversation.context.report(), await conversation.context.prompt()
        shares = [(filling, tokens) for filling, tokens in report.measured.shares if tokens]
        categories: list[JsonValue] = [
            {"name": _name(filling), "tokens": tokens, "color": COLORS[number % len(COLORS)]}
            for number, (filling, tokens) in enumerate(shares)
        ]
        threshold = report.window * report.compact_percent // 100
        nothing: list[JsonValue] = []
        return {
            "categories": categories,
            "totalTokens": report.tokens,
            "maxTokens": report.window,
            "rawMaxTokens": report.window,
            "percentage": round(report.tokens * 100 / report.window) if report.window else 0,
            "model": bare_model(conversation.record.model),
            "isAutoCompactEnabled": report.compact_percent <= 100,
            "autoCompactThreshold": threshold if report.compact_percent <= 100 else None,
            "memoryFiles": memory_files(prompt),
            "mcpTools": mcp_tools(prompt),
            "agents": agent_types(self.agents.added(conversation.record.cwd)),
            "gridRows": nothing,
        }

    async def _rewind_files(self, request: JsonObject) -> JsonObject:
        seq = self.turns.seqs.get(text_of(request, "user_message_id"))
        conversation, rewinding = self.turns.conversation, self.engine.ports.rewinding
        if seq is None or rewinding is None:
            raise RequestError(NO_CHECKPOINT)
        try:
            if request.get("dry_run") is True:
                return _previewed(await rewinding.preview(conversation.record, seq))
            await rewinding.rewind(conversation.record, conversation.state, seq, RewindScope.FILES)
        except (CannotRewind, FilesError, StorageError) as error:
            raise RequestError(str(error)) from error
        return {"canRewind": True}

    async def _stop_task(self, request: JsonObject) -> JsonObject:
        task_id, sub_agents = text_of(request, "task_id"), self.engine.sub_agents
        parent = self.turns.conversation.id
        agents = [view.id for view in sub_agents.views(parent)] if sub_agents is not None else []
        if sub_agents is not None and task_id in agents:
            sub_agents.stop([task_id])
            return {}
        try:
            await self.turns.conversation.jobs.kill(task_id)
        except KeyError as error:
            raise RequestError(f"There is no task {task_id[:60]}.") from error
        return {}


def _name(filling: Filling) -> str:
    return filling.value.replace("_", " ").capitalize()


def _previewed(preview: Preview) -> JsonObject:
    """The files that a rewind would change."""
    if preview.refusal:
        return {"canRewind": False, "error": preview.refusal}
    changes = [one.change for one in preview.files if one.possible and not one.conflict]
    names: list[JsonValue] = [clean_line(change.name) for change in changes]
    lines = sum(change.added for change in changes), sum(change.removed for change in changes)
    return {"canRewind": True, "filesChanged": names, "insertions": lines[0], "deletions": lines[1]}
