"""Asks, before any screen, whether a folder's own files may be interpreted (CONTRACT 4, FAULTS 63-64)."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Sequence

from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.report import SourceReport, report_of
from phoenix_tui.config.trust import Project, Trust, TrustFile, TrustStatus
from phoenix_tui.text.trust_text import group_lines
from tools.clean import reveal, reveal_name

KEYS = {"y": True, "n": False}


def ask_about_both(trust_file: TrustFile, sources: ProjectSources, project: Project, status: TrustStatus) -> None:
    """Ask about the files of a folder, and with them about those that extend Phoenix; keep the one answer for both.

    Raises:
        CommandError: the user would rather leave.
        OSError: the answer cannot be written.
    """
    found = _report(sources, project)
    waits = found is not None and bool(found.waiting())
    more = (group_lines(found), sources.changes(project.folder)) if found is not None and waits else ((), "")
    trusted = ask_trust(trust_file, project, status, *more)
    trust_file.answer(project, trusted=trusted)
    if found is not None and waits:
        sources.answer(project.folder, trusted=trusted, shown=found.shown)


def _report(sources: ProjectSources, project: Project) -> SourceReport | None:
    """Report of what extends Phoenix in the folder; None where it cannot be looked at, which the screen says."""
    try:
        return report_of(sources.look(project.folder), project.folder)
    except OSError:
        return None


def ask_trust(
    trust_file: TrustFile, project: Project, status: TrustStatus, extending: Sequence[str] = (), texts: str = ""
) -> bool:
    """The user's answer; `s` shows the files, or what has changed in them.

    `extending` are lines about the files that extend Phoenix, `texts` what `s` shows of them.

    Raises:
        CommandError: the user would rather leave.
    """
    changed = status.trust is Trust.CHANGED
    reason = "have changed since you last answered" if changed else "will be used as instructions and settings"
    names = "".join(f"  {reveal_name(path)}\n" for path in status.changed)
    _say(f"These files of {reveal_name(project.folder)} {reason}:\n{names}\n")
    if extending:
        lines = "".join(f"{line}\n" for line in extending)
        _say(f"Also in this folder, active after your yes:\n{lines}\n")
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # earlier input cannot be an answer
    while True:
        _say("Trust them? y yes · n no, start without them · s show · q quit ")
        key = os.read(sys.stdin.fileno(), 1).decode("latin1").lower()
        _say(f"{key if key.isprintable() else ''}\n")
        if key in KEYS:
            return KEYS[key]
        if key == "s":
            whole = (f"--- {reveal_name(file.path)}\n{file.text}" for file in project.files)
            own = trust_file.changes(project) if changed else "\n".join(whole)
            shown = "\n".join(filter(None, (own, texts)))
            _say("\n".join(map(reveal, shown.split("\n"))) + "\n\n")
        elif key in {"q", "\x1b", "\x04", ""}:
            raise CommandError("Nothing was started; run `phoenix` to be asked again.", Exit.INTERRUPTED)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
