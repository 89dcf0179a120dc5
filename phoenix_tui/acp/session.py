"""One session of a client: a conversation, its turns, and everything that is said about them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from acp.exceptions import RequestError
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    PromptResponse,
    UnstructuredCommandInput,
)
from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel

from engine.executor.requests import NeedsYes, Receipt, Refused, RunCaps
from engine.machine.messages import Role, text_in
from engine.machine.states import is_busy
from engine.records import AgentFacts, Delivery
from engine.updates import ApprovalAsked, MessageSaved, RunEnded, StateChanged, ToolStarted, Unsubscribe, Update
from phoenix_tui.acp.approvals import Approvals
from phoenix_tui.acp.connection import INTERNAL, Client
from phoenix_tui.acp.parameters import OptionsOf, Prompt, change_of, tables_of
from phoenix_tui.acp.tool_calls import text_part
from phoenix_tui.acp.translator import Translator, UpdatePump, progress
from phoenix_tui.features.custom_commands import CustomCommand
from phoenix_tui.features.init import request_text
from tools.call_titles import tool_label
from tools.clean import clean, clean_line
from tools.contract import ImageRejected

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from phoenix_tui.wiring.acp_services import AcpServices

LONGEST_NOTE: Final = 2_000
"""Characters of a sub-agent's newest words."""


class _Row(Struct):
    task: str
    doing: str = "begins"
    said: str = ""


class AgentsInSession(Struct):
    """The sub-agents of one session by the call that started them."""

    pump: UpdatePump
    translator: Translator
    approvals: Approvals
    _rows: dict[str, dict[str, _Row]] = field(default_factory=dict[str, dict[str, _Row]])

    def follow(self, agent: Conversation, facts: AgentFacts, update: Update) -> None:
        """Take in an update of a sub-agent."""
        if isinstance(update, ApprovalAsked):
            self.approvals.follow(agent, update.question)
            return
        rows = self._rows.setdefault(facts.call_id, {})
        row = rows.setdefault(agent.id, _Row(clean_line(facts.task)))
        match update:
            case ToolStarted(call, request):
                row.doing = clean_line(request.summary if request is not None else tool_label(call.name))
            case MessageSaved(message) if message.role is Role.ASSISTANT and not message.silent:
                row.said = clean(text_in(message.blocks, "\n\n"))[:LONGEST_NOTE] or row.said
            case RunEnded(status=status):
                row.doing = f"ended: {status}"
            case _:
                return
        if facts.call_id not in self.translator.calls:  # it has ended, and shows the outcome
            self._rows.pop(facts.call_id, None)
            return
        content = [text_part(f"**{one.task}**: {one.doing}\n\n{one.said}".rstrip()) for one in rows.values()]
        self.pump.put(progress(facts.call_id, content=content, field_meta={"phoenix": {"agents": list(rows)}}))


COMMANDS: Final = {
    "compact": ("Summarize older messages to make room", "what matters most"),
    "context": ("Show what fills the context window", ""),
    "init": ("Write or improve AGENTS.md for this project", ""),
    "model": ("Show or choose the model", "PROVIDER/MODEL"),
    "cost": ("Show tokens and cost of this conversation", ""),
}
"""Description and hint of each command."""


def available(custom: Sequence[CustomCommand]) -> list[AvailableCommand]:
    """The commands as the protocol lists them, those of skills and command files behind the built-in ones."""
    listed = [(name, description, hint) for name, (description, hint) in COMMANDS.items()]
    listed += [(one.name, one.meaning, one.hint) for one in custom if one.name not in COMMANDS]
    inputs = {hint: AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) for _, _, hint in listed if hint}
    return [AvailableCommand(name=name, description=said, input=inputs.get(hint)) for name, said, hint in listed]


def command_of(text: str) -> tuple[str, str] | None:
    """Name and rest of a command; None for a message."""
    name, _, rest = text.strip().partition(" ")
    return (name[1:], rest.strip()) if name.startswith("/") and name[1:] in COMMANDS else None


async def run_command(session: AcpSession, name: str, rest: str) -> str | None:
    """Run a command; the result is the message to send for it, None where there is none. Raises EngineError."""
    match name:
        case "compact":
            receipt = await session.conversation.context.compact(rest)
            if isinstance(receipt, Refused):
                raise RequestError(INTERNAL, receipt.reason)
            await session.until_rest()
        case "context":
            session.pump.say(await _context(session))
        case "init":
            folder = session.conversation.record.cwd
            return await request_text(folder, session.facts.engine.rules.build_denied_test(folder))
        case "model":
            if rest:
                await session.conversation.change(change_of("model", rest))
            session.pump.say(f"The model is {clean_line(session.conversation.record.model)}.")
        case _:
            session.pump.say("\n".join(f"- {line}" for line in await session.facts.cost(session.conversation)))
    return None


async def _context(session: AcpSession) -> str:
    report = await session.conversation.context.report()
    window = f" of {report.window:,}" if report.window else ""
    about = "about " if report.estimated else ""
    model = clean_line(session.conversation.record.model)
    lines = [f"{about}{report.tokens:,}{window} tokens are in the context of {model}."]
    if report.summarizable:
        lines.append(f"/compact would summarize {report.summarizable:,} older messages.")
    return "\n\n".join(lines)


StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
STOPS: Final[dict[str, StopReason]] = {
    "iteration_limit": "max_turn_requests",
    "output_limit": "max_tokens",
    "refusal": "refusal",
    "content_filter": "refusal",
}
"""Stop reasons of runs that did not succeed, by their error codes."""
AUTH_REQUIRED: Final = -32000
CLOSED: Final = RunEnded("", "cancelled", "", "", 0)
"""The end of a turn whose session is closed."""
WORKS: Final = "This conversation works on a prompt: wait for its end, or cancel it."
FAILED: Final = "The run failed."


class AcpSession:
    """A conversation that a client has open."""

    def __init__(self, client: Client, conversation: Conversation, options_of: OptionsOf, facts: AcpServices) -> None:
        self.conversation = conversation
        self.facts = facts
        self.caps: Callable[[], RunCaps] = RunCaps
        self.notices: list[str] = []
        """Sentences to say with the next prompt."""
        self._client = client
        self.pump = UpdatePump(self._send)
        self.translator = Translator(self.pump, conversation.record, options_of)
        self.approvals = Approvals(client, conversation, self.pump, self.translator.known_notes)
        self.agents = AgentsInSession(self.pump, self.translator, self.approvals)
        self._listed: list[AvailableCommand] = []
        """Commands as the client knows them."""
        self._starting: asyncio.Task[None] | None = None
        self._greeting: asyncio.Task[None] | None = None
        self._leave: Unsubscribe | None = None
        self._turn: asyncio.Future[RunEnded] | None = None
        self._cancelled = asyncio.Event()
        self._rests = asyncio.Event()

    @property
    def id(self) -> str:
        """Id of the session, which is that of its conversation."""
        return self.conversation.id

    async def open(self) -> None:
        """Follow the conversation."""
        self._leave = await self.conversation.subscribe(self.follow)

    async def use(self, services: AcpServices, request: Any) -> None:
        """Take the servers and the further folders of a request; the next prompt says what cannot be used."""
        folders = getattr(request, "additional_directories", None) or ()
        self.notices += await services.use_folders(self.conversation.record, folders)
        self.use_servers(services, tables_of(request))

    def use_servers(self, services: AcpServices, tables: Mapping[str, object]) -> None:
        """Start the MCP servers of the client; the next prompt waits for them, and says what is wrong."""
        record = self.conversation.record
        services.use_servers(record, tables)

        async def start() -> None:
            self.notices += await services.start_servers(record)

        if self._starting is not None:
            self._starting.cancel()
        self._starting = asyncio.get_running_loop().create_task(start()) if tables else None

    def greet(self) -> None:
        """Name the commands, in a task."""
        self._greeting = asyncio.get_running_loop().create_task(self.name_commands())

    async def name_commands(self) -> None:
        """Name the commands where they are not as the client knows them."""
        listed = available(await self.facts.custom_commands(self.conversation.record.cwd))
        if listed != self._listed:
            self._listed = listed
            update = AvailableCommandsUpdate(session_update="available_commands_update", available_commands=listed)
            self.pump.put(update)

    def follow(self, update: Update) -> None:
        """Take in one update of the conversation."""
        self.translator.follow(update)
        match update:
            case ApprovalAsked(question):
                self.approvals.follow(self.conversation, question)
            case StateChanged(state) if not is_busy(state):
                self._rests.set()
            case RunEnded():
                if self._turn is not None and not self._turn.done():
                    self._turn.set_result(update)
            case _:
                pass

    def expect(self) -> None:
        """Expect a prompt, which a cancel from now on is about."""
        if self._turn is None:
            self._cancelled.clear()

    async def prompt(self, prompt: Prompt, *, steers: bool) -> PromptResponse:
        """Send a message, or run a command, and wait for its end.

        Raises:
            RequestError: it was refused, or the run failed.
        """
        if self._turn is not None:
            if not steers:
                raise RequestError(INTERNAL, WORKS)
            return await self._steer(prompt, self._turn)
        self._turn = turn = asyncio.get_running_loop().create_future()
        try:
            self.translator.begin_turn()
            await self.name_commands()
            if self._starting is not None:
                cancelled = asyncio.get_running_loop().create_task(self._cancelled.wait())
                await asyncio.wait({self._starting, cancelled}, return_when=asyncio.FIRST_COMPLETED)
                cancelled.cancel()
            for notice in self.notices:
                self.translator.notice(notice)
            self.notices.clear()
            if (command := command_of(prompt.text)) is not None:
                return await self._command(*command)
            return await self._run(lambda ids, caps: self.conversation.say(prompt.text, ids, caps), prompt, turn)
        finally:
            self._turn = None
            await self.pump.flush()

    async def _command(self, name: str, rest: str) -> PromptResponse:
        turn = self._turn
        text = await run_command(self, name, rest)
        if text is not None and turn is not None:
            prompt = Prompt(text)
            return await self._run(lambda ids, caps: self.conversation.say(text, ids, caps), prompt, turn)
        return PromptResponse(stop_reason="cancelled" if self._cancelled.is_set() else "end_turn")

    async def _run(
        self, say: Callable[[list[str], RunCaps], Awaitable[Receipt]], prompt: Prompt, turn: asyncio.Future[RunEnded]
    ) -> PromptResponse:
        ids = await self._attach(prompt)
        if self._cancelled.is_set():
            return PromptResponse(stop_reason="cancelled")
        receipt = await say(ids, self.caps())
        if isinstance(receipt, NeedsYes) and not self._cancelled.is_set() and await self.approvals.agrees(receipt):
            receipt = await say(ids, replace(self.caps(), agreed=receipt.key))
        if isinstance(receipt, Refused):
            return self._answer_refusal(receipt)
        if self._cancelled.is_set():  # while it was stored
            self.conversation.cancel()
        return _response(await turn)

    def _answer_refusal(self, receipt: Refused) -> PromptResponse:
        """The answer to a prompt that was not sent; the client expects no error after its own cancel."""
        if self._cancelled.is_set():
            return PromptResponse(stop_reason="cancelled")
        raise RequestError(INTERNAL, receipt.reason)

    async def _steer(self, prompt: Prompt, turn: asyncio.Future[RunEnded]) -> PromptResponse:
        ids = await self._attach(prompt)
        queue = self.conversation.queue
        receipt = await queue.add(prompt.text, ids, self.caps(), delivery=Delivery.TOOL)
        if isinstance(receipt, Refused):
            return self._answer_refusal(receipt)
        ended = await asyncio.shield(turn)
        await self.pump.flush()
        return _response(ended)

    async def _attach(self, prompt: Prompt) -> list[str]:
        try:
            return [(await self.conversation.attach(image)).id for image in prompt.images]
        except ImageRejected as error:
            raise RequestError(INTERNAL, str(error)) from error

    async def until_rest(self) -> None:
        """Wait until nothing runs."""
        while is_busy(self.conversation.state):
            self._rests.clear()
            await self._rests.wait()

    def cancel(self) -> None:
        """Stop the run; its prompt is answered with `cancelled`."""
        self._cancelled.set()
        self.conversation.cancel()

    async def close(self) -> None:
        """Follow no longer; the conversation goes on to be open."""
        if self._leave is not None:
            self._leave()
        self.approvals.close()
        for task in filter(None, (self._greeting, self._starting)):
            task.cancel()
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(CLOSED)
        await self.pump.close()

    async def _send(self, update: BaseModel) -> None:
        await self._client.update(self.id, update)


def _response(ended: RunEnded) -> PromptResponse:
    if ended.status == "success":
        return PromptResponse(stop_reason="end_turn")
    if ended.status in {"cancelled", "interrupted"}:
        return PromptResponse(stop_reason="cancelled")
    if (stop := STOPS.get(ended.error_code)) is not None:
        return PromptResponse(stop_reason=stop)
    raise RequestError(AUTH_REQUIRED if ended.error_code == "auth" else INTERNAL, ended.error or FAILED)
