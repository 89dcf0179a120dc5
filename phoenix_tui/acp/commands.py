"""Slash commands that a client offers: built-in ones that need no screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from acp.exceptions import RequestError
from acp.schema import AvailableCommand, AvailableCommandInput, UnstructuredCommandInput

from engine.api.conversation import ConversationApi
from engine.api.engine import EngineApi
from engine.executor.requests import Refused
from phoenix_tui.acp.dispatch import INTERNAL
from phoenix_tui.acp.options import change_of
from phoenix_tui.acp.pump import UpdatePump
from phoenix_tui.features.custom_commands import CustomCommand
from phoenix_tui.features.init import request_text
from tools.clean import clean_line

COMMANDS: Final = {
    "compact": ("Summarize older messages to make room", "what matters most"),
    "context": ("Show what fills the context window", ""),
    "init": ("Write or improve AGENTS.md for this project", ""),
    "model": ("Show or choose the model", "PROVIDER/MODEL"),
    "cost": ("Show tokens and cost of this conversation", ""),
}
"""Description and hint of each command."""


class CommandFacts(Protocol):
    """Facts that commands name."""

    @property
    def engine(self) -> EngineApi:
        """The engine, for its rules."""
        ...

    async def custom_commands(self, cwd: Path) -> Sequence[CustomCommand]:
        """Skills and command files of a folder."""
        ...

    async def cost(self, conversation: ConversationApi) -> list[str]:
        """Lines about usage and cost. Raises StorageError."""
        ...


class CommandSession(Protocol):
    """The session of a command."""

    conversation: ConversationApi
    pump: UpdatePump
    facts: CommandFacts

    async def until_rest(self) -> None:
        """Wait until nothing runs."""
        ...


def available(custom: Sequence[CustomCommand]) -> list[AvailableCommand]:
    """The commands as the protocol lists them, those of skills and command files behind the built-in ones."""
    listed = [(name, description, hint) for name, (description, hint) in COMMANDS.items()]
    listed += [(one.name, one.meaning, one.hint) for one in custom if one.name not in COMMANDS]
    return [AvailableCommand(name=name, description=said, input=_input(hint)) for name, said, hint in listed]


def command_of(text: str) -> tuple[str, str] | None:
    """Name and rest of a command; None for a message."""
    name, _, rest = text.strip().partition(" ")
    return (name[1:], rest.strip()) if name.startswith("/") and name[1:] in COMMANDS else None


async def run_command(session: CommandSession, name: str, rest: str) -> str | None:
    """Run a command; the result is the message to send for it, None where there is none. Raises EngineError."""
    match name:
        case "compact":
            await _compact(session, rest)
        case "context":
            session.pump.say(await _context(session))
        case "init":
            return await _init(session)
        case "model":
            await _model(session, rest)
        case _:
            session.pump.say("\n".join(f"- {line}" for line in await session.facts.cost(session.conversation)))
    return None


async def _compact(session: CommandSession, focus: str) -> None:
    receipt = await session.conversation.context.compact(focus)
    if isinstance(receipt, Refused):
        raise RequestError(INTERNAL, receipt.reason)
    await session.until_rest()


async def _context(session: CommandSession) -> str:
    report = await session.conversation.context.report()
    window = f" of {report.window:,}" if report.window else ""
    about = "about " if report.estimated else ""
    model = clean_line(session.conversation.record.model)
    lines = [f"{about}{report.tokens:,}{window} tokens are in the context of {model}."]
    if report.summarizable:
        lines.append(f"/compact would summarize {report.summarizable:,} older messages.")
    return "\n\n".join(lines)


async def _init(session: CommandSession) -> str:
    folder = session.conversation.record.cwd
    return await request_text(folder, session.facts.engine.rules.closed(folder))


async def _model(session: CommandSession, reference: str) -> None:
    if reference:
        await session.conversation.change(change_of("model", reference))
    session.pump.say(f"The model is {clean_line(session.conversation.record.model)}.")


def _input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None
