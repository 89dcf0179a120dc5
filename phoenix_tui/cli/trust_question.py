"""Asks, before any screen, whether a folder's own files may be interpreted (CONTRACT 4, FAULTS 63-64)."""

from __future__ import annotations

import os
import sys
import termios

from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.config.project import Project
from phoenix_tui.config.trust import Trust, TrustFile, TrustStatus
from tools.clean import reveal, reveal_name

KEYS = {"y": True, "n": False}


def ask_trust(trust_file: TrustFile, project: Project, status: TrustStatus) -> bool:
    """The user's answer; `s` shows the files, or what has changed in them.

    Raises:
        CommandError: the user would rather leave.
    """
    changed = status.trust is Trust.CHANGED
    reason = "have changed since you last answered" if changed else "will be used as instructions and settings"
    names = "".join(f"  {reveal_name(path)}\n" for path in status.changed)
    _say(f"These files of {reveal_name(project.folder)} {reason}:\n{names}\n")
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # earlier input cannot be an answer
    while True:
        _say("Trust them? y yes · n no, start without them · s show · q quit ")
        key = os.read(sys.stdin.fileno(), 1).decode("latin1").lower()
        _say(f"{key if key.isprintable() else ''}\n")
        if key in KEYS:
            return KEYS[key]
        if key == "s":
            _show(trust_file.changes(project) if changed else _whole(project))
        elif key in {"q", "\x1b", "\x04", ""}:
            raise CommandError("Nothing was started; run `phoenix` to be asked again.", Exit.INTERRUPTED)


def _whole(project: Project) -> str:
    return "\n".join(f"--- {reveal_name(file.path)}\n{file.text}" for file in project.files)


def _show(text: str) -> None:
    _say("\n".join(reveal(line) for line in text.split("\n")) + "\n\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
