"""What is said of background commands, in either front end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from phoenix_tui.text.labels import clock
from tools.clean import clean_line
from tools.contract import JobInfo

NOTHING_RUNS: Final = "Nothing runs."
RUNS_ON: Final = "It runs on in the background: /jobs shows it."


def how_it_stands(job: JobInfo) -> str:
    """Whether it runs and for how long, or how it ended."""
    return f"running {clock(job.elapsed)}" if job.running else f"{how_it_ended(job)} after {clock(job.elapsed)}"


def how_it_ended(job: JobInfo) -> str:
    """Its exit code; one that was killed has none."""
    return "killed" if job.exit_code is None else f"exit {job.exit_code}"


def running(jobs: Iterable[JobInfo]) -> int:
    """How many of them run."""
    return sum(job.running for job in jobs)


def ended_since(before: Iterable[JobInfo], now: Sequence[JobInfo]) -> list[JobInfo]:
    """Those that ran before and have ended."""
    ran = {job.id for job in before if job.running}
    return [job for job in now if job.id in ran and not job.running]


def leaving_question(runs: int, jobs: int) -> str:
    """What is asked of somebody who quits while so much is at work; empty where nothing is."""
    under_way = "A run is under way" if runs == 1 else f"{runs} runs are under way"
    behind = "a background command" if jobs == 1 else f"{jobs} background commands"
    if runs and jobs:
        return f"{under_way} and {behind} too. Quit and stop all?"
    if jobs:
        one = jobs == 1
        return f"{behind.capitalize()} run{'s' if one else ''}. Quit and end {'it' if one else 'them'}?"
    return f"{under_way}. Quit and stop {'it' if runs == 1 else 'them'}?" if runs else ""


def end_line(job: JobInfo) -> str:
    """That it has ended, and how."""
    return f"Background command ended, {how_it_ended(job)}: {clean_line(job.command)}"
