"""`/tasks` and `/track`: changes of the task board by the user, and tracking of a conversation (SPEC ACX-05)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.executor.requests import EngineError
from engine.records.tracked_tasks import TaskStatus, TrackedTask, TrackingStatus
from phoenix_tui.features.front_end import FrontEnd, Option
from phoenix_tui.features.task_board import IN_SUB_AGENT, NOTHING_SENT, BoardModel
from phoenix_tui.text.task_text import (
    HOW_ON,
    STATUS_OF,
    STATUS_WORDS,
    counts,
    left_out,
    shown,
    switch,
    title,
)
from tools.wording import counted, number_within

HIGHEST: Final = 1_000_000
"""Number of a task that can be typed."""
SHORT: Final = 60
"""Characters of a description in a question or a notice."""
EDIT, DELETE, NO_TASK, NEWEST, UNDO = "edit", "delete", "none", "newest", "undo"
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
    """EDIT, DELETE or, for the board, NO_TASK, NEWEST, UNDO; empty to show, or to set `status`."""
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
    if first.lower() in {NO_TASK, NEWEST, UNDO} and not rest.strip():
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
    task = board.numbered(order.number)
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
    question = f"Delete task {task.order}, “{shown(title(task), SHORT)}”? Its messages stay, without a task."
    return await front.confirm(question, "delete", "keep")


async def remove_confirmed(board: BoardModel, task: TrackedTask, way_back: str) -> str:
    """Delete a task."""
    await board.tasks.remove(board.id, task.id)
    return f"Task {task.order} is deleted; {way_back}."


async def undo_removal(board: BoardModel) -> str:
    """Put the task back that was deleted last, with its messages."""
    task = await board.tasks.put_back(board.id)
    return f"Task {task.order} is on the board again: {shown(title(task), SHORT)}"


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
            front.tell(switched(status))
        case "now":
            await track_now(front, BoardModel(conversation, tasks))
        case _:
            front.tell(how_it_is((await tasks.board(conversation.id)).status))


async def track_now(front: FrontEnd, board: BoardModel) -> None:
    """Process waiting and failed messages, and say how many were."""
    before = (await board.tasks.board(board.id)).status
    waiting = before.pending + before.failed + before.running
    if not waiting:
        front.tell(NOTHING_WAITS)
        return
    front.tell(READING)
    after = await board.tasks.flush(board.id)
    left = after.pending + after.failed + after.running
    front.tell(f"{counted(max(waiting - left, 0), 'message')} tracked. {how_it_is(after)}", bad=bool(after.failed))


def switched(status: TrackingStatus) -> str:
    """Tracking after it was switched."""
    return ON if status.enabled else OFF


def how_it_is(status: TrackingStatus) -> str:
    """Tracking of a conversation in sentences."""
    head = " · ".join(filter(None, (switch(status), counts(status)))) + "."
    how = "" if status.enabled else HOW_ON
    return " ".join(filter(None, (f"{head[:1].upper()}{head[1:]}", shown(status.problem), left_out(status), how)))
