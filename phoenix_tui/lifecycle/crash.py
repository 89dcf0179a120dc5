"""Traces of a crash of the screen: a private report in the logs folder, and one sentence for the user."""

from __future__ import annotations

import platform
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from phoenix_tui.cli.names import VERSION

KEPT: Final = 50
"""Reports in the folder at most; the oldest are removed."""


class CrashReports(Struct, frozen=True):
    """Reports of crashes in a private folder, without these secrets."""

    folder: Path
    secrets: Sequence[str] = ()

    def write(self, error: BaseException) -> str:
        """Write where it happened, without the values of any variable; returns the path, or why there is none."""
        # Only in a crash: the log's own modules load after the first frame.
        from phoenix_tui.cli.logs import redacted  # noqa: PLC0415 - as above
        from tools.files.own_files import write_file  # noqa: PLC0415 - as above

        path = self.folder / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() // 1000 % 10**6:06}.txt"
        head = f"Phoenix {VERSION}, Python {platform.python_version()}, {sys.platform}\n\n"
        try:
            write_file(path, head + redacted("".join(traceback.format_exception(error)), self.secrets))
            for old in sorted(self.folder.glob("crash-*.txt"))[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as trouble:
            return f"no report could be written ({trouble.strerror})"
        return str(path)


def crash_note(error: BaseException, report: str, resume: str) -> str:
    """Sentence printed after the screen is gone."""
    way_back = f"; `{resume}` continues" if resume else ""
    return f"phoenix: Internal error ({type(error).__name__}). Report: {report}{way_back}."
