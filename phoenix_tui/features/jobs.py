"""Background commands: texts about them, their output, ending one, and moving a running one there."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.api.conversation import ConversationApi, JobsApi
from engine.executor.requests import Refused
from phoenix_tui.features.front_end import FrontEnd
from phoenix_tui.text.agent_text import NOTHING_RUNS, RUNS_ON, how_it_stands
from tools.clean import clean_line
from tools.contract import JobInfo
from tools.shell_output import all_lines, readable
from tools.wording import pluralize

NO_JOBS: Final = "This conversation has no background commands."
ENDED: Final = "The command has already ended."
NO_OUTPUT: Final = "No output yet."
MOST_LINES: Final = 1_000
"""Newest lines of an output that are read; the model gets more with job_output, and a long one is in a file."""


class JobReport(Struct, frozen=True):
    """Newest output of a background command, to read."""

    heading: str
    before: str
    """Remark on the lines before the shown ones; empty without any."""
    text: str


async def background(front: FrontEnd, _: str) -> None:
    """Send the running command of the conversation in view to the background."""
    front.tell(send_to_background(front.conversation))


def send_to_background(conversation: ConversationApi | None) -> str:
    """Send the running command to the background, at once; returns the notice."""
    receipt = conversation.jobs.background() if conversation is not None else Refused(NOTHING_RUNS)
    return receipt.reason if isinstance(receipt, Refused) else RUNS_ON


def jobs_in_view(front: FrontEnd) -> JobsApi | None:
    """The background commands of the conversation in view; None after a notice where it has none."""
    conversation = front.conversation
    if conversation is None or not conversation.jobs.all():
        front.tell(NO_JOBS)
        return None
    return conversation.jobs


def output_lines(jobs: JobsApi, job: JobInfo) -> list[str]:
    """Kept lines of a command's output."""
    return readable(jobs.output(job.id)).rstrip("\n").splitlines()


def output_of(jobs: JobsApi, job: JobInfo) -> JobReport:
    """Output of a command under its name and state."""
    lines = output_lines(jobs, job)
    before = (all_lines(jobs.output(job.id)) or len(lines)) - MOST_LINES
    return JobReport(
        f"{clean_line(job.command)}   {how_it_stands(job)}",
        f"… {pluralize(before, 'line')} before" if before > 0 else "",
        "\n".join(lines[-MOST_LINES:]) or NO_OUTPUT,
    )


async def end_job(front: FrontEnd, jobs: JobsApi, job: JobInfo) -> None:
    """End a command with everything it started, unless it has ended."""
    if not any(one.id == job.id and one.running for one in jobs.all()):
        front.tell(ENDED)
    else:
        await jobs.kill(job.id)
