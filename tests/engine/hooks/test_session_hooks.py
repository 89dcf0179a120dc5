"""Hooks around messages, answers, summaries and sessions, with scripts in the style of public ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor import event_hooks
from engine.executor.engine_settings import EngineSettings
from engine.executor.event_hooks import MOST_TIMES
from engine.executor.requests import Refused
from engine.machine.messages import Origin, TextBlock
from engine.records import Delivery, PermissionMode
from engine.updates import HookStarted, MessageSaved, RunEnded
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.trust import TrustFile, find_project
from tests.support.engine import StubTool, run_turn, until
from tests.support.git_repositories import empty_repository
from tests.support.hooked import PYTHON, Hooked, bash, group, hooked_engine, says, script, write_hooks
from tests.support.scripted_provider import Reply, ScriptedCall
from tools.contract import JobInfo, JsonObject, ToolClass, ToolContext, ToolOutput


def texts(hooked: Hooked, origin: Origin) -> list[str]:
    return [
        block.text
        for saved in hooked.harness.seen(MessageSaved)
        if saved.message.origin is origin
        for block in saved.message.blocks
        if isinstance(block, TextBlock)
    ]


async def test_a_prompt_guard_sends_the_message_back(tmp_path: Path) -> None:
    guard = script(
        tmp_path / "guard.py",
        PYTHON
        + """
if "password" in given["prompt"]:
    print(json.dumps({"decision": "block", "reason": "No secrets in prompts"}))
else:
    print("Today is Monday.")
""",
    )
    write_hooks(tmp_path / "config" / "hooks.json", UserPromptSubmit=guard)
    async with hooked_engine(tmp_path, says("hi")) as hooked:
        conversation = await hooked.harness.conversation()
        refused = await conversation.say("my password is x")
        assert refused == Refused("A hook refused this message: guard.py: No secrets in prompts")
        assert hooked.harness.seen(MessageSaved) == []
        await run_turn(conversation, "hello")
        words, added = texts(hooked, Origin.HUMAN)
        assert (words, "Today is Monday." in added) == ("hello", True)
        assert "Today is Monday." in str(hooked.harness.provider.requests[-1])


async def test_a_session_begins_once_with_its_context_and_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = script(
        tmp_path / "note.py",
        PYTHON
        + f"""
with open({str(log)!r}, "a") as file:
    file.write(given["hook_event_name"] + " " + given.get("source", given.get("reason", "")) + "\\n")
print("Use tabs.")
""",
    )
    write_hooks(tmp_path / "config" / "hooks.json", SessionStart=[group(note, "startup")], SessionEnd=note)
    async with hooked_engine(tmp_path, says("one"), says("two")) as hooked:
        conversation = await hooked.harness.conversation()
        for text in ("first", "second"):
            await run_turn(conversation, text)
        assert [text for text in texts(hooked, Origin.HUMAN) if "Use tabs." in text] == [
            "<hook-context>\nUse tabs.\n</hook-context>"
        ]
    assert log.read_text().splitlines() == ["SessionStart startup", "SessionEnd other"]


async def test_a_stop_loop_goes_on_with_its_reason_until_it_is_content(tmp_path: Path) -> None:
    loop = script(
        tmp_path / "loop.py",
        PYTHON
        + """
if "DONE" in given["last_assistant_message"]:
    sys.exit(0)
print(json.dumps({"decision": "block", "reason": "say DONE", "systemMessage": "again"}))
""",
    )
    write_hooks(tmp_path / "config" / "hooks.json", Stop=loop)
    async with hooked_engine(tmp_path, says("almost"), bash("ls"), says("DONE")) as hooked:
        await hooked.harness.run("go")
        assert texts(hooked, Origin.NOTICE)[-1:] != []
        assert any("say DONE" in text for text in texts(hooked, Origin.NOTICE))
        assert texts(hooked, Origin.LLM) == ["almost", "DONE"]
        (ended,) = hooked.harness.seen(RunEnded)
        assert ended.status == "success"


async def test_a_stop_hook_that_is_never_content_ends_at_the_cap(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", Stop="echo more >&2; exit 2")
    replies = [says(f"answer {number}") for number in range(MOST_TIMES + 3)]
    async with hooked_engine(tmp_path, *replies) as hooked:
        await hooked.harness.run("go")
        assert len(texts(hooked, Origin.LLM)) == MOST_TIMES + 1
        assert any("it ends now" in row for row in hooked.rows())


async def test_esc_ends_a_stop_hook_and_keeps_the_answer(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", Stop=f"touch {tmp_path}/runs; sleep 60")
    async with hooked_engine(tmp_path, says("answer")) as hooked:
        conversation = await hooked.harness.start("go")
        await until((tmp_path / "runs").exists)
        conversation.cancel()
        await conversation.wait_idle()
        assert texts(hooked, Origin.LLM) == ["answer"]


async def test_a_summary_can_be_refused(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreCompact=[group("echo not now >&2; exit 2", "manual")])
    async with hooked_engine(tmp_path, *[says("word " * 50) for _ in range(9)]) as hooked:
        conversation = await hooked.harness.conversation()
        for number in range(8):
            await run_turn(conversation, f"question {number}")
        await conversation.context.compact()
        await conversation.wait_idle()
        assert any("A hook refused the summary: hook" not in row and "not now" in row for row in hooked.rows())
        assert conversation.record.summary == ""


async def test_a_question_notifies_and_can_be_answered_by_a_hook(tmp_path: Path) -> None:
    logger = f"cat >> {tmp_path}/log"
    write_hooks(tmp_path / "config" / "hooks.json", Notification=[group(logger, "permission_prompt")])
    async with hooked_engine(tmp_path, bash("ls"), bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go", PermissionMode.ASK)
        await until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text().endswith("\n"))
        assert json.loads((tmp_path / "log").read_text())["notification_type"] == "permission_prompt"
        conversation.cancel()
        await conversation.wait_idle()
        decision = json.dumps({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}})
        write_hooks(tmp_path / "config" / "hooks.json", PermissionRequest=f"echo '{decision}'")
        await run_turn(conversation, "again")
        assert "A hook blocked bash" in hooked.results()[-1]
        assert hooked.harness.tool.calls == []


async def test_a_prompt_hook_can_give_the_title(tmp_path: Path) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "sessionTitle": "Fix the build"}}
    write_hooks(tmp_path / "config" / "hooks.json", UserPromptSubmit=f"echo '{json.dumps(output)}'")
    async with hooked_engine(tmp_path, says("hi")) as hooked:
        conversation = await hooked.harness.run("hello")
        assert conversation.record.title == "Fix the build"


async def test_a_message_that_steers_passes_the_prompt_guard_too(tmp_path: Path) -> None:
    guard = "grep -q secret && { echo no >&2; exit 2; }; exit 0"
    write_hooks(tmp_path / "config" / "hooks.json", UserPromptSubmit=guard)
    tool = StubTool(release=asyncio.Event())
    async with hooked_engine(tmp_path, bash("ls"), says("done"), tool=tool) as hooked:
        conversation = await hooked.harness.start("go")
        await tool.started.wait()
        refused = await conversation.queue.add("the secret", delivery=Delivery.TOOL)
        assert isinstance(refused, Refused)
        assert "no" in refused.reason
        assert tool.release is not None
        tool.release.set()
        await conversation.wait_idle()


async def test_a_hook_is_announced_with_the_text_of_its_file(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group("true", statusMessage="looks at it")])
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go")
        assert [(one.name, one.status) for one in hooked.harness.seen(HookStarted)] == [("true", "looks at it")]


async def test_a_conversation_that_waits_for_its_user_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_hooks, "AFTER", 0.0)
    seen = tmp_path / "seen"
    hooks = [group(f"cat >> {seen}", "idle_prompt"), group(f"cat >> {seen}.other", "permission_prompt")]
    write_hooks(tmp_path / "config" / "hooks.json", Notification=hooks)
    async with hooked_engine(tmp_path, says("done")) as hooked:
        await hooked.harness.run("go")
        await until(lambda: seen.exists() and seen.read_text().endswith("\n"))
    (told,) = map(json.loads, seen.read_text().splitlines())
    assert (told["notification_type"], told["message"]) == ("idle_prompt", "Phoenix is waiting for your input")
    assert not (tmp_path / "seen.other").exists()


def wait_of(conversation: Conversation) -> asyncio.TimerHandle | None:
    return conversation.hooks.idle


async def test_a_new_message_and_the_end_stop_the_wait_for_the_user(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", Notification="true")
    tool = StubTool(release=asyncio.Event())
    assert tool.release is not None
    async with hooked_engine(tmp_path, says("done"), bash("ls"), says("more"), tool=tool) as hooked:
        conversation = await hooked.harness.run("go")
        first = wait_of(conversation)
        assert first is not None
        await conversation.say("go on")
        await tool.started.wait()
        assert first.cancelled()
        assert wait_of(conversation) is None
        tool.release.set()
        await conversation.wait_idle()
        second = wait_of(conversation)
        assert second is not None
        await hooked.harness.engine.forget(conversation.id)
        assert second.cancelled()


async def test_without_a_hook_for_it_nothing_waits_for_the_user(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", Stop="true")
    async with hooked_engine(tmp_path, says("done")) as hooked:
        conversation = await hooked.harness.run("go")
        assert conversation.hooks.idle is None


async def test_a_stop_hook_hears_of_commands_that_run_on(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    write_hooks(tmp_path / "config" / "hooks.json", Stop=f"cat > {seen}")
    async with hooked_engine(tmp_path, says("done")) as hooked:
        conversation = await hooked.harness.conversation()
        job = JobInfo("job_1", conversation.id, "npm run dev", running=True, exit_code=None, elapsed=1.0)
        over = JobInfo("job_2", conversation.id, "true", running=False, exit_code=0, elapsed=1.0)
        hooked.harness.jobs.known = (job, over)
        await run_turn(conversation, "go")
    (task,) = json.loads(seen.read_text())["background_tasks"]
    assert (task["id"], task["type"], task["status"], task["command"]) == ("job_1", "shell", "running", "npm run dev")


@pytest.mark.parametrize(
    ("left_as", "closed_as", "heard"),
    [("clear", "", "clear"), ("", "prompt_input_exit", "prompt_input_exit"), ("", "", "other")],
)
async def test_the_end_of_a_session_has_its_reason(tmp_path: Path, left_as: str, closed_as: str, heard: str) -> None:
    seen = tmp_path / "seen"
    write_hooks(tmp_path / "config" / "hooks.json", SessionEnd=[group(f"cat > {seen}", heard)])
    async with hooked_engine(tmp_path, says("one")) as hooked:
        conversation = await hooked.harness.conversation()
        conversation.hooks.end_reason = "logout"
        await run_turn(conversation, "a message resets it")
        if left_as:
            conversation.hooks.end_reason = left_as
        await hooked.harness.engine.close(closed_as)
    assert json.loads(seen.read_text())["reason"] == heard


READS = Reply((ScriptedCall("read_file", json.dumps({"path": "sub/a.py"})),))


class Reads(StubTool):
    """A tool that reads, without a display of its own."""

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        return replace(await super().run(args, context), display=None)


async def test_files_of_the_prompt_are_told_once_and_those_of_subfolders_as_they_join(tmp_path: Path) -> None:
    seen, project = tmp_path / "seen.jsonl", tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    empty_repository(project)
    (project / "AGENTS.md").write_text("Be short. @more.md")
    (project / "more.md").write_text("More.")
    (project / "sub" / "AGENTS.md").write_text("Below.")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "AGENTS.md").write_text("Mine.")
    trust = TrustFile(tmp_path / "answers.json")
    trust.answer(find_project(project), trusted=True)
    settings = EngineSettings(auto_title=False, instructions=Instructions(tmp_path / "config", trust))
    write_hooks(tmp_path / "config" / "hooks.json", InstructionsLoaded=f"cat >> {seen}")
    tool = Reads("read_file", ToolClass.READ, paths=(project / "sub" / "a.py",))
    async with hooked_engine(tmp_path, READS, says("done"), says("again"), tool=tool, settings=settings) as hooked:
        conversation = await hooked.harness.conversation()
        for text in ("go", "go on"):
            await run_turn(conversation, text)
        await until(lambda: seen.exists() and seen.read_text().count("\n") >= 4)
    told = [json.loads(line) for line in seen.read_text().splitlines()]
    names = ("memory_type", "load_reason", "parent_file_path", "trigger_file_path")
    assert {one["file_path"]: tuple(one.get(name) for name in names) for one in told} == {
        str(tmp_path / "config" / "AGENTS.md"): ("User", "session_start", None, None),
        str(project / "AGENTS.md"): ("Project", "session_start", None, None),
        str(project / "more.md"): ("Project", "include", str(project / "AGENTS.md"), None),
        str(project / "sub" / "AGENTS.md"): ("Project", "nested_traversal", None, str(project / "sub" / "a.py")),
    }
    assert len(told) == 4


async def test_a_matcher_is_held_against_the_reason_and_a_block_changes_nothing(tmp_path: Path) -> None:
    seen, project = tmp_path / "seen", tmp_path / "project"
    project.mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "AGENTS.md").write_text("Mine.")
    settings = EngineSettings(
        auto_title=False, instructions=Instructions(tmp_path / "config", TrustFile(tmp_path / "answers.json"))
    )
    hooks = [group(f"echo wrong >> {seen}", "include"), group(f"echo right >> {seen}; exit 2", "session_start")]
    write_hooks(tmp_path / "config" / "hooks.json", InstructionsLoaded=hooks)
    async with hooked_engine(tmp_path, says("done"), settings=settings) as hooked:
        await hooked.harness.run("go")
        await until(lambda: seen.exists() and seen.read_text() != "")
        assert "Mine." in repr(hooked.harness.provider.requests[0])
    assert seen.read_text() == "right\n"
