"""Questions about calls, put to a tool of an MCP server: `--permission-prompt-tool mcp__SERVER__TOOL`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final, cast

from msgspec import Struct

from engine.conversation import Conversation
from engine.extensions.mcp.hub import McpHub
from phoenix_tui.cli.control.flags import SERVED
from phoenix_tui.cli.control.host import HostError
from phoenix_tui.cli.control.host_servers import HostServers
from tools.contract import JsonObject, JsonValue, Tool, ToolContext

MOST_NAMED: Final = 20
"""Tools that an error names."""
WRAPPED: Final = "result"
"""Field in which SDKs of servers wrap a text to have a structured result."""
NO_VERDICT: Final = "The tool {name} gave no JSON with behavior allow or deny, so the call is denied."


class PromptTool(Struct, eq=False):
    """Asks the tool in the place of the host; no model is offered it."""

    name: str
    """Value of the flag; one that names no such tool is never asked."""
    conversation: Conversation
    hub: McpHub
    inside: HostServers
    is_gone: bool = False
    """Never set: the servers say themselves when they cannot answer."""

    async def ready(self) -> str:
        """Load its definition where it is deferred; reason why it cannot be asked, empty where it can."""
        if not self.name.startswith(SERVED):
            return ""
        record = self.conversation.record
        if any(one.spec.name == self.name for one in self.hub.deferred_tools(record)):
            await self.hub.load(record, [self.name])
        return self.why_not()

    def why_not(self) -> str:
        """Reason why it cannot be asked; empty where it can."""
        tools = self._tools()
        if self.name in tools:
            return ""
        served = [name for name in tools if name.startswith(SERVED)][:MOST_NAMED]
        there = f"there are {', '.join(served)}" if served else "no MCP server offers tools"
        return f"There is no tool {self.name[:128]} for --permission-prompt-tool: {there}."

    async def ask(self, request: JsonObject, seconds: float) -> JsonObject:
        """Answer a `can_use_tool`.

        Raises:
            HostError: it failed, or gave none in `seconds`.
        """
        tool = self._tools().get(self.name)
        if tool is None:
            raise HostError(self.why_not())
        record, call_id = self.conversation.record, str(request["tool_use_id"])
        args: JsonObject = {name: request[name] for name in ("tool_name", "input", "tool_use_id")}
        context = ToolContext(record.id, call_id, record.cwd, outside_allowed=False, report=lambda _: None)
        try:
            async with asyncio.timeout(seconds):
                output = await tool.run(args, context)
        except TimeoutError as error:
            raise HostError(f"The tool {self.name} gave no answer within {seconds:g} s.") from error
        if output.is_error:
            raise HostError(f"The tool {self.name} failed: {output.text[:1_000]}")
        return self._verdict(output.text)

    def _verdict(self, text: str) -> JsonObject:
        found = _parsed(text)
        if isinstance(found, dict) and found.keys() == {WRAPPED}:
            inner = found[WRAPPED]
            found = _parsed(inner) if isinstance(inner, str) else inner
        if not isinstance(found, dict) or found.get("behavior") not in {"allow", "deny"}:
            raise HostError(NO_VERDICT.format(name=self.name))
        return found

    def _tools(self) -> Mapping[str, Tool]:
        record = self.conversation.record
        return {**self.hub.tools(record), **self.inside.tools(record)}


def _parsed(text: str) -> JsonValue:
    """A text as JSON; None where it is none."""
    try:
        return cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError):
        return None
