"""Questions of servers to the user: each belongs to a conversation with a running call, and ends with it."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct

from engine.ports.mcp import ServerDefinition
from tools.clean import clean_line
from tools.contract import JsonObject, Report
from tools.mcp_form import OPEN, AddressForm, BadForm, FormAnswer, ServerForm, form_of
from tools.mcp_host.protocol import Content, ServerAsk, raw
from tools.mcp_sampling import DECLINED, NOT_CALLED, SampleAnswer, SampleRefused, SampleRequest, read_sample
from tools.mcp_tool import ServerCaller

CANCEL: Final = Raw(b'{"action":"cancel"}')
DECLINE: Final = Raw(b'{"action":"decline"}')
NO_SAMPLE: Final = Raw(b"null")
OFF: Final = "Sampling is off for this server."
ENDING: Final = 2.0
"""Seconds that the end of a call waits for its questions, and for a model that answers one, to end."""
LONGEST_PARAMS: Final = 64 * 1024
"""Bytes of a question; a longer one is declined."""
LOG_LINES: Final = 200


class UserAsker(Struct, frozen=True):
    """The front end of conversations, as far as a server may ask there; cancelling a question withdraws it."""

    ask: Callable[[str, str, ServerForm], Awaitable[FormAnswer]]
    """Returns the user's answer to a server's form in a conversation; without a user the form is left."""
    sample: Callable[[str, str, SampleRequest], Awaitable[SampleAnswer]]
    """Returns the answer of a model to a server's request, after the user's yes. Raises SampleRefused."""


class NoAnswerError(Exception):
    """Raised where a program gives no answer that counts; a clause that says why."""


class QuestionHost(Protocol):
    """A program that shows questions of servers by itself, in place of a front end."""

    async def ask(self, conversation_id: str, server: str, kind: str, params: JsonObject) -> JsonObject:
        """The answer for the server, `{action, content}`; `params` are those of MCP. Cancelling withdraws the question.

        Raises:
            BadForm: the question cannot be shown.
            NoAnswerError: there is no answer; for the server it is cancelled.
        """
        ...


class AskingServer:
    """A server that may ask: its definition and its log."""

    def __init__(self, definition: ServerDefinition) -> None:
        self.definition = definition
        """Definition as it is now."""
        self.log: deque[str] = deque(maxlen=LOG_LINES)

    @property
    def name(self) -> str:
        """Name as the user wrote it."""
        return self.definition.name

    def note(self, line: str) -> None:
        """Add a line to its log."""
        self.log.append(clean_line(line))


class _Open(Struct, frozen=True):
    """An open question."""

    server: str
    conversation: str
    task: asyncio.Task[None]


class ServerAsks:
    """Passes the questions of servers to the user, and the answers back."""

    def __init__(self) -> None:
        self.asker: UserAsker | None = None
        """None without a user here; without a host too, no server learns that it may ask."""
        self.host: QuestionHost | None = None
        """Asked in place of the user here."""
        self.open_address: Callable[[str], None] | None = None
        self._calls: dict[str, Counter[str]] = {}
        """Running calls of each server, by conversation, the newest conversation last."""
        self._open: dict[int, _Open] = {}

    @property
    def can_ask(self) -> bool:
        """True where a user can answer, here or at a host."""
        return self.asker is not None or self.host is not None

    @property
    def can_sample(self) -> bool:
        """True where a user here can agree that a model answers a server."""
        return self.asker is not None

    def caller(self, key: str, conversation: str, server: ServerCaller) -> ServerCaller:
        """The server for the calls of one conversation."""
        return _Caller(self, key, conversation, server)

    def begin(self, key: str, conversation: str) -> None:
        """Take the start of a call."""
        calls = self._calls.setdefault(key, Counter())
        calls[conversation] = calls.pop(conversation, 0) + 1

    def end(self, key: str, conversation: str) -> Sequence[asyncio.Task[None]]:
        """Take the end of a call: with the last one of its conversation the open questions there end.

        Returns what ends.
        """
        calls = self._calls[key]
        calls[conversation] -= 1
        if calls[conversation] > 0:
            return ()
        del calls[conversation]
        return self._withdraw(lambda one: (one.server, one.conversation) == (key, conversation))

    def take(self, asked: ServerAsk, server: AskingServer, answer: Callable[[Raw], None]) -> None:
        """Ask the user; `answer` is called once with the answer for the server."""
        conversation = next(reversed(self._calls.get(asked.server, Counter())), "")
        if asked.kind != "sampling":
            if not self.can_ask or not conversation:
                answer(CANCEL)
                return
            work = self._ask(asked, conversation, server, answer)
        elif self.asker is not None and conversation and server.definition.samples:
            work = self._sample(self.asker, asked, conversation, server, answer)
        else:
            answer(SampleRefused(NOT_CALLED if server.definition.samples else OFF, DECLINED).result)
            return
        task = asyncio.create_task(work)
        self._open[asked.ask] = _Open(asked.server, conversation, task)
        task.add_done_callback(lambda _: self._open.pop(asked.ask, None))

    def withdraw(self, ask: int) -> None:
        """Withdraw a question that the server no longer has."""
        if (one := self._open.get(ask)) is not None:
            one.task.cancel()

    def withdraw_all(self) -> None:
        """Withdraw all questions: the helper ended."""
        self._withdraw(lambda _: True)

    def _withdraw(self, wanted: Callable[[_Open], bool]) -> Sequence[asyncio.Task[None]]:
        tasks = [one.task for one in self._open.values() if wanted(one)]
        for task in tasks:
            task.cancel()
        return tasks

    async def _ask(
        self, asked: ServerAsk, conversation: str, server: AskingServer, answer: Callable[[Raw], None]
    ) -> None:
        try:
            given = await self._answer(asked.kind, _params(asked.params), conversation, server.name)
        except BadForm as error:
            server.note(f"warning: a question to the user was declined: it {error}")
            answer(DECLINE)
        except NoAnswerError as error:
            server.note(f"warning: a question to the user was cancelled: {error}")
            answer(CANCEL)
        except (asyncio.CancelledError, Exception):
            answer(CANCEL)
            raise
        else:
            answer(given)

    async def _answer(self, kind: str, params: JsonObject, conversation: str, server: str) -> Raw:
        if self.host is not None:
            return raw(await self.host.ask(conversation, server, kind, params))
        if self.asker is None:
            return CANCEL
        form = form_of(kind, params)
        given = await self.asker.ask(conversation, server, form)
        if given.answers is None:
            return CANCEL if given.is_left else DECLINE
        if isinstance(form, AddressForm) and given.answers == ((OPEN,),) and self.open_address is not None:
            self.open_address(form.url)
        return raw(form.result(given.answers))

    async def _sample(
        self,
        asker: UserAsker,
        asked: ServerAsk,
        conversation: str,
        server: AskingServer,
        answer: Callable[[Raw], None],
    ) -> None:
        try:
            request = await asyncio.to_thread(read_sample, asked.params)  # up to 4 MB
            given = await asker.sample(conversation, server.name, request)
        except SampleRefused as refused:
            server.note(f"warning: a sampling request was not answered: {refused.why or refused.sentence}")
            answer(refused.result)
        except BaseException:
            answer(NO_SAMPLE)
            raise
        else:
            answer(given.result)


class _Caller(Struct, frozen=True):
    """Implements `tools.mcp_tool.ServerCaller` for one conversation."""

    asks: ServerAsks
    key: str
    conversation: str
    server: ServerCaller

    async def call(self, tool: str, args: JsonObject, report: Report) -> Content:
        """Call a tool; the server may ask the user of this conversation meanwhile."""
        self.asks.begin(self.key, self.conversation)
        try:
            return await self.server.call(tool, args, report)
        finally:
            if ending := self.asks.end(self.key, self.conversation):
                await asyncio.wait(ending, timeout=ENDING)


def _params(content: Raw) -> JsonObject:
    if len(bytes(content)) > LONGEST_PARAMS:
        raise BadForm("is too long")
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise BadForm("cannot be read") from None
