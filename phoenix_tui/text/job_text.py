"""Texts about background commands, for both front ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from phoenix_tui.text.labels import clock
from tools.clean import clean_line
from tools.contract import JobInfo
from tools.wording import counted

NOTHING_RUNS: Final = "Nothing is running."
RUNS_ON: Final = "It continues in the background; /jobs lists it."


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
    if not runs and not jobs:
        return ""
    active = [counted(runs, "run")] if runs else []
    active += [counted(jobs, "background command")] if jobs else []
    one = runs + jobs == 1
    which = "all" if runs and jobs else "it" if one else "them"
    return f"{' and '.join(active)} {'is' if one else 'are'} still active. Quit and stop {which}?"


def end_line(job: JobInfo) -> str:
    """Line about the end of a job."""
    return f"Background command ended, {how_it_ended(job)}: {clean_line(job.command)}"
