"""Starts: the first frame, keys typed ahead, plain answers, hosts, and CPU at rest."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from tests.benchmarks import floor_app
from tests.benchmarks.program import READY, ROOT, Program, environment, fresh_home, new_tag, phoenix, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, median, memory, spread
from tests.benchmarks.terminal import Terminal
from tests.support.control_host import FLAGS

TAU_START: Final = 998.0
"""ms, tau-ai 0.4.8, the quickest living Textual agent: peer table "The living Textual relatives"."""
CLAUDE_TYPE_AHEAD: Final = 658.0
"""ms, claude 2.1.197: peer table, "type-ahead: spawn -> first request at server"."""
PROMPT: Final = "look at the retry loop, please [[text:5]]"


def first_frame(bench: Bench) -> Iterator[Row]:
    """Spawn to the composer on the screen, by turns with the floor."""
    home, frames, floors, costs = fresh_home(bench.folder), list[float](), list[float](), list[float]()
    with serving() as model:
        for number in range(bench.rounds(12, 5) + 1):
            floor = _floor(bench)
            with running(model, home, ready=False) as program:
                frame = _milliseconds(program.terminal, READY)
                costs.append(cpu(program.pid) * 1000)
                program.terminal.settle(0.2)
            if number:  # the first one makes the database and reads the files from the disk
                frames.append(frame)
                floors.append(floor)
    shown = Row("start: spawn -> first frame", median(frames), "ms", spread(frames))
    yield shown.beside("floor app", median(floors)).at_most_times(1.15)
    yield shown.beside("tau", TAU_START).at_most_times(0.4)
    yield Row("start: CPU of the tree by the first frame", median(costs[1:]), "ms", spread(costs[1:]))


def typed_ahead(bench: Bench) -> Iterator[Row]:
    """Keys typed while the program starts: every one must arrive, and the request must go out early."""
    with serving() as model:
        for name, type_it, since_spawn in (("burst", _burst, True), ("25 keys/s", _slowly, False)):
            times: list[float] = []
            lost = 0
            for number in range(bench.rounds(10, 4)):
                with running(model, fresh_home(bench.folder), ready=False) as program:
                    entered = type_it(program, 0.004 + 0.03 * (number % 6))
                    try:
                        asked = program.asked(program.terminal.spawned_at, 6)
                    except TimeoutError:
                        lost += len(PROMPT)
                        continue
                    times.append((asked.at - (program.terminal.spawned_at if since_spawn else entered)) * 1000)
                    lost += _lost(asked.facts["last"])
            note = f"{bench.rounds(10, 4)} starts"
            yield Row(f"typed ahead, {name}: keys lost or doubled", lost, "", note).at_most(0)
            if since_spawn:
                row = Row(f"typed ahead, {name}: spawn -> first request", median(times), "ms", spread(times))
                yield row.beside("claude", CLAUDE_TYPE_AHEAD).at_most_times(0.7)
            else:
                yield Row(f"typed ahead, {name}: Enter -> first request", median(times), "ms", spread(times))


def plain_answers(bench: Bench) -> Iterator[Row]:
    """`--version` and `--help` beside an interpreter that does nothing."""
    count = bench.rounds(15, 7)
    bare = _run_times([sys.executable, "-c", "pass"], count)
    for option in ("--version", "--help"):
        times = _run_times(phoenix(option), count)
        row = Row(f"phoenix {option}", median(times), "ms", spread(times))
        yield row.beside("python -c pass", median(bare)).at_most_times(3)
        yield Row(f"phoenix {option}: modules of Textual or a provider", _loaded(option), "").at_most(0)


def _floor(bench: Bench) -> float:
    argv = [sys.executable, floor_app.__file__]
    tag = new_tag()
    terminal = Terminal(argv, environment(bench.folder, "http://127.0.0.1:9", tag), bench.folder, tag)
    try:
        return _milliseconds(terminal, floor_app.READY)
    finally:
        terminal.close()


def _milliseconds(terminal: Terminal, pattern: str) -> float:
    return (terminal.wait(pattern) - terminal.spawned_at) * 1000


def _burst(program: Program, delay: float) -> float:
    """The whole prompt and Enter at once, `delay` seconds after the spawn."""
    time.sleep(max(0.0, program.terminal.spawned_at + delay - time.monotonic()))
    return program.terminal.write(PROMPT + "\r")


def _slowly(program: Program, delay: float) -> float:
    time.sleep(delay)
    for character in PROMPT:
        program.terminal.write(character)
        program.terminal.drain(0.04)
    return program.terminal.write("\r")


def _lost(received: str) -> int:
    """Characters missing, and characters too many."""
    same = sum(block.size for block in SequenceMatcher(None, PROMPT, received, autojunk=False).get_matching_blocks())
    return len(PROMPT) + len(received) - 2 * same


def _run_times(argv: Sequence[str], count: int) -> list[float]:
    def run() -> None:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    run()
    return [_timed(run) for _ in range(count)]


def _timed(action: Callable[[], None]) -> float:
    began = time.monotonic()
    action()
    return (time.monotonic() - began) * 1000


def _loaded(option: str) -> int:
    """Number of modules of Textual or of a provider that the answer loads."""
    code = (
        "import sys, phoenix_tui.__main__ as m\n"
        f"try: m.main([{option!r}])\n"
        "except SystemExit: pass\n"
        "bad = ('textual', 'rich', 'httpx2', 'anthropic', 'engine.providers')\n"
        "sys.stderr.write(str(sum(n == b or n.startswith(b + '.') for n in sys.modules for b in bad)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    return int(done.stderr)


HELLO = b'{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":null}}\n'
NOWHERE = "http://127.0.0.1:9"


def first_answer(bench: Bench) -> Iterator[Row]:
    """Time from the spawn to the answer to `initialize`, beside an interpreter with modules of others."""
    program = [sys.executable, "-m", "phoenix_tui", *FLAGS]
    _answered(bench, program)  # makes the database
    times, bare, floor = list[float](), list[float](), list[float]()
    for _ in range(bench.rounds(15, 7)):
        times.append(_answered(bench, program))
        bare.append(_ended("pass"))
        floor.append(_ended("import asyncio, json, sqlite3, msgspec, aiosqlite, h11, ssl"))
    row = Row("first answer to a host", median(times), "ms", spread(times)).at_most(300)
    yield row.beside("python -c pass", median(bare))
    yield Row("its modules from others alone", median(floor), "ms", spread(floor))


def _answered(bench: Bench, program: list[str]) -> float:
    began = time.monotonic()
    process = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(bench.folder, NOWHERE, new_tag()),
        cwd=bench.folder,
    )
    out = _first_line(process)
    taken = (time.monotonic() - began) * 1000
    assert b"success" in out, out
    process.communicate(timeout=60)
    return taken


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO)
    process.stdin.flush()
    return process.stdout.readline()


def _ended(code: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.monotonic() - began) * 1000


OPEN: Final = 20
CLAUDE_IDLE: Final = 0.65
"""% of a core, claude: peer table, "idle CPU %"; its tty bytes are 0 too."""
TAU_PSS: Final = 69.0
"""MB, tau: peer table "The living Textual relatives"."""


def idle(bench: Bench) -> Iterator[Row]:
    """After a turn in each of the conversations, wait and see."""
    with serving() as model, running(model, fresh_home(bench.folder)) as program:
        program.turn("hi [[text:10]]")
        yield from _look(program, bench, "one conversation")
        one = memory(program.pid)
        row = Row("idle, one conversation: PSS", one.pss, "MB", f"RSS {one.rss:.0f} MB")
        yield row.beside("tau", TAU_PSS).at_most(50)
        for _ in range(OPEN - 1):
            program.terminal.write("\x0e")
            program.terminal.settle(0.2)
            program.turn("hi [[text:10]]")
        yield from _look(program, bench, f"{OPEN} conversations")
        more = memory(program.pid)
        each = (more.pss - one.pss) / (OPEN - 1)
        yield Row("idle: PSS of each further conversation", each, "MB", f"{more.pss:.0f} MB with {OPEN}").at_most(1)


def _look(program: Program, bench: Bench, name: str) -> Iterator[Row]:
    program.terminal.settle(1.0)
    time.sleep(3)
    seconds = bench.rounds(10, 5)
    program.terminal.drain()
    spent, sent = cpu(program.pid), program.terminal.bytes_written
    time.sleep(seconds)
    share = (cpu(program.pid) - spent) / seconds * 100
    written = (program.terminal.bytes_written - sent) / seconds
    yield Row(f"idle, {name}: CPU of a core", share, "%", f"{seconds} s").beside("claude", CLAUDE_IDLE).at_most(0.1)
    yield Row(f"idle, {name}: written to the terminal", written, "B/s").at_most(0)
