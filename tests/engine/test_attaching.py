"""Files for the model: named with `@FILE`, and instructions of the subfolder of a result (SPEC CLAW-17)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import Struct

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor import attaching
from engine.executor.attaching import ANSWER_LENGTH, MOST_FILES, find_named_files
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, Refused
from engine.machine.messages import Block, ImageBlock, TextBlock, ToolResultBlock, find_attachments, text_in
from engine.ports.extensions import PromptFile, PromptFileKind
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, PlainImages, engine_harness, run_turn
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tools.contract import ToolContext
from tools.file_tools import ReadFile, ReadImage, WriteFile
from tools.files.writing import ReadLedger

HELLO = Reply((Text("hello there", 3),))
PICTURE = b"a picture, as far as these tests go"


@asynccontextmanager
async def reading(home: Path, *, settings: EngineSettings | None = None) -> AsyncIterator[EngineHarness]:
    """A harness whose engine has the real tools that read."""
    provider = ScriptedProvider({"main": Script((HELLO,) * 9)})
    tools = (ReadFile(ReadLedger()), ReadImage(PlainImages()))
    async with engine_harness(home, provider=provider, settings=settings, tools=tools) as harness:
        yield harness


async def sent(harness: EngineHarness, text: str, mode: PermissionMode = PermissionMode.ASK) -> tuple[Block, ...]:
    """Blocks that the model receives for a message."""
    conversation = await harness.conversation(mode)
    return await said(harness, conversation, text)


async def said(harness: EngineHarness, conversation: Conversation, text: str) -> tuple[Block, ...]:
    assert isinstance(await conversation.say(text), Accepted)
    await conversation.wait_idle()
    return harness.provider.requests[-1].messages[-1].blocks


def chips(blocks: tuple[Block, ...]) -> list[str]:
    return [block.attached for block in find_attachments(blocks)]


async def test_the_model_reads_the_file_behind_the_words_and_the_words_are_kept(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        (harness.cwd / "a.py").write_text("first\nsecond\n")
        own, file = await sent(harness, "what does @a.py do?")
        assert own == TextBlock("what does @a.py do?")
        assert file == TextBlock(
            "[File a.py, as it was when the message was sent:\n     1\tfirst\n     2\tsecond\n]", "a.py: 2 lines"
        )


@pytest.mark.parametrize(
    "text",
    [
        "@a.py",
        "see (@a.py), please",
        "Is it @a.py?",
        "read @a.py, then @b.py",
        '@"a.py" and @"dir/one two.txt".',
        "`@a.py`",
        "@./a.py and @dir/../a.py are one",
    ],
)
async def test_names_are_found_with_the_signs_of_a_sentence_around_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "dir").mkdir()
    for name in ("a.py", "b.py", "dir/one two.txt"):
        (tmp_path / name).write_text("text")
    wanted = {
        "read @a.py, then @b.py": ["a.py", "b.py"],
        '@"a.py" and @"dir/one two.txt".': ["a.py", "dir/one two.txt"],
    }
    assert find_named_files(text, tmp_path) == [tmp_path / name for name in wanted.get(text, ["a.py"])]


@pytest.mark.parametrize(
    "text",
    [
        "me@a.py", "@missing.py", "@property\ndef a(): ...", "@", '@"', '@""', "@dir", "@dir/", "@@a.py",
        "@a\0.py", "@~nobody",
    ],
)  # fmt: skip
async def test_what_names_no_file_attaches_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "a.py").write_text("text")
    assert find_named_files(text, tmp_path) == []


async def test_an_image_goes_as_an_image_once_however_often_it_is_named(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        (harness.cwd / "pic one.png").write_bytes(PICTURE)
        conversation = await harness.conversation(PermissionMode.ASK)
        by_hand = await conversation.attach(PICTURE)
        await conversation.say('what is in @"pic one.png"?', [by_hand.id])
        await conversation.wait_idle()
        blocks = harness.provider.requests[-1].messages[-1].blocks
        assert [type(block) for block in blocks] == [ImageBlock, TextBlock, TextBlock]
        assert chips(blocks) == ["pic one.png"]


async def test_a_long_file_and_many_files_are_cut_and_it_is_said(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        (harness.cwd / "long").write_text("line\n" * 30_000)
        names = [f"f{number}" for number in range(MOST_FILES + 2)]
        for name in names:
            (harness.cwd / name).write_text(f"{name}\n")
        assert chips(await sent(harness, "@long")) == ["long: first 2,000 lines"]
        many = chips(await sent(harness, " ".join(f"@{name}" for name in names)))
        assert many[:MOST_FILES] == [f"{name}: 1 line" for name in names[:MOST_FILES]]
        assert many[MOST_FILES:] == ["not attached: 2 more files, since a message attaches 10"]


async def test_all_files_together_take_no_more_than_their_room(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        for name in "abc":
            (harness.cwd / name).write_text("x" * 99 + "\n" * 1 + ("x" * 99 + "\n") * 599)
        blocks = await sent(harness, "@a @b @c")
        assert sum(len(block.text) for block in find_attachments(blocks)) < attaching.MOST_CHARACTERS + 500
        first, second, third = chips(blocks)
        assert first == "a: 600 lines"
        assert second.startswith("b: first 3")
        assert third == "not attached: c, since the files before it use up the limit"
        assert "more characters are left out; read_file reads them]" in find_attachments(blocks)[1].text


async def test_what_is_attached_stands_in_no_title_no_prompt_and_no_search(tmp_path: Path) -> None:
    async with reading(tmp_path) as harness:
        (harness.cwd / "a.py").write_text("quetzalcoatl\n")
        conversation = await harness.conversation()
        await said(harness, conversation, "explain @a.py")
        [stored, _] = (await conversation.history(9, 9)).messages
        assert text_in(stored.blocks) == "explain @a.py"
        assert conversation.record.title == "explain @a.py"


async def test_a_file_that_was_attached_may_be_changed_without_being_read_again(tmp_path: Path) -> None:
    ledger = ReadLedger()
    provider = ScriptedProvider({"main": Script((HELLO,))})
    async with engine_harness(tmp_path, provider=provider, tools=(ReadFile(ledger),)) as harness:
        (harness.cwd / "a.py").write_text("text\n")
        conversation = await harness.conversation()
        await said(harness, conversation, "@a.py")
        context = ToolContext(conversation.id, "1", harness.cwd, outside_allowed=False, report=lambda _: None)
        output = await WriteFile(ledger).run({"path": "a.py", "content": "other"}, context)
        assert not output.is_error


LONG = Reply((Text("x" * (ANSWER_LENGTH + 5) + " end of it", 3),))


async def test_the_model_reads_a_digest_of_the_conversation_behind_the_users_words(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, LONG, HELLO) as harness:
        other = await harness.run("how does it begin?")
        await run_turn(other, "and how does it end?")
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main"))
        text = f"go on as in @conversation:{other.id[:8]}, please"
        await run_turn(conversation, text)
        [message] = harness.provider.requests[-1].messages
        own, digest = [block.text for block in message.blocks if isinstance(block, TextBlock)]
        assert own == text
        assert digest.startswith(f'[Conversation {other.id} "how does it begin?", in {harness.cwd}, 4 messages')
        assert "First request: how does it begin?" in digest
        assert "Last request: and how does it end?" in digest
        assert digest.endswith("end of it")
        assert "characters left out" in digest
        assert len(digest) < ANSWER_LENGTH + 500
        assert conversation.record.title == text


async def test_a_message_that_names_no_conversation_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        answer = await conversation.say("see @conversation:ffffffff")
        assert answer == Refused("@conversation:ffffffff cannot be read: there is no such conversation.")
        assert harness.provider.requests == []


async def test_a_mail_address_and_a_file_are_no_conversation(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        await harness.run("write to me@conversation:12345678 about @src/conversation.py")
        [message] = harness.provider.requests[0].messages
        assert len(message.blocks) == 1


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
            await run_turn(conversation, "go")
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
            await run_turn(conversation, "go")
        said = [text.count("xxxxxxxxx") for text in await results(harness, conversation.id)]
        assert said == [1, 0, 1]


async def test_no_more_is_added_than_there_is_room_for(tmp_path: Path, work: Path) -> None:
    tool = ReadFile(ReadLedger())
    async with engine_harness(tmp_path, read("sub/b.py"), DONE, tools=(tool,), settings=settings(40_001)) as harness:
        conversation = await harness.run("go")
        assert await results(harness, conversation.id) == ["     1\tpass"]


async def test_an_attached_file_brings_them_along_and_no_later_result_repeats_them(tmp_path: Path, work: Path) -> None:
    replies = (DONE, read("sub/c.py"), DONE, DONE)
    async with engine_harness(tmp_path, *replies, tools=(ReadFile(ReadLedger()),), settings=settings()) as harness:
        conversation = await harness.conversation()
        for text in ("see @sub/b.py and @sub/c.py", "go", "again @sub/b.py"):
            await run_turn(conversation, text)
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
        conversation = await harness.run("first")
        said = [request.system[0] for request in harness.provider.requests]
        assert len(said) == 3
        assert len(set(said)) == 1
        assert "Version 1 of the rules." in said[0]
        assert len(rules.read) == 1
        await run_turn(conversation, "second")
        assert "Version 2 of the rules." in harness.provider.requests[-1].system[0]
