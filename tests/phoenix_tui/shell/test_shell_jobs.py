"""/jobs: every background command of the conversation, its newest lines, all of them to read, and its end."""

from __future__ import annotations

from typing import Any

from phoenix_tui.modals.jobs_sheet import JobsSheet
from phoenix_tui.modals.text_sheet import TextSheet
from tests.support.fake_engine import FakeConversation
from tools.contract import Captured, JobInfo


async def with_jobs(shell: Any, count: int = 3) -> FakeConversation:
    """A conversation with `count` jobs; every second one has failed. The sheet is open."""
    conversation: FakeConversation = await shell.say("go")
    conversation.answer_with("Done.")
    for number in range(1, count + 1):
        conversation.jobs.printed[f"job-{number}"] = Captured(b"".join(b"%d of %d\n" % (n, number) for n in range(30)))
    conversation.jobs.become(*(job(conversation, number, runs=number % 2 == 1) for number in range(1, count + 1)))
    await shell.type("/jobs")
    await shell.pilot.press("space", "enter")
    await shell.until(lambda: isinstance(shell.top, JobsSheet) and "background command" in shell.text)
    return conversation


def job(conversation: FakeConversation, number: int, *, runs: bool) -> JobInfo:
    return JobInfo(f"job-{number}", conversation.id, f"serve {number}", runs, None if runs else 7, 72.0)


async def test_each_says_how_it_stands_and_the_newest_shows_its_last_lines(open_shell: Any) -> None:
    async with open_shell() as shell:
        await with_jobs(shell)
        await shell.until(lambda: "3 background commands · 2 running   Enter shows output · x stops" in shell.text)
        rows = [" ".join(row.split()) for row in shell.text.splitlines() if "serve" in row]
        assert rows == [
            "serve 1 running 1 m 12 s",
            "serve 2 exit 7 after 1 m 12 s",
            "› serve 3 running 1 m 12 s",
        ]
        assert "29 of 3" in shell.text
        await shell.pilot.press("up")
        await shell.until(lambda: "29 of 2" in shell.text)


async def test_x_ends_the_chosen_one_and_no_ended_one(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await with_jobs(shell)
        await shell.pilot.press("x")
        await shell.until(lambda: "serve 3" in shell.text and "killed after 1 m 12 s" in shell.text)
        assert [one.running for one in conversation.jobs.all()] == [True, False, False]
        await shell.pilot.press("up", "x")
        await shell.until(lambda: "The command has already ended." in shell.toasts)


async def test_enter_reads_it_from_its_end_and_comes_back_to_the_list(open_shell: Any) -> None:
    async with open_shell() as shell:
        await with_jobs(shell)
        await shell.pilot.press("enter")
        await shell.until(lambda: isinstance(shell.top, TextSheet) and "29 of 3" in shell.text)
        assert "\n 2 of 3" not in shell.text
        await shell.pilot.press("q")
        await shell.until(lambda: isinstance(shell.top, JobsSheet))


async def test_many_leave_room_for_what_one_prints(open_shell: Any) -> None:
    async with open_shell((80, 24)) as shell:
        await with_jobs(shell, 40)
        await shell.until(lambda: "29 of 40" in shell.text and "27 of 40" in shell.text)
        assert "serve 40" in shell.text
        await shell.pilot.press(*["up"] * 39)
        await shell.until(lambda: "› serve 1 " in shell.text and "29 of 1" in shell.text)


async def test_what_it_prints_is_shown_without_its_escape_sequences(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await with_jobs(shell, 1)
        conversation.jobs.printed["job-1"] = Captured(b"\x1b]52;c;aGk=\x07a \x1b[31mred\x1b[0m [b]line[/b]\n")
        await shell.until(lambda: "a red [b]line[/b]" in shell.text)


async def test_without_any_that_is_said(open_shell: Any) -> None:
    async with open_shell() as shell:
        await shell.say("go")
        await shell.type("/jobs")
        await shell.pilot.press("space", "enter")
        await shell.until(lambda: "This conversation has no background commands." in shell.toasts)
