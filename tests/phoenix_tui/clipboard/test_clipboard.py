"""The clipboard by environment, with fake programs on PATH."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from phoenix_tui.terminal.clipboard import (
    MAC,
    NO_DISPLAY,
    OVER_SSH,
    WAYLAND,
    X11,
    Clipboard,
    ClipboardImage,
    ClipboardText,
    ClipboardTrouble,
    choose,
    osc_52,
)
from tools.contract import Captured, Command, Finished

PNG = b"\x89PNG\r\n\x1a\nrest"


class PathRunner:
    """Starts programs of one folder only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def run(self, command: Command, report: object = None) -> Finished:
        program = self.folder / command.argv[0]
        if not program.exists():
            raise FileNotFoundError(command.argv[0])
        environment = {"PATH": os.environ["PATH"], **command.environment}
        process = await asyncio.create_subprocess_exec(
            program, *command.argv[1:], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=environment
        )
        try:
            out, _ = await process.communicate(command.stdin)
        finally:  # a program that never ends is given up
            if process.returncode is None:
                process.kill()
                await process.communicate()
        return Finished(process.returncode, None, Captured(out), 0.0)


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def clipboard(folder: Path, environment: dict[str, str], platform: str = "linux") -> tuple[Clipboard, list[str]]:
    written: list[str] = []
    return Clipboard(PathRunner(folder), environment, platform, written.append), written


def test_the_back_end_follows_the_environment() -> None:
    assert choose({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux") is WAYLAND
    assert choose({"DISPLAY": ":0"}, "linux") is X11
    assert choose({"SSH_TTY": "/dev/pts/1"}, "linux") is OVER_SSH
    assert choose({}, "linux") is NO_DISPLAY
    assert choose({}, "darwin") is MAC
    assert choose({}, "win32").text[0] == "powershell"
    assert choose({"WSL_DISTRO_NAME": "Debian", "DISPLAY": ":0"}, "linux").text[0] == "powershell.exe"


@pytest.mark.parametrize(
    ("environment", "name", "kind"),
    [({"WAYLAND_DISPLAY": "w"}, "wl-paste", "image/jpeg"), ({"DISPLAY": ":0"}, "xclip", "image/bmp")],
)
async def test_an_image_of_any_common_type_is_pasted(
    tmp_path: Path, environment: dict[str, str], name: str, kind: str
) -> None:
    (tmp_path / "image").write_bytes(PNG)
    program(tmp_path, name, f'case "$*" in *{kind}*) cat {tmp_path}/image ;; *) exit 1 ;; esac')
    board, _ = clipboard(tmp_path, environment)
    assert await board.paste() == ClipboardImage(PNG)


async def test_text_is_pasted_when_there_is_no_image(tmp_path: Path) -> None:
    program(tmp_path, "wl-paste", 'case "$*" in *image*) exit 1 ;; *) printf "hello ü" ;; esac')
    board, _ = clipboard(tmp_path, {"WAYLAND_DISPLAY": "w"})
    assert await board.paste() == ClipboardText("hello ü")


async def test_powershell_and_osascript_give_images_as_base64(tmp_path: Path) -> None:
    encoded = base64.b64encode(PNG).decode()
    program(tmp_path, "powershell.exe", f"printf %s {encoded}")
    program(tmp_path, "osascript", f"printf %s {encoded}")
    for environment, platform in (({"WSL_INTEROP": "x"}, "linux"), ({}, "darwin")):
        board, _ = clipboard(tmp_path, environment, platform)
        assert await board.paste() == ClipboardImage(PNG)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"WAYLAND_DISPLAY": "w"}, "install wl-clipboard"),
        ({"DISPLAY": ":0"}, "install xclip"),
        ({"SSH_CONNECTION": "x"}, "scp"),
        ({}, "no desktop"),
    ],
)
async def test_what_is_missing_is_named(tmp_path: Path, environment: dict[str, str], words: str) -> None:
    board, _ = clipboard(tmp_path, environment)
    trouble = await board.paste()
    assert isinstance(trouble, ClipboardTrouble)
    assert words in trouble.reason


async def test_an_empty_clipboard_is_said_to_be_empty(tmp_path: Path) -> None:
    program(tmp_path, "xclip", "exit 1")
    board, _ = clipboard(tmp_path, {"DISPLAY": ":0"})
    assert await board.paste() == ClipboardTrouble("The clipboard is empty.")


async def test_copying_uses_the_tool_and_the_terminal_and_says_so(tmp_path: Path) -> None:
    program(tmp_path, "pbcopy", f"cat > {tmp_path}/copied")
    board, written = clipboard(tmp_path, {}, "darwin")
    assert await board.copy("text") == "with pbcopy and through the terminal (OSC 52)"
    assert (tmp_path / "copied").read_text() == "text"
    assert written == [osc_52("text", in_tmux=False)]


async def test_a_tool_that_must_stay_alive_holds_the_text_until_closed(tmp_path: Path) -> None:
    program(tmp_path, "wl-copy", f"cat > {tmp_path}/copied; exec sleep 30")
    board, _ = clipboard(tmp_path, {"WAYLAND_DISPLAY": "w"})
    assert (await board.copy("held")).startswith("with wl-copy")
    assert (tmp_path / "copied").read_text() == "held"
    await board.close()


async def test_over_ssh_the_terminal_alone_copies_and_tmux_passes_it_on(tmp_path: Path) -> None:
    board, written = clipboard(tmp_path, {"SSH_TTY": "x", "TMUX": "y"})
    assert await board.copy("hi") == "through the terminal (OSC 52)"
    assert written == ["\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"]


async def test_a_text_too_long_for_the_terminal_says_that_nothing_was_copied(tmp_path: Path) -> None:
    board, written = clipboard(tmp_path, {"SSH_TTY": "x"})
    assert (await board.copy("x" * 80_000)).startswith("nowhere")
    assert written == []
