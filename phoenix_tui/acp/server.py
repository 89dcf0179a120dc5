"""The agent: its methods, and the sessions of one client."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.schema import (
    AgentCapabilities,
    AuthEnvVar,
    EnvVarAuthMethod,
    Implementation,
    InitializeResponse,
    McpCapabilities,
    PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
)
from msgspec import Struct

from engine.executor.requests import EngineError
from engine.machine.states import StopCause
from engine.ports import ConversationChanges, NoConversation, StorageError
from engine.records import AgentFacts, ConversationQuery, ConversationRecord, build_fork_place
from engine.updates import Update
from phoenix_tui.acp.connection import (
    INTERNAL,
    NOT_FOUND,
    Client,
    Dispatcher,
    LineTransport,
    MethodRoute,
    fields_of,
    invalid,
)
from phoenix_tui.acp.parameters import ModelList, change_of, modes_of, read_prompt
from phoenix_tui.acp.services import UnsavedTexts
from phoenix_tui.acp.session import AcpSession
from phoenix_tui.acp.translator import replay
from phoenix_tui.cli.names import VERSION
from phoenix_tui.lifecycle.stop_signals import SIGNAL_EXIT, listen
from tools.clean import clean_line, reveal_name

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from phoenix_tui.wiring.acp_services import AcpServices

PROTOCOL: Final = 1
"""The version that is spoken; a client that asks for another one decides whether that is enough."""
KEYS: Final = {
    "anthropic": ("ANTHROPIC_API_KEY", "Anthropic"),
    "openai": ("OPENAI_API_KEY", "OpenAI"),
}
"""Environment variable and name of each authentication method."""


def is_method(method_id: str) -> bool:
    """True for a known authentication method."""
    return method_id in KEYS


def answer_to_initialize() -> InitializeResponse:
    """The answer to `initialize`."""
    return InitializeResponse(
        protocol_version=PROTOCOL,
        agent_info=Implementation(name="phoenix", title="Phoenix", version=VERSION),
        auth_methods=[_method(name, *facts) for name, facts in KEYS.items()],
        agent_capabilities=AgentCapabilities(
            load_session=True,
            prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
            mcp_capabilities=McpCapabilities(http=True, sse=True),
            session_capabilities=SessionCapabilities(
                list=SessionListCapabilities(),
                additional_directories=SessionAdditionalDirectoriesCapabilities(),
                resume=SessionResumeCapabilities(),
                close=SessionCloseCapabilities(),
                delete=SessionDeleteCapabilities(),
                fork=SessionForkCapabilities(),
            ),
        ),
    )


def _method(name: str, variable: str, title: str) -> EnvVarAuthMethod:
    return EnvVarAuthMethod(
        type="env_var",
        id=name,
        name=f"{title} API key",
        description=f"Set {variable}, or enter the key once in Phoenix itself.",
        vars=[AuthEnvVar(name=variable, label=f"{title} API key", secret=True)],
    )


PAGE: Final = 50
"""Sessions of one list."""


class SetModel(Struct, frozen=True, rename="camel"):
    """Parameters of `session/set_model`, which clients of earlier versions send."""

    session_id: str
    model_id: str


class AcpServer:
    """One client and its sessions."""

    def __init__(self, client: Client, opening: asyncio.Future[AcpServices]) -> None:
        self.client = client
        self._opening = opening
        self._sessions: dict[str, AcpSession] = {}
        self._entering = asyncio.Lock()
        self._models = ModelList(self._list_models)
        opening.add_done_callback(self._follow_opened)

    def dispatcher(self) -> Dispatcher:
        """The methods by name."""
        requests: dict[str, tuple[Any, Callable[[Any], Awaitable[Any]]]] = {
            "initialize": (schema.InitializeRequest, self.initialize),
            "authenticate": (schema.AuthenticateRequest, self.authenticate),
            "session/new": (schema.NewSessionRequest, self.new),
            "session/load": (schema.LoadSessionRequest, self.load),
            "session/resume": (schema.ResumeSessionRequest, self.resume),
            "session/fork": (schema.ForkSessionRequest, self.fork),
            "session/list": (schema.ListSessionsRequest, self.sessions),
            "session/close": (schema.CloseSessionRequest, self.leave),
            "session/delete": (schema.DeleteSessionRequest, self.delete),
            "session/prompt": (schema.PromptRequest, self.prompt),
            "session/set_mode": (schema.SetSessionModeRequest, self.set_mode),
            "session/set_model": (SetModel, self.set_model),
            "session/set_config_option": (schema.SetSessionConfigOptionSelectRequest, self.set_option),
        }
        routes = {name: MethodRoute(kind, handle) for name, (kind, handle) in requests.items()}
        return Dispatcher(routes, {"session/cancel": MethodRoute(schema.CancelNotification, self.cancel)})

    async def initialize(self, request: schema.InitializeRequest) -> schema.InitializeResponse:
        """Say who this is and what it can do."""
        if request.client_capabilities is not None:
            self.client.capabilities = request.client_capabilities
        return answer_to_initialize()

    async def authenticate(self, request: schema.AuthenticateRequest) -> schema.AuthenticateResponse:
        """Accept a known method: keys come from the environment and from Phoenix's own files."""
        if not is_method(request.method_id):
            raise invalid(f"There is no authentication method {clean_line(request.method_id)[:100]}.")
        return schema.AuthenticateResponse()

    async def new(self, request: schema.NewSessionRequest) -> schema.NewSessionResponse:
        """Begin a conversation."""
        services, cwd = await self._services(), absolute(request.cwd)
        begun = await services.begin(cwd)
        conversation = await services.engine.create(begun.options)
        session = await self._enter(conversation, request, begun.notices)
        options = await self._models.options(conversation.record)
        modes = modes_of(conversation.record)
        greet(session)
        return schema.NewSessionResponse(session_id=session.id, modes=modes, config_options=options)

    async def load(self, request: schema.LoadSessionRequest) -> schema.LoadSessionResponse:
        """Open a conversation and send its history."""
        session = await self._open(request.session_id, request.cwd, request)
        await replay(session.conversation, session.translator)
        record = session.conversation.record
        options = await self._models.options(record)
        greet(session)
        return schema.LoadSessionResponse(modes=modes_of(record), config_options=options)

    async def resume(self, request: schema.ResumeSessionRequest) -> schema.ResumeSessionResponse:
        """Open a conversation without its history."""
        session = await self._open(request.session_id, request.cwd, request)
        record = session.conversation.record
        options = await self._models.options(record)
        greet(session)
        return schema.ResumeSessionResponse(modes=modes_of(record), config_options=options)

    async def fork(self, request: schema.ForkSessionRequest) -> schema.ForkSessionResponse:
        """Open a copy of a conversation."""
        services = await self._services()
        folder = await asyncio.to_thread(absolute(request.cwd).resolve)
        found = await services.engine.find(request.session_id)
        moves = len(found) == 1 and found[0].cwd != folder
        place = build_fork_place(found[0].cwd, folder) if moves else None
        with convert_unknown(request.session_id):
            conversation = await services.engine.fork(request.session_id, place=place)
        session = await self._enter(conversation, request)
        options = await self._models.options(conversation.record)
        modes = modes_of(conversation.record)
        greet(session)
        return schema.ForkSessionResponse(session_id=session.id, modes=modes, config_options=options)

    async def sessions(self, request: schema.ListSessionsRequest) -> schema.ListSessionsResponse:
        """A page of conversations, newest first; the cursor is the number of those before it."""
        services = await self._services()
        cwd = await asyncio.to_thread(absolute(request.cwd).resolve) if request.cwd is not None else None
        cursor = request.cursor or "0"
        if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
            raise invalid("The cursor is none of this agent's: begin without one.")
        first = int(cursor)
        found = await services.engine.list(ConversationQuery(cwd=cwd, scripted=False, limit=PAGE + 1, offset=first))
        sessions = [
            schema.SessionInfo(
                session_id=one.id,
                cwd=str(one.cwd),
                title=clean_line(one.title) or None,
                updated_at=datetime.fromtimestamp(one.updated_at, UTC).isoformat(),
            )
            for one in found[:PAGE]
        ]
        following = str(first + PAGE) if len(found) > PAGE else None
        return schema.ListSessionsResponse(sessions=sessions, next_cursor=following)

    async def leave(self, request: schema.CloseSessionRequest) -> schema.CloseSessionResponse:
        """Stop a session's run and release its conversation."""
        session = self._session(request.session_id)
        await self._leave(session)
        return schema.CloseSessionResponse()

    async def delete(self, request: schema.DeleteSessionRequest) -> schema.DeleteSessionResponse:
        """Move a conversation to the trash."""
        services = await self._services()
        if (session := self._sessions.get(request.session_id)) is not None:
            await self._leave(session)
        with convert_unknown(request.session_id):
            await services.engine.change(request.session_id, ConversationChanges(deleted=True))
        return schema.DeleteSessionResponse()

    async def prompt(self, request: schema.PromptRequest) -> schema.PromptResponse:
        """Run one turn."""
        session = self._session(request.session_id)
        session.expect()
        prompt = await read_prompt(request.prompt)
        ours = fields_of(fields_of(request.field_meta).get("phoenix"))
        return await session.prompt(prompt, steers=ours.get("steer") is True)

    async def cancel(self, request: schema.CancelNotification) -> None:
        """Stop the turn of a session."""
        if (session := self._sessions.get(request.session_id)) is not None:
            session.cancel()

    async def set_mode(self, request: schema.SetSessionModeRequest) -> schema.SetSessionModeResponse:
        """Choose the permission mode."""
        await self._change(request.session_id, "mode", request.mode_id)
        return schema.SetSessionModeResponse()

    async def set_model(self, request: SetModel) -> dict[str, Any]:
        """Choose the model, as clients of earlier versions do."""
        await self._change(request.session_id, "model", request.model_id)
        return {}

    async def set_option(
        self, request: schema.SetSessionConfigOptionSelectRequest
    ) -> schema.SetSessionConfigOptionResponse:
        """Choose mode, model or effort."""
        session = await self._change(request.session_id, request.config_id, request.value)
        options = await self._models.options(session.conversation.record)
        return schema.SetSessionConfigOptionResponse(config_options=options)

    def session_of(self, record: ConversationRecord) -> str:
        """The open session of a conversation or of a sub-agent's parent; empty: none."""
        ids = record.id, record.agent.parent_id if record.agent is not None else ""
        return next((one for one in ids if one in self._sessions), "")

    async def close(self) -> None:
        """Cancel everything and close all services."""
        for session in self._sessions.values():
            session.conversation.cancel(StopCause.ENDING)
        self._models.close()
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def _change(self, session_id: str, option: str, value: str) -> AcpSession:
        session = self._session(session_id)
        await session.conversation.change(change_of(option, value))
        return session

    async def _open(self, session_id: str, cwd: str, request: Any) -> AcpSession:
        """The session of a stored conversation, which must be one of this folder and free."""
        services, folder = await self._services(), absolute(cwd)
        async with self._entering:
            if (session := self._sessions.get(session_id)) is not None:
                await session.use(services, request)
                return session
            with convert_unknown(session_id):
                conversation = await services.engine.open(session_id)
        own = conversation.record.cwd
        if refusal := await asyncio.to_thread(_refusal, conversation, folder):
            await services.engine.forget(session_id)
            raise refusal
        return await self._enter(conversation, request, await services.notices(own))

    async def _enter(self, conversation: Conversation, request: Any, notices: Sequence[str] = ()) -> AcpSession:
        services = await self._services()
        session = AcpSession(self.client, conversation, self._models.options, services)
        session.caps = lambda: services.caps(conversation.record)
        session.notices += notices
        self._sessions[session.id] = session
        await session.open()
        await session.use(services, request)
        return session

    async def _leave(self, session: AcpSession) -> None:
        services = await self._services()
        self._sessions.pop(session.id, None)
        session.cancel()
        await services.engine.forget(session.id)
        services.leave_folders(session.id)
        await session.close()

    def _session(self, session_id: str) -> AcpSession:
        session = self._sessions.get(session_id)
        if session is None:
            name = clean_line(session_id)[:100]
            raise RequestError(NOT_FOUND, f"There is no open session {name}: begin one, or load it.")
        return session

    def _follow_opened(self, opening: asyncio.Future[AcpServices]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            opening.result().follow_agents(self._follow_agent)
            self._models.refresh()

    def _follow_agent(self, agent: Conversation, facts: AgentFacts, update: Update) -> None:
        if (session := self._sessions.get(facts.parent_id)) is not None:
            session.agents.follow(agent, facts, update)

    async def _services(self) -> AcpServices:
        """The opened services; a request that ends meanwhile, as its client leaves, stops no opening."""
        return await asyncio.shield(self._opening)

    async def _list_models(self) -> Any:
        return await (await self._services()).models()


def greet(session: AcpSession) -> None:
    """Name the commands of a session behind the answer that is about to be given."""
    asyncio.get_running_loop().call_soon(session.greet)


@contextmanager
def convert_unknown(session_id: str) -> Generator[None]:
    """Say that there is no such session where the engine knows no such conversation. Raises RequestError."""
    try:
        yield
    except (EngineError, StorageError) as error:
        if not isinstance(error, NoConversation) and not isinstance(error.__cause__, NoConversation):
            raise
        raise RequestError(NOT_FOUND, f"There is no session {clean_line(session_id)[:100]}.") from error


def _refusal(conversation: Conversation, folder: Path) -> RequestError | None:
    """Reason why a stored conversation is no session of a folder here."""
    record = conversation.record
    if record.deleted or record.agent is not None:
        return RequestError(NOT_FOUND, f"There is no session {record.id}.")
    if conversation.read_only:
        return RequestError(INTERNAL, conversation.read_only)
    if folder.resolve() != record.cwd:
        works = f"This conversation works in {reveal_name(record.cwd)}"
        if not record.cwd.is_dir():
            return invalid(f"{works}, which is gone: session/fork continues in a copy in another folder.")
        return invalid(f"{works}: open it with that folder as cwd.")
    return None


def absolute(cwd: str) -> Path:
    """A working directory. Raises RequestError."""
    path = Path(cwd)
    if not path.is_absolute() or "\0" in cwd:
        raise invalid(f"cwd is {reveal_name(cwd)[:200] or 'empty'}: give an absolute path.")
    return path


SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


async def serve(
    reading: int, writing: int, open_services: Callable[[], Awaitable[AcpServices]], unsaved: UnsavedTexts
) -> int:
    """Serve one client until its input ends, or a signal comes; the exit code."""
    loop = asyncio.get_running_loop()
    transport = LineTransport(reading, writing)
    stopped_by: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        stopped_by.append(number)
        transport.end()

    listen(loop, SIGNALS, stop)
    opening = asyncio.ensure_future(open_services())
    client = Client()
    server = AcpServer(client, opening)
    unsaved.editor, unsaved.session_of = client, server.session_of
    connection = Connection(server.dispatcher(), transport, listening=False)
    client.connect(connection)
    try:
        await connection.main_loop()
    finally:
        await server.close()
        await connection.close()
        with suppress(Exception):  # why nothing could be opened is in the answers
            await (await opening).close()
    return SIGNAL_EXIT + stopped_by[0] if stopped_by else 0
