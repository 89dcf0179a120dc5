"""Tools and prompt texts of extensions are those of the moment of each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.executor.engine_settings import EngineSettings
from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord
from tests.support.engine import StubTool, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import Tool

DONE = Reply((Text("Done."),))


@dataclass
class Source:
    """Offers what the test sets."""

    offered: dict[str, Tool] = field(default_factory=dict[str, Tool])
    texts: list[ExtensionPrompt] = field(default_factory=list[ExtensionPrompt])
    later: dict[str, Tool] = field(default_factory=dict[str, Tool])
    """Offered from the first preparation on."""
    prepared: int = 0

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        return self.offered

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        return self.texts

    async def prepare(self, record: ConversationRecord) -> None:
        self.prepared += 1
        self.offered |= self.later

    def close_conversation(self, conversation_id: str) -> None:
        pass


SETTINGS = EngineSettings(auto_title=False)


async def test_a_tool_that_came_meanwhile_is_offered_with_the_next_request_and_can_be_called(tmp_path: Path) -> None:
    tool, later = StubTool("mcp__notes__add"), StubTool("mcp__notes__find")
    source = Source({"mcp__notes__add": tool})
    call = Reply((ScriptedCall("mcp__notes__add", '{"command": "x"}'),))
    async with engine_harness(tmp_path, call, DONE, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.wait_idle()
        source.offered["mcp__notes__find"] = later
        await conversation.say("second")
        await conversation.wait_idle()
        offered = [[spec.name for spec in request.tools] for request in harness.provider.requests]
    assert [names[-1] for names in offered] == ["mcp__notes__add", "mcp__notes__add", "mcp__notes__find"]
    assert tool.calls == [{"command": "x"}]
    assert source.prepared == 3


async def test_what_a_source_prepares_is_in_the_first_request(tmp_path: Path) -> None:
    source = Source(later={"mcp__notes__add": StubTool("mcp__notes__add")})
    async with engine_harness(tmp_path, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.wait_idle()
        assert harness.provider.requests[0].tools[-1].name == "mcp__notes__add"


async def test_no_source_takes_the_name_of_a_tool_of_phoenix(tmp_path: Path) -> None:
    own, foreign = StubTool("bash"), StubTool("bash")
    call = Reply((ScriptedCall("bash", '{"command": "x"}'),))
    async with engine_harness(
        tmp_path, call, DONE, tool=own, settings=SETTINGS, extensions=(Source({"bash": foreign}),)
    ) as harness:
        conversation = await harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
    assert (len(own.calls), len(foreign.calls)) == (1, 0)


async def test_the_texts_of_a_source_stand_behind_the_safety_section(tmp_path: Path) -> None:
    source = Source(texts=[ExtensionPrompt("Skills", "pdf: reads PDF files", "skills")])
    async with engine_harness(tmp_path, DONE, settings=SETTINGS, extensions=(source,)) as harness:
        conversation = await harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        said = harness.provider.requests[0].system[0]
    assert said.index("# Safety") < said.index("# Skills\npdf: reads PDF files") < said.index("# Workspace")
