"""Hooks around tools, end to end: real scripts, a real engine, a scripted model."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.conversation import Conversation
from engine.executor.call_results import LONGEST
from engine.executor.engine_settings import EngineSettings
from engine.executor.event_hooks import drop_repeated_reason
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.states import Idle
from engine.records import PermissionMode
from engine.updates import ApprovalAsked, RunEnded
from tests.support.engine import StubTool, run_turn, until
from tests.support.hooked import PYTHON, bash, group, hooked_engine, says, script, write_hooks
from tests.support.scripted_provider import Fail, Reply, ScriptedCall
from tools.file_tools import Patch, ReadFile
from tools.files.writing import ReadLedger


def validator(folder: Path) -> str:
    """A guard in the style of public ones: it reads the command and refuses some with exit code 2."""
    return script(
        folder / "validator.py",
        PYTHON
        + """
if given.get("tool_name") != "Bash":
    sys.exit(0)
command = given["tool_input"]["command"]
if command.startswith("grep "):
    print("use rg instead", file=sys.stderr)
    sys.exit(2)
""",
    )


async def test_a_guard_refuses_one_command_and_lets_another_run(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group(validator(tmp_path), "Bash")])
    async with hooked_engine(tmp_path, bash("grep x"), bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go")
        assert hooked.results()[0].startswith("A hook blocked bash: validator.py: use rg instead")
        assert [call["command"] for call in hooked.harness.tool.calls] == ["ls"]
        assert "hook validator.py · PreToolUse · blocked · exit 2" in hooked.rows()[0]
        assert "use rg" not in hooked.rows()[0]


async def test_stdin_has_foreign_names_and_fields(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    record = f"cat >> {seen}; env | grep -E '^(CLAUDE|PHOENIX)' | sort > {tmp_path}/env"
    hooks = [group(record, "Bash")]
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=hooks, PostToolUse=hooks)
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.run("go")
        before, after = map(json.loads, seen.read_text().splitlines())
        assert before["session_id"] == conversation.id
        assert before["cwd"] == str(hooked.project)
        assert (before["hook_event_name"], before["permission_mode"]) == ("PreToolUse", "bypassPermissions")
        assert (before["tool_name"], before["tool_input"]) == ("Bash", {"command": "ls"})
        assert before["prompt_id"]
        assert after["tool_use_id"] == before["tool_use_id"]
        assert after["tool_response"] == {"stdout": "ran ls", "stderr": "", "interrupted": False, "isImage": False}
        assert after["duration_ms"] >= 0
        names = (tmp_path / "env").read_text()
        assert f"CLAUDE_PROJECT_DIR={hooked.project}" in names
        assert "CLAUDECODE=1" in names
        assert f"PHOENIX_SESSION_ID={conversation.id}" in names


def answer(**fields: object) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', **fields}})}'"


async def test_an_allow_takes_the_place_of_the_question(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=answer(permissionDecision="allow"))
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go", PermissionMode.ASK)
        assert len(hooked.harness.tool.calls) == 1
        assert not hooked.harness.seen(ApprovalAsked)


@pytest.mark.parametrize("mode", [PermissionMode.PLAN, PermissionMode.DENY])
async def test_an_allow_does_not_beat_a_mode_that_refuses(tmp_path: Path, mode: PermissionMode) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=answer(permissionDecision="allow"))
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go", mode)
        assert hooked.harness.tool.calls == []


async def test_an_ask_asks_in_mode_auto_and_the_hook_runs_once(tmp_path: Path) -> None:
    once = f"echo run >> {tmp_path}/count; {answer(permissionDecision='ask', permissionDecisionReason='look')}"
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=once)
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go")
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        assert "look" in conversation.question.reason
        await conversation.answer(conversation.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        await conversation.wait_idle()
        assert len(hooked.harness.tool.calls) == 1
        assert (tmp_path / "count").read_text() == "run\n"


async def test_an_input_is_replaced_whole_shown_and_checked_again(tmp_path: Path) -> None:
    write_hooks(
        tmp_path / "config" / "hooks.json", PreToolUse=answer(updatedInput={"command": "ls -l", "timeout": 5000})
    )
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go", PermissionMode.ASK)
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        assert conversation.question.request.summary == "ls -l"
        await conversation.answer(conversation.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        await conversation.wait_idle()
        assert hooked.harness.tool.calls == [{"command": "ls -l", "timeout": 5}]
        assert any('changed the input: {"command": "ls -l", "timeout": 5}' in row for row in hooked.rows())


async def test_what_a_hook_says_afterwards_is_added_to_the_result(tmp_path: Path) -> None:
    lint = script(tmp_path / "lint.sh", "#!/bin/bash\ncat > /dev/null\necho 'E501 line too long' >&2\nexit 2\n")
    context = 'echo \'{"hookSpecificOutput": {"additionalContext": "see style.md"}}\''
    write_hooks(tmp_path / "config" / "hooks.json", PostToolUse=[group(lint, "Bash"), group(context)])
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go")
        (result,) = hooked.results()
        assert result.startswith("ran ls")
        assert "[A hook objects: lint.sh: E501 line too long]" in result
        assert "[From a hook: see style.md]" in result


async def test_continue_false_before_a_tool_ends_the_run_without_it(tmp_path: Path) -> None:
    stop = 'echo \'{"continue": false, "stopReason": "enough"}\''
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=stop)
    async with hooked_engine(tmp_path, bash("ls"), says("never")) as hooked:
        conversation = await hooked.harness.run("go")
        (ended,) = hooked.harness.seen(RunEnded)
        assert (ended.error_code, ended.error) == ("hook_stopped", "A hook stopped the run: enough")
        assert hooked.harness.tool.calls == []
        assert isinstance(conversation.state, Idle)


async def test_a_hook_without_an_answer_in_time_has_the_call_asked_about(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group("sleep 60", timeout=0.2)])
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go")
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        assert "gave no opinion" in conversation.question.reason


async def test_on_failure_continue_lets_the_call_go_on(tmp_path: Path) -> None:
    slow = group("sleep 60", timeout=0.2, on_failure="continue")
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[slow])
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go")
        assert len(hooked.harness.tool.calls) == 1
        assert "no answer" in hooked.rows()[0]


async def test_failures_hold_nothing_up_and_leave_a_row(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse="echo broken >&2; exit 1")
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        await hooked.harness.run("go")
        assert len(hooked.harness.tool.calls) == 1
        assert "exit 1" in hooked.rows()[0]
        assert "broken" in hooked.rows()[0]


async def test_no_hooks_runs_none(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse="exit 2")
    async with hooked_engine(tmp_path, bash("ls"), says("done"), off="--no-hooks") as hooked:
        await hooked.harness.run("go")
        assert len(hooked.harness.tool.calls) == 1


async def test_an_input_that_the_user_changed_is_shown_to_hooks_again(tmp_path: Path) -> None:
    guard = script(
        tmp_path / "guard.py", PYTHON + "\nif 'rm' in given['tool_input']['command']:\n    sys.exit('no rm') or 2\n"
    )
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=f"{guard} || exit 2")
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.start("go", PermissionMode.ASK)
        await until(lambda: conversation.question is not None)
        assert conversation.question is not None
        changed = ApprovalAnswer(ApprovalChoice.ONCE, input={"command": "rm x"})
        await conversation.answer(conversation.question.call.id, changed)
        await conversation.wait_idle()
        assert hooked.harness.tool.calls == []
        assert "no rm" in hooked.results()[0]


async def test_a_run_without_a_message_has_its_hooks_too(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse="echo no >&2; exit 2")
    broken = Reply((Fail("it broke", retryable=False),))
    async with hooked_engine(tmp_path, broken) as hooked:
        conversation = await hooked.harness.run("go")
    async with hooked_engine(tmp_path, bash("ls"), says("done")) as hooked:
        again = await hooked.harness.engine.open(conversation.id)
        await again.retry()
        await again.wait_idle()
        assert hooked.harness.tool.calls == []
        assert len(hooked.hooks.history.runs) == 1


@pytest.mark.parametrize(
    ("tool", "args", "matcher"),
    [
        ("patch", {"path": "a", "edits": [{"op": "replace", "old": "a", "new": "b"}] * 2}, "Edit|Write"),
        ("patch", {"path": "a", "edits": [{"op": "overwrite", "new": "b"}]}, "Edit"),
        ("patch", {"path": "a", "edits": [{"op": "append", "new": "b"}]}, "patch"),
        ("job_kill", {"job_id": "j1"}, "KillShell"),
        ("spawn_task", {"task_description": "look", "initial_prompt": "look around"}, "Task"),
    ],
)
async def test_no_form_of_a_call_passes_a_guard(tmp_path: Path, tool: str, args: object, matcher: str) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=[group("echo no >&2; exit 2", matcher)])
    stub = StubTool(tool)
    call = Reply((ScriptedCall(tool, json.dumps(args)),))
    async with hooked_engine(tmp_path, call, says("done"), tool=stub) as hooked:
        await hooked.harness.run("go")
        assert stub.calls == []
        assert "A hook blocked" in hooked.results()[0]


async def test_a_hook_of_config_toml_decides_and_a_change_of_the_file_counts_at_once(tmp_path: Path) -> None:
    settings = tmp_path / "config" / "config.toml"
    settings.parent.mkdir()
    hook = '[[hooks.PreToolUse]]\nhooks = [{ type = "command", command = "echo no >&2; exit 2" }]\n'
    settings.write_text(hook)
    async with hooked_engine(tmp_path, bash("ls"), says("done"), bash("ls"), says("done")) as hooked:
        conversation = await hooked.harness.run("go")
        assert hooked.harness.tool.calls == []
        settings.write_text("# none\n")
        await run_turn(conversation, "again")
        assert len(hooked.harness.tool.calls) == 1


DEFERS = answer(permissionDecision="defer", permissionDecisionReason="ask me later")
UNWATCHED = EngineSettings(auto_title=False, may_defer=True)


async def test_a_defer_ends_a_run_without_a_screen_before_the_call(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=DEFERS)
    async with hooked_engine(tmp_path, bash("ls"), bash("ls"), says("done"), settings=UNWATCHED) as hooked:
        conversation = await hooked.harness.run("go")
        ended = hooked.harness.seen(RunEnded)[-1]
        assert (ended.error_code, ended.error) == (
            "tool_deferred",
            "A hook put off the call of bash: echo: ask me later",
        )
        assert hooked.harness.tool.calls == []
        assert "make the same call again" in hooked.results()[0]
        (tmp_path / "config" / "hooks.json").unlink()
        await run_turn(conversation, "go on")
        assert hooked.harness.tool.calls == [{"command": "ls"}]


def asks(conversation: Conversation) -> bool:
    return conversation.question is not None


async def test_a_defer_is_a_question_on_a_screen_and_among_several_calls(tmp_path: Path) -> None:
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=DEFERS)
    two = Reply(tuple(ScriptedCall("bash", json.dumps({"command": command})) for command in ("ls", "pwd")))
    for place, (reply, settings) in enumerate(((bash("ls"), None), (two, UNWATCHED))):
        async with hooked_engine(tmp_path, reply, says("done"), settings=settings) as hooked:
            conversation = await hooked.harness.start("go")
            await until(partial(asks, conversation))
            assert conversation.question is not None, place
            assert "ask me later" in conversation.question.reason


async def test_a_deny_of_another_hook_counts_before_a_defer(tmp_path: Path) -> None:
    both = [group(DEFERS), group("echo never >&2; exit 2")]
    write_hooks(tmp_path / "config" / "hooks.json", PreToolUse=both)
    async with hooked_engine(tmp_path, bash("ls"), says("done"), settings=UNWATCHED) as hooked:
        await hooked.harness.run("go")
        assert hooked.harness.seen(RunEnded)[-1].error_code == ""
        assert "never" in hooked.results()[0]


RESULT = "A hook blocked bash: guard.py: use rg: it is\nfaster"


def test_the_row_of_a_hook_that_blocked_leaves_the_reason_to_the_result() -> None:
    row = "hook guard.py · PreToolUse · blocked · exit 2 · 0.1 s"
    assert drop_repeated_reason(f"{row}: use rg: it is faster", RESULT) == row
    assert drop_repeated_reason(f"{row}: use rg: it…", RESULT) == row


def test_a_reason_that_the_result_does_not_give_stays() -> None:
    row = "hook guard.py · PreToolUse · blocked · exit 2 · 0.1 s: use rg"
    assert drop_repeated_reason(row, "A rule denied it") == row
    slow = "hook slow.py · PreToolUse · 2.0 s"
    assert drop_repeated_reason(slow, RESULT) == slow


async def response_to_edit(folder: Path, content: str, edit: dict[str, str]) -> dict[str, Any]:
    """The `tool_response` of one edit of a file."""
    seen, ledger = folder / "seen", ReadLedger()
    (folder / "project").mkdir()
    if content:
        (folder / "project" / "a.txt").write_text(content, newline="")
    write_hooks(folder / "config" / "hooks.json", PostToolUse=[group(f"cat > {seen}", "Edit|MultiEdit")])
    reads = Reply((ScriptedCall("read_file", json.dumps({"path": "a.txt"})),))
    edits = Reply((ScriptedCall("patch", json.dumps({"path": "a.txt", "edits": [edit]})),))
    async with hooked_engine(folder, reads, edits, says("done"), tools=(ReadFile(ledger), Patch(ledger))) as hooked:
        await hooked.harness.run("go")
        assert seen.exists(), hooked.results()
    response: dict[str, Any] = json.loads(seen.read_text())["tool_response"]
    return response


@pytest.mark.parametrize(("content", "original"), [("one\ntwo\n", "one\ntwo\n"), ("one\r\ntwo\r\n", "one\ntwo\n")])
async def test_it_is_what_the_edit_found(tmp_path: Path, content: str, original: str) -> None:
    response = await response_to_edit(tmp_path, content, {"op": "replace", "old": "two", "new": "three"})
    assert response["originalFile"] == original


async def test_of_a_long_file_the_beginning_is_given(tmp_path: Path) -> None:
    content = "é" * 70 + "\n"
    response = await response_to_edit(tmp_path, content * 4_000, {"op": "append", "new": "end"})
    assert response["originalFile"] == (content * 4_000)[:LONGEST]


async def test_a_new_file_had_none(tmp_path: Path) -> None:
    response = await response_to_edit(tmp_path, "", {"op": "append", "new": "end\n"})
    assert response.get("originalFile") is None
