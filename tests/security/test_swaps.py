"""SECURITY V7: a yes is for what was shown: what changed between question and yes is asked again, never run."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import AwaitingApproval, Idle
from engine.permissions.rules import KeptRule
from engine.ports import ConversationChanges
from engine.records import PermissionMode
from engine.updates import ApprovalAsked, Question
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.waiting import PATIENCE, poll
from tools.contract import SandboxMode, Tool, ToolContext
from tools.file_tools import Patch, ReadFile, WriteFile
from tools.files.location import resolve
from tools.files.writing import ReadLedger

DONE = Reply((Text("done"),))
Swap = Callable[[Path, Path], None]


def call(name: str, **arguments: Any) -> Reply:
    return Reply((ScriptedCall(name, json.dumps(arguments), "t1"),))


@asynccontextmanager
async def asking(
    folder: Path, tool: Tool, reply: Reply, mode: PermissionMode = PermissionMode.ASK, *, before: Swap | None = None
) -> AsyncIterator[tuple[EngineHarness, Conversation, Path]]:
    """A conversation whose call waits for a yes, and a folder outside of it."""
    outside = folder / "outside"
    outside.mkdir()
    async with engine_harness(folder, reply, DONE, DONE, tool=cast("StubTool", tool)) as harness:
        if before is not None:
            before(harness.cwd, outside)
        conversation = await harness.engine.create(
            ConversationOptions(harness.cwd, "scripted/main", permission_mode=mode)
        )
        await conversation.subscribe(harness.updates.append)
        await conversation.say("do it")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        yield harness, conversation, outside


async def yes(
    conversation: Conversation, call_id: str = "t1", choice: ApprovalChoice = ApprovalChoice.ONCE
) -> Question | None:
    """Say yes and give the next question, None where the run went on to its end."""
    before = conversation.question
    await conversation.answer(call_id, ApprovalAnswer(choice))
    await until(
        lambda: (
            isinstance(conversation.state, Idle)
            or (isinstance(conversation.state, AwaitingApproval) and conversation.question not in {None, before})
        )
    )
    return conversation.question


async def results(harness: EngineHarness, conversation: Conversation) -> str:
    blocks = [block for row in await harness.store.messages(conversation.id) for block in row.blocks]
    parts = [part for block in blocks if isinstance(block, ToolResultBlock) for part in block.content]
    return "\n".join(part.text for part in parts if isinstance(part, TextBlock))


def file_to_link(cwd: Path, outside: Path) -> None:
    (cwd / "a.txt").symlink_to(outside / "target.txt")


def folder_to_link(cwd: Path, outside: Path) -> None:
    (cwd / "sub").symlink_to(outside)


def folder_above_to_link(cwd: Path, outside: Path) -> None:
    (cwd / "deep").symlink_to(outside)


def into_git(cwd: Path, outside: Path) -> None:
    (cwd / ".git").mkdir()
    (cwd / "sub").symlink_to(cwd / ".git")


def appeared(cwd: Path, outside: Path) -> None:
    (cwd / "a.txt").write_text("another wrote this\n")


SWAPS: list[tuple[str, Swap]] = [
    ("a.txt", file_to_link),
    ("sub/a.txt", folder_to_link),
    ("deep/sub/a.txt", folder_above_to_link),
    ("sub/a.txt", into_git),
]


@pytest.mark.parametrize(("path", "swap"), SWAPS, ids=lambda one: getattr(one, "__name__", str(one)))
@pytest.mark.parametrize("choice", [ApprovalChoice.ONCE, ApprovalChoice.CONVERSATION, ApprovalChoice.ALWAYS])
async def test_a_path_that_leads_elsewhere_after_the_question_is_asked_about_again(
    tmp_path: Path, path: str, swap: Swap, choice: ApprovalChoice
) -> None:
    async with asking(tmp_path, WriteFile(ReadLedger()), call("write_file", path=path, content="x\n")) as found:
        harness, conversation, outside = found
        swap(harness.cwd, outside)
        question = await yes(conversation, choice=choice)
        assert question is not None, await results(harness, conversation)
        assert "changed after your approval" in question.reason
        assert question.request.paths == (resolve(path, harness.cwd),)
        assert not any(found.is_file() for found in outside.rglob("*"))
        assert not any((harness.cwd / ".git").rglob("*"))
        # The second yes is for the new facts, which were shown.
        assert await yes(conversation) is None
        assert question.request.paths[0].read_text() == "x\n"


async def test_a_file_that_appeared_after_the_question_is_not_overwritten(tmp_path: Path) -> None:
    async with asking(tmp_path, WriteFile(ReadLedger()), call("write_file", path="a.txt", content="x\n")) as found:
        harness, conversation, outside = found
        appeared(harness.cwd, outside)
        await yes(conversation)
        assert (harness.cwd / "a.txt").read_text() == "another wrote this\n"


async def test_a_file_whose_content_changed_after_the_question_keeps_it(tmp_path: Path) -> None:
    ledger = ReadLedger()
    edits = [{"op": "replace", "old": "one", "new": "two"}]

    def before(cwd: Path, outside: Path) -> None:
        (cwd / "a.txt").write_text("one\n")

    async with engine_harness(
        tmp_path, call("patch", path="a.txt", edits=edits), DONE, tool=cast(Any, Patch(ledger))
    ) as harness:
        before(harness.cwd, tmp_path)
        conversation = await harness.conversation(PermissionMode.ASK)
        context = ToolContext(conversation.id, "r", harness.cwd, outside_allowed=False, report=lambda _: None)
        await ReadFile(ledger).run({"path": "a.txt"}, context)
        await conversation.say("do it")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        (harness.cwd / "a.txt").write_text("one\nand more\n")
        await yes(conversation)
        assert (harness.cwd / "a.txt").read_text() == "one\nand more\n"


@pytest.mark.parametrize(
    "changes",
    [ConversationChanges(sandbox=SandboxMode.OFF), ConversationChanges(sandbox=SandboxMode.READ_ONLY)],
    ids=["off", "read-only"],
)
async def test_a_sandbox_that_changed_after_the_question_is_asked_about_again(
    tmp_path: Path, changes: ConversationChanges
) -> None:
    async with asking(tmp_path, StubTool(), call("bash", command="ls")) as found:
        harness, conversation, _ = found
        await conversation.change(changes)
        question = await yes(conversation)
        assert harness.tool.calls == []
        assert question is not None
        assert f"the sandbox is {changes.sandbox}" in question.reason


@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_a_mode_that_changed_after_the_question_decides_anew(tmp_path: Path, mode: PermissionMode) -> None:
    async with asking(tmp_path, StubTool(), call("bash", command="ls")) as found:
        harness, conversation, _ = found
        await conversation.change(ConversationChanges(permission_mode=mode))
        question = await yes(conversation)
        match mode:
            case PermissionMode.PLAN | PermissionMode.DENY:
                assert (question, harness.tool.calls) == (None, [])
            case PermissionMode.ACCEPT_EDITS:
                assert question is not None
                assert harness.tool.calls == []
            case _:
                assert (question, len(harness.tool.calls)) == (None, 1)


async def test_a_rule_that_appears_or_goes_meanwhile_does_not_take_the_place_of_the_yes(tmp_path: Path) -> None:
    """A rule added by another process says yes by itself; one that goes leaves the person's own yes."""
    async with asking(tmp_path, StubTool(), call("bash", command="ls")) as found:
        harness, conversation, _ = found
        harness.rules.add(KeptRule("bash(rm -rf /)"))
        assert await yes(conversation) is None
        assert [one["command"] for one in harness.tool.calls] == ["ls"]


async def test_what_changes_each_time_is_refused_at_last(tmp_path: Path) -> None:
    async with asking(tmp_path, WriteFile(ReadLedger()), call("write_file", path="a.txt", content="x\n")) as found:
        harness, conversation, outside = found
        for number in range(10):
            (harness.cwd / "a.txt").unlink(missing_ok=True)
            (harness.cwd / "a.txt").symlink_to(outside / f"{number}.txt")
            if await yes(conversation) is None:
                break
        assert len([one for one in harness.seen(ApprovalAsked) if one.question]) == 3
        assert "changed after each approval" in await results(harness, conversation)
        assert not any(outside.iterdir())


SWAPPER = """
import ctypes, os, sys
here, exchange = -100, 2
sub, link = (os.fsencode(path) for path in sys.argv[1:])
libc = ctypes.CDLL(None)
while os.getppid() != 1:
    libc.renameat2(here, sub, here, link, exchange)
"""
"""Folder and link change places in one step, as often as one processor can."""


async def test_a_process_that_swaps_a_folder_in_a_loop_never_gets_a_write_outside(tmp_path: Path) -> None:
    """The write itself walks without following links, whatever the checks before it saw."""
    cwd, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (cwd / "sub", outside):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(outside)
    tool, tried, written = WriteFile(ReadLedger()), 0, 0
    places = (cwd / "sub", tmp_path / "link")
    swapper = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", SWAPPER, *map(str, places))
    try:
        await poll(lambda: (cwd / "sub").is_symlink())
        end = time.monotonic() + PATIENCE
        # On a busy machine the swapper rests for many writes in a row, on either side.
        while tried < 300 or (not written and time.monotonic() < end):
            arguments: Any = {"path": f"sub/{tried}.txt", "content": "x"}
            target = cwd / "sub" / f"{tried}.txt"
            tried += 1
            context = ToolContext("c", "t", cwd, outside_allowed=True, report=lambda _: None, admitted=(target,))
            written += not (await tool.run(arguments, context)).is_error
            assert not any(outside.iterdir())
    finally:
        swapper.kill()
        await swapper.wait()
    assert written, "the folder was never there: this raced against nothing"
