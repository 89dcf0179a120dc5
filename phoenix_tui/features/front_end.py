"""What a use case needs of a front end, as Protocols: it asks, says and shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from engine.executor.requests import EngineError, Receipt, Refused

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from engine.records import PermissionMode
    from phoenix_tui.lifecycle.launch import Launch, Services
    from tools.contract import SandboxMode


class Option(Struct, frozen=True):
    """One of several to choose from: what is given back, its words, and facts beside them."""

    key: str
    words: str
    facts: tuple[str, ...] = ()


class FrontEndSession(Protocol):
    """Where conversations are opened and written in."""

    @property
    def launch(self) -> Launch:
        """What new conversations begin with."""
        ...

    @property
    def services(self) -> Services:
        """The engine and what stands beside it."""
        ...


class Asker(Protocol):
    """Asks and says. An empty answer stands for a user who gave up."""

    @property
    def most_options(self) -> int:
        """The most options that one question should offer."""
        ...

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something that is not kept."""
        ...

    def confirm_change(self, text: str) -> None:
        """Say what is in force now, unless the front end shows it all the time."""
        ...

    def read(self, heading: str, text: str, *, hang: int = 0) -> None:
        """Show a longer text; a row that goes on does so `hang` cells in."""
        ...

    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "", free: bool = False) -> str:
        """Ask for one of these by its key, `free`: or for a text of the user's own."""
        ...

    async def ask_line(self, heading: str, text: str = "") -> str:
        """Ask for one line, with `text` to be changed."""
        ...

    async def confirm(self, question: str, yes: str, no: str) -> bool:
        """Ask for a yes or no; the words say what each does."""
        ...


class FrontEnd(Asker, FrontEndSession, Protocol):
    """A front end with one conversation in view."""

    @property
    def conversation(self) -> ConversationApi | None:
        """The conversation in view; None while a new one has nothing in it."""
        ...

    @property
    def model(self) -> str:
        """The model of the conversation in view."""
        ...

    @property
    def mode(self) -> PermissionMode:
        """The permission mode of the conversation in view."""
        ...

    @property
    def sandbox(self) -> SandboxMode:
        """The sandbox of the conversation in view."""
        ...

    async def current(self) -> ConversationApi:
        """The conversation in view, created now if there is none. Raises EngineError."""
        ...

    async def open(self, conversation_id: str) -> None:
        """Bring another conversation into view. Raises EngineError."""
        ...

    async def begin_anew(self) -> None:
        """Put a new conversation in the place of one in which nothing was said; what is written stays."""
        ...

    def prefer(
        self,
        *,
        launch: Launch | None = None,
        model: str = "",
        mode: PermissionMode | None = None,
        sandbox: SandboxMode | None = None,
    ) -> None:
        """Set with what the next new conversation begins."""
        ...

    def stop(self) -> bool:
        """Stop the run in view with its sub-agents, or put its error away; False where there was neither."""
        ...


def accepted(receipt: Receipt) -> None:
    """Raise EngineError with the reason where a request was refused."""
    if isinstance(receipt, Refused):
        raise EngineError(receipt.reason)
