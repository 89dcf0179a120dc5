"""The port to background commands: `tools.process` implements it, the tools and the engine are given it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tools.contract import Captured, Command, Finished, JobInfo, Report


class Caller(Struct, frozen=True):
    """Conversation and call of a command, and its title as a job."""

    conversation_id: str
    call_id: str
    title: str


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

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        ...

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away."""
        ...
