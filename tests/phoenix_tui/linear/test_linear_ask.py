"""Questions in lines, of the model, of sub-agents, beside the conversation and before a rewind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from engine.ports.files import Coverage
from engine.rewind.rewind import Preview, PreviewFile, RewindList, RewindScope
from phoenix_tui.features.rewind import HowFar, Instead, OtherWay
from phoenix_tui.linear.history import LineRewindAsker
from tests.support.cli import with_claude
from tests.support.fake_rewinding import change, point
from tests.support.journeys import Claude, calls, result_text, says
from tests.support.loopback import serve
from tests.support.loopback_agents import begins, by_last_message, never_ends, spawns, submits
from tests.support.program import ESC, in_lines
from tests.support.questions import COLOUR, PARTS


async def test_questions_are_read_out_and_answered_one_after_the_other(claude: Claude) -> None:
    phoenix, server = await claude(calls("ask_user", questions=[COLOUR, PARTS]), says("Done."))
    async with in_lines(phoenix, columns=200) as running:
        await running.press(
            "go\r", "The agent asks you, 2 questions.", "Question 1 of 2, Colour: Which colour?", "1. Red: warm"
        )
        await running.press("2\r", "Question 2 of 2, Parts: Which parts?", "Answer, or Enter to skip:")
        await running.press("1,3\r", "Assistant: Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="Blue"\n"Which parts?"="API, Tests"'


async def test_own_words_answer_and_esc_declines(tmp_path: Path) -> None:
    answers = (
        calls("ask_user", questions=[COLOUR]),
        calls("ask_user", "toolu_2", questions=[COLOUR]),
        says("Done."),
    )
    async with serve(*answers) as server, in_lines(with_claude(tmp_path, server.url), columns=200) as running:
        await running.press("go\r", "The agent asks you.", "2. Blue: cold")
        running.type("green\r")
        await running.until(lambda: len(server.requests) == 2)
        await running.until(lambda: running.text.count("2. Blue: cold") == 2)
        await running.press(ESC, "Assistant: Done.")
    assert result_text(server.requests[1]) == '"Which colour?"="green"'
    assert result_text(server.requests[2]) == "The user declined to answer"


async def test_the_tool_is_not_offered_without_a_user(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        ran = await with_claude(tmp_path, server.url).run("-p", "Hello")
    assert ran.code == 0
    tools: Any = server.requests[0].json["tools"]
    assert "ask_user" not in [tool["name"] for tool in tools]


async def test_sub_agents_are_said_as_they_begin_ask_and_end(claude: Claude) -> None:
    answers = by_last_message({
        "Sub-agent results": says("Both are back."),
        "made by the first": submits("It is \x1b]0;owned\x07made."),
        "TASK one": calls("bash", command="echo made by the first"),
        "TASK two": submits("second"),
        "go": spawns("TASK one", "TASK two"),
    })
    phoenix, _ = await claude(answers)
    async with in_lines(phoenix) as running:
        await running.press("go\r", "Start 2 sub-agents?", "Answer:")
        running.type("y\r")
        await running.shows(
            "2 sub-agents started: TASK one; TASK two. /agents lists them.",
            "TASK one (sub-agent of go): Run a command?",
            "It would run: echo made by the first",
        )
        await running.press(
            "y\r", "Sub-agent done: TASK one", "Sub-agent done: TASK two", "Assistant: Both are back.", "Ready"
        )
        await running.press("/agents\r", "2 sub-agents:", "1. TASK one, general, done, turn 2 of 20")
        await running.press("1\r", "TASK one:", "1. Read what it did", "2. Send it a hint")
        await running.press("1\r", "You: TASK one", "Ended: done. It is made.")
        assert b"owned" not in running.raw
        await running.press("/cost\r1\r", "itself,", "TASK two (general)", "replies: 2 calls")


async def test_one_that_goes_on_behind_a_conversation_at_rest_is_stopped_by_number_or_by_esc(claude: Claude) -> None:
    answers = by_last_message({
        "started": says("It works in the background."),
        "TASK one": never_ends,
        "go": begins("TASK one"),
    })
    phoenix, _ = await claude(answers)
    async with in_lines(phoenix, "--permission-mode", "auto") as running:
        await running.press("go\r", "1 sub-agent started: TASK one.", "It works in the background.", "Ready")
        await running.press("/agents\r", "1. TASK one, general, thinks")
        await running.press("1\r", "3. Stop it")
        await running.press("3\r", "1 sub-agent stopped; their results are kept.", "Sub-agent stopped: TASK one")
        running.type("go\r")
        await running.until(lambda: running.words.count("1 sub-agent started") == 2, "a second one")
        running.type(ESC)
        await running.until(lambda: running.words.count("Sub-agent stopped: TASK one") == 2, "stopped by Esc")


async def test_it_is_answered_while_the_agent_works_without_signs_and_is_not_stored(claude: Claude) -> None:
    answers = by_last_message({
        "why closed?": says("Because of **the pool**.\n\n```sh\nls\n```"),
        "go": never_ends,
    })
    phoenix, _ = await claude(answers)
    async with in_lines(phoenix) as running:
        await running.press("/btw why closed?\r", "This conversation is empty; there is nothing to ask about.")
        await running.press("go\r", "Assistant is working.")
        await running.press("/btw\r", "Give a question: /btw QUESTION. The agent keeps working, and nothing is stored.")
        running.type("/btw why closed?\r")
        await running.shows(
            "Side question sent.",
            "Side question: why closed?",
            "Because of the pool.",
            "Code, sh:",
            "End of the side answer.",
        )
        await running.press("/state\r", "Working.")
        running.type("/read\r")
        await running.until(lambda: running.words.count("You: go") >= 1, "it is read again")
        assert running.words.count("Because of the pool.") == 1


async def test_esc_stops_the_run_first_and_then_drops_the_question(claude: Claude) -> None:
    phoenix, _ = await claude(by_last_message({"why": never_ends, "go": never_ends}))
    async with in_lines(phoenix) as running:
        await running.press("go\r", "Assistant is working.")
        await running.press("/btw why\r", "Side question sent. Esc cancels it if nothing else is running.")
        await running.press(ESC, "Ready")
        await running.press(ESC, "Dropped.")
        await running.press(ESC, "Nothing is running.")


async def test_the_lines_of_a_pipe_wait_for_the_answer(claude: Claude) -> None:
    answers = by_last_message({"why closed?": says("Because of the pool."), "go": says("It is closed.")})
    phoenix, _ = await claude(answers)
    said = (await phoenix.run("--screen-reader", stdin=b"go\n/btw why closed?\n/state\n")).out
    assert said.index("It is closed.") < said.index("Because of the pool.") < said.rindex("Ready.")


async def test_it_is_asked_on_and_continued_in_a_copy(claude: Claude) -> None:
    answers = by_last_message({
        "since when?": says("Since Monday."),
        "why closed?": says("Because of the pool."),
        "go": says("Done."),
    })
    phoenix, server = await claude(answers)
    async with in_lines(phoenix) as running:
        await running.press("/btw fork\r", "This conversation is empty")
        await running.press("go\r", "Assistant: Done.")
        await running.press("/btw fork\r", "No side question was answered here.")
        await running.press("/btw why closed?\r", "Because of the pool.", "End of the side answer.")
        await running.press("/btw more since when?\r", "Since Monday.")
        asked = server.requests[-1].body.decode()
        assert "Earlier the user asked you beside it" in asked
        assert "Because of the pool." in asked
        running.type("/btw fork\r")
        await running.shows("Forked. You are in the copy", "You: since when?", "Assistant: Since Monday.")


HERS = PreviewFile(change("notes.md", 1, 2), "changed since then by someone else")


@dataclass
class Front:
    """Answers one question after the other with the place of a row."""

    answers: list[int | None]
    said: list[str] = field(default_factory=list[str])

    def say(self, *lines: str) -> None:
        self.said += lines

    async def choose(self, heading: str, rows: Sequence[str]) -> int | None:
        self.said += [heading, *rows]
        return self.answers.pop(0)


def asker(*answers: int | None) -> tuple[LineRewindAsker, Front]:
    front = Front(list(answers))
    return LineRewindAsker(cast("Any", front), cast("Any", None)), front


async def test_what_a_crash_cut_off_is_finished_or_taken_back() -> None:
    found = RewindList(Path("/"), (point(1, "Fix it"),), None, 3, 1)
    for place, way in ((1, OtherWay.FINISH), (2, OtherWay.TAKE_BACK)):
        here, front = asker(place)
        assert await here.which_prompt(found) is way
        assert front.said[-2:] == ["Finish the interrupted restore: 3 files", "Undo the interrupted restore: 3 files"]


async def test_the_files_of_others_are_asked_about_unless_no_file_goes_back() -> None:
    preview = Preview((HERS,), Coverage())
    here, _ = asker(0, 1)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) == HowFar(
        RewindScope.BOTH, frozenset({b"notes.md"})
    )
    here, _ = asker(1)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) == HowFar(RewindScope.CONVERSATION)
    here, _ = asker(0, None)
    assert await here.how_far(point(1, "Fix it"), preview, tuple(RewindScope)) is None
    here, front = asker(3)
    assert await here.how_far(point(1, "Fix it"), preview, (*RewindScope, Instead.SUMMARY)) == HowFar(Instead.SUMMARY)
    assert front.said[-1] == "No rewind; summarize the messages before this prompt"
