"""Hooks hear which instruction files a model reads: those of the prompt once, those of subfolders as they join."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from engine.executor.engine_settings import EngineSettings
from phoenix_tui.config.instructions import Instructions
from phoenix_tui.config.project import find_project
from phoenix_tui.config.trust import TrustFile
from tests.support.engine import StubTool, until
from tests.support.git_repositories import empty_repository
from tests.support.hooked import group, hooked_engine, says, write_hooks
from tests.support.scripted_provider import Reply, ScriptedCall
from tools.contract import JsonObject, ToolClass, ToolContext, ToolOutput

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
            await conversation.say(text)
            await conversation.wait_idle()
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
        conversation = await hooked.harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        await until(seen.exists)
        assert "Mine." in repr(hooked.harness.provider.requests[0])
    assert seen.read_text() == "right\n"
