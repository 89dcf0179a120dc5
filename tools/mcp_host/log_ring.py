"""The newest log lines of a server, and events for those that are not part of a flood."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tools.clean import clean_line
from tools.mcp_host.guard import Bucket
from tools.mcp_host.limits import LOG_BURST, LOG_RING, LOGS_A_SECOND, LONGEST_LOG
from tools.mcp_host.protocol import Log


class LogRing:
    """Keeps `LOG_RING` lines."""

    def __init__(self, server: str, send: Callable[[Log], None]) -> None:
        self._server, self._send = server, send
        self._lines: deque[str] = deque(maxlen=LOG_RING)
        self._bucket = Bucket(LOG_BURST, LOGS_A_SECOND)

    @property
    def lines(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)

    def add(self, level: str, text: str) -> None:
        """Add a line; in a flood of them Phoenix is not told each."""
        text = clean_line(text[:LONGEST_LOG])
        self._lines.append(f"{level}: {text}")
        if self._bucket.admits():
            self._send(Log(server=self._server, level=level, text=text))
