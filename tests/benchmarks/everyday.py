"""Days of use: what questions, extensions and the guard of the context cost."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.benchmarks.program import READY, ROOT, Model, Program, fresh_home, running, serving
from tests.benchmarks.rows import Bench, Row, cpu, cpu_of, median, memory, spread
from tests.benchmarks.turns import type_keys
from tests.support.cli import with_claude
from tests.support.control_host import Frame, hosted
from tests.support.everyday import COMMANDS, Everyday
from tests.support.journeys import calls, says
from tests.support.loopback import serve
from tools.command_access import command_access
from tools.contract import UNCONFINED, Access, Command, Finished, ProgramEnded, Progress, Sandbox, SandboxMode
from tools.process.plan import CommandPlan
from tools.process.start import Processes, ProcessSettings, start_processes

LIMIT: Final = 60.0
SERVER_LIMIT: Final = 1.0
TABLE: Final = Path(__file__).parents[2] / "docs" / "everyday-commands.md"
HEAD: Final = """# Everyday commands under the default sandbox

Written by `make bench ARGS="everyday"`; `tests/security/test_everyday_commands.py` holds it. Each command ran twice
in a project made for it: without a sandbox, and as a new conversation in mode `ask` would run it. "Runs" means without
a question, in the workspace sandbox, without network. "Asks" means that the reason stands in the question; the exit
code is then that of the command after a yes: in the sandbox with network, or outside it.

| command | in a new conversation | exit without sandbox | exit in Phoenix | |
|---|---|---|---|---|
"""
WORDS: Final = {Access.CONFINED: "runs", Access.NETWORK: "asks: {}", Access.OUTSIDE: "asks: {}"}


class Outcome(Struct, frozen=True):
    """A command and how it ended, without a sandbox and as Phoenix runs it."""

    everyday: Everyday
    free: Finished
    confined: Finished

    @property
    def same(self) -> bool:
        """True where the sandbox changed nothing about how it ended."""
        return (self.free.exit_code, self.free.timed_out) == (self.confined.exit_code, self.confined.timed_out)


def everyday(bench: Bench) -> Iterator[Row]:
    """Run all commands whose program is installed; a broken one is over the budget."""
    outcomes = asyncio.run(measure([one for one in COMMANDS if one.available]))
    if not bench.quick:
        TABLE.write_text(HEAD + "".join(map(_line, outcomes)) + _missing(), "utf-8")
    yield Row("everyday commands fewer than 90", max(0, 90 - len(outcomes)), "").at_most(0)
    yield Row("everyday commands that the default sandbox breaks", sum(not one.same for one in outcomes), "").at_most(0)
    asked = sum(one.everyday.access is not Access.CONFINED for one in outcomes)
    yield Row("everyday commands that ask", asked, "")


async def measure(commands: list[Everyday]) -> list[Outcome]:
    """Run each twice, in fresh projects."""
    processes = await start_processes(ProcessSettings())
    try:
        await processes.probe()
        return [await _outcome(processes, one) for one in commands]
    finally:
        await processes.close()


async def _outcome(processes: Processes, one: Everyday) -> Outcome:
    free = await _run(processes, one, UNCONFINED)
    if one.access is Access.OUTSIDE:
        return Outcome(one, free, await _run(processes, one, UNCONFINED))
    sandbox = Sandbox(SandboxMode.WORKSPACE, network=one.access is Access.NETWORK)
    return Outcome(one, free, await _run(processes, one, sandbox))


async def _run(processes: Processes, one: Everyday, sandbox: Sandbox) -> Finished:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-everyday-", dir=Path.home()))
    project = folder / "project"
    project.mkdir()
    try:
        await asyncio.to_thread(one.project, project)
        serves = "stays" in one.note
        bash = shutil.which("bash") or "/bin/bash"
        limit = SERVER_LIMIT if serves else LIMIT
        command = Command((bash, "-c", one.command), project, timeout=limit, sandbox=sandbox)
        return await processes.runner.run(command)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _line(outcome: Outcome) -> str:
    one = outcome.everyday
    words = WORDS[one.access].format(command_access(one.command)[1])
    note = "; ".join(filter(None, (one.note, "" if outcome.same else "**differs**")))
    command = one.command if len(one.command) < 90 else one.command[:87] + "…"
    shown = command.replace("|", "\\|")
    return f"| `{shown}` | {words} | {_exit(outcome.free)} | {_exit(outcome.confined)} | {note} |\n"


def _exit(ended: Finished) -> str:
    return "stopped" if ended.timed_out else str(ended.exit_code)


def _missing() -> str:
    names = sorted({one.program for one in COMMANDS if not one.available})
    where = f"{os.uname().sysname} {os.uname().release}"
    return f"\nMeasured on {where}. Not installed there: {', '.join(names) or 'none'}.\n"


FILES: Final = {
    "README.md": "# Sums\n",
    "Makefile": "test:\n\tpython3 -m unittest -q\n",
    "package.json": '{"name": "sums", "version": "1.0.0", "scripts": {"test": "node --version"}}\n',
    "src/sums.py": "def add(a, b):\n    return a + b\n",
    "test_sums.py": "import unittest\nfrom src.sums import add\n\n\nclass Sums(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "run.sh": "#!/bin/sh\necho run\n",
}
HOUR: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("bash", {"command": "git status --short"}),
    ("bash", {"command": "ls -la && cat README.md"}),
    ("read_file", {"path": "src/sums.py"}),
    ("search", {"pattern": "def add"}),
    ("bash", {"command": "grep -rn 'def ' src | head -5"}),
    ("bash", {"command": "find . -name '*.py' | xargs wc -l"}),
    ("bash", {"command": "python3 -m unittest -q"}),
    ("write_file", {"path": "src/products.py", "content": "def times(a, b):\n    return a * b\n"}),
    ("patch", {"path": "src/sums.py", "edits": [{"op": "replace", "old": "a + b", "new": "b + a"}]}),
    ("bash", {"command": "python3 -m unittest -q 2>&1 | tail -3"}),
    ("bash", {"command": "make test"}),
    ("bash", {"command": "git diff --stat"}),
    ("write_file", {"path": "NOTES.md", "content": "Notes.\n"}),
    ("bash", {"command": "mkdir -p build && cp src/*.py build/"}),
    ("bash", {"command": "rm -rf build"}),
    ("bash", {"command": "sed -i 's/Sums/The sums/' README.md"}),
    ("bash", {"command": "git add -A && git commit -qm 'Add products'"}),
    ("bash", {"command": "git log --oneline -5"}),
    ("bash", {"command": "git switch -qc feature"}),
    ("bash", {"command": "printf 'be brief\\n' > AGENTS.md && git add -A && git commit -qm agents"}),
    ("bash", {"command": "git switch -q main && git merge -q feature"}),
    ("bash", {"command": "git stash list; git branch -d feature"}),
    ("bash", {"command": "for f in src/*.py; do echo $f; done"}),
    ("bash", {"command": "python3 -c 'print(sum(range(10)))'"}),
    ("bash", {"command": "env | sort | head -3; date; uname -a"}),
    ("bash", {"command": "tar czf sums.tgz src && tar tzf sums.tgz && rm sums.tgz"}),
    ("bash", {"command": "chmod +x run.sh && ./run.sh"}),
    ("bash", {"command": "npm test"}),
    ("bash", {"command": "npm install --no-audit left-pad"}),
    ("bash", {"command": "pip download -q --no-deps -d /tmp/wheels idna"}),
    ("bash", {"command": "curl -sS -m 2 http://127.0.0.1:9/"}),
    ("bash", {"command": "git push origin main"}),
    ("bash", {"command": "cat /etc/hosts"}),
    ("read_file", {"path": "/etc/hostname"}),
    ("bash", {"command": "cat ~/.ssh/id_ed25519"}),
    ("write_file", {"path": "../outside.txt", "content": "x\n"}),
    ("bash", {"command": "docker ps"}),
    ("bash", {"command": "kill -0 1"}),
    ("write_file", {"path": ".vscode/settings.json", "content": '{"editor.tabSize": 4}\n'}),
    ("bash", {"command": "git rebase -q main && git reset -q --hard HEAD~1"}),
)


def questions(bench: Bench) -> Iterator[Row]:
    """Play the hour in each mode; every question is answered with yes.

    The question about the changed AGENTS.md is one more than the eight of `accept-edits` before there was one.
    """
    for mode, name, most in (
        ("ask", "default", 15),
        ("accept-edits", "acceptEdits", 9),
        ("auto", "bypassPermissions", 5),
    ):
        folder = bench.folder / f"hour-{mode}"
        folder.mkdir()
        asked = asyncio.run(_ask(folder, name))
        yield Row(f"questions of {len(HOUR)} calls in mode {mode}", len(asked), "", "; ".join(asked)).at_most(most)


async def _ask(folder: Path, mode: str) -> list[str]:
    asked: list[str] = []

    def allow(request: Frame) -> Frame:
        given = request["input"]
        if request["tool_name"] == "AskUserQuestion":
            [question] = given["questions"]
            asked.append(question["question"])
            return {"behavior": "allow", "updatedInput": given | {"answers": {question["question"]: "Keep"}}}
        asked.append(request["title"])
        return {"behavior": "allow", "updatedInput": given}

    script = [calls(name, f"toolu_{number}", **given) for number, (name, given) in enumerate(HOUR)]
    async with serve(*script, says("Done.")) as server:
        phoenix = with_claude(folder, server.url, PHOENIX_SANDBOX="")
        _make_project(phoenix.cwd)
        flags = ("--permission-mode", mode, "--permission-prompt-tool", "stdio")
        async with hosted(phoenix, *flags, can_use_tool=allow) as host:
            await host.turn("work")
    return asked


def _make_project(folder: Path) -> None:
    for name, text in (*FILES.items(), (".vscode/settings.json", "{}\n")):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*me, "commit", "-qm", "first")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    for name, value in (("user.name", "me"), ("user.email", "me@localhost")):
        subprocess.run(("git", "config", name, value), cwd=folder, check=True)


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


CONFINED: Final = Sandbox(SandboxMode.WORKSPACE, network=False)
SIZES: Final = (1_000, 60_000)
LATEST_ROW: Final = 60
"""ms from the end of a command to its row, whatever the size of the folder; without a look it is the same."""


def guard(bench: Bench) -> Iterator[Row]:
    """Milliseconds of `true` in a sandbox: without a look, and with one at a small and at a large workspace."""
    yield from asyncio.run(_measure(bench))


async def _measure(bench: Bench) -> list[Row]:
    processes = await start_processes(ProcessSettings())
    rows: list[Row] = []
    try:
        await processes.probe()
        sandbox = processes.planner.sandbox or ""
        for size in SIZES:
            folder = Path(tempfile.mkdtemp(prefix="phoenix-guard-", dir=Path.home()))
            try:
                await asyncio.to_thread(_fill, folder, size)
                command = Command(("/bin/true",), folder, timeout=60, sandbox=CONFINED)
                first = await _whole(processes, command)
                rounds = bench.rounds(20, 8)
                floor = [await _floor(processes, command, sandbox) for _ in range(rounds)]
                timed = [await _timed(processes, command) for _ in range(rounds)]
                whole, shown = [one[0] for one in timed], [one[1] for one in timed]
                rows.append(Row(f"`true`, {size} folders, no look, p50", median(floor), "ms", spread(floor)))
                rows.append(Row(f"`true`, {size} folders, first look, once", first, "ms"))
                rows.append(Row(f"`true`, {size} folders, looked at, p50", median(whole), "ms", spread(whole)))
                row = Row(f"`true`, {size} folders, until its row, p50", median(shown), "ms", spread(shown))
                rows.append(row.at_most(median(floor) + LATEST_ROW))
            finally:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    finally:
        await processes.close()
    return rows


def _fill(folder: Path, size: int) -> None:
    for number in range(size // 100):
        for inner in range(99):
            (folder / f"a{number}" / f"b{inner}").mkdir(parents=True, exist_ok=True)


async def _whole(processes: Processes, command: Command) -> float:
    began = time.perf_counter()
    await processes.runner.run(command)
    return (time.perf_counter() - began) * 1000


async def _timed(processes: Processes, command: Command) -> tuple[float, float]:
    """Milliseconds until the result, and until the row shows the end."""
    shown: list[float] = []

    def report(progress: Progress) -> None:
        if isinstance(progress, ProgramEnded):
            shown.append(time.perf_counter())

    began = time.perf_counter()
    await processes.runner.run(command, report)
    ended = time.perf_counter()
    return (ended - began) * 1000, ((shown[0] if shown else ended) - began) * 1000


async def _floor(processes: Processes, command: Command, sandbox: str) -> float:
    began = time.perf_counter()
    plan: CommandPlan = await processes.planner.plan_confined(command, sandbox, CONFINED, is_watched=False)
    running = await processes._supervision.start_planned(command, plan)
    await processes._supervision.see_through(running, 60, asyncio.Event())
    return (time.perf_counter() - began) * 1000
