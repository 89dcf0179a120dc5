"""Reports about a language server: the new problems of an edit, why it failed, its last words."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from tools.clean import clean_line
from tools.contract import Captured, SandboxedStartError
from tools.edit_checks import CodeProblem, EditCheck
from tools.lsp.problems import ERROR, WARNING, ServerProblem
from tools.lsp.wire import column_of
from tools.refusals import reason_words

MOST_SHOWN: Final = 10
"""Errors that a result names; the rest is counted."""
LONGEST_WORDS: Final = 200
HIDDEN: Final = (
    "it cannot be started: the sandbox hides {program}, or its interpreter; install it in a folder of Phoenix's PATH"
)


def report_of(name: str, shown: str, found: list[ServerProblem], text: str, encoding: str) -> EditCheck:
    """The first of the new errors, and counts of all."""
    errors = [one for one in found if one.severity == ERROR]
    problems = tuple(
        CodeProblem(one.line + 1, column_of(text, one.line, one.character, encoding), one.message, one.source, one.code)
        for one in errors[:MOST_SHOWN]
    )
    warnings = sum(one.severity == WARNING for one in found)
    return EditCheck(name, shown, problems, len(errors), warnings)


def start_failure(error: OSError, program: str, *, is_confined: bool) -> str:
    """The reason why a program cannot be started; a sandbox hides much of the home folder."""
    if error.errno == errno.ENOENT and is_confined and os.access(program, os.X_OK):
        return HIDDEN.format(program=program)
    refused = error.refused if isinstance(error, SandboxedStartError) else ""
    return f"it cannot be started: {error.strerror or error}{reason_words(refused, '/sandbox changes it')}"


def stamp_of(path: Path) -> tuple[int, int]:
    """Time and size of a file; zeros for one that is gone."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size


def decoded(captured: Captured) -> str:
    """The end of an output as text."""
    return (captured.head + captured.tail)[-8_192:].decode("utf-8", "replace")


def last_words(captured: Captured) -> str:
    """The last line of its stderr that says something."""
    rows = [row for row in map(clean_line, decoded(captured).splitlines()) if row.strip()]
    return rows[-1][:LONGEST_WORDS] if rows else ""
