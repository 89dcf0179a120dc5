"""A command that wrote files which start by themselves: one question to a person, else they are taken back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.call_questions import ChangedFilesForm
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, ConversationOptions, Refused
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.bash import Bash
from tools.contract import Enforcement, SandboxMode, SelfStarting
from tools.displays import Answers
from tools.process import supervision
from tools.process.execution import Execution
from tools.process.start import Processes, ProcessSettings, start_processes

QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
WRITES = "mkdir .vscode; echo evil > AGENTS.md; echo '{}' > .vscode/tasks.json; echo fine > file"


def shell(command: str, **more: object) -> Reply:
    return Reply((ScriptedCall("bash", json.dumps({"command": command, **more})),))


@asynccontextmanager
async def conversation_in(
    home: Path, *replies: Reply, attended: bool = True
) -> AsyncIterator[tuple[EngineHarness, Conversation, Processes]]:
    """A conversation in the default sandbox, sent one message; AGENTS.md is the user's own."""
    processes = await start_processes(ProcessSettings(taken_back=home / "kept"))
    if await processes.enforcement() is not Enforcement.FULL:
        pytest.skip("files and network of a sandbox cannot be enforced here")
    settings = replace(QUIET, attended=attended)
    bash = Bash(processes.jobs, home / "spills")
    try:
        async with engine_harness(
            home, *replies, tools=[bash], board=processes.jobs, probe=processes, settings=settings
        ) as harness:
            (harness.cwd / "AGENTS.md").write_text("mine", "ascii")
            options = ConversationOptions(
                harness.cwd, "scripted/main", permission_mode=PermissionMode.ASK, sandbox=SandboxMode.WORKSPACE
            )
            conversation = await harness.engine.create(options)
            await conversation.subscribe(harness.updates.append)
            await conversation.say("do it")
            yield harness, conversation, processes
    finally:
        await processes.close()


def result_of(harness: EngineHarness) -> str:
    """The text of the newest tool result that the model has read."""
    blocks = [
        block for block in harness.provider.requests[-1].messages[-1].blocks if isinstance(block, ToolResultBlock)
    ]
    return "".join(part.text for part in blocks[-1].content if isinstance(part, TextBlock))


async def answer(conversation: Conversation, answers: Answers, choice: ApprovalChoice = ApprovalChoice.ONCE) -> object:
    assert conversation.question is not None
    return await conversation.answer(conversation.question.call.id, ApprovalAnswer(choice, answers=answers))


def test_a_question_about_many_files_names_first_what_most_programs_load() -> None:
    others = [f".a{number:02}/x.json" for number in range(12)] + [
        f"a/b{number}/.claude/settings.json" for number in range(9)
    ]
    known = [".mcp.json", "AGENTS.md", ".claude/settings.json", ".vscode/tasks.json"]
    changes = tuple(SelfStarting(name, "created") for name in (*others, *known))
    question = ChangedFilesForm("make", changes).questions[0]
    assert question.question.startswith("make changed .mcp.json, AGENTS.md, .claude/settings.json and 22 more.")
    rows = (question.details or "").split("\n")
    assert rows[:4] == [f"created {name}" for name in known]
    assert rows[12:] == ["and 13 more, which the answer covers too"]


async def test_one_question_names_every_file_and_keep_keeps_them(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, shell(WRITES), DONE) as (harness, conversation, _):
        await until(lambda: conversation.question)
        assert conversation.question is not None
        asked = conversation.question.request.questions[0]
        assert "changed AGENTS.md and .vscode/tasks.json." in asked.question
        assert asked.details == "changed AGENTS.md\ncreated .vscode/tasks.json"
        assert isinstance(await answer(conversation, (("Perhaps",),)), Refused)
        assert await answer(conversation, (("Keep",),)) == Accepted()
        await conversation.wait_idle()
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "evil\n"
        assert "the user kept the changes of .vscode/tasks.json and AGENTS.md" in result_of(harness)


@pytest.mark.parametrize("choice", [ApprovalChoice.ONCE, ApprovalChoice.DENY])
async def test_taken_back_the_files_are_as_before_and_the_others_stay(choice: ApprovalChoice, tmp_path: Path) -> None:
    async with conversation_in(tmp_path, shell(WRITES), DONE) as (harness, conversation, _):
        await until(lambda: conversation.question)
        assert await answer(conversation, (("Take back",),), choice) == Accepted()
        await conversation.wait_idle()
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"
        assert sorted(path.name for path in harness.cwd.iterdir()) == ["AGENTS.md", "file"]
        assert f"What it wrote is kept in {tmp_path}/kept/" in result_of(harness)


async def test_unattended_they_are_taken_back_and_the_result_says_so(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, shell(WRITES), DONE, attended=False) as (harness, conversation, _):
        await conversation.wait_idle()
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"
        assert ".vscode/tasks.json and AGENTS.md taken back" in result_of(harness)


async def test_a_stop_at_the_question_takes_them_back(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, shell(WRITES), DONE) as (harness, conversation, _):
        await until(lambda: conversation.question)
        conversation.cancel()
        await conversation.wait_idle()
        assert conversation.question is None
        await until(lambda: (harness.cwd / "AGENTS.md").read_text("ascii") == "mine")


JOB = shell(f"{WRITES}", background=True)


async def test_a_job_asks_when_it_ends_and_its_output_says_what_became_of_the_files(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, JOB, DONE) as (harness, conversation, _):
        await until(lambda: conversation.question)
        assert conversation.question is not None
        asked = conversation.question.request.questions[0].question
        assert asked.startswith("job-1 (mkdir .vscod")
        assert await answer(conversation, (("Take back",),)) == Accepted()
        await until(lambda: not conversation.jobs.output("job-1").changed)
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"
        assert ".vscode/tasks.json and AGENTS.md taken back" in conversation.jobs.output("job-1").notes[0]


async def test_unattended_the_files_of_a_job_are_taken_back(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, JOB, DONE, attended=False) as (harness, conversation, _):
        await until(lambda: conversation.jobs.all() and conversation.jobs.output("job-1").notes)
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"


@pytest.mark.parametrize("is_asked", [True, False], ids=["at its question", "while it runs"])
async def test_a_conversation_that_closes_takes_back_what_its_job_changed(is_asked: bool, tmp_path: Path) -> None:
    job = JOB if is_asked else shell(f"{WRITES}; sleep 60", background=True)
    async with conversation_in(tmp_path, job, DONE) as (harness, conversation, _):
        await until(lambda: conversation.question if is_asked else (harness.cwd / "file").exists())
        await conversation.close()
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"


async def test_a_stopped_command_leaves_no_changed_file_unasked(tmp_path: Path) -> None:
    async with conversation_in(tmp_path, shell(f"{WRITES}; sleep 60"), DONE) as (harness, conversation, _):
        await until(lambda: (harness.cwd / "file").exists())
        conversation.cancel()
        await conversation.wait_idle()
        assert (harness.cwd / "AGENTS.md").read_text("ascii") == "mine"
        assert not (harness.cwd / ".vscode").exists()


@pytest.mark.parametrize("is_job", [False, True])
async def test_a_command_that_is_stopped_as_it_begins_leaves_no_changed_file_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_job: bool
) -> None:
    """SECURITY U2."""
    reply = shell(f"{WRITES}; sleep 60", background=is_job)
    begun = asyncio.Event()

    async def wait_without_end(_: Execution) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with conversation_in(tmp_path, shell("true"), DONE, reply, DONE) as (harness, conversation, _):
        await conversation.wait_idle()
        monkeypatch.setattr(supervision, "_begin", wait_without_end)
        await conversation.say("again")
        await begun.wait()
        await until(lambda: (harness.cwd / "file").exists())
        conversation.cancel()
        await conversation.wait_idle()
        await until(lambda: (harness.cwd / "AGENTS.md").read_text("ascii") == "mine")
        assert not (harness.cwd / ".vscode").exists()


async def test_a_command_outside_asks_while_a_look_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = shell("true", access="outside", why="a test")
    async with conversation_in(tmp_path, shell("true"), DONE, outside, DONE) as (harness, conversation, processes):
        await conversation.wait_idle()
        monkeypatch.setattr(processes.planner.watch, "_limit", -1.0)
        monkeypatch.setattr(processes.planner.watch._states[harness.cwd.resolve()], "trouble", "a look is missing")
        await conversation.say("again")
        await until(lambda: conversation.question)
        assert conversation.question is not None
        assert await answer(conversation, ()) == Accepted()
        await conversation.wait_idle()
        assert "[exit code 0]" in result_of(harness)
