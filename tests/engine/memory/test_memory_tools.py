"""memory_search and memory_get: early facts stay answerable, whatever the view of the model has lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.messages import StopReason, TextBlock, ToolUseBlock, Usage
from engine.machine.states import Idle
from engine.memory.memory import LARGEST_FILE, LONGEST_ENTRY, NoteFolder, NoteRefused, project_scope
from engine.memory.memory_tools import memory_tools
from engine.ports import ModelReply, ModelRequest, StreamItem
from engine.providers.guide.provider import GuideProvider
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, Providers, engine_harness
from tests.support.long_run import FACTS, LongRunProvider, LongTool
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text
from tools.contract import ToolContext, ToolInputError

QUIET = EngineSettings(max_iterations=1_000, auto_title=False)


async def run(harness: EngineHarness, conversation: Conversation, name: str, **args: str | int) -> str:
    memory, turns = harness.engine.ports.memory, conversation.context._session.settings.history_turns
    assert memory is not None
    context = ToolContext(conversation.id, "c", harness.cwd, outside_allowed=False, report=lambda _: None)
    output = await memory_tools(memory, harness.store, turns)[name].run({**args}, context)
    return f"error: {output.text}" if output.is_error else output.text


async def say(conversation: Conversation, text: str) -> None:
    assert isinstance(await conversation.say(text), Accepted)
    assert isinstance(await conversation.wait_idle(), Idle)


async def answer_of(harness: EngineHarness, conversation: Conversation) -> str:
    (block,) = (await harness.store.messages(conversation.id))[-1].blocks
    assert isinstance(block, TextBlock)
    return block.text


@dataclass
class Forgetful(LongRunProvider):
    """Writes summaries without a single fact, and looks for one with memory_search when it is asked for it."""

    asked: str = ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        last = str(request.messages[-1].blocks)
        fact = re.search(r"What is (FACT-\d+)\?", last)
        if fact is not None and "tool_use_id" not in last:
            self.asked = fact[1]
            call = ToolUseBlock(f"ask-{fact[1]}", "memory_search", json.dumps({"query": f"{fact[1]} ="}))
            yield ModelReply((call,), StopReason.TOOL_USE, Usage(9_000, 40), request.model)
            return
        if self.asked and "tool_use_id" in last:
            found = re.search(rf"{self.asked} = \w+", last)
            text = TextBlock(found[0] if found else "unknown")
            yield ModelReply((text,), StopReason.END_TURN, Usage(9_000, 40), request.model)
            return
        async for item in super().stream(request):
            is_summary = isinstance(item, ModelReply) and "## Facts" in str(item.blocks)
            yield replace(item, blocks=(TextBlock("The steps go on."),)) if is_summary else item


async def test_ten_early_facts_of_a_long_run_are_found_although_no_summary_has_one(tmp_path: Path) -> None:
    provider, tool = Forgetful(32_000, 125, checked_every=10), LongTool(scale=4)
    providers = Providers(provider)
    async with engine_harness(tmp_path, tool=tool, settings=QUIET, providers=providers, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, "Do all the steps.")
        assert provider.summaries > 20
        assert "value" not in conversation.record.summary
        for number in range(1, FACTS + 1):
            await say(conversation, f"What is FACT-{number}?")
            assert await answer_of(harness, conversation) == f"FACT-{number} = value{number * 7919}"


async def test_only_what_the_model_no_longer_sees_whole_is_found_and_each_can_be_read_by_its_number(
    tmp_path: Path,
) -> None:
    replies = [Reply((Text(f"answer {number} " + "word " * 200),)) for number in range(6)]
    summary = Reply((Text("short summary"),), when="Write the summary now.")
    async with engine_harness(tmp_path, summary, *replies, settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        for number in range(6):
            await say(conversation, f"question{number} about zebras\nand more")
        nothing = "Nothing found. Try other words, or fewer."
        assert await run(harness, conversation, "memory_search", query="zebras") == nothing
        assert isinstance(await conversation.context.compact(), Accepted)
        await conversation.wait_idle()
        assert conversation.record.context_start_seq > 1
        found = await run(harness, conversation, "memory_search", query="zebras question0", limit=2)
        head, first, second = found.split("\n")
        assert head == "Messages of this conversation that you no longer see whole:"
        assert first == "message/1:1 (user)  question0 about zebras and more"
        assert second.startswith("message/3:1 (user)  question1")
        assert await run(harness, conversation, "memory_get", path="message/1") == (
            "     1\tquestion0 about zebras\n     2\tand more"
        )
        assert await run(harness, conversation, "memory_get", path="message/1", from_line=2) == "     2\tand more"
        newest = conversation.record.context_start_seq
        assert f"message/{newest}:" not in await run(harness, conversation, "memory_search", query="zebras", limit=20)


async def test_a_result_cleared_by_pruning_is_found_but_earlier_answers_of_memory_are_not(tmp_path: Path) -> None:
    call = ScriptedCall("bash", '{"command": "needle in a stack of hay that is long enough to be cleared"}')
    search = ScriptedCall("memory_search", '{"query": "needle"}')
    replies = [Reply((call,)), Reply((search,)), *(Reply((Text(f"done {n}"),)) for n in range(6))]
    async with engine_harness(tmp_path, *replies, settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        for number in range(4):
            await say(conversation, f"go {number}")
        await conversation.context.prune()
        found = await run(harness, conversation, "memory_search", query="needle")
        assert "message/3:1 (tool result)  ran needle in a stack of hay" in found
        assert "message/5" not in found


async def test_turns_beyond_the_limit_are_found(tmp_path: Path) -> None:
    replies = [Reply((Text(f"answer {n}"),)) for n in range(4)]
    limited = replace(QUIET, history_turns=2)
    async with engine_harness(tmp_path, *replies, settings=limited, memory=True) as harness:
        conversation = await harness.conversation()
        for number in range(4):
            await say(conversation, f"zebra {number}")
        found = await run(harness, conversation, "memory_search", query="zebra", limit=20)
        assert re.findall(r"message/(\d+)", found) == ["1", "3"]


async def test_notes_of_the_project_and_the_user_are_found_and_read(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        memory = harness.engine.ports.memory
        assert memory is not None
        await memory.append("user/2026-11-24.md", "I like tabs")
        await memory.append(f"{await memory.project(harness.cwd)}/2026-11-23.md", "tabs are forbidden here")
        await memory.append("projects/other-1/2026-11-23.md", "tabs elsewhere")
        found = await run(harness, conversation, "memory_search", query="tabs")
        assert sorted(found.split("\n")) == [
            "Notes:",
            "project/2026-11-23.md:1  tabs are forbidden here",
            "user/2026-11-24.md:1  I like tabs",
        ]
        whole = await run(harness, conversation, "memory_get", path="user/2026-11-24.md")
        assert whole == "     1\tI like tabs\n     2\t"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("user/../../phoenix.db", "error: There is no such note; notes are named like 2026-11-24.md."),
        ("/etc/passwd", "error: path begins with project/, user/ or message/, as memory_search gives it."),
        ("projects/other-1/a.md", "error: path begins with project/, user/ or message/, as memory_search gives it."),
        ("project/none.md", "error: There is no project/none.md; memory_search finds the notes there are."),
        ("message/0", "error: This conversation has no message 0."),
        ("message/99", "error: This conversation has no message 99."),
        ("message/-1", "error: A message is named by its number, such as message/12."),
        (f"message/{'9' * 5000}", "error: A message is named by its number, such as message/12."),
        ("message/²", "error: A message is named by its number, such as message/12."),
    ],
)
async def test_no_other_path_is_read(tmp_path: Path, path: str, sentence: str) -> None:
    async with engine_harness(tmp_path, settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        assert await run(harness, conversation, "memory_get", path=path) == sentence


async def test_an_answer_is_bounded_and_says_how_to_go_on(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("done"),)), settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, "\n".join(f"line {number} " + "x" * 400 for number in range(75)))
        text = await run(harness, conversation, "memory_get", path="message/1", lines=400)
        assert len(text) < 18_000
        rest = re.search(r"\[(\d+) more lines: continue with from_line (\d+)\]", text)
        assert rest is not None
        assert int(rest[1]) + int(rest[2]) == 76
        assert "error: It has 75 lines" in await run(
            harness, conversation, "memory_get", path="message/1", from_line=99
        )
        with pytest.raises(ToolInputError, match="no words"):
            await run(harness, conversation, "memory_search", query="?!")


@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_both_run_without_a_question_in_every_mode(tmp_path: Path, mode: PermissionMode) -> None:
    call = ScriptedCall("memory_search", '{"query": "anything"}')
    async with engine_harness(tmp_path, Reply((call,)), Reply((Text("done"),)), settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation(mode)
        await say(conversation, "look")
        assert await answer_of(harness, conversation) == "done"


async def test_the_tools_and_the_reminder_are_there_only_where_they_are_wanted(tmp_path: Path) -> None:
    for place, (memory, settings, there) in enumerate([
        (True, QUIET, True),
        (False, QUIET, False),
        (True, replace(QUIET, memory=False), False),
    ]):
        home = tmp_path / str(place)
        home.mkdir()
        async with engine_harness(home, settings=settings, memory=memory) as harness:
            conversation = await harness.conversation()
            prompt = await conversation.context.prompt()
            named = {one.section.name for one in prompt.sections}
            assert ("memory_search" in prompt.tools, "Memory" in named) == (there, there)
    guide = tmp_path / "guide"
    guide.mkdir()
    async with engine_harness(guide, settings=QUIET, memory=True, providers=Providers(GuideProvider())) as harness:
        prompt = await (await harness.conversation()).context.prompt()
        named = {one.section.name for one in prompt.sections}
        assert ("memory_search" in prompt.tools, "Memory" in named) == (False, False)


async def test_a_sub_agent_that_reads_files_has_them_too(tmp_path: Path) -> None:
    spawn = ScriptedCall("spawn_agents", '{"tasks": [{"task": "look", "profile": "explore"}]}')
    provider = ScriptedProvider({"main": Script((Reply((spawn,)), *(Reply((Text("done"),)) for _ in range(4))))})
    async with engine_harness(tmp_path, provider=provider, settings=QUIET, memory=True) as harness:
        conversation = await harness.conversation()
        await say(conversation, "go")
        offered = [[tool.name for tool in request.tools] for request in provider.requests]
        of_agent = next(names for names in offered if "submit_result" in names)
        assert {"memory_search", "memory_get"} <= set(of_agent)


DAY = "2026-11-24.md"


@pytest.fixture
def notes(tmp_path: Path) -> NoteFolder:
    return NoteFolder(tmp_path / "memory")


def test_an_entry_is_appended_behind_a_blank_line_and_what_was_there_stays(notes: NoteFolder) -> None:
    for text in ("one\n", "  two  ", "three"):
        notes.append(f"user/{DAY}", text)
    assert notes.read(f"user/{DAY}") == "one\n\ntwo\n\nthree\n"


def test_an_entry_comes_behind_the_text_of_an_editor_that_ends_without_a_line_end(notes: NoteFolder) -> None:
    notes.append(f"user/{DAY}", "one")
    notes.place(f"user/{DAY}").write_text("by hand")
    notes.append(f"user/{DAY}", "two")
    assert notes.read(f"user/{DAY}") == "by hand\n\ntwo\n"


def test_files_and_folders_are_private(notes: NoteFolder, tmp_path: Path) -> None:
    scope = project_scope(tmp_path / "My Project")
    notes.append(f"{scope}/{DAY}", "one")
    place = notes.place(f"{scope}/{DAY}")
    modes = [oct((place if not up else place.parents[up - 1]).stat().st_mode & 0o777) for up in range(4)]
    assert modes == ["0o600", "0o700", "0o700", "0o700"]


@pytest.mark.parametrize(
    "path",
    [
        "2026-11-24.md",
        "user/../../config.toml",
        "user/../../x.md",
        "/etc/passwd",
        "user//etc/x.md",
        "user/a/b.md",
        "projects/../user/a.md",
        "projects/x.md",
        "projects/Name-1/a.md",
        "user/.hidden.md",
        "user/a.md\n",
        "user/a\x00.md",
        "user/-x.md",
        "user/notes.txt",
        f"user/{'a' * 65}.md",
        "user/ü.md",
        "",
    ],
)
def test_no_other_name_is_read_written_or_deleted(notes: NoteFolder, path: str) -> None:
    for use in (notes.read, notes.remove, notes.place, lambda one: notes.append(one, "x")):
        with pytest.raises(NoteRefused):
            use(path)
    assert not notes.folder.exists()


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "", "ünïcode", "x" * 300, "a\nb", "-", "A B"])
def test_a_project_of_any_name_has_a_scope_of_its_own(notes: NoteFolder, name: str) -> None:
    scope = project_scope(Path("/tmp/one") / name)
    notes.append(f"{scope}/{DAY}", "one")
    assert notes.place(f"{scope}/{DAY}").parent.parent == notes.folder / "projects"
    assert scope != project_scope(Path("/tmp/two") / name)
    assert notes.scopes() == ["user", scope]


def test_a_link_is_neither_read_nor_written_nor_listed_nor_deleted(notes: NoteFolder, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("key")
    notes.append("user/a.md", "one")
    (notes.folder / "user" / "b.md").symlink_to(secret)
    assert [file.path for file in notes.files("user")] == ["user/a.md"]
    for use in (notes.read, notes.remove, lambda path: notes.append(path, "x")):
        with pytest.raises(OSError, match="symbolic link"):
            use("user/b.md")
    assert secret.read_text() == "key"


@pytest.mark.parametrize("part", ["memory", "memory/projects", "memory/user"])
def test_a_folder_that_is_a_link_is_refused(notes: NoteFolder, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / part).parent.mkdir(exist_ok=True)
    (tmp_path / part).symlink_to(outside)
    scope = "user" if part != "memory/projects" else "projects/x-1"
    with pytest.raises(NoteRefused, match="symbolic link"):
        notes.append(f"{scope}/{DAY}", "x")
    with pytest.raises(NoteRefused, match="symbolic link"):
        notes.files(scope)
    assert list(outside.iterdir()) == []


def test_pipes_devices_and_folders_are_passed_over_and_never_waited_for(notes: NoteFolder) -> None:
    notes.append("user/a.md", "one")
    os.mkfifo(notes.folder / "user" / "b.md")
    (notes.folder / "user" / "c.md").mkdir()
    assert [file.path for file in notes.files("user")] == ["user/a.md"]
    for path in ("user/b.md", "user/c.md"):
        with pytest.raises(OSError, match=r"regular file|directory"):
            notes.read(path)


def test_a_long_entry_and_a_full_file_are_refused_and_nothing_of_it_is_written(notes: NoteFolder) -> None:
    with pytest.raises(NoteRefused, match="8,000 characters"):
        notes.append("user/a.md", "x" * (LONGEST_ENTRY + 1))
    notes.append("user/a.md", "x")
    place = notes.place("user/a.md")
    place.write_text("y" * (LARGEST_FILE - 5))
    with pytest.raises(NoteRefused, match="full"):
        notes.append("user/a.md", "entry")
    assert place.stat().st_size == LARGEST_FILE - 5


def test_a_full_disk_leaves_no_half_entry(notes: NoteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.append("user/a.md", "one")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(OSError, match="No space"):
        notes.append("user/a.md", "another")
    assert notes.read("user/a.md") == "one\n"


def _append(folder: Path, name: str) -> None:
    for number in range(50):
        NoteFolder(folder).append(f"user/{DAY}", f"{name} {number}")


def test_several_processes_append_at_once_and_every_entry_is_whole(notes: NoteFolder) -> None:
    processes = [
        multiprocessing.get_context("spawn").Process(target=_append, args=(notes.folder, name)) for name in "abc"
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    entries = notes.read(f"user/{DAY}").strip().split("\n\n")
    assert sorted(entries) == sorted(f"{name} {number}" for name in "abc" for number in range(50))


def test_a_deleted_file_comes_back_unless_there_is_a_new_one(notes: NoteFolder) -> None:
    notes.append("user/a.md", "one")
    content = notes.remove("user/a.md")
    assert notes.files("user") == []
    notes.create("user/a.md", content)
    assert notes.read("user/a.md") == "one\n"
    with pytest.raises(FileExistsError):
        notes.create("user/a.md", b"two")
    assert notes.read("user/a.md") == "one\n"
