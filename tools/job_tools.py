"""job_output and job_kill: reading and ending the background commands of one's own conversation."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tools.arguments import Arguments, object_schema
from tools.contract import (
    JobInfo,
    JsonObject,
    TerminalDisplay,
    ToolClass,
    ToolContext,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.failure import ToolFailure, failed
from tools.job_board import JobBoard
from tools.refusals import refusal_note
from tools.shell_output import all_lines, readable

_SCHEMA = object_schema({"job_id": {"type": "string", "description": "The id that bash gave."}}, ["job_id"])
_OUTPUT_SPEC = ToolSpec(
    "job_output",
    "Show whether a background job runs and what it has printed so far.",
    _SCHEMA,
    ToolClass.READ,
)
_KILL_SPEC = ToolSpec("job_kill", "End a background job and everything it started.", _SCHEMA, ToolClass.RUN)


def _job_id(args: JsonObject) -> str:
    return Arguments(args, ("job_id",)).text("job_id")


def _own_job(board: JobBoard, job_id: str, context: ToolContext) -> JobInfo:
    """A job of this conversation; another conversation's jobs do not exist for it."""
    jobs = {job.id: job for job in board.jobs(context.conversation_id)}
    if job_id in jobs:
        return jobs[job_id]
    known = f"its jobs are: {', '.join(jobs)}" if jobs else "it has none"
    raise ToolFailure(f"This conversation has no job {job_id}; {known}.")


def _state(job: JobInfo) -> str:
    if job.running:
        return f"[running for {job.elapsed:.0f} s]"
    if job.exit_code is None:
        return "[ended by a signal]"
    return f"[exit code {job.exit_code}]"


class JobOutput(Struct, frozen=True):
    """The tool that reads a job."""

    board: JobBoard

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _OUTPUT_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the job."""
        return ToolRequest(summary=_job_id(args))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Give its state and its output so far."""
        job_id = _job_id(args)
        try:
            job = _own_job(self.board, job_id, context)
            captured = self.board.output(job_id)
        except ToolFailure as failure:
            return failed(str(failure))
        output = readable(captured)
        if not job.running and (note := refusal_note(captured.refused)):
            output = f"{output.rstrip()}\n{note}"
        body = output.rstrip("\n") or "[no output yet]"
        return ToolOutput(
            f"{body}\n{_state(job)}",
            display=TerminalDisplay(output, job.exit_code, lines=all_lines(captured), hosts=captured.hosts),
            truncated=captured.dropped > 0,
        )


class JobKill(Struct, frozen=True):
    """The tool that ends a job."""

    board: JobBoard

    @property
    def spec(self) -> ToolSpec:
        """Name, description, schema and class."""
        return _KILL_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the job."""
        return ToolRequest(summary=_job_id(args))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """End it with its whole tree."""
        job_id = _job_id(args)
        try:
            before = _own_job(self.board, job_id, context)
        except ToolFailure as failure:
            return failed(str(failure))
        if not before.running:
            return ToolOutput(f"Job {job_id} had ended already. {_state(before)}")
        await self.board.kill(job_id)
        return ToolOutput(f"Job {job_id} is ended, with everything it had started.")
