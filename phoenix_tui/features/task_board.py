"""The task board of the conversation in view: read whole, by pages, and the messages of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from engine.executor.requests import EngineError
from engine.records.tracked_tasks import TaskBoardView, TrackedTask
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.text.task_text import speaker_of, title, words_of

if TYPE_CHECKING:
    from engine.api.conversation import ConversationApi
    from engine.api.engine import TasksApi

NOTHING_SENT: Final = "There are no tasks yet: nothing was sent in this conversation."
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

    def __init__(self, conversation: ConversationApi, tasks: TasksApi) -> None:
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
    def tasks(self) -> TasksApi:
        """The interface that changes boards."""
        return self._tasks

    @property
    def has_more(self) -> bool:
        """True while older tasks are not in `newest` yet."""
        return bool(self._cursor)

    async def read(self) -> None:
        """Read the board again, and as many of the newest tasks as before."""
        self.view = await self._tasks.board(self.id)
        self.untasked = await self._tasks.untasked(self.id)
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

    def numbered(self, number: int) -> TrackedTask:
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
    return [task for task in tasks if all(word in _searched(task) for word in words)]


def _searched(task: TrackedTask) -> str:
    return "\n".join((title(task), task.status, *task.progresses, *task.preferences)).lower()
