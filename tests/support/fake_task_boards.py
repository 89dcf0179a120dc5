"""Task boards for tests of screens: small, long, hostile, empty."""

from __future__ import annotations

import time
from collections.abc import Sequence

from engine.records.tracked_tasks import TaskBoardView, TaskStatus, TrackedTask, TrackingStatus

ON = TrackingStatus(success=12, pending=2, running=1, enabled=True)
PROBLEM = "The model refused the request: rate limit reached. Messages wait until it answers."
HOSTILE = "Remove \x1b]0;evil\x07the \x1b[2Jcache [bold]now[/] \u202egnp.exe"
STATUSES = (TaskStatus.SUCCESS, TaskStatus.RUNNING, TaskStatus.FAILED, TaskStatus.PENDING)


def task(
    order: int,
    description: str,
    status: TaskStatus = TaskStatus.PENDING,
    *,
    age: float = 3_600.0,
    progresses: Sequence[str] = (),
    preferences: Sequence[str] = (),
    seqs: Sequence[int] = (),
) -> TrackedTask:
    """A task that is `age` seconds old."""
    now = time.time()
    return TrackedTask(
        f"task-{order}",
        "c0000001",
        order,
        status,
        description,
        tuple(progresses),
        tuple(preferences),
        created_at=now - age,
        updated_at=now - age / 2,
        message_seqs=tuple(seqs),
    )


def planning(preferences: Sequence[str] = (), seqs: Sequence[int] = ()) -> TrackedTask:
    """The planning section."""
    now = time.time()
    return TrackedTask(
        "planning",
        "c0000001",
        0,
        TaskStatus.PENDING,
        "",
        (),
        tuple(preferences),
        is_planning=True,
        created_at=now - 7_200,
        updated_at=now - 60,
        message_seqs=tuple(seqs),
    )


def small_board() -> TaskBoardView:
    """Four tasks, one of each status, and a planning section."""
    tasks = (
        task(
            1,
            "find out why the retry test hangs",
            TaskStatus.SUCCESS,
            age=7_200,
            progresses=["read pool/conn.py", "the second attempt reuses the closed socket"],
            preferences=["The user wants short answers."],
            seqs=[1, 2],
        ),
        task(
            2,
            "fix the pool so that it opens a fresh socket",
            TaskStatus.RUNNING,
            age=3_600,
            progresses=["User: the fix must not change the public API"],
            seqs=[3, 4],
        ),
        task(3, "publish the wheel", TaskStatus.FAILED, age=1_800, progresses=["the upload was refused"], seqs=[5]),
        task(4, "write release notes", age=60),
    )
    return TaskBoardView(tasks, planning(["The user prefers tabs."], [6]), ON)


def long_board(count: int = 200) -> TaskBoardView:
    """Many tasks."""
    tasks = tuple(
        task(
            number,
            f"request number {number} of a long day",
            STATUSES[number % 4],
            age=60.0 * (count + 1 - number),
            progresses=[f"milestone of {number}"],
        )
        for number in range(1, count + 1)
    )
    return TaskBoardView(tasks, None, ON)


def hard_board() -> TaskBoardView:
    """Texts that are hard to show: long words, wide letters, control characters, hundreds of lines."""
    tasks = (
        task(1, "averylongword" * 40, TaskStatus.RUNNING, progresses=["anotherlongword" * 60], preferences=["x" * 900]),
        task(2, "リトライのテストがなぜ止まるのかを調べて、接続プールを直してください。" * 3, TaskStatus.SUCCESS),
        task(3, HOSTILE, TaskStatus.FAILED, progresses=[HOSTILE], preferences=[HOSTILE]),
        task(4, "line one\nline two\r\nline three\ttab", progresses=["a\nb"]),
        task(5, "", progresses=[""]),
    )
    return TaskBoardView(tasks, planning([HOSTILE, "猫" * 200]), TrackingStatus(success=5, failed=2, enabled=True))


EMPTY = {
    "off": TaskBoardView(),
    "nothing-yet": TaskBoardView(status=TrackingStatus(pending=3, enabled=True)),
    "only-old": TaskBoardView(status=TrackingStatus(untracked=8, enabled=True)),
    "planning-only": TaskBoardView(
        (), planning(["The user prefers tabs."], [1]), TrackingStatus(success=1, enabled=True)
    ),
    "problem": TaskBoardView((), None, TrackingStatus(failed=4, enabled=True, problem=PROBLEM)),
}
"""Boards without tasks, by name."""
