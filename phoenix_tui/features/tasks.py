"""The task board, the todo list and the plan of the conversation in view, as the user sees and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.requests import EngineError
from engine.records import PermissionMode
from engine.records.tracked_tasks import TaskBoardView, TaskStatus, TrackedTask, TrackingStatus
from phoenix_tui.features.front_end import (
    TAKE,
    FrontEnd,
    ListPage,
    Option,
    PageAction,
    PageRow,
    require_accepted,
)
from phoenix_tui.features.permissions import use_mode
from phoenix_tui.text.task_text import (
    HOW_ON,
    STATUS_OF,
    STATUS_WORDS,
    counts,
    describe_untracked,
    shorten,
    speaker_of,
    switch,
    title,
    words_of,
)
from tools.clean import clean
from tools.displays import LONGEST_CONTENT, TodoItem, TodoList, TodoStatus, lines_of, one_item_line
from tools.wording import number_within, pluralize

if TYPE_CHECKING:
    from engine.conversation import Conversation
    from engine.tracking.tracker import TaskBoards


NOTHING_SENT: Final = (
    "There are no tasks yet: nothing was sent in this conversation. A model can keep a list of what you asked for and "
    "how far it is; /track on begins that."
)
IN_SUB_AGENT: Final = "Sub-agents have no task board; their work belongs to the tasks of their parent."
PAGE: Final = 50
"""Tasks of a page of the list that shows the newest first."""
MOST_OF_PAGE: Final = 200
RANGE: Final = 40
"""Messages that are read at once."""
MOST_READ: Final = 5
"""Ranges that one request for words reads at most; what is missing then comes with the next one."""


class BoardModel:
    """A board as it was read last. Methods raise EngineError, StorageError."""

    def __init__(self, conversation: Conversation, tasks: TaskBoards) -> None:
        self.conversation = conversation
        self.view = TaskBoardView()
        self.newest: list[TrackedTask] = []
        """Tasks read so far for the list that shows the newest first."""
        self.untasked: tuple[int, ...] = ()
        """Seqs of messages without a task."""
        self._tasks = tasks
        self._cursor = ""
        self._words: dict[int, str] = {}

    @property
    def id(self) -> str:
        """Id of the conversation."""
        return self.conversation.id

    @property
    def tasks(self) -> TaskBoards:
        """The interface that changes boards."""
        return self._tasks

    @property
    def has_more(self) -> bool:
        """True while older tasks are not in `newest` yet."""
        return bool(self._cursor)

    async def read(self) -> None:
        """Read the board again, and as many of the newest tasks as before."""
        self.view = await self._tasks.board(self.id)
        self.untasked = await self._tasks.find_untasked(self.id)
        if self.newest:
            await self._first_pages(len(self.newest))

    async def first_page(self) -> None:
        """Begin the list of the newest tasks."""
        await self._first_pages(PAGE)

    async def more(self) -> None:
        """Read the next page of the newest tasks."""
        if not self._cursor:
            return
        page = await self._tasks.page(self.id, self._cursor, PAGE, newest_first=True)
        known = {task.id for task in self.newest}
        self.newest += [task for task in page.tasks if task.id not in known]
        self._cursor = page.cursor

    async def _first_pages(self, wanted: int) -> None:
        found: list[TrackedTask] = []
        cursor = ""
        while len(found) < wanted:
            limit = min(max(wanted - len(found), PAGE), MOST_OF_PAGE)
            page = await self._tasks.page(self.id, cursor, limit, newest_first=True)
            found += page.tasks
            cursor = page.cursor
            if not cursor:
                break
        self.newest, self._cursor = found, cursor

    def task(self, task_id: str) -> TrackedTask | None:
        """One task or the planning section, with its messages."""
        planning = (self.view.planning,) if self.view.planning is not None else ()
        return next((task for task in (*self.view.tasks, *planning) if task.id == task_id), None)

    def find_number(self, number: int) -> TrackedTask:
        """The task with this number. Raises EngineError."""
        found = next((task for task in self.view.tasks if task.order == number), None)
        if found is None:
            count = len(self.view.tasks)
            has = "no tasks" if not count else "task 1 only" if count == 1 else f"tasks 1 to {count}"
            raise EngineError(f"There is no task {number}; the board has {has}.")
        return found

    def words(self, seq: int) -> str | None:
        """A message in one line, with its author; None until `load_words` has read it."""
        return self._words.get(seq)

    async def load_words(self, seqs: Iterable[int]) -> bool:
        """Read the words of these messages; returns True if there was something to read."""
        wanted = sorted(seqs)
        missing = self._missing(wanted)
        had = bool(missing)
        for _ in range(MOST_READ):
            if not missing:
                break
            last = missing[-1]
            found = (await self.conversation.history(last + 1, RANGE)).messages
            self._words |= {one.seq: f"{speaker_of(one)}: {words_of(one)}" for one in found}
            if last not in self._words:
                self._words[last] = "this message is gone"
            missing = self._missing(wanted)
        return had

    def _missing(self, seqs: Sequence[int]) -> list[int]:
        return [seq for seq in seqs if seq not in self._words]


async def board_in_view(front: FrontEnd) -> BoardModel:
    """The board of the conversation in view. Raises EngineError, StorageError."""
    conversation = front.conversation
    if conversation is None:
        raise EngineError(NOTHING_SENT)
    if conversation.record.agent is not None:
        raise EngineError(IN_SUB_AGENT)
    board = BoardModel(conversation, front.services.engine.tasks)
    await board.read()
    return board


def matching(tasks: Iterable[TrackedTask], query: str) -> list[TrackedTask]:
    """Tasks whose texts or status hold every word of the query."""
    words = query.lower().split()
    return [task for task in tasks if all(word in _join_searched(task) for word in words)]


def _join_searched(task: TrackedTask) -> str:
    return "\n".join((title(task), task.status, *task.progresses, *task.preferences)).lower()


HIGHEST: Final = 1_000_000
"""Number of a task that can be typed."""
SHORT: Final = 60
"""Characters of a description in a question or a notice."""
EDIT, DELETE, NO_TASK, NEWEST_FIRST, UNDO = "edit", "delete", "none", "newest", "undo"
WRONG: Final = (
    "Give the number of a task, and behind it nothing, done, pending, running, failed, delete or edit TEXT; "
    "none lists messages without a task, newest the newest tasks first, undo restores the task deleted last."
)
BY_COMMAND: Final = "/tasks undo restores it"
WRONG_TRACK: Final = "Give on, off or now; without a word /track shows how it is."
NOTHING_WAITS: Final = "No messages wait for tracking."
ON: Final = "Tracking is on for this conversation: a model reads its messages for the task board (/tasks)."
OFF: Final = "Tracking is off for this conversation; its tasks stay."
READING: Final = "Tracking reads the waiting messages."


class TaskOrder(Struct, frozen=True):
    """The argument of `/tasks`."""

    number: int = 0
    """Number of a task; 0 for the board."""
    action: str = ""
    """EDIT, DELETE or, for the board, NO_TASK, NEWEST_FIRST, UNDO; empty to show, or to set `status`."""
    status: TaskStatus | None = None
    text: str = ""
    """New description."""

    @property
    def changes(self) -> bool:
        """True when it changes a task."""
        return self.action == UNDO or (bool(self.number) and (self.status is not None or bool(self.action)))


def task_order(argument: str) -> TaskOrder:
    """Read the argument of `/tasks`. Raises EngineError."""
    first, _, rest = argument.strip().partition(" ")
    word, _, text = rest.strip().partition(" ")
    if not first:
        return TaskOrder()
    if first.lower() in {NO_TASK, NEWEST_FIRST, UNDO} and not rest.strip():
        return TaskOrder(action=first.lower())
    number = number_within(first, HIGHEST)
    action = word.lower()
    if number is None:
        raise EngineError(WRONG)
    if action == EDIT:
        return TaskOrder(number, EDIT, text=text.strip())
    if text.strip() or (action and action != DELETE and action not in STATUS_OF):
        raise EngineError(WRONG)
    return TaskOrder(number, action if action == DELETE else "", STATUS_OF.get(action))


async def carry_out(front: FrontEnd, board: BoardModel, order: TaskOrder) -> str:
    """Change a task as ordered; returns the result in words. Raises EngineError, StorageError."""
    if order.action == UNDO:
        return await undo_removal(board)
    task = board.find_number(order.number)
    if order.action == DELETE:
        return await remove_task(front, board, task)
    if order.action == EDIT:
        return await edit_task(front, board, task, order.text)
    assert order.status is not None, "an order that changes something"
    return await set_status(board, task, order.status)


async def choose_status(front: FrontEnd, board: BoardModel, task: TrackedTask) -> str:
    """Ask for the status of a task and set it."""
    options = [Option(status, word) for status, word in STATUS_WORDS.items()]
    chosen = await front.pick(f"Status of task {task.order}", options, current=task.status)
    return await set_status(board, task, TaskStatus(chosen)) if chosen else ""


async def set_status(board: BoardModel, task: TrackedTask, status: TaskStatus) -> str:
    """Set the status of a task."""
    await board.tasks.edit(board.id, task.id, status=status)
    return f"Task {task.order} is {STATUS_WORDS[status]}."


async def edit_task(front: FrontEnd, board: BoardModel, task: TrackedTask, text: str = "") -> str:
    """Give a task another description, asked for where `text` is empty."""
    words = text or await front.ask_line(f"Text of task {task.order}", task.description)
    if not words.strip() or words.strip() == task.description:
        return ""
    await board.tasks.edit(board.id, task.id, description=words.strip())
    return f"The text of task {task.order} is changed."


async def remove_task(front: FrontEnd, board: BoardModel, task: TrackedTask, way_back: str = BY_COMMAND) -> str:
    """Delete a task after a question; `way_back` says what undoes it."""
    return await remove_confirmed(board, task, way_back) if await confirm_removal(front, task) else ""


async def confirm_removal(front: FrontEnd, task: TrackedTask) -> bool:
    """Ask before a task is deleted."""
    question = f"Delete task {task.order}, “{shorten(title(task), SHORT)}”? Its messages stay, without a task."
    return await front.confirm(question, "delete", "keep")


async def remove_confirmed(board: BoardModel, task: TrackedTask, way_back: str) -> str:
    """Delete a task."""
    await board.tasks.remove(board.id, task.id)
    return f"Task {task.order} is deleted; {way_back}."


async def undo_removal(board: BoardModel) -> str:
    """Put the task back that was deleted last, with its messages."""
    task = await board.tasks.put_back(board.id)
    return f"Task {task.order} is on the board again: {shorten(title(task), SHORT)}"


async def track(front: FrontEnd, argument: str) -> None:
    """`/track on|off|now`, or how tracking is."""
    word = argument.strip().lower()
    if word not in {"", "on", "off", "now"}:
        raise EngineError(WRONG_TRACK)
    conversation = front.conversation
    if conversation is None and word in {"on", "off"}:
        conversation = await front.current()
    if conversation is None:
        raise EngineError(NOTHING_SENT)
    if conversation.record.agent is not None:
        raise EngineError(IN_SUB_AGENT)
    tasks = front.services.engine.tasks
    match word:
        case "on" | "off":
            status = await tasks.set_tracking(conversation.id, word == "on")
            front.tell(describe_switch(status))
        case "now":
            await track_now(front, BoardModel(conversation, tasks))
        case _:
            front.tell(how_it_is((await tasks.board(conversation.id)).status))


async def track_now(front: FrontEnd, board: BoardModel) -> None:
    """Process messages that wait, failed or were stored while tracking was off, and say how many were."""
    before = (await board.tasks.board(board.id)).status
    waiting = before.pending + before.failed + before.running + before.disabled
    if not waiting:
        front.tell(NOTHING_WAITS)
        return
    front.tell(READING)
    after = await board.tasks.flush(board.id)
    left = after.pending + after.failed + after.running
    front.tell(f"{pluralize(max(waiting - left, 0), 'message')} tracked. {how_it_is(after)}", bad=bool(after.failed))


def describe_switch(status: TrackingStatus) -> str:
    """Tracking after it was switched."""
    return ON if status.enabled else OFF


def how_it_is(status: TrackingStatus) -> str:
    """Tracking of a conversation in sentences."""
    head = " · ".join(filter(None, (switch(status), counts(status)))) + "."
    how = "" if status.enabled else HOW_ON
    return " ".join(
        filter(None, (f"{head[:1].upper()}{head[1:]}", shorten(status.problem), describe_untracked(status), how))
    )


USAGE: Final = "/todo add TEXT, done N, drop N, edit N TEXT, clear; without a word it shows the list."
NO_ITEMS: Final = (
    "Steps of the work at hand: the agent writes them for long tasks, you can change all of them. "
    "{way} adds the first one."
)
CHANGED: Final = "The list changed in the meantime; look at it again."
NO_LIST: Final = "There is no todo list here; /todo add TEXT begins one."
NO_TEXT: Final = "Say what is to be done: /todo add TEXT."
HEADING: Final = "Todo list"
TOO_LONG: Final = f"An item has at most {LONGEST_CONTENT} characters; shorten it."


async def todo(front: FrontEnd, argument: str) -> None:
    """Show the list, or change it."""
    word, _, rest = argument.partition(" ")
    rest = rest.strip()
    match word:
        case "":
            await front.show(TodoPage(front).read)
        case "add":
            await add_item(front, rest)
        case "clear":
            await clear_items(front)
        case "done" | "drop" | "edit":
            number, _, text = rest.partition(" ")
            await _change_numbered(front, word, number, text.strip())
        case _:
            front.tell(USAGE, bad=True)


def todos_in_view(front: FrontEnd) -> TodoList:
    """The list of the conversation in view; empty where there is none."""
    return front.conversation.todos.now if front.conversation is not None else TodoList()


class TodoPage:
    """The todo list, each item with its actions."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front

    async def read(self) -> ListPage:
        """List the items."""
        todos = todos_in_view(self._front)
        items = zip(lines_of(todos.items), todos.items, strict=True)
        hints = (("todo_add", "adds"), ("todo_done", "done"), ("todo_edit", "edits"), ("todo_drop", "drops"))
        return ListPage(
            HEADING,
            tuple(self._row(place, line, item) for place, (line, item) in enumerate(items)),
            hints,
            NO_ITEMS.format(way=self._front.name_way("todo_add", "/todo add TEXT")),
            actions=(PageAction(self._add, "todo_add"),),
            follows=True,
        )

    def _row(self, place: int, line: str, item: TodoItem) -> PageRow:
        def act(word: str, keys: str, words: str) -> PageAction:
            return PageAction(partial(self._change, place, item, word), keys, words)

        actions = (
            act("done", "todo_done", "Done" if item.is_open else "Open again"),
            act("edit", "todo_edit", "Edit"),
            act("drop", "todo_drop", "Drop"),
        )
        return PageRow("", str(place), line, "", spoken=item.line, name=item.content, actions=actions)

    async def _add(self) -> str:
        await add_item(self._front, "")
        return ""

    async def _change(self, place: int, item: TodoItem, word: str) -> str:
        """Change an item, unless the list became another one meanwhile."""
        items = todos_in_view(self._front).items
        if place >= len(items) or items[place].content != item.content:
            raise EngineError(CHANGED)
        await change_item(self._front, word, place)
        return ""


async def add_item(front: FrontEnd, text: str) -> None:
    """Add an item at the end; a conversation is begun where there is none."""
    text = one_item_line(text or await front.ask_line("New item"))
    if not text or len(text) > LONGEST_CONTENT:
        front.tell(TOO_LONG if text else NO_TEXT, bad=True)
        return
    conversation = await front.current()
    todos = conversation.todos.now
    await _replace(conversation, todos, (*todos.items, TodoItem(text)))
    front.confirm_change(f"Added as item {len(todos.items) + 1}: {text}")


async def clear_items(front: FrontEnd) -> None:
    """Remove all items, after a yes."""
    todos, conversation = todos_in_view(front), front.conversation
    if conversation is None or not todos.items:
        front.tell(NO_LIST)
    elif await front.confirm(f"Clear the todo list of {pluralize(len(todos.items), 'item')}?", "clear", "keep"):
        await _replace(conversation, todos, ())
        front.confirm_change("The todo list is cleared.")


async def _change_numbered(front: FrontEnd, word: str, number: str, text: str) -> None:
    todos = todos_in_view(front)
    if not todos.items:
        front.tell(NO_LIST, bad=True)
        return
    chosen = number_within(number, len(todos.items))
    if chosen is None:
        front.tell(f"Give the number of an item, 1 to {len(todos.items)}: /todo {word} 1.", bad=True)
        return
    await change_item(front, word, chosen - 1, text)


async def change_item(front: FrontEnd, word: str, place: int, text: str = "") -> None:
    """Complete an item or open it again (`done`), remove it (`drop`) or change its text (`edit`)."""
    todos, conversation = todos_in_view(front), front.conversation
    if conversation is None or not 0 <= place < len(todos.items):
        front.tell(NO_LIST, bad=True)
        return
    item, items = todos.items[place], list(todos.items)
    match word:
        case "drop":
            del items[place]
            said = f"Dropped: {item.content}"
        case "done":
            items[place] = replace(item, status=TodoStatus.COMPLETED if item.is_open else TodoStatus.PENDING)
            said = f"{'Done' if item.is_open else 'Open again'}: {item.content}"
        case _:
            text = one_item_line(text or await front.ask_line(f"Item {place + 1}", item.content))
            if not text or len(text) > LONGEST_CONTENT:
                if text:
                    front.tell(TOO_LONG, bad=True)
                return
            items[place] = replace(item, content=text, active_form="")
            said = f"Changed: {text}"
    await _replace(conversation, todos, tuple(items))
    front.confirm_change(said)


async def _replace(conversation: Conversation, seen: TodoList, items: tuple[TodoItem, ...]) -> None:
    """Store the new list. Raises EngineError with the reason where it is refused."""
    require_accepted(await conversation.todos.replace(seen, items))


PLAN_HEADING: Final = "Approved plan"
NO_PLAN: Final = (
    "For work to agree on first: in plan mode the agent only reads, and proposes a plan. You approve, edit or refuse "
    "it; the approved plan stands here."
)
IN_PLAN_MODE: Final = (
    "Plan mode is on: say what you want. The agent reads and proposes a plan; nothing is changed before."
)
NO_PLAN_WAITS: Final = "No plan waits for an answer here."
BEGUN: Final = "Plan mode: the agent reads and proposes a plan; nothing is changed before you approve it."
PLAN_USAGE: Final = (
    "/plan shows plan, todo list and task board; /plan on and off switch plan mode, /plan edit changes a plan."
)


class PlanPage:
    """Plan mode while there is no approved plan, and the way in and out."""

    def __init__(self, front: FrontEnd) -> None:
        self._front = front

    async def read(self) -> ListPage:
        """Say how plan mode is."""
        is_on = self._front.mode is PermissionMode.PLAN
        switch = PageAction(self._switch, TAKE, "Leave plan mode" if is_on else "Begin plan mode")
        hints = ((TAKE, "leaves plan mode" if is_on else "begins plan mode"),)
        return ListPage("Plan", (), hints, IN_PLAN_MODE if is_on else NO_PLAN, actions=(switch,), menu="Plan mode:")

    async def _switch(self) -> str:
        is_on = self._front.mode is PermissionMode.PLAN
        await use_mode(self._front, PermissionMode.ASK if is_on else PermissionMode.PLAN)
        return ""


async def plan(front: FrontEnd, word: str) -> None:
    """Show the approved plan, or how plan mode is; `on` begins it, `off` leaves it."""
    approved = front.conversation.record.plan if front.conversation is not None else ""
    match word:
        case "" if approved:
            front.read(PLAN_HEADING, clean(approved))
        case "":
            await front.show(PlanPage(front).read)
        case "on":
            await use_mode(front, PermissionMode.PLAN)
            front.tell(BEGUN)
        case "off":
            if front.mode is PermissionMode.PLAN:
                await use_mode(front, PermissionMode.ASK)
            front.tell(f"Permission mode: {front.mode.value}.")
        case _:
            front.tell(PLAN_USAGE, bad=True)
