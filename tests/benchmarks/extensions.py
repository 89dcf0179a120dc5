"""Three servers, fifty skills and ten hooks beside none: first frame, key echo, a turn and doing nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.benchmarks.bench import Bench
from tests.benchmarks.costs import cpu, cpu_of, memory
from tests.benchmarks.keys import type_keys
from tests.benchmarks.program import READY, ROOT, Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Row, median, spread

SERVERS: Final = 3
SKILLS: Final = 50
HOOK_EVENTS: Final = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "Notification", "SubagentStop")
"""Two hooks each."""
SHARE: Final = 1.03
"""Budget of each figure, as a multiple of that without any (docs/decisions/budgets.md)."""


@dataclass(slots=True)
class Figures:
    """Samples of one home, in milliseconds, % of a core and MB."""

    home: Path
    frames: list[float] = field(default_factory=list)
    echoes: list[float] = field(default_factory=list)
    requests: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    """% of a core of the program itself."""
    servers_idle: list[float] = field(default_factory=list)
    """% of a core of all other processes of the tree."""
    sizes: list[float] = field(default_factory=list)


def extensions(bench: Bench) -> Iterator[Row]:
    """Measure both homes by turns."""
    none, many = Figures(fresh_home(bench.folder)), Figures(fresh_home(bench.folder))
    _configure(many.home / "phoenix")
    with serving() as model:
        for number in range(bench.rounds(12, 4) + 1):
            for figures in (none, many) if number % 2 else (many, none):
                _frame(figures, model, keep=number > 0)
        for number in range(bench.rounds(4, 2)):
            for figures in (none, many) if number % 2 else (many, none):
                _session(figures, model, bench, number)
    what = f"{SERVERS} servers, {SKILLS} skills, {2 * len(HOOK_EVENTS)} hooks"
    yield _row(f"{what}: spawn -> first frame", many.frames, none.frames, "ms").at_most_times(SHARE)
    yield _row(f"{what}: key echo, idle, p50", many.echoes, none.echoes, "ms").at_most_times(SHARE)
    yield _row(f"{what}: Enter -> request, later turns", many.requests, none.requests, "ms")
    yield _row(f"{what}: idle, CPU of a core, Phoenix", many.idle, none.idle, "%").at_most(0.1)
    yield _row(f"{what}: idle, CPU of a core, all others", many.servers_idle, none.servers_idle, "%").at_most(0.1)
    yield _row(f"{what}: PSS of all processes", many.sizes, none.sizes, "MB")


def _row(name: str, many: list[float], none: list[float], unit: str) -> Row:
    return Row(name, median(many), unit, spread(many)).beside("with none", median(none))


def _configure(home: Path) -> None:
    """Write what a user of many extensions has in the own folder."""
    home.mkdir()
    server = {"command": sys.executable, "args": ["-m", "tests.support.mcp_kinds"], "env": {"PYTHONPATH": str(ROOT)}}
    tables = "\n".join(
        f"[mcp.kinds{number}]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
        f"env = {{PYTHONPATH = {json.dumps(str(ROOT))}}}\n"
        for number in range(SERVERS)
    )
    (home / "config.toml").write_text(tables, encoding="utf-8")
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}, {"type": "command", "command": ":"}]}
    (home / "hooks.json").write_text(json.dumps({"hooks": {event: [hook] for event in HOOK_EVENTS}}), encoding="utf-8")
    for number in range(SKILLS):
        folder = home / "skills" / f"skill-{number:02}"
        folder.mkdir(parents=True)
        head = f"---\nname: skill-{number:02}\ndescription: Use when step {number} of the release is asked for.\n---\n"
        (folder / "SKILL.md").write_text(head + "Do the step.\n" * 100, encoding="utf-8")


def _frame(figures: Figures, model: Model, *, keep: bool) -> None:
    with running(model, figures.home, ready=False) as program:
        shown = (program.terminal.wait(READY) - program.terminal.spawned_at) * 1000
        program.terminal.settle(0.2)
    if keep:  # the first one makes the database and reads the files from the disk
        figures.frames.append(shown)


def _session(figures: Figures, model: Model, bench: Bench, number: int) -> None:
    """One start: a first turn, then letters, further turns, and a rest."""
    with running(model, figures.home) as program:
        program.turn("hi [[text:10]]")
        program.terminal.settle(1.0)
        program.terminal.drain(3.0)
        figures.echoes.extend(type_keys(program, bench.rounds(100, 40), seed=number).milliseconds)
        for _ in range(bench.rounds(10, 5)):
            figures.requests.append(_enter_to_request(program))
        _rest(figures, program, bench.rounds(10, 5))


def _enter_to_request(program: Program) -> float:
    entered = program.say("and now [[text:10]]")
    asked = program.asked(entered)
    program.terminal.wait(rf"ENDMARK-{asked.number}\b")
    program.terminal.settle(0.3)
    return (asked.at - entered) * 1000


def _rest(figures: Figures, program: Program, seconds: int) -> None:
    program.terminal.settle(1.0)
    time.sleep(3)
    program.terminal.drain()
    own, whole = cpu_of(program.pid), cpu(program.pid)
    time.sleep(seconds)
    own, whole = cpu_of(program.pid) - own, cpu(program.pid) - whole
    figures.idle.append(own / seconds * 100)
    figures.servers_idle.append((whole - own) / seconds * 100)
    figures.sizes.append(memory(program.pid).pss)
