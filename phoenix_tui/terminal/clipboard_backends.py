"""Programs that reach the clipboard here: chosen by environment, never by trying them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

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
