"""The clipboard: text out by tool and OSC 52, text and images in, each with a clear word when it cannot be."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from phoenix_tui.features.composing import LARGEST_IMAGE
from tools.contract import Command, Finished, ProcessRunner, Sandbox

MAC_IMAGE: Final = (
    "set shown to the clipboard as «class PNGf»\n"
    'set place to (path to temporary items as text) & "phoenix-clipboard.png"\n'
    "set target to open for access file place with write permission\n"
    "set eof target to 0\nwrite shown to target\nclose access target\n"
    'do shell script "base64 < " & quoted form of POSIX path of place & "; rm -f " & quoted form of POSIX path of place'
)
WINDOWS_IMAGE: Final = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing;"
    "$i=[System.Windows.Forms.Clipboard]::GetImage();if($i -eq $null){exit 1};"
    "$m=New-Object System.IO.MemoryStream;$i.Save($m,[System.Drawing.Imaging.ImageFormat]::Png);"
    "[Convert]::ToBase64String($m.ToArray())"
)
WINDOWS_TEXT: Final = "[Console]::OutputEncoding=[Text.Encoding]::UTF8;Get-Clipboard -Raw"
WINDOWS_COPY: Final = (
    "$i=New-Object IO.StreamReader([Console]::OpenStandardInput(),[Text.Encoding]::UTF8);"
    "Set-Clipboard -Value $i.ReadToEnd()"
)
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/tiff", "image/gif")


class ClipboardBackend(Struct, frozen=True):
    """The programs of one kind of desktop."""

    copy: tuple[str, ...] = ()
    """Takes text on stdin."""
    holds: bool = False
    """True when `copy` runs for as long as the text is to be on the clipboard."""
    images: tuple[tuple[str, ...], ...] = ()
    """Commands that write an image to stdout or fail; tried in order."""
    text: tuple[str, ...] = ()
    encoded_images: bool = False
    """True when `images` write base64."""
    missing: str = ""
    """Package to install when the programs are missing."""
    refusal: str = ""
    """Reason why no clipboard can be reached at all, with the alternative; else empty."""


def choose(environment: Mapping[str, str], platform: str) -> ClipboardBackend:
    """The back end for this environment and `sys.platform`."""
    if platform == "darwin":
        return MAC
    if platform == "win32":
        return _windows("powershell")
    if "WSL_DISTRO_NAME" in environment or "WSL_INTEROP" in environment:
        return _windows("powershell.exe")
    if "WAYLAND_DISPLAY" in environment:
        return WAYLAND
    if "DISPLAY" in environment:
        return X11
    return OVER_SSH if "SSH_CONNECTION" in environment or "SSH_TTY" in environment else NO_DISPLAY


def _powershell(program: str, script: str) -> tuple[str, ...]:
    return (program, "-NoProfile", "-NonInteractive", "-STA", "-Command", script)


def _windows(program: str) -> ClipboardBackend:
    return ClipboardBackend(
        copy=_powershell(program, WINDOWS_COPY),
        images=(_powershell(program, WINDOWS_IMAGE),),
        text=_powershell(program, WINDOWS_TEXT),
        encoded_images=True,
        missing=f"{program} cannot be started; turn on Windows interoperability, or drop the file into the terminal.",
    )


MAC: Final = ClipboardBackend(
    copy=("pbcopy",),
    images=(("osascript", "-e", MAC_IMAGE),),
    text=("pbpaste",),
    encoded_images=True,
    missing="osascript and pbpaste cannot be started; drop the image file into the terminal.",
)
WAYLAND: Final = ClipboardBackend(
    copy=("wl-copy", "--foreground"),
    holds=True,
    images=tuple(("wl-paste", "--no-newline", "--type", kind) for kind in IMAGE_TYPES),
    text=("wl-paste", "--no-newline"),
    missing="wl-paste is missing; install wl-clipboard, or drop the image file into the terminal.",
)
X11: Final = ClipboardBackend(
    copy=("xclip", "-quiet", "-selection", "clipboard", "-in"),
    holds=True,
    images=tuple(("xclip", "-selection", "clipboard", "-target", kind, "-out") for kind in IMAGE_TYPES),
    text=("xclip", "-selection", "clipboard", "-out"),
    missing="xclip is missing; install xclip, or drop the image file into the terminal.",
)
OVER_SSH: Final = ClipboardBackend(
    refusal="Over SSH the clipboard of your own machine cannot be read; paste text with the terminal's own key, "
    "copy the image here with scp and type its path.",
    missing="over SSH, only OSC 52 reaches your clipboard.",
)
NO_DISPLAY: Final = ClipboardBackend(
    refusal="There is no desktop here (neither WAYLAND_DISPLAY nor DISPLAY is set); "
    "paste text with the terminal's own key, or type the path of an image.",
    missing="no clipboard program can work without a desktop.",
)


SECONDS: Final = 4.0
HOLD_CHECK: Final = 0.3
"""Seconds after which a tool that still runs is taken to hold the text."""
LARGEST_TEXT: Final = 16_000_000
OSC_52_LIMIT: Final = 74_994
"""Bytes of text that every terminal with OSC 52 takes (100,000 in base64 with its frame)."""


class ClipboardImage(Struct, frozen=True):
    """An image, in whatever format the clipboard had."""

    content: bytes


class ClipboardText(Struct, frozen=True):
    """Text."""

    text: str


class ClipboardTrouble(Struct, frozen=True):
    """Result when nothing could be read: the reason and the remedy."""

    reason: str


Clip: TypeAlias = ClipboardImage | ClipboardText | ClipboardTrouble


class Clipboard:
    """Reads and writes the clipboard that belongs to this terminal."""

    def __init__(
        self,
        runner: ProcessRunner,
        environment: Mapping[str, str],
        platform: str,
        write_terminal: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._environment = environment
        self._write_terminal = write_terminal
        self._backend = choose(environment, platform)
        self._holder: asyncio.Task[Finished | None] | None = None

    async def copy(self, text: str) -> str:
        """Copy, and name the way: `with wl-copy`, `through the terminal (OSC 52)`."""
        ways: list[str] = []
        backend = self._backend
        if backend.copy and await self._hand_over(text.encode("utf-8", "replace")):
            ways.append(f"with {backend.copy[0]}")
        if len(text.encode("utf-8", "replace")) <= OSC_52_LIMIT:
            self._write_terminal(osc_52(text, in_tmux="TMUX" in self._environment))
            ways.append("through the terminal (OSC 52)")
        return " and ".join(ways) or f"nowhere: too long for the terminal; {backend.missing}"

    async def _hand_over(self, content: bytes) -> bool:
        """Give text to the native tool, which may have to stay alive to hold it."""
        await self.close()
        seconds = None if self._backend.holds else SECONDS
        holder = asyncio.create_task(self._run(self._backend.copy, stdin=content, seconds=seconds))
        await asyncio.wait({holder}, timeout=HOLD_CHECK if self._backend.holds else None)
        if holder.done():
            finished = holder.result()
            return finished is not None and finished.exit_code == 0
        self._holder = holder
        return True

    async def close(self) -> None:
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.cancel()
            await asyncio.wait({holder})

    async def paste(self) -> Clip:
        """The image on the clipboard, else its text."""
        backend = self._backend
        if backend.refusal:
            return ClipboardTrouble(backend.refusal)
        found_tool = False
        for argv in backend.images:
            finished = await self._run(argv, keep=LARGEST_IMAGE)
            found_tool = found_tool or finished is not None
            content = _content(finished)
            if content and backend.encoded_images:
                content = _decode(content)
            if content:
                return ClipboardImage(content)
        finished = await self._run(backend.text, keep=LARGEST_TEXT)
        if finished is None and not found_tool:
            return ClipboardTrouble(backend.missing)
        text = _content(finished).decode("utf-8", "replace")
        return ClipboardText(text) if text else ClipboardTrouble("The clipboard is empty.")

    async def _run(
        self, argv: tuple[str, ...], *, stdin: bytes | None = None, keep: int = 65_536, seconds: float | None = SECONDS
    ) -> Finished | None:
        """Run a program; None when it is missing. It gets the names of the display, which tools do not."""
        wanted = {name: self._environment[name] for name in DISPLAY_NAMES if name in self._environment}
        command = Command(
            argv, Path("/"), seconds, wanted, stdin, keep_head=keep, keep_tail=0, sandbox=Sandbox(unseen=True)
        )
        try:
            return await self._runner.run(command)
        except OSError:
            return None


DISPLAY_NAMES: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "XAUTHORITY", "HOME", "PATH", "WSL_INTEROP")


def _content(finished: Finished | None) -> bytes:
    if finished is None or finished.exit_code != 0 or finished.captured.dropped:
        return b""
    return finished.captured.head + finished.captured.tail


def _decode(content: bytes) -> bytes:
    try:
        return base64.b64decode(content, validate=False)
    except ValueError:
        return b""


def osc_52(text: str, *, in_tmux: bool) -> str:
    """The sequence that puts text on the clipboard of the terminal.

    tmux takes it itself where `set-clipboard` is on, and passes it on wrapped where `allow-passthrough` is.
    """
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}\x07"
    wrapped = f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    return sequence + wrapped if in_tmux else sequence
