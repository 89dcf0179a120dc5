"""Start of the screen from the command line, and the return to the shell."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.cli import ROOT, Phoenix, with_claude
from tests.support.journeys import Claude
from tests.support.loopback import serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tests.support.screen import Terminal, open_screen

pytestmark = pytest.mark.pty
HELLO = recording(start(), text(0, "Good ", "evening."), stop())
LATE = (
    "anthropic, openai, httpx, httpx2, pydantic, mcp, acp, PIL, textual_image, opentelemetry, genai_prices, keyring, "
    "psutil, tomlkit, html_to_markdown, ignore, watchfiles, yaml, jsonschema, aiosqlite, sqlite3, engine.store, "
    "engine.providers, markdown_it, pygments"
)


@asynccontextmanager
async def screen(phoenix: Phoenix, *arguments: str) -> AsyncGenerator[Terminal]:
    terminal = open_screen(phoenix, *arguments)
    try:
        yield terminal
    finally:
        terminal.close()


def test_nothing_heavy_loads_before_the_first_frame() -> None:
    program = (
        "import sys\n"
        "import phoenix_tui.__main__, phoenix_tui.cli.entry, phoenix_tui.cli.start, phoenix_tui.wiring.screen\n"
        "import phoenix_tui.app, phoenix_tui.terminal.driver\n"
        f"print([name for name in {LATE!r}.split(', ') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


async def test_a_prompt_on_the_command_line_is_sent_and_answered(tmp_path: Path) -> None:
    async with serve(plays(HELLO)) as server, screen(with_claude(tmp_path, server.url), "Hi there") as terminal:
        await terminal.shows("Good evening.")
        assert b"Hi there" in server.requests[0].body


async def test_a_folder_with_own_files_is_asked_about_once(claude: Claude) -> None:
    phoenix, server = await claude(plays(HELLO))
    (phoenix.cwd / "AGENTS.md").write_text("Speak like a pirate.")
    async with screen(phoenix, "Hi") as terminal:
        await terminal.shows("Trust them?")
        terminal.press(b"s")
        await terminal.shows("Speak like a pirate.")
        terminal.press(b"y")
        await terminal.shows("Good evening.")
    async with screen(phoenix, "Hi again") as terminal:
        await terminal.shows("Good evening.")
    assert ["pirate" in str(request.json["system"]) for request in server.requests] == [True, True]


async def test_leaving_the_trust_question_gives_the_terminal_back(claude: Claude) -> None:
    phoenix, _ = await claude(plays(HELLO))
    (phoenix.cwd / "AGENTS.md").write_text("Speak like a pirate.")
    async with screen(phoenix) as terminal:
        await terminal.shows("Trust them?")
        terminal.press(b"q")
        assert await terminal.exit_code() == 130
        assert terminal.modes() == terminal.before


async def test_a_resumed_conversation_is_on_the_screen(claude: Claude) -> None:
    phoenix, _ = await claude(plays(HELLO))
    await phoenix.run("-p", "-n", "An old talk", "Hi")
    async with screen(phoenix, "-c") as terminal:
        await terminal.shows("Good evening.")
        assert "An old talk" in terminal.text


async def test_a_cap_of_the_command_line_ends_a_run_on_the_screen(claude: Claude) -> None:
    call = recording(start(), tool(0, "list_files", '{"path": "."}'), stop("tool_use"))
    phoenix, server = await claude(plays(call))
    async with screen(phoenix, "--max-turns", "1", "Look") as terminal:
        await terminal.shows("Stopped after 1 iterations")
        assert len(server.requests) == 1


async def quits(terminal: Terminal, leave: Callable[[], object]) -> int | None:
    await terminal.shows("Good evening.")
    await terminal.shows("○ ready")  # while the run is still being stored, leaving asks first
    leave()
    return await terminal.exit_code()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_restores_the_terminal_and_names_the_way_back(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with serve(plays(HELLO)) as server, screen(with_claude(tmp_path, server.url), "Hi") as terminal:
        assert await quits(terminal, lambda: terminal.process.kill(number)) == code
        assert terminal.modes() == terminal.before
        assert b"\x1b[?1049l" in terminal.raw
        assert b"phoenix --resume " in terminal.raw


@pytest.mark.parametrize("keys", [b"\x11", b"\x04", b"\x03\x03"], ids=["ctrl+q", "ctrl+d", "ctrl+c twice"])
async def test_leaving_prints_the_way_back_and_nothing_else(tmp_path: Path, keys: bytes) -> None:
    async with serve(plays(HELLO)) as server, screen(with_claude(tmp_path, server.url), "Hi") as terminal:
        assert await quits(terminal, lambda: terminal.press(keys)) == 0
        assert terminal.modes() == terminal.before
        after = bytes(terminal.raw).rpartition(b"\x1b[?1049l")[2].decode()
        said = re.sub(r"\x1b\[[?<>=]?[\d;]*[a-zA-Z]", "", after).strip()
        assert re.fullmatch(r"phoenix --resume [0-9a-f-]{36}", said)
