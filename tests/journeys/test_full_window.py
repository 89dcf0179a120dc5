"""A window fills up: it is shown, reported, summarized, restored, and nothing is lost."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import Answer, calls, picks, results, rows
from tests.support.loopback import Seen, Talk, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text
from tests.support.program import ENTER, ESC, Program, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
MODEL = ("-m", "anthropic/claude-haiku-4-5")
"""Model with a window of 200,000 tokens."""
WANTED = "Write the summary now."
FLUSH = re.compile(r"Pre-compaction memory flush\. Store durable memories now \(use (memory/[\d-]{10}\.md);")
LONG = "a long answer about the queue of each peer, " * 60


def says(words: str, tokens: int) -> Answer:
    """An answer after which the window holds `tokens`."""
    return plays(recording(start({"input_tokens": tokens, "output_tokens": 1}), text(0, words), stop(output_tokens=0)))


def talk(turns: Iterable[Answer], summary: Answer) -> Answer:
    """Turns one after another; a summary wherever one is asked for, and one note before it."""
    left = iter(turns)

    def choose(seen: Seen) -> Answer:
        body = seen.body.decode()
        if (flush := FLUSH.search(body)) is not None:
            note = calls("write_file", path=flush[1], content="The relay has one queue for each peer.")
            return says("NO_REPLY", 900) if results(seen) else note
        return summary if WANTED in body else next(left)

    return picks(choose)


def asked(seen: Seen) -> list[str]:
    """The texts of a request's user messages."""
    messages: Any = seen.json["messages"]
    return [part["text"] for one in messages if one["role"] == "user" for part in without_note(one["content"])]


async def exchange(running: Program, words: str, answer: str) -> None:
    await running.send(words)
    await running.shows(answer, "ready")


async def filled(running: Program) -> None:
    """Three turns, the last of which goes past every mark."""
    await running.ready()
    await exchange(running, "First of all", "Number one.")
    await exchange(running, "And then", "Number two.")
    await running.shows("ctx 72%", "The context window is 72 % full.")
    await exchange(running, "What else", "Number three.")
    await running.shows("ctx 80%")


TURNS = (says(f"{LONG}Number one.", 60_000), says(f"{LONG}Number two.", 144_000), says("Number three.", 160_000))


async def test_a_window_fills_up_is_summarized_and_the_conversation_goes_on(tmp_path: Path) -> None:
    summary = says("They want one queue for each peer.", 900)
    turns = (*TURNS, says("It goes on.", 3_000), says("All of it again.", 162_000))
    async with serve(talk(turns, summary)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, *MODEL) as running:
            await filled(running)
            await exchange(running, "Go on", "It goes on.")
            await running.shows("Summarized", "ctx 2%")
            assert asked(server.requests[-1])[0].startswith(
                "[Summary of earlier conversation]\nThey want one queue for each peer."
            )
            assert WANTED in server.requests[-2].body.decode()
            (note,) = (phoenix.home / "memory" / "projects").glob("*/*.md")
            assert note.read_text().count("\nThe relay has one queue for each peer.\n") == 1
            [(kept, first, count)] = rows(
                phoenix, "select summary, context_start_seq, compaction_count from conversations"
            )
            assert (kept.startswith("They want"), first, count) == (True, 3, 1)
            assert len(rows(phoenix, "select seq from messages where role <> 'system'")) == 8
            await restored(running)
            await exchange(running, "Everything", "All of it again.")
        assert asked(server.requests[-1])[0] == "First of all"


async def restored(running: Program) -> None:
    """`/context`, the older messages back, and no summary at the next message."""
    running.type("/context")
    await running.shows("/context")
    running.type(ENTER)
    await running.shows("Older messages are replaced by a summary", "summary ~")
    await typing_guard()
    running.type("r")
    await running.shows("in place of the summary", "ctx ~80%")
    running.type(ESC)
    await running.ready()


async def test_a_summary_can_be_stopped_and_a_kill_in_the_midst_of_one_loses_nothing(tmp_path: Path) -> None:
    async def never(talk: Talk) -> None:
        await talk.stall()

    async with serve(talk((*TURNS, says("It goes on.", 3_000)), never)) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, *MODEL) as running:
            await filled(running)
            await running.until(lambda: len(server.requests) == 6, "two requests for notes, and a summary by itself")
            running.type("/compact the names of the peers")
            await running.shows("of the peers")
            running.type(ENTER)
            await running.until(lambda: len(server.requests) == 7, "the request for a summary, without notes")
            await running.shows("compacting…")
            assert "the names of the peers" in server.requests[-1].body.decode()
            running.type(ESC)
            await running.shows("ready")
            await running.send("Go on")
            await running.until(lambda: len(server.requests) == 8, "the summary before the message")
            await running.until(lambda: rows(phoenix, "select draft from conversations") == [("",)], "no draft")
            running.signal(signal.SIGKILL)
            await running.exit_code()
        before = stored(phoenix)
        async with program(phoenix, "-c") as running:
            await running.shows("interrupted, Enter resumes", "Go on")
            assert stored(phoenix) == before
            running.type(ENTER)
            await running.shows("It goes on.")
        assert asked(server.requests[-1])[-1] == "Go on"


def stored(phoenix: Phoenix) -> list[tuple[object, ...]]:
    return rows(phoenix, "select seq, role, text from messages order by seq")
