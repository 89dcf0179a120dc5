"""Server-sent events: bytes in, the payload of each event out."""

from __future__ import annotations

from engine.providers.bounds import MEBIBYTE, MOST_EVENT
from engine.providers.http_transport import OutOfBounds

BOM = b"\xef\xbb\xbf"


class EventParser:
    """Cuts a byte stream into events; the result is the same at every split of the bytes.

    Only the payload is kept: every provider that names events has the name in its JSON. Carriage returns, comments and
    a byte order mark are understood, and a line of any length costs linear time.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """Pieces of the line that has not ended yet."""
        self._payload: list[bytes] = []
        self._after_return = False
        """The last byte was CR and counted as a line end; an LF right behind it belongs to it."""
        self._first = True
        self._open_line = self._open_event = 0
        """Bytes of the line and of the event that have not ended yet."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads of the events that `chunk` completes. Raises OutOfBounds for one beyond every bound."""
        chunk = self._with_plain_newlines(chunk)
        last = chunk.rfind(b"\n")
        if last < 0:
            if chunk:
                self._line.append(chunk)
                self._hold(line=self._open_line + len(chunk))
            return []
        lines = chunk[:last].split(b"\n")
        if self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line = []
        if last + 1 < len(chunk):
            self._line.append(chunk[last + 1 :])
        found = self._events(lines)
        self._hold(line=len(chunk) - last - 1)
        return found

    def finish(self) -> list[bytes]:
        """The event that was not followed by a blank line when the stream ended, if there is one."""
        return self._events([b"".join(self._line), b""])

    def _hold(self, *, line: int = 0, more: int = 0) -> None:
        self._open_line = line
        self._open_event += more
        if self._open_line + self._open_event > MOST_EVENT:
            raise OutOfBounds(f"an event of more than {MOST_EVENT // MEBIBYTE} MB")

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        if self._after_return and chunk:
            self._after_return = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _events(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        payload = self._payload
        for line in lines:
            if not line:
                self._open_event = 0
                if payload:
                    found.append(payload[0] if len(payload) == 1 else b"\n".join(payload))
                    payload.clear()
            elif line.startswith(b"data:"):
                self._hold(more=len(line) + 1)
                payload.append(line[6:] if line[5:6] == b" " else line[5:])
            elif self._first and line.startswith(BOM + b"data:"):
                payload.append(line.removeprefix(BOM)[5:].removeprefix(b" "))
            self._first = False
        return found
