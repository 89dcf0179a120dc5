"""The client side of the ACP library over the real `phoenix acp`: records every update and answers by a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamEvent

from tests.support.cli import Phoenix, end_input, with_claude
from tests.support.loopback import Answer, Loopback, Seen, Talk, serve
from tests.support.loopback_anthropic import refuse
from tests.support.waiting import PATIENCE, poll

NO_SERVERS: list[Any] = []


@dataclass(slots=True)
class Editor:
    """A client: what it saw, and its answers to questions."""

    updates: list[Any] = field(default_factory=list[Any])
    frames: list[dict[str, Any]] = field(default_factory=list["dict[str, Any]"])
    """Every message in both directions as it was on the wire."""
    asked: list[Any] = field(default_factory=list[Any])
    """Permission requests: tool call and options."""
    choose: Callable[[list[schema.PermissionOption]], str | None] = lambda _: None
    """Picks an option; None cancels."""
    holds: bool = False
    """True leaves every question open."""
    forms: list[Any] = field(default_factory=list[Any])
    read: list[str] = field(default_factory=list[str])
    """Paths whose texts were asked for."""
    texts: dict[str, str] | None = field(default_factory=dict[str, str])
    """Texts in the editor by path; None: it never answers."""
    fill: dict[str, Any] | None = None
    """Content of a form; None declines."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        if self.holds:
            await asyncio.Event().wait()
        chosen = self.choose(options)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(self, path: str, **_: Any) -> schema.ReadTextFileResponse:
        self.read.append(path)
        if self.texts is None:
            await asyncio.Event().wait()
        text = (self.texts or {}).get(path)
        if text is None:
            raise acp.RequestError.invalid_params({"path": path})
        return schema.ReadTextFileResponse(content=text)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        if self.fill is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=self.fill)

    def on_connect(self, conn: Any) -> None:
        pass

    def observe(self, event: StreamEvent) -> None:
        self.frames.append({"direction": event.direction.value, **event.message})

    def of(self, kind: str) -> list[Any]:
        """Updates of one kind."""
        return [one for one in self.updates if one.session_update == kind]

    @property
    def text(self) -> str:
        """Words of the agent."""
        return "".join(one.content.text for one in self.of("agent_message_chunk"))

    def call(self, call_id: str) -> dict[str, Any]:
        """A tool call with all its updates in the place of one another."""
        whole: dict[str, Any] = {}
        for one in self.updates:
            if getattr(one, "tool_call_id", None) == call_id:
                whole |= one.model_dump(exclude_none=True)
        return whole

    async def sees(self, condition: Callable[[], object]) -> None:
        """Wait until something has come."""
        assert await poll(condition), [one.session_update for one in self.updates]


@dataclass(frozen=True, slots=True)
class Opened:
    """A running agent, its client, and one session."""

    agent: ClientSideConnection
    editor: Editor
    process: asyncio.subprocess.Process
    phoenix: Phoenix
    session_id: str = ""
    server: Loopback | None = None

    async def says(self, *blocks: Any) -> schema.PromptResponse:
        """Prompt with texts or blocks."""
        given = [acp.text_block(one) if isinstance(one, str) else one for one in blocks]
        async with asyncio.timeout(PATIENCE):
            return await self.agent.prompt(session_id=self.session_id, prompt=given)

    @property
    def requests(self) -> list[Seen]:
        """Requests to the model, without those for the list of models."""
        assert self.server is not None
        return [one for one in self.server.requests if one.method == "POST"]


@asynccontextmanager
async def connected(
    phoenix: Phoenix, *arguments: str, editor: Editor | None = None, **capabilities: Any
) -> AsyncGenerator[Opened]:
    """`phoenix acp` behind its first message."""
    editor = editor or Editor()
    process = await phoenix.start("acp", *arguments, stdin=asyncio.subprocess.PIPE)
    assert process.stdin is not None
    agent = acp.connect_to_agent(
        editor,  # type: ignore[arg-type] # it has what these tests need
        process.stdin,
        process.stdout,
        use_unstable_protocol=True,
        observers=[editor.observe],
    )
    try:
        async with asyncio.timeout(PATIENCE):
            await agent.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities(**capabilities))
        yield Opened(agent, editor, process, phoenix)
    finally:
        await agent.close()
        await end_input(process)


@asynccontextmanager
async def editing(
    phoenix: Phoenix, *arguments: str, editor: Editor | None = None, **capabilities: Any
) -> AsyncGenerator[Opened]:
    """`phoenix acp` with a new session in the working directory."""
    async with connected(phoenix, *arguments, editor=editor, **capabilities) as opened:
        async with asyncio.timeout(PATIENCE):
            begun = await opened.agent.new_session(cwd=str(phoenix.cwd), mcp_servers=NO_SERVERS)
        yield replace(opened, session_id=begun.session_id)


@asynccontextmanager
async def scripted(
    folder: Path,
    *answers: Answer,
    flags: Sequence[str] = (),
    editor: Editor | None = None,
    extra: Mapping[str, str] | None = None,
    **capabilities: Any,
) -> AsyncGenerator[Opened]:
    """A new session whose model gives these answers."""
    async with serve(replies(*answers)) as server:
        phoenix = with_claude(folder, server.url, **(extra or {}))
        async with editing(phoenix, *flags, editor=editor, **capabilities) as opened:
            yield replace(opened, server=server)


def replies(*answers: Answer) -> Answer:
    """Answers in turn, the last one again and again; none of them is spent on who asks for the list of models."""
    left = list(answers)

    async def answer(talk: Talk) -> None:
        if not await is_refused(talk):
            await (left.pop(0) if len(left) > 1 else left[0])(talk)

    return answer


async def is_refused(talk: Talk) -> bool:
    """Refuse to list models; True where that was asked."""
    return talk.seen.method == "GET" and await refuse(talk)


def option(kind: str) -> Callable[[list[schema.PermissionOption]], str | None]:
    """Picks the first option of a kind."""
    return lambda options: next(one.option_id for one in options if one.kind == kind)
