"""Background commands: the board that lists them, and the tools that read and kill them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from tools.arguments import Arguments, ToolFailure, failure_output, object_schema
from tools.contract import (
    Captured,
    Command,
    Finished,
    JobInfo,
    JsonObject,
    Report,
    TerminalDisplay,
    ToolClass,
    ToolContext,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)
from tools.shell_output import all_lines, readable, refusal_note
from tools.terminal.values import TerminalSize

if TYPE_CHECKING:
    from tools.process.command_terminal import CommandTerminal


class Caller(Struct, frozen=True):
    """Conversation and call of a command, and its title as a job."""

    conversation_id: str
    call_id: str
    title: str
    terminal: TerminalSize | None = None
    """Size of the terminal for the command; None: it has a pipe and no input."""
    mark: str = ""
    """Beginning of the system command (OSC) with which its shell names the folder it ends in."""


class JobBoard(Protocol):
    """Background commands of all conversations, and those in the foreground that may become some."""

    async def start(self, command: Command, conversation_id: str, title: str) -> JobInfo:
        """Start it and return at once."""
        ...

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished | JobInfo:
        """Run to the end as `ProcessRunner.run` does; the job it has become where `background` let it go before.

        Raises:
            OSError: the program cannot be started.
        """
        ...

    def background(self, conversation_id: str, call_id: str) -> JobInfo | None:
        """Let the command of a call continue as a job without a time limit; None when it does not run."""
        ...

    def terminal(self, conversation_id: str, call_id: str) -> CommandTerminal | None:
        """Terminal of the command that a call waits for; None where it has none."""
        ...

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the conversation whose jobs have changed, whenever one begins or ends; the result ends
        it.
        """
        ...

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Jobs of one conversation, oldest first, ended ones included."""
        ...

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        ...

    def settle(self, job_id: str, note: str) -> None:
        """Note that the files which an ended job changed are kept or taken back; nothing for an unknown id."""
        ...

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        ...

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away."""
        ...


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
    spec: ToolSpec = _OUTPUT_SPEC

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
            return failure_output(str(failure))
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
    spec: ToolSpec = _KILL_SPEC

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Name the job."""
        return ToolRequest(summary=_job_id(args))

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """End it with its whole tree."""
        job_id = _job_id(args)
        try:
            before = _own_job(self.board, job_id, context)
        except ToolFailure as failure:
            return failure_output(str(failure))
        if not before.running:
            return ToolOutput(f"Job {job_id} had ended already. {_state(before)}")
        await self.board.kill(job_id)
        return ToolOutput(f"Job {job_id} is ended, with everything it had started.")
