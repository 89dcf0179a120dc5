"""The terminal around: focus, theme, panes, and a window that fills."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.environment_note import without_note
from tests.support.journeys import Answer, Claude, calls, picks, results, rows, says, starts_to_say
from tests.support.loopback import Seen, Talk, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text
from tests.support.program import CTRL_N, CTRL_Q, ENTER, ESC, Program, on_screen, program
from tests.support.waiting import typing_guard

pytestmark = pytest.mark.pty
FOCUS_LOST, FOCUS_GAINED = b"\x1b[O", b"\x1b[I"
LIGHT = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
COLOURED = re.compile(rb"\x1b\[(?:[0-9;]*;)?[34]8;2;(\d+);(\d+);(\d+)(?=[;m])")
"""A true colour, whole: what was read so far may end within a number."""


async def test_a_run_that_ends_is_told_to_a_terminal_without_focus_and_the_title_comes_and_goes(
    claude: Claude,
) -> None:
    phoenix, _ = await claude(says("One."), calls("bash", command="sleep 1"), says("Two."), TERM_PROGRAM="iTerm.app")
    async with on_screen(phoenix, "--permission-mode", "auto") as running:
        await running.send("first", "One.", "ready")
        assert b"\x1b]9;Phoenix" not in running.raw, "someone watches"
        await running.press("second\r", "sleep 1")
        running.type(FOCUS_LOST)
        await running.until(lambda: b"\x1b]9;Phoenix: first: ready\x07" in running.raw, "the notification")
        await running.until(lambda: "\x1b]2;○ first · Phoenix".encode() in running.raw, "the title")
        await running.until(lambda: b"\x1b]9;4;0;0\x07" in running.raw, "progress ends")
        running.type(FOCUS_GAINED)
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
        raw = bytes(running.raw)
        assert raw.index(b"\x1b[22;0t") < raw.rindex(b"\x1b[23;0t")
        assert raw.count(b"\x1b[22;0t") == raw.count(b"\x1b[23;0t")


async def test_colours_follow_the_terminal_and_the_next_start_begins_with_them(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9")
    async with on_screen(phoenix) as running:
        await running.until(lambda: b"\x1b]11;?\x1b\\" in running.raw, "the question for the background")
        running.type(LIGHT)
        await running.until(lambda: b"48;2;251;251;249" in running.raw, "light colours")
        running.type(CTRL_Q)
        await running.exit_code()
    async with program(phoenix) as running:
        await running.until(lambda: b"48;2;" in running.raw, "a first frame")
        assert b"48;2;16;19;23" not in running.raw


async def test_the_mouse_can_be_left_to_the_terminal_and_taken_again(tmp_path: Path) -> None:
    async with on_screen(with_claude(tmp_path, "http://127.0.0.1:9")) as running:
        await running.press("/mouse off\r", "The terminal uses the mouse")
        await running.until(lambda: running.raw.rfind(b"\x1b[?1000l") > running.raw.rfind(b"\x1b[?1000h"))
        await running.press("/mouse\r", "Phoenix uses the mouse")
        await running.until(lambda: running.raw.rfind(b"\x1b[?1000l") < running.raw.rfind(b"\x1b[?1000h"))


async def test_no_color_is_honoured(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", NO_COLOR="1")
    async with on_screen(phoenix) as running:
        found = {tuple(map(int, colour.groups())) for colour in COLOURED.finditer(bytes(running.raw))}
        assert all(red == green == blue for red, green, blue in found)


async def test_the_first_frame_on_256_colours_has_surfaces_apart(tmp_path: Path) -> None:
    phoenix = with_claude(tmp_path, "http://127.0.0.1:9", COLORTERM="", TERM="xterm-256color")
    async with on_screen(phoenix) as running:
        grounds = {int(found) for found in re.findall(rb"48;5;(\d+)", bytes(running.raw))}
        assert 233 in grounds
        assert 16 not in grounds, "pure black, which every dark surface would be"


async def test_a_terminal_without_titles_is_sent_none(tmp_path: Path) -> None:
    async with serve(says("One.")) as server, on_screen(with_claude(tmp_path, server.url, TERM="linux")) as running:
        await running.send("first", "One.")
        asked = set(re.findall(rb"\x1b\](\d+)", bytes(running.raw)))
        assert asked <= {b"22"}, "Textual's own pointer shape alone"


async def test_errors_sent_to_a_file_leave_the_screen_on_the_terminal(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    async with serve(says("One.")) as server, on_screen(with_claude(tmp_path, server.url), errors=errors) as running:
        await running.send("first", "One.")
        await running.shows("○ ready")  # while a run is under way, quitting asks
        running.type(CTRL_Q)
        assert await running.exit_code() == 0
    assert errors.read_bytes() == b""


ALT_A, ALT_RIGHT = b"\x1ba", b"\x1b[1;3C"
COLUMNS, ROWS = 160, 32
TAKES = "s Yes, and this exact command in this conversation"
"""Row of answers once they are taken: before, a dot replaces each letter."""


def talks(seen: Seen) -> Answer:
    """Each conversation's own reply, chosen by its first words and by what it has got so far."""
    said = json.dumps(seen.json["messages"])
    if "tool_result" in said:
        return says("Refused, so I stop." if "denied" in said else "The command is done.")
    if "alpha" in said:
        return calls("bash", "toolu_a", command="echo from-alpha > alpha.txt")
    if "beta" in said:
        return calls("bash", "toolu_b", command="echo from-beta > beta.txt")
    if "gamma" in said:
        return starts_to_say("Gamma writes on ", "and on and stays.")
    return says("A title")


async def three(running: Program) -> None:
    """Two that ask and one that writes, side by side; the dock is with gamma."""
    await running.ready()
    for words, seen in (("alpha go", "bash asks"), ("beta go", "bash asks"), ("gamma go", "stays.")):
        await running.send(words, f"┃ {words}", seen)
        if words != "gamma go":
            await running.press(CTRL_N, "New conversation")
    for words in ("alpha go", "beta go"):
        await running.press(f"/split {words}", f"/split {words}")
        await running.press(ENTER, f"│ ◆ {words}")
        await running.lacks("/split")
        running.type(ALT_RIGHT if words == "beta go" else b"")
    await running.shows("bash asks echo from-alpha > alpha.txt", "bash asks echo from-beta > beta.txt", "stays.")


async def test_two_of_three_panes_ask_and_are_answered_from_the_queue_while_the_third_writes_on(claude: Claude) -> None:
    phoenix, _ = await claude(picks(talks))
    async with program(phoenix, columns=COLUMNS, rows=ROWS) as running:
        await three(running)
        await running.press(ALT_A, "2 approvals wait", TAKES.format("alpha"))
        await running.press("y", "1 approval waits", TAKES.format("beta"))
        await running.until((phoenix.cwd / "alpha.txt").is_file, "the file of the allowed command")
        await running.press("r", "No, because …")
        await running.press("not now\r", "The command is done.", "Refused, so I stop.", "stays.")
        await running.lacks("approval waits")
        running.signal(signal.SIGKILL)
        await running.exit_code()
    assert not (phoenix.cwd / "beta.txt").exists()
    assert rows(phoenix, "select status, output_text from tool_calls order by tool_use_id") == [
        ("success", "[no output]\n[exit code 0]"),
        ("error", "User denied permission to run bash: not now"),
    ]
    async with on_screen(phoenix, columns=COLUMNS, rows=ROWS) as running:
        await typing_guard()
        running.type(ENTER)  # what a crash left open is offered, never opened by itself
        await running.shows("interrupted, Enter resumes")


MODEL = ("-m", "anthropic/claude-haiku-4-5")
"""Model with a window of 200,000 tokens."""
WANTED = "Write the summary now."
FLUSH = re.compile(r"Pre-compaction memory flush\. Store durable memories now \(use (memory/[\d-]{10}\.md);")
LONG = "a long answer about the queue of each peer, " * 60


def fills(words: str, tokens: int) -> Answer:
    """An answer after which the window holds `tokens`."""
    return plays(recording(start({"input_tokens": tokens, "output_tokens": 1}), text(0, words), stop(output_tokens=0)))


def talk(turns: Iterable[Answer], summary: Answer) -> Answer:
    """Turns one after another; a summary wherever one is asked for, and one note before it."""
    left = iter(turns)

    def choose(seen: Seen) -> Answer:
        body = seen.body.decode()
        if (flush := FLUSH.search(body)) is not None:
            note = calls("write_file", path=flush[1], content="The relay has one queue for each peer.")
            return fills("NO_REPLY", 900) if results(seen) else note
        return summary if WANTED in body else next(left)

    return picks(choose)


def asked(seen: Seen) -> list[str]:
    """The texts of a request's user messages."""
    messages: Any = seen.json["messages"]
    return [part["text"] for one in messages if one["role"] == "user" for part in without_note(one["content"])]


async def exchange(running: Program, words: str, answer: str) -> None:
    await running.send(words, answer, "ready")


async def filled(running: Program) -> None:
    """Three turns, the last of which goes past every mark."""
    await running.ready()
    await exchange(running, "First of all", "Number one.")
    await exchange(running, "And then", "Number two.")
    await running.shows("ctx 72%", "The context window is 72 % full.")
    await exchange(running, "What else", "Number three.")
    await running.shows("ctx 80%")


TURNS = (fills(f"{LONG}Number one.", 60_000), fills(f"{LONG}Number two.", 144_000), fills("Number three.", 160_000))


async def test_a_window_fills_up_is_summarized_and_the_conversation_goes_on(claude: Claude) -> None:
    summary = fills("They want one queue for each peer.", 900)
    turns = (*TURNS, fills("It goes on.", 3_000), fills("All of it again.", 162_000))
    phoenix, server = await claude(talk(turns, summary))
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
        [(kept, first, count)] = rows(phoenix, "select summary, context_start_seq, compaction_count from conversations")
        assert (kept.startswith("They want"), first, count) == (True, 3, 1)
        assert len(rows(phoenix, "select seq from messages where role <> 'system'")) == 8
        await restored(running)
        await exchange(running, "Commands and settings", "All of it again.")
    assert asked(server.requests[-1])[0] == "First of all"


async def restored(running: Program) -> None:
    """`/context`, the older messages back, and no summary at the next message."""
    await running.press("/context", "/context")
    await running.press(ENTER, "Older messages are replaced by a summary", "summary ~")
    await typing_guard()
    await running.press("r", "in place of the summary", "ctx ~80%")
    running.type(ESC)
    await running.ready()


async def test_a_summary_can_be_stopped_and_a_kill_in_the_midst_of_one_loses_nothing(claude: Claude) -> None:
    async def never(talk: Talk) -> None:
        await talk.stall()

    phoenix, server = await claude(talk((*TURNS, fills("It goes on.", 3_000)), never))
    async with program(phoenix, *MODEL) as running:
        await filled(running)
        await running.until(lambda: len(server.requests) == 6, "two requests for notes, and a summary by itself")
        await running.press("/compact the names of the peers", "of the peers")
        running.type(ENTER)
        await running.until(lambda: len(server.requests) == 7, "the request for a summary, without notes")
        await running.shows("compacting…")
        assert "the names of the peers" in server.requests[-1].body.decode()
        await running.press(ESC, "ready")
        await running.send("Go on")
        await running.until(lambda: len(server.requests) == 8, "the summary before the message")
        await running.until(lambda: rows(phoenix, "select draft from conversations") == [("",)], "no draft")
        running.signal(signal.SIGKILL)
        await running.exit_code()
    before = stored(phoenix)
    async with program(phoenix, "-c") as running:
        await running.shows("interrupted, Enter resumes", "Go on")
        assert stored(phoenix) == before
        await running.press(ENTER, "It goes on.")
    assert asked(server.requests[-1])[-1] == "Go on"


def stored(phoenix: Phoenix) -> list[tuple[object, ...]]:
    return rows(phoenix, "select seq, role, text from messages order by seq")
