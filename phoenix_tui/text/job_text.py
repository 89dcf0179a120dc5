"""Texts about background commands, for both front ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from phoenix_tui.text.labels import clock
from tools.clean import clean_line
from tools.contract import JobInfo

NOTHING_RUNS: Final = "Nothing runs."
RUNS_ON: Final = "It runs on in the background: /jobs shows it."


def how_it_stands(job: JobInfo) -> str:
    """State of a job: running and for how long, or its end."""
    return f"running {clock(job.elapsed)}" if job.running else f"{how_it_ended(job)} after {clock(job.elapsed)}"


def how_it_ended(job: JobInfo) -> str:
    """Exit code of a job; a killed one has none."""
    return "killed" if job.exit_code is None else f"exit {job.exit_code}"


def running(jobs: Iterable[JobInfo]) -> int:
    """Number of running jobs."""
    return sum(job.running for job in jobs)


def ended_since(before: Iterable[JobInfo], now: Sequence[JobInfo]) -> list[JobInfo]:
    """Jobs that ran before and have ended."""
    ran = {job.id for job in before if job.running}
    return [job for job in now if job.id in ran and not job.running]


def leaving_question(runs: int, jobs: int) -> str:
    """Question to a user who quits during runs or jobs; empty without any."""
    under_way = "A run is under way" if runs == 1 else f"{runs} runs are under way"
    behind = "a background command" if jobs == 1 else f"{jobs} background commands"
    if runs and jobs:
        return f"{under_way} and {behind} too. Quit and stop all?"
    if jobs:
        one = jobs == 1
        return f"{behind.capitalize()} run{'s' if one else ''}. Quit and end {'it' if one else 'them'}?"
    return f"{under_way}. Quit and stop {'it' if runs == 1 else 'them'}?" if runs else ""


def end_line(job: JobInfo) -> str:
    """Line about the end of a job."""
    return f"Background command ended, {how_it_ended(job)}: {clean_line(job.command)}"
