"""Text of one file that extends Phoenix, or its difference from what the user accepted."""

from __future__ import annotations

from typing import Final

from phoenix_tui.config.sources.kinds import SourceFile
from phoenix_tui.config.sources.project_sources import ProjectSources, read_source
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, SourceState
from tools.clean import reveal_name
from tools.files.content import is_binary
from tools.files.diff import unified_lines

MOST_BYTES: Final = 1024 * 1024
"""Bytes of a file whose text is shown."""
NOT_SHOWN: Final = "It is no text, or longer than 1 MB; open it in another program."
MOVED: Final = "It has changed meanwhile; look again."
NOT_KEPT: Final = "What was accepted was not kept, as it is no short text. The whole file now:"


def text_of(sources: ProjectSources, report: SourceReport, entry: SourceEntry) -> str:
    """Text that the user reads about a file before an answer; reads the disk."""
    before = sources.accepted_text(report.folder, entry.path)
    if entry.state is SourceState.LEFT_OUT:
        return f"It is not used: {entry.why}."
    if entry.state is SourceState.GONE:
        return before if before is not None else "It is gone."
    now = next((_text(file) for file in report.shown if file.path == entry.path), MOVED)
    if entry.state is not SourceState.CHANGED:
        return now
    if before is None:
        return f"{NOT_KEPT}\n{now}"
    name = reveal_name(entry.name)
    lines = unified_lines(before.splitlines(), now.splitlines(), f"{name} (accepted)", f"{name} (now)")
    return "\n".join(lines)


def _text(file: SourceFile) -> str:
    content = read_source(file, MOST_BYTES)
    if content is None:
        return NOT_SHOWN if _is_long(file) else MOVED
    return NOT_SHOWN if is_binary(content) else content.decode("utf-8", "replace")


def _is_long(file: SourceFile) -> bool:
    try:
        return file.path.stat().st_size > MOST_BYTES
    except OSError:
        return False
