"""SECURITY V4: lexers that take exponential time on hostile text froze the program, and a restart opened it again.

No lexer runs in Phoenix: a process does it, and the kernel ends that process when a text has used up its time. Every
lexer that Phoenix can pick is attacked in that process by `HYPOTHESIS_PROFILE=explore`, a few known ones always.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest

from phoenix_tui.markdown.code import colour_lines
from tests.support.waiting import poll
from tools.lexing.client import STRIKES, TIMEOUT, Lexing
from tools.lexing.worker import CPU_SECONDS

KINDS = ("Keyword", "Name", "Literal.String")
ENDLESS = ("scala", "fish", "rego", "nix", "csharp", "python", "bash", "javascript", "markdown", "perl")
RUNS = ("\\", "(", "{", "a", '"', "'", "/*", "<<", "\\\\a", "[(", " \t", "a.", "`", "$(", "/")
SHARES = 32
"""Parts of the hunt over all lexers, each a test of its own."""
HANGS = """
import sys
for line in sys.stdin.buffer:
    size = __import__("json").loads(line)["size"]
    sys.stdin.buffer.read(size)
    print("[[0,1]]", flush=True)
    __import__("re").match(r"(a+)+$", "a" * 64 + "!")
"""
"""A lexer's worst: it answers for one line and then blocks its interpreter forever."""


def hostile(run: str) -> list[str]:
    return ['"' + run * 60, run * 3000, f'x = "{run * 40}\n' * 20]


@pytest.mark.parametrize("language", ENDLESS)
def test_every_text_comes_back_within_its_time(language: str) -> None:
    lexing = Lexing()
    try:
        for run in ("\\", "\\\\a") if os.environ.get("HYPOTHESIS_PROFILE") != "explore" else RUNS:
            for text in hostile(run):
                lexing.lines(text, language, KINDS)
        assert lexing.lines("x = 1\n", "toml", KINDS), "the process is there for the next text"
    finally:
        lexing.helper.close()


def languages(share: int) -> list[str]:
    """One of the `SHARES` parts of every lexer there is."""
    listed = "from pygments.lexers import get_all_lexers as a; print(*(l[1][0] for l in a(plugins=False) if l[1]))"
    names = subprocess.run([sys.executable, "-I", "-c", listed], capture_output=True, text=True, check=True).stdout
    return names.split()[share::SHARES]


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "explore", reason="takes many minutes")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("share", range(SHARES))
def test_every_lexer_there_is_comes_back_within_its_time(share: int) -> None:
    for language in languages(share):
        lexing = Lexing()
        hung = [run for run in RUNS if not ends_in_time(lexing, hostile(run)[0], language)]
        if hung:
            sys.stdout.write(f"{language}: ended by the kernel at {hung}\n")
        assert lexing.lines("x = 1\n", "toml", KINDS), f"after {language} there is a process for the next text"
        lexing.helper.close()


def ends_in_time(lexing: Lexing, text: str, language: str) -> bool:
    """True when a lexer ended by itself; a language with many strikes is tried all the same, by another client."""
    begun, strikes = time.monotonic(), dict(lexing._strikes)
    lexing._strikes.clear()
    lexing.lines(text, language, KINDS)
    assert time.monotonic() - begun < TIMEOUT + 10, f"{language} came back too late"
    ended = not lexing._strikes
    lexing._strikes.update(strikes)
    return ended


async def test_the_loop_goes_on_while_a_lexer_holds_its_interpreter() -> None:
    lexing = Lexing((sys.executable, "-I", "-c", HANGS), timeout=1.0)
    waiting = asyncio.create_task(asyncio.to_thread(lexing.lines, "x", "python", KINDS))
    turns = 0
    while not waiting.done():
        turns += 1
        await asyncio.sleep(0)
    assert await waiting == [((0, 1),)], "what came before it hung counts"
    assert turns > 10
    assert not lexing.helper.pid, "and it is killed"


def test_the_kernel_ends_it_even_where_nobody_waits_any_more() -> None:
    program = (
        "import signal, re\n"
        f"signal.setitimer(signal.ITIMER_PROF, {CPU_SECONDS / 10})\n"
        're.match(r"(a+)+$", "a" * 64 + "!")'
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], timeout=30, check=False)
    assert done.returncode < 0


def test_a_text_that_killed_it_is_not_tried_again_and_a_language_not_for_ever() -> None:
    lexing = Lexing((sys.executable, "-I", "-c", HANGS), timeout=0.2)
    lexing.lines("x", "python", KINDS)
    begun = time.monotonic()
    assert [lexing.lines("x", "python", KINDS) for _ in range(50)] == [[]] * 50
    for number in range(STRIKES):
        lexing.lines(f"other {number}", "python", KINDS)
    assert lexing.lines("one more", "python", KINDS) == []
    assert time.monotonic() - begun < 10


async def test_closing_lets_a_waiting_thread_go() -> None:
    lexing = Lexing((sys.executable, "-I", "-c", HANGS), timeout=600.0)
    thread = threading.Thread(target=lexing.lines, args=("x", "python", KINDS))
    thread.start()
    assert await poll(lambda: lexing.helper.pid)
    lexing.helper.close()
    assert await poll(lambda: not thread.is_alive())


def test_a_lie_of_the_process_puts_no_character_on_the_screen() -> None:
    (line,) = colour_lines("def f(): pass", "python")
    assert "".join(span.text for span in line) == "def f(): pass"
    from phoenix_tui.markdown.code import _spans  # noqa: PLC0415 - what reads the answer

    for pieces in ([(0, 99)], [(7_000, 3), (-9, 10)], [], [(0, -4), (1, 17)]):
        assert "".join(span.text for span in _spans("def f(): pass", pieces)) == "def f(): pass"
