"""The guide: sentences as it understands them, whole turns with real tools, and an end of every turn."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.machine.messages import Role, StopReason, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError, TextDelta
from engine.providers.guide.plan import (
    ROUNDS,
    Answered,
    AskStep,
    BashStep,
    Dialogue,
    PlanStep,
    file_count,
    goes_on,
    next_steps,
)
from engine.providers.guide.provider import SIGNATURE, GuideProvider
from engine.providers.guide.understand import (
    CountLines,
    CountTo,
    Courtesy,
    Describe,
    GitChanges,
    GuideRequest,
    Help,
    ListRequest,
    ReadFiles,
    Replace,
    RunCommand,
    RunTests,
    SearchRequest,
    SmallTalk,
    Summarize,
    ThinkRequest,
    WriteRequest,
    understand,
)
from tests.support.tool_bench import Turn, real_tools, take_turn
from tools.contract import ToolClass, ToolSpec


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "pond"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("# Ducks\n\nA small library that counts ducks on a pond.\n")
    (folder / "pyproject.toml").write_text('[project]\nname = "ducks"\ndescription = "Counts ducks."\n')
    (folder / "src/ducks.py").write_text("def count(ducks):\n    # TODO be faster\n    return len(ducks)\n")
    (folder / "my notes.txt").write_text("remember the bread\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "add", "."], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=folder, check=True)
    return folder


async def turn(text: str, folder: Path) -> Turn:
    return await take_turn(GuideProvider(), "guide", text, folder, real_tools(folder.parent / "spill"))


async def test_listing_names_the_files_that_are_there(repository: Path) -> None:
    done = await turn("list files", repository)
    assert done.calls == ["list_files"]
    assert "4 files here" in done.answer
    assert "`src/ducks.py`" in done.answer


async def test_a_folder_of_more_files_than_are_listed_is_counted_whole(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    (folder / "src").mkdir(parents=True)
    for number in range(1_485):
        (folder / "src" / f"{number}.py").write_text("")
    listed = (await turn("list files", folder)).answer
    assert "1,485 files here" in listed
    assert "… and 1,445 more" in listed
    described = (await turn("describe this project", folder)).answer
    assert "- 1,485 files" in described
    assert "- kinds of the first 1,000: Python 1000" in described


def test_counts_of_answers_that_are_cut_are_told_as_such() -> None:
    assert file_count("a\n[1,000 of more than 50,000 files shown; narrow it]").words == "more than 50,000 files"
    assert goes_on("     1\ta\n[2,000 lines shown; the file goes on: continue with offset 2001]")
    assert goes_on("a:1: b\n[100 matches shown, there may be more; narrow it]")
    assert not goes_on("     1\t[2,000 lines shown; the file goes on")


async def test_the_guide_has_no_context_to_fill(repository: Path) -> None:
    done = await turn("read README.md", repository)
    assert GuideProvider().describe("guide").context_window == 0
    assert {reply.usage for reply in done.replies} == {Usage()}


async def test_listing_a_folder_lists_that_folder_alone(repository: Path) -> None:
    done = await turn("ls src", repository)
    assert "1 file in `src`" in done.answer


async def test_reading_shows_the_content_without_line_numbers(repository: Path) -> None:
    done = await turn("please read src/ducks.py", repository)
    assert "```python\ndef count(ducks):\n    # TODO be faster\n    return len(ducks)\n```" in done.answer


async def test_two_files_are_read_in_one_reply(repository: Path) -> None:
    done = await turn("read README.md and 'my notes.txt'", repository)
    assert len(done.replies) == 2
    assert done.calls == ["read_file", "read_file"]
    assert "remember the bread" in done.answer


async def test_a_missing_file_is_said_beside_the_one_that_is_there(repository: Path) -> None:
    done = await turn("read README.md and gone.txt", repository)
    assert "# Ducks" in done.answer
    assert "`read_file` did not work" in done.answer


async def test_searching_names_the_place(repository: Path) -> None:
    done = await turn("find all TODO comments in *.py", repository)
    assert "1 line in 1 file" in done.answer
    assert "`src/ducks.py:2`" in done.answer


async def test_searching_takes_the_text_literally(repository: Path) -> None:
    done = await turn('search "count(ducks" in *.py', repository)
    assert "`src/ducks.py:1`" in done.answer


async def test_a_search_that_finds_nothing_says_so(repository: Path) -> None:
    done = await turn("search geese", repository)
    assert "Nothing contains `geese`" in done.answer


async def test_a_command_shows_its_output_and_exit_code(repository: Path) -> None:
    done = await turn("run echo quack; exit 3", repository)
    assert done.calls == ["bash"]
    assert "quack" in done.answer
    assert "[exit code 3]" in done.answer


async def test_lines_are_counted(repository: Path) -> None:
    done = await turn("how many lines does src/ducks.py have?", repository)
    assert done.answer.startswith("`src/ducks.py` has 3 lines.")


async def test_a_replacement_changes_the_file(repository: Path) -> None:
    done = await turn("replace 'be faster' with 'be kind' in src/ducks.py", repository)
    assert "# TODO be kind" in (repository / "src/ducks.py").read_text()
    assert done.answer.startswith("Replaced `be faster` with `be kind` in `src/ducks.py`.")


async def test_a_replacement_that_does_not_apply_is_not_claimed(repository: Path) -> None:
    done = await turn("replace geese with swans in src/ducks.py", repository)
    assert "Replaced" not in done.answer
    assert "`patch` did not work" in done.answer


async def test_a_new_file_is_written(repository: Path) -> None:
    done = await turn("write new.py with\n```python\nprint('a')\n```", repository)
    assert (repository / "new.py").read_text() == "print('a')\n"
    assert "Wrote `new.py`: 1 line." in done.answer


async def test_an_existing_file_is_read_before_it_is_overwritten(repository: Path) -> None:
    await turn("write 'no bread' to 'my notes.txt'", repository)
    assert (repository / "my notes.txt").read_text() == "no bread\n"


async def test_describing_looks_around_before_it_speaks(repository: Path) -> None:
    done = await turn("describe this project", repository)
    assert done.calls == ["list_files", "read_file", "read_file"]
    assert "**ducks**: Counts ducks." in done.answer
    assert "kinds: Markdown 1, Python 1" in done.answer
    assert "`python -m pytest -q`" in done.answer


async def test_git_changes_shows_status_and_diff(repository: Path) -> None:
    (repository / "README.md").write_text("# Geese\n")
    done = await turn("what changed in git?", repository)
    assert done.calls == ["bash", "bash"]
    assert "M README.md" in done.answer
    assert "1 file changed" in done.answer


async def test_running_the_tests_finds_the_command_and_gives_the_totals(repository: Path) -> None:
    (repository / "pyproject.toml").unlink()
    (repository / "Makefile").write_text("test:\n\t@echo '2 passed, 1 failed'; exit 1\n")
    done = await turn("run the tests", repository)
    assert done.calls == ["list_files", "bash"]
    assert done.answer.startswith("The tests did not pass: 2 passed, 1 failed.")


def asked_to_run(answer: str, is_error: bool = False) -> tuple[PlanStep, ...]:
    listed = Answered("list_files", "{}", "Makefile", is_error=False)
    asked = Answered("ask_user", "{}", f'"Run make test to test this project?"="{answer}"', is_error)
    return next_steps(RunTests(), Dialogue("run the tests", (), ((listed,), (asked,))), asks=True)


def test_where_a_person_can_be_asked_the_tests_run_after_a_yes_alone() -> None:
    listed = Answered("list_files", "{}", "Makefile", is_error=False)
    assert next_steps(RunTests(), Dialogue("run the tests", (), ((listed,),)), asks=True) == (AskStep("make test"),)
    assert asked_to_run("Run it") == asked_to_run("yes") == (BashStep("make test", slow=True),)
    assert asked_to_run("Leave it") == asked_to_run("not yet") == asked_to_run("Run it", is_error=True) == ()


async def test_the_purpose_of_a_project_ends_with_a_sentence(repository: Path) -> None:
    (repository / "pyproject.toml").unlink()
    readme = repository / "README.md"
    readme.write_text("# Ducks\n\nA small library that counts ducks\non a pond. It is fast.\n\nMore of it.\n")
    done = await turn("what is this project?", repository)
    assert "**Ducks**: A small library that counts ducks on a pond. It is fast.\n" in done.answer
    readme.write_text(f"# Ducks\n\nIt counts ducks on a pond. {'It goes on ' * 60}and on. The end is here.\n")
    assert "**Ducks**: It counts ducks on a pond.\n" in (await turn("what is this project?", repository)).answer


async def test_every_answer_says_that_no_model_is_behind_it(repository: Path) -> None:
    for text in ("hello", "help", "count to 3", "list files", "bake a cake", "think about ducks"):
        assert (await turn(text, repository)).answer.endswith(SIGNATURE)


async def test_what_is_not_understood_gets_the_list_and_the_ways_out(repository: Path) -> None:
    answer = (await turn("bake a cake", repository)).answer
    for word in ("did not understand", "describe this project", "ANTHROPIC_API_KEY", "phoenix model install", "Ollama"):
        assert word in answer


async def test_a_strict_guide_refuses_what_it_does_not_understand() -> None:
    request = ModelRequest("guide", (), (ModelMessage(Role.USER, (TextBlock("bake a cake"),)),))
    with pytest.raises(ProviderError) as caught:
        _ = [item async for item in GuideProvider(strict=True).stream(request)]
    assert (caught.value.kind, caught.value.retryable) == ("not_understood", False)
    assert "phoenix model install" in caught.value.message


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    request = ModelRequest("guide", (), (ModelMessage(Role.USER, (TextBlock("run ls"),)),))
    items = [item async for item in GuideProvider().stream(request)]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert reply.stop is StopReason.END_TURN
    assert isinstance(reply.blocks[0], TextBlock)
    assert "`bash`, which this conversation does not offer" in reply.blocks[0].text


async def test_text_streams_in_small_pieces_that_make_up_the_reply() -> None:
    request = ModelRequest("guide", (), (ModelMessage(Role.USER, (TextBlock("help"),)),))
    items = [item async for item in GuideProvider().stream(request)]
    pieces = [item.text for item in items if isinstance(item, TextDelta)]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert reply.blocks == (TextBlock("".join(pieces)),)
    assert len(pieces) > 100
    assert max(map(len, pieces)) <= 60


async def test_a_new_wish_beside_cancelled_results_is_heard(repository: Path) -> None:
    earlier = [
        ModelMessage(Role.USER, (TextBlock("run sleep 9"),)),
        ModelMessage(Role.ASSISTANT, (ToolUseBlock("t1", "bash", '{"command":"sleep 9"}'),)),
        ModelMessage(
            Role.USER, (ToolResultBlock("t1", (TextBlock("cancelled"),), is_error=True), TextBlock("count to 3"))
        ),
    ]
    items = [item async for item in GuideProvider().stream(ModelRequest("guide", (), tuple(earlier)))]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert isinstance(reply.blocks[0], TextBlock)
    assert reply.blocks[0].text.startswith("1, 2, 3.")


async def test_a_note_of_phoenix_beside_a_wish_does_not_spoil_it() -> None:
    blocks = (TextBlock("count to 3"), TextBlock("[2 model calls left in this run: finish, or say what remains.]"))
    request = ModelRequest("guide", (), (ModelMessage(Role.USER, blocks),))
    items = [item async for item in GuideProvider().stream(request)]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert isinstance(reply.blocks[0], TextBlock)
    assert reply.blocks[0].text.startswith("1, 2, 3.")


async def test_a_note_of_phoenix_beside_results_is_not_taken_for_a_wish() -> None:
    messages = (
        ModelMessage(Role.USER, (TextBlock("run echo a"),)),
        ModelMessage(Role.ASSISTANT, (ToolUseBlock("t1", "bash", '{"command":"echo a"}'),)),
        ModelMessage(Role.USER, (ToolResultBlock("t1", (TextBlock("a"),)), TextBlock("[System: 3 iterations left.]"))),
    )
    items = [item async for item in GuideProvider().stream(ModelRequest("guide", (), messages))]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert isinstance(reply.blocks[0], TextBlock)
    assert reply.blocks[0].text.startswith("```\na\n```")


TOOLS = tuple(
    ToolSpec(name, "", {}, ToolClass.READ)
    for name in ("bash", "read_file", "list_files", "search", "write_file", "patch", "think")
)
WORDS = st.sampled_from([
    "please", "read", "write", "list", "run", "replace", "with", "in", "the", "file", "tests", "describe", "this",
    "project", "search", "TODO", "a.py", "'b c'", "```", "\n", "count", "to", "lines", "think", "git", "changed", "!",
])  # fmt: skip
TYPED = st.one_of(
    st.text(max_size=200),
    st.lists(WORDS, max_size=12).map(" ".join),
    st.sampled_from(["describe this project", "run the tests", "write a.txt with b", "read a.py and b.py"]),
)
RESULT = st.tuples(
    st.one_of(
        st.text(max_size=200),
        st.just("README.md\npyproject.toml\npackage.json\nMakefile"),
        st.just("1\t[project]\n2\tname = "),
        st.just('1\t{"name": 3}'),
        st.just("read it first"),
    ),
    st.booleans(),
)


async def _reply(messages: list[ModelMessage]) -> ModelReply:
    items = [item async for item in GuideProvider().stream(ModelRequest("guide", (), tuple(messages), TOOLS))]
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    return reply


async def _rounds(typed: str, results: list[tuple[str, bool]]) -> int:
    messages = [ModelMessage(Role.USER, (TextBlock(typed),))]
    for number in range(ROUNDS + 2):
        reply = await _reply(messages)
        calls = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
        assert (reply.stop is StopReason.TOOL_USE) == bool(calls)
        if not calls:
            assert isinstance(reply.blocks[0], TextBlock)
            assert reply.blocks[0].text.endswith(SIGNATURE)
            return number
        answers = tuple(
            ToolResultBlock(call.id, (TextBlock(results[index % len(results)][0]),), results[index % len(results)][1])
            for index, call in enumerate(calls)
        )
        messages += [ModelMessage(Role.ASSISTANT, reply.blocks), ModelMessage(Role.USER, answers)]
    raise AssertionError("the guide goes on and on")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TYPED, st.lists(RESULT, min_size=1, max_size=4))
def test_every_turn_ends_within_the_bound(typed: str, results: list[tuple[str, bool]]) -> None:
    assert asyncio.run(_rounds(typed, results)) <= ROUNDS


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            ModelMessage,
            st.sampled_from([Role.USER, Role.ASSISTANT]),
            st.lists(
                st.one_of(
                    st.builds(TextBlock, st.text(max_size=20)),
                    st.builds(ToolUseBlock, st.sampled_from("ab"), st.just("bash"), st.text(max_size=10)),
                    st.builds(ToolResultBlock, st.sampled_from("ab"), st.just((TextBlock("x"),)), st.booleans()),
                ),
                max_size=3,
            ).map(tuple),
        ),
        max_size=6,
    )
)
def test_every_history_gets_an_answer(messages: list[ModelMessage]) -> None:
    assert asyncio.run(_reply(messages)).blocks


SENTENCES: list[tuple[str, GuideRequest | None]] = [
    ("hello", SmallTalk(Courtesy.HELLO)),
    ("Thanks a lot!", SmallTalk(Courtesy.THANKS)),
    ("who are you?", SmallTalk(Courtesy.WHO)),
    ("what can you do?", Help()),
    ("hello, can you list the files please", ListRequest()),
    ("list the files in this directory", ListRequest()),
    ("lsit files", ListRequest()),
    ("ls src", ListRequest(folder="src")),
    ("show me the src folder", ListRequest(folder="src")),
    ("list *.py", ListRequest(glob="*.py")),
    ("read README.md", ReadFiles(("README.md",))),
    ("Please could you raed README.md?", ReadFiles(("README.md",))),
    ("Show me what's in pyproject.toml", ReadFiles(("pyproject.toml",))),
    ("open src/main.py and tell me what it does", ReadFiles(("src/main.py",))),
    ("read a.py, b.py and 'my notes.txt'", ReadFiles(("a.py", "b.py", "my notes.txt"))),
    ("cat docs/my notes.txt", ReadFiles(("docs/my notes.txt",))),
    ("what is in @README.md", ReadFiles(("README.md",))),
    ("read @a.py and @'my notes.txt'", ReadFiles(("a.py", "my notes.txt"))),
    ("write @deco to a.py", WriteRequest("a.py", "@deco\n")),
    ("search TODO", SearchRequest("TODO")),
    ('serach for "def main" in *.py', SearchRequest("def main", "*.py")),
    ("find all TODO comments in this repository", SearchRequest("TODO")),
    ("grep foo in src/*.py", SearchRequest("foo", "src/*.py")),
    ("find app.py", ListRequest(glob="app.py")),
    ("where are the files named *.toml?", ListRequest(glob="*.toml")),
    ("find the word", SearchRequest("word")),
    ("search apples in pears", SearchRequest("apples in pears")),
    ("run ls -la .", RunCommand("ls -la .")),
    ("run the tests", RunTests()),
    ("execute `echo hi`", RunCommand("echo hi")),
    ("run\n```sh\necho a\necho b\n```", RunCommand("echo a\necho b")),
    ("!git log", RunCommand("git log")),
    ("what changed in git?", GitChanges()),
    ("git status", GitChanges()),
    ("replace foo with bar in a.py", Replace("a.py", "foo", "bar")),
    ("replace 'a b' with \"\" in my file.txt", Replace("my file.txt", "a b", "")),
    ("change x to y in the file src/a b.py", Replace("src/a b.py", "x", "y")),
    ("in a.py replace x with y", Replace("a.py", "x", "y")),
    ("write hello.txt with Hello world.", WriteRequest("hello.txt", "Hello world.\n")),
    ("create a file hello.txt containing the word hello", WriteRequest("hello.txt", "hello\n")),
    ("write hello.py with\n```python\nprint(1)\n```", WriteRequest("hello.py", "print(1)\n")),
    ("write 'hi there' to notes.txt", WriteRequest("notes.txt", "hi there\n")),
    ("describe this project", Describe()),
    ("what is this project about?", Describe()),
    ("count to 10", CountTo(10)),
    ("count the lines in app.py", CountLines("app.py")),
    ("think about ducks", ThinkRequest("ducks")),
    ("summarize this conversation", Summarize()),
    ("make me a cake", None),
    ("fix the bug in the parser", None),
    ("delete everything", None),
    ("read it", None),
    ("run", None),
    ("", None),
]


@pytest.mark.parametrize(("sentence", "request_"), SENTENCES)
def test_a_sentence_means_this_request(sentence: str, request_: GuideRequest | None) -> None:
    assert understand(sentence) == request_


@pytest.mark.parametrize(
    "hostile",
    [
        "edit " + "with in " * 240,
        "write " + "a with " * 280,
        "search " + "in " * 660,
        "please " * 280,
        "replace " + "'" * 1990,
        "`" * 29_000,
        "`" * 14_000 + "\n" + "`" * 13_999,
        "```\n" * 7_000,
        "read " + "and " * 490,
        "x" * 40_000,
    ],
)
def test_no_input_keeps_the_rules_busy(hostile: str) -> None:
    started = time.process_time()
    understand(hostile)
    assert time.process_time() - started < 2.0
