"""Calls under the names of another agent: stored, shown and run as native ones; what has no native form is answered."""

from __future__ import annotations

import json
from pathlib import Path

from engine.executor.engine_settings import EngineSettings
from engine.executor.ready_calls import find_offered_name, translate_calls
from engine.machine.messages import TextBlock, ToolResultBlock, ToolUseBlock
from engine.permissions.rules import KeptRule
from engine.records import PermissionMode
from tests.support.engine import StubTool, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import Tool, ToolClass
from tools.file_tools import ReadFile
from tools.files.writing import ReadLedger
from tools.search import ListFiles

QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
CWD = Path("/work/project")


async def ran(
    home: Path, mode: PermissionMode, *calls: ScriptedCall, rules: tuple[KeptRule, ...] = ()
) -> tuple[list[tuple[str, str]], list[str]]:
    """The stored calls, and the results the model reads."""
    tools: list[Tool] = [ReadFile(ReadLedger()), ListFiles()]
    bash = StubTool("bash", ToolClass.RUN)
    async with engine_harness(home, Reply(calls), DONE, tool=bash, tools=tools, settings=QUIET) as harness:
        harness.engine.ports.rules.kept += list(rules)  # type: ignore[attr-defined]  # the rules in memory
        conversation = await harness.conversation(mode)
        (conversation.record.cwd / "a.txt").write_text("hello\n")
        await conversation.say("go")
        await conversation.wait_idle()
        blocks = [block for message in harness.provider.requests[-1].messages for block in message.blocks]
        stored = [(one.name, one.input_json) for one in blocks if isinstance(one, ToolUseBlock)]
        results = [
            "".join(part.text for part in one.content if isinstance(part, TextBlock))
            for one in blocks if isinstance(one, ToolResultBlock)
        ]  # fmt: skip
        return stored, results


async def test_a_call_under_a_foreign_name_is_the_native_tool(tmp_path: Path) -> None:
    calls = (
        ScriptedCall("Read", json.dumps({"file_path": "a.txt"})),
        ScriptedCall("read_file", json.dumps({"file_path": "a.txt"})),
        ScriptedCall("Glob", json.dumps({"pattern": "*.txt"})),
    )
    stored, results = await ran(tmp_path, PermissionMode.AUTO, *calls)
    assert stored == [
        ("read_file", '{"path":"a.txt"}'), ("read_file", '{"path":"a.txt"}'), ("list_files", '{"glob":"*.txt"}')
    ]  # fmt: skip
    assert results == ["     1\thello", "     1\thello", "a.txt"]


async def test_a_call_without_a_native_form_is_answered_in_words(tmp_path: Path) -> None:
    calls = (
        ScriptedCall("Read", json.dumps({"file_path": "a.txt", "pages": "1"})),
        ScriptedCall("NotebookEdit", "{}"),
        ScriptedCall("Read", "no json"),
        ScriptedCall("WebFetch", '{"url": "x"}'),
    )
    stored, results = await ran(tmp_path, PermissionMode.AUTO, *calls)
    assert [name for name, _ in stored] == ["Read", "NotebookEdit", "read_file", "WebFetch"]
    assert results[0] == "Read: pages of Read has no counterpart here; read_file takes path, offset, limit."
    assert results[1].startswith("NotebookEdit: NotebookEdit has no counterpart here")
    assert results[2].startswith("read_file: the arguments are not one JSON object")
    assert results[3].startswith("WebFetch: no such tool.")


async def test_a_foreign_name_is_no_way_around_the_policy(tmp_path: Path) -> None:
    denied = KeptRule("deny bash(git push*)", 0.0, "", "rules.toml")
    call = ScriptedCall("Bash", json.dumps({"command": "cd x && git push"}))
    stored, results = await ran(tmp_path, PermissionMode.AUTO, call, rules=(denied,))
    assert stored == [("bash", '{"command":"cd x && git push"}')]
    assert results == [
        "bash was not run: the rule bash(git push*) in rules.toml denies it. Do not try the same in another way."
    ]
    assert (await ran(tmp_path / "plan", PermissionMode.PLAN, call))[1] == [
        "Permission mode 'plan' does not allow bash."
    ]


def test_only_tools_that_are_there_are_meant_and_native_calls_are_untouched() -> None:
    call = ToolUseBlock("1", "Bash", '{"command": "x"}')
    assert translate_calls((TextBlock("x"), call), ("read_file",), CWD) == (TextBlock("x"), call)
    assert translate_calls((call,), ("Bash", "bash"), CWD)[0] is call
    native = ToolUseBlock("1", "bash", '{ "command":  "x", "odd": 1}')
    assert translate_calls((native,), ("bash",), CWD)[0] is native
    assert translate_calls((call,), ("bash",), CWD) == (ToolUseBlock("1", "bash", '{"command":"x"}'),)
    assert find_offered_name("Task", ("spawn_agents",)) == "spawn_agents"
    assert find_offered_name("Task", ()) == "Task"
