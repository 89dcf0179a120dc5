"""Test doubles for tools: a plain process runner, a job board, a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from tests.support.plain_runner import PlainRunner
from tools.bash import Caller
from tools.contract import (
    Captured,
    Command,
    Finished,
    JobInfo,
    JsonObject,
    ProcessRunner,
    Progress,
    Report,
    Tool,
    ToolContext,
    ToolOutput,
)


@dataclass
class ScriptedRunner:
    """Answers every command with the same outcome and remembers what was asked."""

    finished: Finished
    commands: list[Command] = field(default_factory=list[Command])

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Give the scripted outcome."""
        self.commands.append(command)
        return self.finished


class MemoryJobs:
    """A job board that runs only awaited commands, by `runner`."""

    def __init__(self, runner: ProcessRunner | None = None) -> None:
        self._runner = runner or PlainRunner()
        self.becomes: JobInfo | None = None
        """Job that every awaited command becomes."""
        self.commands: dict[str, Command] = {}
        self.listed: dict[str, JobInfo] = {}
        self.printed: dict[str, Captured] = {}

    async def start(self, command: Command, conversation_id: str, title: str, report: Report | None = None) -> JobInfo:
        """List it as running."""
        job = JobInfo(f"job{len(self.listed) + 1}", conversation_id, title, True, None, 0.0)
        self.listed[job.id], self.commands[job.id], self.printed[job.id] = job, command, Captured(b"")
        return job

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished | JobInfo:
        """Run a command to its end, or at once in the background."""
        return self.becomes or await self._runner.run(command, report)

    def background(self, conversation_id: str, call_id: str) -> JobInfo | None:
        """None of them runs for long."""
        return None

    def terminal(self, conversation_id: str, call_id: str) -> None:
        """No command has one."""
        return

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Ignore the listener."""
        return lambda: None

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Jobs of one conversation."""
        return tuple(job for job in self.listed.values() if job.conversation_id == conversation_id)

    def output(self, job_id: str) -> Captured:
        """Output that a test set."""
        return self.printed[job_id]

    def settle(self, job_id: str, note: str) -> None:
        """Know of no files."""

    async def kill(self, job_id: str) -> JobInfo:
        """List it as ended."""
        self.listed[job_id] = replace(self.listed[job_id], running=False)
        return self.listed[job_id]

    async def end_all(self, conversation_id: str) -> None:
        """End those of one conversation."""
        for job in self.jobs(conversation_id):
            await self.kill(job.id)


def context_in(
    folder: Path,
    *,
    conversation: str = "one",
    outside: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
    actor: str = "",
) -> ToolContext:
    """A context whose working directory is `folder`."""
    return ToolContext(conversation, "call-1", folder, outside, report, actor)


async def use(
    tool: Tool, folder: Path, conversation: str = "one", actor: str = "", *, outside: bool = False, **args: object
) -> ToolOutput:
    """Run `tool` in `folder` with `args`."""
    return await use_with(tool, folder, args, conversation, actor, outside=outside)


async def use_with(
    tool: Tool,
    folder: Path,
    args: Mapping[str, object],
    conversation: str = "one",
    actor: str = "",
    *,
    outside: bool = False,
) -> ToolOutput:
    """Call `use` with arguments from a table."""
    arguments: JsonObject = dict(args)  # type: ignore[arg-type]  # tests also send what no schema allows
    return await tool.run(arguments, context_in(folder, conversation=conversation, outside=outside, actor=actor))
