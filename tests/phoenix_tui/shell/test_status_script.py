"""The user's status line: real programs that answer, fail, hang, flood, fork and print sequences."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.content import Content

from phoenix_tui.config.load import parse_layer
from phoenix_tui.config.settings import ConfigError, StatusLineSettings
from phoenix_tui.features.status_facts import status_facts
from phoenix_tui.workspace import status_script
from phoenix_tui.workspace.status_script import StatusScript, first_line
from tests.phoenix_tui.shell.conftest import OpenLive
from tests.support.cli import ROOT
from tests.support.clocks import SteppedClock
from tests.support.left_behind import local_watch, run_outside
from tests.support.live_shell import LiveShell
from tests.support.processes import Watch, start_plain, watching
from tests.support.waiting import poll
from tools.process.start import Processes

FIELDS = {
    *("session_id", "transcript_path", "cwd", "model", "workspace", "version", "output_style", "cost"),
    *("context_window", "exceeds_200k_tokens", "thinking", "phoenix"),
}

SLOW = 0.03
"""Seconds of a look."""


@pytest.fixture
async def programs() -> AsyncIterator[Processes]:
    running = await start_plain()
    yield running
    await running.close()


class Line:
    """A status line whose texts are recorded."""

    def __init__(self, programs: Processes, folder: Path, command: str, **limits: int) -> None:
        self.shown: list[tuple[str | None, bool]] = []
        self.tasks: list[asyncio.Task[None]] = []
        settings = StatusLineSettings(command, **limits)
        self.script = StatusScript(
            settings,
            programs.services,
            folder,
            lambda: (status_facts(None, folder, "demo/guide", 3), 77),
            self._show,
            lambda work: self.tasks.append(asyncio.create_task(work)),
        )

    def _show(self, text: Content | None, failing: bool) -> None:
        self.shown.append((text.plain if text is not None else None, failing))

    async def ran(self) -> list[tuple[str | None, bool]]:
        """Wake the program and wait; the texts shown so far."""
        self.script.wake()
        await asyncio.gather(*self.tasks)
        return self.shown


async def test_a_program_gets_the_facts_and_its_first_line_is_shown(programs: Processes, tmp_path: Path) -> None:
    line = Line(programs, tmp_path, 'cat > facts; echo "$COLUMNS of $(pwd)"; echo second')
    assert await line.ran() == [(f"77 of {tmp_path}", False)]
    facts = json.loads((tmp_path / "facts").read_text())
    assert set(facts) == FIELDS
    assert facts["model"] == {"id": "demo/guide", "display_name": "demo/guide"}
    assert facts["phoenix"] == {"state": "idle", "needs_you": False, "conversations": 3}


async def test_cost_and_tokens_are_those_of_the_conversation_and_its_agents(live: LiveShell, tmp_path: Path) -> None:
    conversation = await live.say("hello")
    facts = status_facts(conversation, tmp_path, "", 1)
    record = conversation.record
    cost, window = facts["cost"], facts["context_window"]
    assert isinstance(cost, dict)
    assert isinstance(window, dict)
    assert (facts["session_id"], facts["cwd"]) == (record.id, str(record.cwd))
    assert cost["total_cost_usd"] == record.spent.cost_usd
    assert window["total_output_tokens"] == record.spent.output_tokens
    assert window["context_window_size"] == record.context_window


async def test_no_program_runs_while_a_look_at_the_conversations_folder_leaves_something_open(
    programs: Processes, tmp_path: Path
) -> None:
    watch, _ = local_watch()
    line, command = Line(programs, tmp_path, "echo good; echo >> ran"), watch.begin(tmp_path, (tmp_path,))
    assert await line.ran() == [("good", False)]
    run_outside(tmp_path, "git init -q sub; git -C sub config core.fsmonitor evil")
    assert (await line.ran())[1:] == [(None, True)]
    watch.end(command)
    assert (await line.ran())[2:] == [("good", False)]
    assert (tmp_path / "ran").read_text() == "\n\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo partly; exit 3",
        "kill -9 $$",
        "sleep 600",
        "exec yes",
        "trap '' TERM; while :; do :; done",
        "no-such-program",
    ],
)
async def test_a_program_that_fails_or_outlasts_its_limit_keeps_the_last_text(
    programs: Processes, tmp_path: Path, command: str
) -> None:
    line = Line(programs, tmp_path, f"[ -e second ] || {{ touch second; echo good; exit; }}\n{command}", timeout_ms=400)
    await line.ran()
    assert await line.ran() == [("good", False), (None, True)]


async def test_a_flood_shows_its_first_line(programs: Processes, tmp_path: Path) -> None:
    line = Line(
        programs, tmp_path, "echo first; head -c 30000000 /dev/zero; head -c 3000000 /dev/zero >&2", timeout_ms=9000
    )
    assert await line.ran() == [("first", False)]


async def test_what_a_program_forks_is_gone_with_it(programs: Processes, tmp_path: Path) -> None:
    with watching() as watch:
        await _fork(programs, tmp_path, watch)


async def _fork(programs: Processes, folder: Path, watch: Watch) -> None:
    marked = watch.command("x").environment
    exports = "; ".join(f"export {name}={value}" for name, value in marked.items())
    line = Line(programs, folder, f"{exports}; (setsid sleep 600 &) ; sleep 600 & echo forked", timeout_ms=3000)
    assert await line.ran() == [("forked", False)]
    assert await poll(lambda: not watch.alive())


async def test_changes_during_a_run_make_one_more_run_and_none_follows(programs: Processes, tmp_path: Path) -> None:
    line = Line(programs, tmp_path, "echo x >> runs; sleep 0.2; wc -l < runs", min_interval_ms=100)
    line.script.wake()
    await poll(lambda: (tmp_path / "runs").exists())
    for _ in range(50):
        line.script.wake()
    await asyncio.gather(*line.tasks)
    assert line.shown == [("1", False), ("2", False)]
    assert (line.script.runs, len(line.tasks)) == (2, 1)
    await line.ran()
    assert line.shown[2:] == [("3", False)]


async def test_a_look_that_takes_long_before_a_run_makes_the_next_one_wait(
    programs: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, clock, began = Line(programs, tmp_path, "true", min_interval_ms=1), SteppedClock(), list[float]()
    line.script._clock = clock

    def look(_: Path) -> str:
        began.append(time.monotonic())
        clock.seconds += SLOW
        return ""

    monkeypatch.setattr(status_script, "trouble_at", look)
    line.script.wake()
    await poll(lambda: began)
    await line.ran()
    assert began[1] - began[0] >= (status_script.LOOK - 1) * SLOW


async def test_a_cancelled_run_ends_with_its_tree(programs: Processes, tmp_path: Path) -> None:
    line = Line(programs, tmp_path, "touch began; sleep 600", timeout_ms=9000)
    line.script.wake()
    await poll(lambda: (tmp_path / "began").exists())
    line.tasks[0].cancel()
    await asyncio.gather(*line.tasks, return_exceptions=True)
    assert line.shown == []


@pytest.mark.parametrize(
    ("output", "plain"),
    [
        (b"", ""),
        (b"\n\nlate\n", "late"),
        (b"\x1b[31mred\x1b[0m rest\nsecond", "red rest"),
        (b"a\x1b[2Jb\x1b[10;10Hc\x1b]0;title\x07d\x1b]52;c;eA==\x07e\x1bPq#0\x1b\\f", "abcdef"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\xff\xfe\x80bad", "\ufffd\ufffd\ufffdbad"),
        (b"x" * 1_000_000, "x" * 4096),
        (b"\x1b[38;5;300mx\x1b[38;2;1;2mx\x1b[38mx", "xxx"),
    ],
)
def test_only_text_of_the_first_line_is_kept(output: bytes, plain: str) -> None:
    assert first_line(output).plain == plain


def test_colours_are_kept_and_other_attributes_dropped() -> None:
    styles = [str(span.style) for span in first_line(b"\x1b[5;7;8;38;2;1;2;3mx\x1b[0m y").spans]
    assert len(styles) == 1
    assert not any(word in styles[0] for word in ("blink", "reverse", "conceal"))
    assert "1,2,3" in styles[0].replace(" ", "") or "#010203" in styles[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[status_line]\n", "config.toml:1: [status_line] needs 'command', a command line for /bin/sh."),
        ("status_line = 3\n", "config.toml:1: 'status_line' must be a table [status_line]."),
        (
            '[status_line]\ncommand = "x"\ntimeout_ms = 20000\n',
            "config.toml:3: 'timeout_ms' must be a whole number from 50 to 10000, not 20000.",
        ),
        (
            '[status_line]\ncommand = "x"\ncolour = 1\n',
            "config.toml:3: unknown key 'colour' in [status_line]. "
            "Valid keys are command, timeout_ms, min_interval_ms, padding.",
        ),
    ],
)
def test_a_wrong_table_is_named(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_layer(text, Path("config.toml"), project=False)
    assert str(caught.value) == sentence


def test_a_project_cannot_name_a_program() -> None:
    with pytest.raises(ConfigError, match="unknown key 'status_line'"):
        parse_layer('[status_line]\ncommand = "x"\n', Path("config.toml"), project=True)


async def test_the_row_is_on_the_screen_below_the_status_line(open_live: OpenLive, programs: Processes) -> None:
    wanted = StatusLineSettings("printf '\\033[32mbranch\\033[0m %s' x", padding=2)
    async with open_live((80, 24), status_line=wanted, programs=programs.services) as shell:
        await shell.until(lambda: "branch x" in shell.text)
        assert shell.text.splitlines()[-1].startswith("   branch x")
    async with open_live((80, 24)) as shell:
        assert "branch x" not in shell.text


def test_the_first_frame_loads_neither_the_program_nor_the_themes_of_others() -> None:
    program = "import sys, phoenix_tui.app, phoenix_tui.wiring.screen; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    late = {f"phoenix_tui.workspace.{name}" for name in ("status_script", "status_script_row", "theme_control")}
    late |= {"phoenix_tui.styles.user_themes", "phoenix_tui.workspace.status_script", "phoenix_tui.cli.completion"}
    assert late & set(ran.stdout.split()) == set()
