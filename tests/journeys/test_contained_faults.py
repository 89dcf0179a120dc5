"""Faults of Phoenix's own code: each ends what it happened in, and nothing else, unless no frame can be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from phoenix_tui.lifecycle.containment import MOST, WAY_OUT
from tests.support.cli import Phoenix
from tests.support.faulty_child import KEY
from tests.support.journeys import Answer, Claude, picks, says
from tests.support.loopback import Seen
from tests.support.program import CTRL_C, CTRL_Q, ENTER, Program, on_screen, program

pytestmark = pytest.mark.pty
CHILD = "tests.support.faulty_child"
UNDRAWABLE = "tests.support.undrawable_child"
F13, F14, F15, F16, F17, F18, F19, F20 = (f"\x1b[{code}~" for code in (25, 26, 28, 29, 31, 32, 33, 34))
HELP = "\x1bOP"
PLANTED = (
    "an answer under way", "a call", "a row", "any row", "the status line", "the parts of a panel",
    "the start of a row", "the key f13 of a sheet", "a key", "a clock",
)  # fmt: skip
"""Faults of `undrawable_child`, each of which comes again with each call."""


def reports(phoenix: Phoenix) -> list[Path]:
    return sorted((phoenix.home / "logs").glob("crash-*.txt"))


async def is_reported(running: Program, phoenix: Phoenix, where: str) -> None:
    await running.until(lambda: any(f"planted in {where}" in one.read_text() for one in reports(phoenix)), where)


async def test_a_fault_ends_neither_phoenix_nor_the_command_that_runs_nor_the_draft(claude: Claude) -> None:
    phoenix, server = await claude(says("Here I am."))
    async with program(phoenix, module=CHILD) as running:
        running.expects_faults = True
        await running.ready()
        await running.send("!until [ -e go ]; do sleep 0.02; done; echo came $((40 + 2))", "▸ bash")
        running.type("a dra")
        for key, where in ((F13, "a handler"), (F15, "a worker"), (F16, "one frame"), (F17, "a callback")):
            running.type(key)
            await is_reported(running, phoenix, where)
        await running.shows("Something went wrong here and", "a draft")
        await running.press(HELP, "Everyday keys")
        running.type(F13)
        await is_reported(running, phoenix, "a sheet")
        await running.lacks("Everyday keys")
        (phoenix.cwd / "go").touch()
        await running.shows("came 42", "○ ready", "a draft")
        await running.press(b" of mine" + ENTER, "Here I am.", "○ ready")
        assert b"a draft of mine" in server.requests[0].body
        running.type(CTRL_Q)
        assert await running.exit_code() == 0


@pytest.mark.parametrize("way", [CTRL_Q, CTRL_C + CTRL_C], ids=["Ctrl+Q", "Ctrl+C twice"])
async def test_a_screen_whose_every_key_fails_says_how_to_leave_it_and_can_be_left(claude: Claude, way: bytes) -> None:
    phoenix, _ = await claude()
    async with on_screen(phoenix, module="tests.support.deaf_child") as running:
        running.expects_faults = True
        await running.send("!true", "! true", "○ ready")
        await running.press(F13, "keys fail from now on")
        running.type(CTRL_Q)
        await is_reported(running, phoenix, "leaving")
        running.type("a")
        await is_reported(running, phoenix, "a key")
        await running.lacks(WAY_OUT[:20])
        await running.press("b", WAY_OUT[:20])
        running.type(way)
        assert await running.exit_code() == 0
        assert running.terminal_is_back


async def test_where_no_frame_can_be_drawn_phoenix_ends_with_a_private_report_and_one_sentence(claude: Claude) -> None:
    phoenix, _ = await claude(says("Here I am."))
    async with program(phoenix, module=CHILD) as running:
        running.expects_faults = True
        await running.ready()
        await running.press("!true" + ENTER.decode(), "! true", "○ ready")
        running.type(F19)
        await running.send("Hi")
        await is_reported(running, phoenix, "an update")
        await running.shows("Here I am.", "○ ready")
        await running.press(F20, "the next key fails")
        running.type("x")
        await is_reported(running, phoenix, "the reading thread")
        running.type(F14)
        await is_reported(running, phoenix, "a timer")
        running.type("a clock that fails at each tick ends nothing")
        await running.shows("a clock that fails at each tick ends nothing")
        assert len(reports(phoenix)) == 3
        running.type(F18)
        assert await running.exit_code() == 1
        assert running.terminal_is_back
    last = reports(phoenix)[-1]
    assert "planted in every frame" in last.read_text()
    assert last.stat().st_mode & 0o777 == 0o600
    assert KEY not in last.read_text() + running.raw.decode(errors="replace")
    assert b"Traceback" not in running.raw
    assert f"Internal error (RuntimeError). Report: {last}; `phoenix --resume ".encode() in running.raw


async def test_whatever_fails_again_and_again_is_left_out_and_phoenix_goes_on(claude: Claude) -> None:
    def answer(seen: Seen) -> Answer:
        asked = str(seen.json["messages"])
        return says(
            next(
                (f"A **{word}** word." for word in ("spoiled", "smudged") if word.upper() in asked),
                "A **cursed** word.",
            )
        )

    phoenix, _ = await claude(picks(answer))
    async with program(phoenix, module=UNDRAWABLE, columns=100, rows=40) as running:
        running.expects_faults = True
        await running.shows("This part cannot be drawn.")
        await running.send("first", "This message cannot be drawn; its text follows.", "A **cursed** word.")
        await running.send("!echo cursed $((40 + 2))", "cursed 42")
        for _ in range(MOST + 2):
            await running.press(HELP, "Everyday keys")
            running.type(F13)
            await running.lacks("Everyday keys")
        await running.send("a SMUDGED one", "A **smudged** word.")
        await running.send("a SPOILED one", "This part cannot be drawn; its text follows.", "A **spoiled** word.")
        for _ in range(MOST + 2):
            running.type(F13)
        for where in PLANTED:
            await is_reported(running, phoenix, where)
        before = reports(phoenix)
        await running.press(F13 + "more words", "more words")
        assert len(before) == len(reports(phoenix))
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
        assert running.terminal_is_back
