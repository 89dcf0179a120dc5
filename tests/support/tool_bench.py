"""Runs a provider through a whole turn with the real tools in a folder, as the engine would, without an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.machine.messages import Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, Provider, StreamItem
from tests.support.plain_runner import PlainRunner
from tools.bash import Bash, Caller
from tools.contract import Captured, Command, Finished, JobInfo, ProcessRunner, Report, Tool, ToolContext, ToolOutput
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.writing import ReadLedger
from tools.planning import Think
from tools.search import ListFiles, Search

MOST_ROUNDS = 30


class NoJobs:
    """A job board on which commands only run to their end."""

    def __init__(self, runner: ProcessRunner) -> None:
        self._runner = runner

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished:
        return await self._runner.run(command, report)

    def background(self, conversation_id: str, call_id: str) -> None:
        return

    def terminal(self, conversation_id: str, call_id: str) -> None:
        return

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        return lambda: None

    async def start(self, command: Command, conversation_id: str, title: str, report: Report | None = None) -> JobInfo:
        raise AssertionError("no background job is wanted here")

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        return ()

    def output(self, job_id: str) -> Captured:
        raise KeyError(job_id)

    def settle(self, job_id: str, note: str) -> None:
        raise KeyError(job_id)

    async def kill(self, job_id: str) -> JobInfo:
        raise KeyError(job_id)

    async def end_all(self, conversation_id: str) -> None:
        return


def real_tools(spill: Path) -> dict[str, Tool]:
    """The tools the guide and the local model know."""
    runner, ledger = PlainRunner(), ReadLedger()
    tools: tuple[Tool, ...] = (
        Bash(NoJobs(runner), spill),
        ReadFile(ledger),
        ListFiles(),
        Search(runner),
        WriteFile(ledger),
        Patch(ledger),
        Think(),
    )
    return {tool.spec.name: tool for tool in tools}


@dataclass(frozen=True, slots=True)
class Turn:
    """Events from a request to the answer."""

    replies: tuple[ModelReply, ...]
    messages: tuple[ModelMessage, ...]
    items: tuple[StreamItem, ...]

    @property
    def answer(self) -> str:
        """The text of the last reply."""
        return "".join(block.text for block in self.replies[-1].blocks if isinstance(block, TextBlock))

    @property
    def calls(self) -> list[str]:
        """The tools used, in order."""
        return [block.name for reply in self.replies for block in reply.blocks if isinstance(block, ToolUseBlock)]


async def take_turn(
    provider: Provider,
    model: str,
    text: str,
    folder: Path,
    tools: dict[str, Tool],
    earlier: Sequence[ModelMessage] = (),
) -> Turn:
    """Ask, run the tools, ask again, until the answer has come."""
    messages = [*earlier, ModelMessage(Role.USER, (TextBlock(text),))]
    replies: list[ModelReply] = []
    seen: list[StreamItem] = []
    specs = tuple(tool.spec for tool in tools.values())
    for _ in range(MOST_ROUNDS):
        items = [item async for item in provider.stream(ModelRequest(model, (), tuple(messages), specs))]
        seen += items
        reply = items[-1]
        assert isinstance(reply, ModelReply)
        replies.append(reply)
        messages.append(ModelMessage(Role.ASSISTANT, reply.blocks))
        calls = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
        if not calls:
            return Turn(tuple(replies), tuple(messages), tuple(seen))
        results = [await _result(call, tools, folder) for call in calls]
        messages.append(ModelMessage(Role.USER, tuple(results)))
    raise AssertionError(f"no answer after {MOST_ROUNDS} rounds")


async def _result(call: ToolUseBlock, tools: dict[str, Tool], folder: Path) -> ToolResultBlock:
    context = ToolContext("c", call.id, folder, outside_allowed=False, report=lambda _progress: None)
    try:
        output = await tools[call.name].run(json.loads(call.input_json), context)
    except ValueError as error:
        output = ToolOutput(str(error), is_error=True)
    return ToolResultBlock(call.id, (TextBlock(output.text),), output.is_error)
