"""Interface between use cases and a front end: questions, notices and sheets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

from engine.executor.requests import EngineError, Receipt, Refused
from phoenix_tui.features.page import PageReader, UndoSteps

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from engine.ports.mcp import SignInAddress
    from engine.records import PermissionMode
    from engine.run_options import Effort
    from phoenix_tui.lifecycle.launch import Launch, Services
    from tools.contract import SandboxMode


class Option(Struct, frozen=True):
    """One of several to choose from: the returned key, its words, and facts beside them."""

    key: str
    words: str
    facts: tuple[str, ...] = ()


class FrontEndSession(Protocol):
    """Access to conversations for reading and writing."""

    @property
    def launch(self) -> Launch:
        """Options of new conversations."""
        ...

    @property
    def services(self) -> Services:
        """The engine and the services beside it."""
        ...


class InView(Protocol):
    """The conversation in view, and the options of the next new one."""

    services: Services
    launch: Launch
    model: str
    mode: PermissionMode
    sandbox: SandboxMode | None

    @property
    def conversation(self) -> ConversationApi | None:
        """Conversation in view; None while a new one is empty."""
        ...

    async def current(self) -> ConversationApi:
        """The conversation in view, created now if there is none. Raises EngineError."""
        ...


class FrontEnd(ABC):
    """Asks and reports, with one conversation in view. An empty answer means that the user gave up."""

    most_options: ClassVar[int]
    """The most options that one question should offer."""

    def __init__(self, in_view: InView) -> None:
        self._in_view = in_view
        self._undo_steps: dict[str, UndoSteps] = {}

    @property
    def services(self) -> Services:
        """The engine and the services beside it."""
        return self._in_view.services

    @property
    def launch(self) -> Launch:
        """Options of new conversations."""
        return self._in_view.launch

    @property
    def conversation(self) -> ConversationApi | None:
        """The conversation in view; None while a new one has nothing in it."""
        return self._in_view.conversation

    @property
    def model(self) -> str:
        """The model of the conversation in view, or of the next one."""
        return self.conversation.record.model if self.conversation is not None else self._in_view.model

    @property
    def mode(self) -> PermissionMode:
        """The permission mode of the conversation in view, or of the next one."""
        return self.conversation.record.permission_mode if self.conversation is not None else self._in_view.mode

    @property
    def effort(self) -> Effort:
        """The effort of the conversation in view, or of the next one."""
        return self.conversation.record.effort if self.conversation is not None else self.launch.effort

    @property
    def sandbox(self) -> SandboxMode:
        """The sandbox of the conversation in view, or of the next one."""
        now = self.conversation.record.sandbox if self.conversation is not None else self._in_view.sandbox
        return now or self.launch.sandbox

    async def current(self) -> ConversationApi:
        """The conversation in view, created now if there is none. Raises EngineError."""
        return await self._in_view.current()

    def undo_steps(self, page: str) -> UndoSteps:
        """Changes that can be undone on this page."""
        return self._undo_steps.setdefault(page, UndoSteps())

    def prefer(
        self,
        *,
        launch: Launch | None = None,
        model: str = "",
        mode: PermissionMode | None = None,
        sandbox: SandboxMode | None = None,
    ) -> None:
        """Set the options of the next new conversation; mode and sandbox while none is open."""
        self._in_view.launch = launch or self.launch
        self._in_view.model = model or self._in_view.model
        if self.conversation is None:
            self._in_view.mode = mode or self._in_view.mode
            self._in_view.sandbox = sandbox or self._in_view.sandbox

    @abstractmethod
    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something that is not kept."""

    @abstractmethod
    def confirm_change(self, text: str) -> None:
        """Report the present setting, unless the front end shows it all the time."""

    @abstractmethod
    def read(self, heading: str, text: str, *, hang: int = 0) -> None:
        """Show a longer text; a wrapped row continues `hang` cells in."""

    @abstractmethod
    async def review(self, heading: str, text: str) -> None:
        """Show a longer text, and wait until the user has read it."""

    @abstractmethod
    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "", free: bool = False) -> str:
        """Ask for one of these by its key, `free`: or for a text of the user's own."""

    @abstractmethod
    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask for one line, with `text` to be changed."""

    @abstractmethod
    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask for a yes or no; the words name both actions."""

    @abstractmethod
    async def show(self, read: PageReader, argument: str = "") -> None:
        """Show a page and do what is chosen on it; in lines `argument` can name an action."""

    @abstractmethod
    async def edit(self, path: Path, invitation: str = "", *, line: int = 1) -> None:
        """Let the user change a file, from `line` on; where that is left to the user, the path follows `invitation`.

        Raises:
            EngineError: there is no editor.
        """

    @abstractmethod
    async def sign_in(self, name: str, address: SignInAddress) -> str:
        """Lead to the sign-in of an MCP server; returns the outcome, if it is known. Raises EngineError."""

    @abstractmethod
    def name_way(self, key: str, command: str) -> str:
        """The way to an action in this front end: its key, or a command."""

    @abstractmethod
    async def open(self, conversation_id: str) -> None:
        """Bring another conversation into view. Raises EngineError."""

    @abstractmethod
    async def begin_anew(self) -> None:
        """Replace an empty conversation by a new one; the written text stays."""

    @abstractmethod
    def stop(self) -> bool:
        """Stop the run in view with its sub-agents, or put its error away; False where there was neither."""


def require_accepted(receipt: Receipt) -> None:
    """Raise EngineError with the reason where a request was refused."""
    if isinstance(receipt, Refused):
        raise EngineError(receipt.reason)
