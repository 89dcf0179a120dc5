"""Texts of the task board: marks, counts, sentences and whole lines (SPEC ACX-19).

Descriptions, milestones and preferences come from a model: they are cleaned and cut here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.machine.messages import ImageBlock, Origin, Role, ToolResultBlock, ToolUseBlock, text_in
from engine.records import StoredMessage
from engine.records.tracked_tasks import TaskBoardView, TaskStatus, TrackedTask, TrackingStatus
from phoenix_tui.text.labels import DONE, FAILED, READY, RUNNING, STOPPED, Glyph, Tone, age
from tools.clean import clean_line
from tools.displays import TodoList, TodoStatus, lines_of
from tools.wording import one_line, pluralize

LONGEST: Final = 600
"""Characters of a description, a milestone or a preference that are shown."""
LONGEST_WORDS: Final = 160
"""Characters of a message in a list of messages."""
LOOKED_AT: Final = 2_000
"""Characters of a text that are cleaned for a list."""
PLANNING: Final = "Planning"
MARKS: Final[dict[TaskStatus, Glyph]] = {
    TaskStatus.PENDING: Glyph("○", ".", Tone.QUIET),
    TaskStatus.RUNNING: RUNNING,
    TaskStatus.SUCCESS: DONE,
    TaskStatus.FAILED: FAILED,
}
STATUS_WORDS: Final[dict[TaskStatus, str]] = {
    TaskStatus.PENDING: "pending",
    TaskStatus.RUNNING: "running",
    TaskStatus.SUCCESS: "done",
    TaskStatus.FAILED: "failed",
}
STATUS_OF: Final[dict[str, TaskStatus]] = {word: status for status, word in STATUS_WORDS.items()} | {
    "success": TaskStatus.SUCCESS
}
"""Statuses by the words that a user may type."""
IS_OFF: Final = "Tracking is off, so no tasks are found."
HOW_ON: Final = (
    "/track on switches it on for this conversation, the setting task_tracking for all. "
    "A model then reads the messages, which costs tokens."
)
NOTHING_YET: Final = "No tasks yet. Messages are tracked 8 s after the last one; /track now tracks them at once."
ONLY_OLD: Final = "No tasks yet. Messages from now on are tracked."
WAITS: Final = "No tasks yet."


def shorten(text: str, longest: int = LONGEST) -> str:
    return one_line(clean_line(text[: max(LOOKED_AT, longest)]), longest)


def counts(status: TrackingStatus) -> str:
    """Numbers of messages: `tracked 12 · queue 3`, and of those that failed; empty where all are 0."""
    numbers = {"tracked": status.success, "queue": status.pending + status.running, "failed": status.failed}
    return " · ".join(f"{word} {number:,}" for word, number in numbers.items() if number)


def summary(status: TrackingStatus) -> str:
    return " · ".join(filter(None, (counts(status), switch(status))))


def switch(status: TrackingStatus) -> str:
    return "tracking on" if status.enabled else "tracking off"


def describe_untracked(status: TrackingStatus) -> str:
    """Sentences about messages that tracking never saw; empty without any."""
    words: list[str] = []
    if count := status.untracked:
        words.append(f"{pluralize(count, 'message')} {'is' if count == 1 else 'are'} from before tracking.")
    if count := status.disabled:
        words.append(f"{pluralize(count, 'message')} {'was' if count == 1 else 'were'} stored while tracking was off.")
    return " ".join(words)


def empty_board(status: TrackingStatus) -> tuple[str, ...]:
    """Sentences in place of tasks: the reason, and what changes it."""
    if not status.enabled:
        return IS_OFF, HOW_ON
    if status.problem:
        return (WAITS,)
    seen = status.success + status.running + status.pending + status.failed + status.disabled
    return (ONLY_OLD,) if status.untracked and not seen else (NOTHING_YET,)


def title(task: TrackedTask) -> str:
    if not task.is_planning:
        return shorten(task.description) or "(no description)"
    facts = [pluralize(len(task.message_seqs), "message")] if task.message_seqs else []
    facts += [pluralize(len(task.preferences), "preference")] if task.preferences else []
    return f"{PLANNING}: {', '.join(facts) or 'nothing yet'}"


def facts(task: TrackedTask, now: float) -> str:
    words = [] if task.is_planning else [STATUS_WORDS[task.status]]
    words.append(f"{age(now - task.created_at)} old")
    if task.updated_at > task.created_at:
        words.append(f"changed {age(now - task.updated_at)} ago")
    words += [pluralize(len(task.message_seqs), "message")] if task.message_seqs else []
    return " · ".join(words)


def preference(text: str) -> str:
    return f"prefers: {shorten(text)}"


def speaker_of(message: StoredMessage) -> str:
    if message.role is Role.ASSISTANT:
        return "agent"
    return "you" if message.origin is Origin.HUMAN else "tool" if _results(message) else "note"


def words_of(message: StoredMessage) -> str:
    """First words of a message; without text, a description of its contents."""
    if words := shorten(text_in(message.blocks, " "), LONGEST_WORDS):
        return words
    calls = [shorten(block.name, LONGEST_WORDS) for block in message.blocks if isinstance(block, ToolUseBlock)]
    if calls:
        return one_line(f"calls {', '.join(dict.fromkeys(calls))}", LONGEST_WORDS)
    if results := _results(message):
        return pluralize(results, "result")
    images = sum(isinstance(block, ImageBlock) for block in message.blocks)
    return pluralize(images, "image") if images else "no text"


def _results(message: StoredMessage) -> int:
    return sum(isinstance(block, ToolResultBlock) for block in message.blocks)


def board_lines(view: TaskBoardView, now: float, *, tasks: Sequence[TrackedTask] | None = None) -> list[str]:
    """A whole board as lines without signs, each task with its last milestone; `tasks` in another order."""
    lines = [f"Tasks: {summary(view.status)}"]
    lines += [shorten(view.status.problem)] if view.status.problem else []
    for task in view.tasks if tasks is None else tasks:
        lines.append(f"{task.order}. {STATUS_WORDS[task.status]}: {title(task)} ({age(now - task.created_at)})")
        lines += [f"   - {shorten(text)}" for text in task.progresses[-1:]]
        lines += [f"   {preference(text)}" for text in task.preferences]
    if view.planning is not None:
        lines.append(title(view.planning))
        lines += [f"   {preference(text)}" for text in view.planning.preferences]
    elif not view.tasks:
        lines += empty_board(view.status)
    lines += [describe_untracked(view.status)] if describe_untracked(view.status) else []
    return lines


def task_lines(task: TrackedTask, words: Sequence[str], now: float) -> list[str]:
    """One task as lines, with all its milestones and preferences; `words` are its messages."""
    head = PLANNING if task.is_planning else f"Task {task.order}: {title(task)}"
    lines = [head, facts(task, now)]
    lines += ["Milestones:", *(f"   - {shorten(text)}" for text in task.progresses)] if task.progresses else []
    lines += [preference(text) for text in task.preferences]
    lines += ["Messages:", *(f"   {one}" for one in words)] if words else []
    return lines


HEADING: Final = "Todo list of the agent"
TODO_SIGNS: Final[dict[TodoStatus, Glyph]] = {
    TodoStatus.PENDING: READY,
    TodoStatus.IN_PROGRESS: RUNNING,
    TodoStatus.COMPLETED: DONE,
    TodoStatus.CANCELLED: STOPPED,
}
"""Signs of items on a screen; texts for models and readers have letters (`tools.displays.MARKS`)."""


def format_todo_heading(todos: TodoList) -> str:
    """Name of the list with its progress, `Todo list of the agent 3/7`."""
    return f"{HEADING} {todos.progress}"


def todo_lines(todos: TodoList) -> list[str]:
    """The whole list as lines without signs; empty without items."""
    if not todos.items:
        return []
    return [f"{format_todo_heading(todos)}:", *(shorten(line) for line in lines_of(todos.items))]
