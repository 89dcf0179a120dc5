"""A program that needs a whole terminal waits for the user's own, and is supervised there as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from msgspec.structs import replace

from tests.support.processes import Watch
from tests.support.waiting import poll
from tests.tools.process.test_commands_in_a_terminal import PLACE, newest, running, shell, terminal_of, text_of
from tools.contract import Finished, OutputSoFar, Progress
from tools.process.command_terminal import AT_ONCE, MOST_DRAWN, MOST_WAITING, READ_SIZE, CommandTerminal, TerminalLoan
from tools.process.start import Processes
from tools.terminal.text import WHOLE_SCREEN
from tools.terminal.values import TerminalRows, TerminalSize

REAL = TerminalSize(30, 100)
DRAWS = "printf '\\033[?1049hdrawn'"
LEAVES = "printf '\\033[?1049l'"


async def waiting(processes: Processes) -> CommandTerminal:
    terminal = await terminal_of(processes)
    assert await poll(lambda: terminal.wants_screen)
    return terminal


class Shown:
    """A terminal that reads all it is given."""

    def __init__(self, lent: TerminalLoan) -> None:
        self.lent, self.content = lent, b""
        self.task = asyncio.create_task(self._read())

    async def until(self, holds: Callable[[bytes], bool]) -> None:
        assert await poll(lambda: holds(self.content)), self.content[-500:]

    async def _read(self) -> None:
        while content := await self.lent.read():
            assert len(content) <= AT_ONCE + READ_SIZE
            self.content += content


async def rest_of(lent: TerminalLoan) -> AsyncIterator[bytes]:
    while content := await lent.read():
        yield content


async def test_it_waits_is_lent_a_terminal_of_its_size_and_what_it_writes_as_lines_is_kept(
    processes: Processes,
) -> None:
    seen: list[Progress] = []
    script = f"echo before; {DRAWS}; stty -echo; read x; stty size; {LEAVES}; echo after $x"
    async with running(processes, shell(script), seen) as task:
        terminal = await waiting(processes)
        assert await poll(lambda: newest(seen) == "before\n")
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: content.startswith(b"\x1b[?1049h") and b"drawn\x1b7\x1b[r\x1b8" in content)
        terminal.resize(TerminalSize(5, 5))
        shown.lent.type(b"word\r")
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert b"30 100\r\n\x1b[?1049lafter word\r\n" in shown.content
    assert text_of(finished.captured) == "before\nafter word"


async def test_a_terminal_that_is_given_back_can_be_lent_again(processes: Processes) -> None:
    tells = 'size=$(stty size); [ "$size" = "$told" ] || echo $size; told=$size'  # bash may lose a trap
    script = f"printf '\\033[?1h'; {DRAWS}; while :; do {tells}; sleep 0.02; done"
    async with running(processes, shell(script)):
        terminal = await waiting(processes)
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: b"30 100" in content)
        shown.lent.give_back()
        await shown.task
        assert terminal.wants_screen
        terminal.resize(TerminalSize(20, 50))
        again = Shown(terminal.lend(TerminalSize(31, 101)))
        await again.until(lambda content: content.startswith(b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?1h"))
        await again.until(lambda content: b"31 101" in content)
        again.content = b""
        again.lent.draw_again(TerminalSize(24, 80))
        await again.until(lambda content: content.startswith(b"\x1b[?1049h") and b"24 80" in content)


async def test_a_flood_for_a_screen_waits_and_nothing_of_it_is_kept(processes: Processes) -> None:
    seen: list[Progress] = []
    async with running(processes, shell(f"{DRAWS}; yes drawn"), seen) as task:
        terminal = await waiting(processes)
        lent, size = terminal.lend(REAL), 0
        while size < 8 * MOST_WAITING:
            size += len(await lent.read())
        assert isinstance(lent, TerminalLoan)
        assert await poll(lambda: lent.is_full)
        lent.give_back()
        rest = [content async for content in rest_of(lent)]
        assert sum(map(len, rest)) <= MOST_WAITING + READ_SIZE
        task.cancel()
        await asyncio.wait({task})
    [_, last] = [one for one in seen if isinstance(one, OutputSoFar)]
    assert text_of(last.captured) == ""


async def test_what_it_draws_before_it_has_a_terminal_is_bounded_and_comes_in_order(processes: Processes) -> None:
    async with running(processes, shell(f"{DRAWS}; seq 200000; {LEAVES}; echo done")) as task:
        terminal = await waiting(processes)
        shown = Shown(terminal.lend(REAL))
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert shown.content.replace(WHOLE_SCREEN, b"").count(b"\r\n") == 200_001
    assert b"\r\n199999\r\n200000\r\n\x1b[?1049ldone\r\n" in shown.content
    assert text_of(finished.captured) == "done"
    assert len(shown.content) > 4 * MOST_DRAWN


async def test_a_short_visit_to_the_screen_needs_no_terminal(processes: Processes) -> None:
    seen: list[Progress] = []
    script = f"echo before; {DRAWS}; {LEAVES}; echo after; sleep 60"
    async with running(processes, shell(script), seen):
        assert await poll(lambda: newest(seen) == "before\nafter\n")
        assert not (await terminal_of(processes)).wants_screen


async def test_one_that_dies_on_the_screen_and_ignores_signals_leaves_nothing(
    processes: Processes, watch: Watch
) -> None:
    script = f"(setsid sleep 60 &); {DRAWS}; trap '' INT HUP TERM; sleep 60; :"
    command = replace(watch.command(script), terminal=True)
    async with running(processes, command) as task:
        shown = Shown((await waiting(processes)).lend(REAL))
        assert await poll(lambda: watch.stands(3))
        task.cancel()
        await asyncio.wait({task, shown.task})
    assert watch.alive() == set()
    assert processes.jobs.terminal(*PLACE) is None


async def test_a_job_is_not_held_up_by_a_screen_that_nobody_lends(processes: Processes) -> None:
    async with running(processes, shell(f"{DRAWS}; seq 100000; {LEAVES}; echo done; read x")) as task:
        await waiting(processes)
        job = processes.jobs.background(*PLACE)
        assert job is not None
        await task
        assert await poll(lambda: processes.jobs.output(job.id).head == b"done")
        await processes.jobs.kill(job.id)


async def test_a_program_that_reads_keys_without_the_alternate_screen_may_have_the_terminal_too(
    processes: Processes,
) -> None:
    seen: list[Progress] = []
    script = "stty -echo; printf '\\033[?1h\\033=top'; read x; stty size; echo got $x"
    async with running(processes, shell(script), seen) as task:
        terminal = await terminal_of(processes)
        assert await poll(lambda: any(isinstance(one, TerminalRows) and one.reads_keys for one in seen))
        assert not terminal.wants_screen
        shown = Shown(terminal.lend(REAL))
        await shown.until(lambda content: content.startswith(b"\x1b[?1049h\x1b[H\x1b[2J\x1b[?1h\x1b="))
        shown.lent.type(b"word\r")
        finished = await task
        await shown.task
    assert isinstance(finished, Finished)
    assert text_of(finished.captured) == "top30 100\ngot word"
