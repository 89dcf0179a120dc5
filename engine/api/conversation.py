"""Interface of one open conversation for front ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from engine.executor.requests import Receipt, RunCaps
from engine.machine.states import StopCause
from engine.records import Delivery, QueuedMessage, SideExchange

if TYPE_CHECKING:
    from pathlib import Path

    from engine.context.measure import WindowPart
    from engine.executor.context_manager import ContextReport, Edited, SystemPrompt
    from engine.executor.requests import ApprovalAnswer, Refused, Review
    from engine.executor.session import MessageRange
    from engine.executor.session_parts import HookFacts
    from engine.machine.states import State
    from engine.ports import ConversationChanges
    from engine.records import Attachment, ConversationRecord
    from engine.updates import Question, RouteCard, RouteVerdict, Update
    from tools.contract import Captured, JobInfo
    from tools.displays import TodoItem, TodoList
    from tools.process.command_terminal import TerminalLoan
    from tools.terminal.values import TerminalModes, TerminalSize


Unsubscribe = Callable[[], None]


class SideQuestionsApi(Protocol):
    """Questions beside a conversation."""

    async def ask(self, question: str, earlier: Sequence[SideExchange] = ()) -> str:
        """Answer of its model, which is given `earlier` ones, also while it works.

        Raises ProviderError, StorageError.
        """
        ...

    async def suggestion(self) -> str:
        """Suggested next message of the user; empty without a specific one. Raises ProviderError, StorageError."""
        ...


class QueueApi(Protocol):
    """Messages that are sent one by one whenever the conversation comes to rest."""

    @property
    def waiting(self) -> tuple[QueuedMessage, ...]:
        """First to be sent first."""
        ...

    @property
    def held(self) -> bool:
        """True while they wait for the user after a stop, an error or a restart."""
        ...

    async def add(
        self,
        text: str,
        image_ids: Sequence[str] = (),
        caps: RunCaps | None = None,
        *,
        is_shell: bool = False,
        delivery: Delivery = Delivery.IDLE,
    ) -> Receipt:
        """Queue a message, or a line that begins with `!`, behind the others; `delivery` says when it is sent."""
        ...

    async def deliver(self, message_id: str, delivery: Delivery) -> Receipt:
        """Choose when one is sent."""
        ...

    async def edit(self, message_id: str, text: str) -> Receipt:
        """Give one another text; without text and images it goes."""
        ...

    async def move(self, message_id: str, place: int) -> Receipt:
        """Put one at this place, counted from 0."""
        ...

    async def remove(self, message_id: str) -> Receipt:
        """Take one out."""
        ...

    async def go_on(self, caps: RunCaps | None = None) -> Receipt:
        """Hold them no longer."""
        ...

    async def send_now(self, message_id: str = "", caps: RunCaps | None = None) -> Receipt:
        """Stop the current run and send this one, or the first."""
        ...


class ContextApi(Protocol):
    """Contents of the window, and actions on them; the stored messages are never changed."""

    @property
    def summarizing(self) -> bool:
        """True while older messages are summarized in the background; a cancel stops that."""
        ...

    async def report(self) -> ContextReport:
        """Measure the window's contents."""
        ...

    async def count(self) -> bool:
        """Ask the provider to count the window where only an estimate is known; True when it did."""
        ...

    async def prompt(self) -> SystemPrompt:
        """System prompt of the next request."""
        ...

    async def compact(self, focus: str = "", review: Review | None = None, before: int = 0) -> Receipt:
        """Summarize older messages, or those before one of the user's messages, given by its seq.

        `focus` says what matters most, `review` shows the summary before it counts.
        """
        ...

    async def prune(self) -> Edited | Refused:
        """Shorten old tool results."""
        ...

    async def strip_images(self) -> Edited | Refused:
        """Leave every image out."""
        ...

    async def omit(self, part: WindowPart) -> Edited | Refused:
        """Leave one part out."""
        ...

    async def put_back(self, part: WindowPart | None = None) -> Edited | Refused:
        """Send one part whole again, or all of them."""
        ...

    async def undo(self) -> Edited | Refused:
        """Take the last edit of this sitting back."""
        ...

    async def restore(self) -> Edited | Refused:
        """Send again the messages that the newest summary replaced."""
        ...

    async def set_threshold(self, percent: int) -> None:
        """Set the fill level in per cent from which older messages are summarized; above 95 never."""
        ...


class JobsApi(Protocol):
    """Background commands."""

    def all(self) -> tuple[JobInfo, ...]:
        """Oldest first, ended ones included."""
        ...

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        ...

    async def kill(self, job_id: str) -> None:
        """End one with everything it started. Raises KeyError for an unknown id."""
        ...

    def background(self) -> Receipt:
        """Turn the running command into a job: its call ends at once, and the run continues."""
        ...


class TerminalApi(Protocol):
    """Terminal of the user's own shell lines."""

    @property
    def folder(self) -> str:
        """Folder of the next line, where it is not the conversation's; else empty."""
        ...

    @property
    def modes(self) -> TerminalModes | None:
        """Modes that the running line has set; None while none runs in a terminal."""
        ...

    @property
    def wants_screen(self) -> bool:
        """True while the program of the running line uses the alternate screen, for which it needs a whole terminal."""
        ...

    def lend(self, size: TerminalSize) -> TerminalLoan | None:
        """Lend the running line the user's own terminal, which has this size; None where none runs."""
        ...

    def fit(self, size: TerminalSize) -> None:
        """Run lines in a terminal of this size from now on; before the first call they have none."""
        ...

    def type(self, keys: bytes) -> None:
        """Type into the running line."""
        ...


class TodosApi(Protocol):
    """The todo list of one conversation."""

    @property
    def now(self) -> TodoList:
        """The list as it is now."""
        ...

    async def replace(self, seen: TodoList, items: Sequence[TodoItem]) -> Receipt:
        """Put `items` in the place of the list `seen`; refused where that is no longer the list."""
        ...


class RoutingApi(Protocol):
    """The open decision of one conversation."""

    @property
    def card(self) -> RouteCard | None:
        """The open decision."""
        ...

    @property
    def why_alone(self) -> str:
        """Reason why no supervisor is asked here; empty where one is."""
        ...

    def answer(self, card_id: str, verdict: RouteVerdict) -> Receipt:
        """Start the agents, as decided or others, or let the main model answer alone."""
        ...

    def hold(self, card_id: str) -> Receipt:
        """Let it wait for an answer however long that takes."""
        ...


class ConversationParts(Protocol):
    """State of one open conversation, and the interfaces of its parts."""

    @property
    def id(self) -> str:
        """Identifier of the conversation."""
        ...

    @property
    def record(self) -> ConversationRecord:
        """Title, folder, model, mode and totals."""
        ...

    @property
    def state(self) -> State:
        """State of the machine."""
        ...

    @property
    def hooks(self) -> HookFacts:
        """Hooks that a message waits for; `cancel` stops them."""
        ...

    @property
    def read_only(self) -> str:
        """Sentence to show when another process owns it; else empty."""
        ...

    @property
    def question(self) -> Question | None:
        """The open question, if there is one."""
        ...

    @property
    def queue(self) -> QueueApi:
        """Messages that wait until it rests."""
        ...

    @property
    def context(self) -> ContextApi:
        """Contents of its window."""
        ...

    @property
    def jobs(self) -> JobsApi:
        """Background commands of the conversation."""
        ...

    @property
    def terminal(self) -> TerminalApi:
        """Terminal of the user's own shell lines."""
        ...

    @property
    def side(self) -> SideQuestionsApi:
        """Questions beside it."""
        ...

    @property
    def todos(self) -> TodosApi:
        """The todo list, which the user may change."""
        ...

    @property
    def routing(self) -> RoutingApi:
        """Model or agents that answer, while that can be overruled."""
        ...


class ConversationApi(ConversationParts, Protocol):
    """One open conversation, as the screens use it (docs/engine.md)."""

    async def subscribe(self, listener: Callable[[Update], None]) -> Unsubscribe:
        """Send `listener` a snapshot, then every update."""
        ...

    async def say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Send a message."""
        ...

    async def attach(self, data: bytes, path: Path | None = None) -> Attachment:
        """Store an image, read from `path`. Raises ImageRejected."""
        ...

    def cancel(self, by: StopCause = StopCause.USER) -> None:
        """Stop the run; returns at once. `by` is named to whoever looks."""
        ...

    async def interrupt_and_say(self, text: str, image_ids: Sequence[str] = (), caps: RunCaps | None = None) -> Receipt:
        """Stop the run, then send a message."""
        ...

    async def answer(self, call_id: str, answer: ApprovalAnswer) -> Receipt:
        """Answer the open question."""
        ...

    async def retry(self, caps: RunCaps | None = None) -> Receipt:
        """Resume an interrupted turn, or try again after an error."""
        ...

    async def shell(self, command: str, send_to_model: bool) -> Receipt:
        """Run the user's own command in the conversation's folder."""
        ...

    async def change(self, changes: ConversationChanges) -> None:
        """Change draft, title, model or mode."""
        ...

    async def history(self, before_seq: int, limit: int) -> MessageRange:
        """Older messages with their tool calls."""
        ...

    def warm(self) -> None:
        """Open the model's connection ahead of the first request."""
        ...
