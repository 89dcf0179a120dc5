"""Interface between use cases and a front end: questions, notices, sheets, and pages of rows with actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from engine.executor.requests import EngineError, Receipt, Refused

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.ports.mcp import SignInAddress
    from engine.records import PermissionMode
    from engine.run_options import Effort
    from phoenix_tui.lifecycle.launch import Launch, Services
    from tools.contract import SandboxMode


TAKE: Final = "sheet_take"
"""Name of the key that does the first action of a row."""


class Confirmation(NamedTuple):
    """Question before an action, and the words of both answers."""

    text: str
    yes: str
    no: str


class PageAction(Struct, frozen=True):
    """One action on a row, or on the whole page."""

    run: Callable[[], Awaitable[str]]
    """Does it and returns the outcome in words, or an empty text. Raises an error of `ENGINE_ERRORS`."""
    keys: str = ""
    """Names of its keys in the keymap, separated by blanks; empty: only lines have it."""
    words: str = ""
    """Words of its row in a menu of lines; empty: not in a menu."""
    argument: str = ""
    """Argument of the command that does it in lines, such as `undo`."""
    progress: str = ""
    """Words in place of the outcome while it runs."""
    question: Confirmation | None = None
    closes: bool = False
    """True to close the sheet first; the page is not made again."""
    repeats: bool = False
    """True to offer the menu again in lines."""


class PageRow(Struct, frozen=True):
    """One row: its words, their meaning, and a remark at the right; `section` heads its group."""

    section: str
    key: str
    words: str
    meaning: str
    remark: str = ""
    argument: str = ""
    """Argument in a separate column."""
    about: tuple[str, ...] = ()
    """Lines below the rows while it is the chosen one."""
    spoken: str = ""
    """The row in lines."""
    name: str = ""
    """Heading of its menu in lines; a single action is done without one."""
    is_bad: bool = False
    """True for a row in the colour of faults."""
    actions: tuple[PageAction, ...] = ()


class ListPage(Struct, frozen=True):
    """Rows with actions as they are now; each action makes the page again."""

    title: str
    rows: tuple[PageRow, ...]
    hints: tuple[tuple[str, str], ...]
    """Keys in the heading with a word each; the last ones go first where there is little room."""
    empty: str = ""
    """Text in place of rows."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole page."""
    outcome: Literal["alone", "for notes", "last"] = "alone"
    """Place of an outcome on the screen: for all lines below the rows, for the notes, or after them. As the last line
    it stays until the next one.
    """
    actions: tuple[PageAction, ...] = ()
    """Actions that need no row."""
    current: str = ""
    """Key of the row that is chosen first, and when another one takes its place."""
    menu: str = ""
    """Heading of the actions without a row in lines, where there are no notes."""
    follows: bool = False
    """True to make the page again each second."""
    name_cells: int = 0
    """Cells of the column of words; 0: as wide as the longest."""
    cut: str = ""
    """Words about the key that shows the lines of `about` that do not fit; empty: all lines are shown."""


PageReader: TypeAlias = Callable[[], Awaitable[ListPage]]
"""Makes the page; called again after each action. Raises an error of `ENGINE_ERRORS`."""


class UndoSteps:
    """Inverses of the changes on a page, since it was opened on the screen, or of the session in lines."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], Awaitable[str]]] = []

    def add(self, inverse: Callable[[], Awaitable[str]]) -> None:
        """Keep the inverse of a change that was made."""
        self._steps.append(inverse)

    async def undo(self) -> str:
        """Undo the last change; the outcome in words. A step that fails is kept."""
        if not self._steps:
            return "There is nothing to undo."
        step = self._steps[-1]
        outcome = await step()
        self._steps.remove(step)
        return outcome


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
    def conversation(self) -> Conversation | None:
        """Conversation in view; None while a new one is empty."""
        ...

    async def current(self) -> Conversation:
        """The conversation in view, created now if there is none. Raises EngineError."""
        ...


class FrontEnd(ABC):
    """Asks and reports, with one conversation in view. An empty answer means that the user gave up."""

    most_options: ClassVar[int]
    """The most options that one question should offer."""

    def __init__(self, in_view: InView) -> None:
        self._in_view = in_view
        self.undo_steps = UndoSteps()
        """Changes of notes that can be undone."""

    @property
    def services(self) -> Services:
        """The engine and the services beside it."""
        return self._in_view.services

    @property
    def launch(self) -> Launch:
        """Options of new conversations."""
        return self._in_view.launch

    @property
    def conversation(self) -> Conversation | None:
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

    async def current(self) -> Conversation:
        """The conversation in view, created now if there is none. Raises EngineError."""
        return await self._in_view.current()

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
    async def pick(self, heading: str, options: Sequence[Option], *, current: str = "") -> str:
        """Ask for one of these by its key; empty for none."""

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
