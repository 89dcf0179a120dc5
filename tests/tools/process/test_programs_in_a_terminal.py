"""A program in a terminal of its own: it is one to the program, of the right size, and ends like all others."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from tests.support.processes import Watch
from tests.support.sandboxes import CONFINED, sandbox
from tests.support.service_host import shell, watched
from tests.support.waiting import poll
from tools.process.plan import BUBBLEWRAP
from tools.process.sandbox import bubblewrap
from tools.process.service import PseudoTerminal
from tools.process.start import Processes
from tools.process.zygote import wire
from tools.services import ServiceCommand, ServiceEndedError, TerminalSize


async def until(terminal: PseudoTerminal, wanted: bytes) -> bytes:
    """Read until the output holds `wanted`, or ends."""
    seen = b""
    while wanted not in seen and (chunk := await terminal.read()):
        seen += chunk
    return seen


async def the_rest(terminal: PseudoTerminal) -> bytes:
    return await until(terminal, b"\0never")


async def test_a_program_has_a_controlling_terminal_of_the_given_size_and_kind(processes: Processes) -> None:
    script = "test -t 0 -a -t 1 -a -t 2 && tty; echo to-tty >/dev/tty; stty size; echo $TERM-${NO_COLOR-unset}; exit 3"
    terminal = await processes.services.open_terminal(shell(script), TerminalSize(31, 101))
    lines = (await the_rest(terminal)).decode().splitlines()
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:] == ["to-tty", "31 101", "xterm-256color-unset"]
    assert (await terminal.wait_ended()).exit_code == 3
    assert (await terminal.end()).exit_code == 3


async def test_keys_reach_the_program_and_control_c_its_foreground(processes: Processes) -> None:
    script = "trap 'echo interrupted' INT; read -r line; echo got $line; stty -echo; echo now; sleep 60; echo over"
    terminal = await processes.services.open_terminal(shell(script))
    await terminal.write(b"hello\n")
    assert b"got hello" in await until(terminal, b"now")
    await terminal.write(b"\x03")
    assert b"interrupted" in await until(terminal, b"over")
    await terminal.end()


async def test_another_size_is_told_while_the_program_runs(processes: Processes) -> None:
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"
    terminal = await processes.services.open_terminal(shell(script))
    await until(terminal, b"ready")
    terminal.resize(TerminalSize(50, 132))
    assert b"50 132" in await the_rest(terminal)
    await terminal.end()
    terminal.resize(TerminalSize(10, 10))


@pytest.mark.parametrize("size", [TerminalSize(0, -5), TerminalSize(10**9, 70_000)])
async def test_an_odd_size_counts_as_the_nearest_one(size: TerminalSize, processes: Processes) -> None:
    terminal = await processes.services.open_terminal(shell("stty size"), size)
    expected = b"1 1" if size.rows == 0 else b"65535 65535"
    assert (await the_rest(terminal)).strip() == expected
    await terminal.end()


async def test_output_can_be_read_after_the_end_and_a_flood_waits_for_its_reader(processes: Processes) -> None:
    terminal = await processes.services.open_terminal(shell("stty -opost; echo last"))
    await terminal.wait_ended()
    assert await the_rest(terminal) == b"last\n"
    assert await terminal.read() == b""
    await terminal.end()
    flood = await processes.services.open_terminal(shell("yes"))
    total = 0
    while total < 4_000_000:
        total += len(await flood.read())
    await flood.end()
    assert await flood.read() == b""


async def test_reading_what_is_there_lets_others_run_and_loses_nothing_when_cancelled(processes: Processes) -> None:
    terminal = await processes.services.open_terminal(shell("stty -opost; echo last"))
    await terminal.wait_ended()
    cancelled = asyncio.create_task(terminal.read())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    assert await terminal.read() == b"last\n"
    assert turned.is_set()
    await terminal.end()


async def test_a_read_and_a_write_that_wait_return_with_the_end(processes: Processes, watch: Watch) -> None:
    terminal = await processes.services.open_terminal(watched(watch, "stty raw -echo; echo; sleep 60"))
    await until(terminal, b"\n")
    reading = asyncio.create_task(terminal.read())
    writing = asyncio.create_task(terminal.write(b"x" * 1_000_000))
    await asyncio.sleep(0)
    assert not writing.done()
    await terminal.end()
    assert await reading == b""
    with pytest.raises(ServiceEndedError):
        await writing
    with pytest.raises(ServiceEndedError):
        await terminal.write(b"x")
    assert watch.alive() == set()


async def test_a_program_that_waits_for_keys_is_left_in_peace(processes: Processes) -> None:
    """A command without a terminal that reads its own output is hung up; here stdin and stdout are one on purpose."""
    terminal = await processes.services.open_terminal(shell("trap 'echo hung up' HUP; read -r line; echo $line"))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.2):  # the supervisor looks after 0.5 s
            await terminal.wait_ended()
    await terminal.write(b"patient\n")
    assert (await the_rest(terminal)).split() == [b"patient", b"patient"]
    await terminal.end()


async def test_a_program_cannot_reach_the_terminal_of_another(processes: Processes, watch: Watch) -> None:
    first = await processes.services.open_terminal(watched(watch, "sleep 60"))
    second = await processes.services.open_terminal(
        shell("ls -l /proc/self/fd | grep -c pts; ps -o sess= -p $$; echo $$")
    )
    count, session, own = (await the_rest(second)).split()
    assert (count, session) == (b"2", own)  # the pipe is the third
    await first.end()
    await second.end()
    assert watch.alive() == set()


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP, wire.LANDLOCK])
async def test_a_program_in_a_sandbox_has_its_terminal_too(mechanism: str, tmp_path: Path) -> None:
    if mechanism == BUBBLEWRAP and not bubblewrap():
        pytest.skip("there is no bubblewrap here")
    async with sandbox(tmp_path, mechanism) as box:
        script = "test -t 0 && echo to-tty >/dev/tty; echo out >/usr/phoenix-test-out; read -r line; echo got $line"
        command = ServiceCommand(("/bin/bash", "-c", script), tmp_path, sandbox=CONFINED)
        terminal = await box.processes.services.open_terminal(command)
        before = await until(terminal, b"phoenix-test-out")
        await terminal.write(b"keys\n")
        after = await the_rest(terminal)
        assert before.startswith(b"to-tty\r\n")
        assert b"got keys" in after
        assert await poll(lambda: not Path("/usr/phoenix-test-out").exists())
        await terminal.end()
