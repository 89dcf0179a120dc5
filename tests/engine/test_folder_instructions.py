"""Instruction files of subfolders are in the first result from there, as long as the model sees it (SPEC CLAW-17)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import Struct

from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import TextBlock, ToolResultBlock, text_in
from engine.ports.extensions import PromptFile, PromptFileKind
from tests.support.engine import EngineHarness, engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.file_tools import ReadFile
from tools.files.writing import ReadLedger

DONE = Reply((Text("Done."),))


class Below(Struct, frozen=True):
    """One file for everything in `sub`."""

    size: int = 9

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        del folder
        return ()

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        found = PromptFile(PromptFileKind.INSTRUCTIONS, folder / "sub" / "AGENTS.md", "x" * self.size)
        return (found,) if path.is_relative_to(folder / "sub") else ()


def read(*paths: str) -> Reply:
    return Reply(tuple(ScriptedCall("read_file", json.dumps({"path": path})) for path in paths))


async def results(harness: EngineHarness, conversation_id: str) -> list[str]:
    rows = await harness.store.messages(conversation_id)
    return [text_in(block.content) for row in rows for block in row.blocks if isinstance(block, ToolResultBlock)]


def settings(size: int = 9) -> EngineSettings:
    return EngineSettings(auto_title=False, instructions=Below(size))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    for name in ("a.py", "sub/b.py", "sub/c.py"):
        (tmp_path / "project" / name).write_text("pass\n")
    return tmp_path / "project"


async def test_the_first_result_from_a_folder_has_its_file_and_no_later_one(tmp_path: Path, work: Path) -> None:
    replies = (read("a.py"), read("sub/b.py", "sub/c.py"), read("sub/c.py"), DONE, read("sub/b.py"), DONE)
    async with engine_harness(tmp_path, *replies, tools=(ReadFile(ReadLedger()),), settings=settings()) as harness:
        conversation = await harness.conversation()
        for _ in range(2):
            await conversation.say("go")
            await conversation.wait_idle()
        plain = "     1\tpass"
        heading = f"[Instructions for files in {work}/sub, from {work}/sub/AGENTS.md: 9 characters]"
        assert await results(harness, conversation.id) == [plain, f"{plain}\n\n{heading}\nxxxxxxxxx", *[plain] * 3]
        assert all("Instructions for" not in request.system[0] for request in harness.provider.requests)


async def test_what_the_model_no_longer_sees_is_said_again(tmp_path: Path, work: Path) -> None:
    replies = (read("sub/b.py"), DONE, read("a.py"), DONE, read("sub/c.py"), DONE)
    async with engine_harness(tmp_path, *replies, tools=(ReadFile(ReadLedger()),), settings=settings()) as harness:
        conversation = await harness.conversation()
        for number in range(3):
            if number == 2:
                report = await conversation.context.report()
                part = next(one for one in report.measured.parts if one.tokens and "b.py" in one.label)
                await conversation.context.omit(part)
            await conversation.say("go")
            await conversation.wait_idle()
        said = [text.count("xxxxxxxxx") for text in await results(harness, conversation.id)]
        assert said == [1, 0, 1]


async def test_no_more_is_added_than_there_is_room_for(tmp_path: Path, work: Path) -> None:
    tool = ReadFile(ReadLedger())
    async with engine_harness(tmp_path, read("sub/b.py"), DONE, tools=(tool,), settings=settings(40_001)) as harness:
        conversation = await harness.conversation()
        await conversation.say("go")
        await conversation.wait_idle()
        assert await results(harness, conversation.id) == ["     1\tpass"]


async def test_an_attached_file_brings_them_along_and_no_later_result_repeats_them(tmp_path: Path, work: Path) -> None:
    replies = (DONE, read("sub/c.py"), DONE, DONE)
    async with engine_harness(tmp_path, *replies, tools=(ReadFile(ReadLedger()),), settings=settings()) as harness:
        conversation = await harness.conversation()
        for text in ("see @sub/b.py and @sub/c.py", "go", "again @sub/b.py"):
            await conversation.say(text)
            await conversation.wait_idle()
        rows = await harness.store.messages(conversation.id)
        attached = [[block.attached for block in row.blocks if isinstance(block, TextBlock)] for row in rows]
        names = ["", "sub/b.py: 1 line", "sub/c.py: 1 line", "instructions of sub/AGENTS.md"]
        assert [one for one in attached if len(one) > 1] == [names, ["", "sub/b.py: 1 line"]]
        heading = f"[Instructions for files in {work}/sub, from {work}/sub/AGENTS.md: 9 characters]\nxxxxxxxxx"
        assert [block.text for block in rows[0].blocks if isinstance(block, TextBlock)][-1] == heading
        assert await results(harness, conversation.id) == ["     1\tpass"]


CALL = Reply((ScriptedCall("bash", '{"command": "ls"}'),))


@dataclass
class Rules:
    """Another text each time it is read."""

    read: list[Path] = field(default_factory=list[Path])

    def of(self, folder: Path, window: int = 0) -> tuple[PromptFile, ...]:
        self.read.append(folder)
        text = f"Version {len(self.read)} of the rules."
        return (PromptFile(PromptFileKind.INSTRUCTIONS, folder / "AGENTS.md", text),)

    def beside(self, folder: Path, path: Path) -> tuple[PromptFile, ...]:
        del folder, path
        return ()


async def test_every_request_of_a_run_says_what_its_first_one_said(tmp_path: Path) -> None:
    rules = Rules()
    settings = EngineSettings(instructions=rules, auto_title=False)
    async with engine_harness(tmp_path, CALL, CALL, DONE, DONE, settings=settings) as harness:
        conversation = await harness.conversation()
        await conversation.say("first")
        await conversation.wait_idle()
        said = [request.system[0] for request in harness.provider.requests]
        assert len(said) == 3
        assert len(set(said)) == 1
        assert "Version 1 of the rules." in said[0]
        assert len(rules.read) == 1
        await conversation.say("second")
        await conversation.wait_idle()
        assert "Version 2 of the rules." in harness.provider.requests[-1].system[0]
