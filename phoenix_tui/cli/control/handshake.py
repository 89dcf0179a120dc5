"""The part of `initialize` that a conversation is made from: prompts, a title, and the servers inside the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.control.lines import EndOfInput, HostLine, LineFault
from phoenix_tui.config.settings import Settings
from tools.contract import JsonObject, JsonValue

LONGEST_TITLE: Final = 200
APPENDED: Final = "append_system_prompt"
PLANS: Final = "In plan mode, work out the plan like this:\n{instructions}"


class Handshake(Struct, frozen=True):
    """Fields of the first request; those that are None were not given."""

    system_prompt: str | None = None
    append_system_prompt: str | None = None
    title: str | None = None
    plan_instructions: str | None = None

    def over(self, arguments: RunArguments) -> RunArguments:
        """The command line with prompt and title, which win: hosts give them in one place or the other."""
        prompt = arguments.system_prompt if self.system_prompt is None else self.system_prompt
        return replace(arguments, system_prompt=prompt, name=self.title or arguments.name)

    def added_to(self, settings: Settings) -> Settings:
        """The settings with what the host appends to the system prompt."""
        plans = PLANS.format(instructions=self.plan_instructions) if self.plan_instructions else ""
        texts = (settings.text(APPENDED), self.append_system_prompt, plans)
        whole = {APPENDED: "\n\n".join(text for text in texts if text)}
        return replace(settings, values=settings.values | whole)


def decides(line: HostLine) -> bool:
    """True for the first line that a conversation can be made for."""
    return isinstance(line, LineFault | EndOfInput) or line.get("type") in {"control_request", "user"}


def handshake_of(line: HostLine) -> Handshake:
    """The fields of an `initialize`; none for any other line."""
    request = line.get("request") if not isinstance(line, LineFault | EndOfInput) else None
    if not isinstance(request, dict) or request.get("subtype") != "initialize":
        return Handshake()
    return Handshake(
        _prompt(request.get("systemPrompt")),
        _text(request.get("appendSystemPrompt")),
        (_text(request.get("title")) or "")[:LONGEST_TITLE] or None,
        _text(request.get("planModeInstructions")),
    )


def servers_inside(request: JsonObject) -> Sequence[str]:
    """Names of the MCP servers that an `initialize` says are inside the host."""
    names = request.get("sdkMcpServers")
    return [one for one in names if isinstance(one, str) and one] if isinstance(names, list) else []


def _prompt(value: JsonValue) -> str | None:
    """A prompt as a text, or as the parts of one."""
    if isinstance(value, list):
        return "\n\n".join(one for one in value if isinstance(one, str) and one)
    return _text(value)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
