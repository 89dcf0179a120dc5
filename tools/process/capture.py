"""The output of one command: first and last part in memory, the whole of it in a file when one is named."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import stat
from pathlib import Path

from tools.clean import clean
from tools.contract import Captured
from tools.files.own_files import make_folder, open_file

SPILL_LIMIT = 100 * 1024 * 1024
"""Bytes a spill file may take: a runaway command must not fill the disk."""
LIVE_LIMIT = 32 * 1024
"""Bytes of one live report; what came before them is only counted."""
OPEN_ESCAPE = re.compile(r"\x1b[^a-zA-Z\x07\\~\x1b]{0,64}\Z")
CONTINUATION = range(0x80, 0xC0)


class HeadAndTail:
    """Keeps the first and the last bytes of a stream and counts the rest."""

    def __init__(self, keep_head: int, keep_tail: int) -> None:
        self._keep_head = keep_head
        self._keep_tail = keep_tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._line_ends = 0
        self._last = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._total += len(chunk)
        self._line_ends += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        room = self._keep_head - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._keep_tail + 65536:
            del self._tail[: len(self._tail) - self._keep_tail]

    @property
    def total(self) -> int:
        """Count of all bytes received."""
        return self._total

    def captured(self, spill: Path | None = None) -> Captured:
        """Head, tail and counts of the output so far."""
        tail = bytes(self._tail[-self._keep_tail :]) if self._keep_tail else b""
        dropped = self._total - len(self._head) - len(tail)
        lines = self._line_ends + (self._last not in {b"", b"\n"})
        return Captured(bytes(self._head), tail, dropped, spill, lines=lines)


class Spill:
    """The whole output in a file, from the moment it no longer fits in memory.

    Blocks: call it from a thread. A disk that is full, or a folder that is gone, ends the file and not
    the command: `path` is None then, and the kept parts and the dropped count are all there is.
    """

    def __init__(self, path: Path | None, threshold: int) -> None:
        self.path: Path | None = None
        self._wanted = path
        self._threshold = threshold
        self._early = bytearray()
        self._written = 0
        self._cut = 0
        self._descriptor = -1

    def write(self, chunk: bytes) -> None:
        """Take the next bytes of the output."""
        if self._wanted is None:
            return
        try:
            self._take(chunk)
        except OSError:
            self._give_up()

    def close(self) -> None:
        """Finish the file; its last line says when it was cut."""
        if self._descriptor < 0:
            return
        if self._cut:
            note = f"\n[Phoenix stopped writing here: {self._cut} more bytes came]\n"
            with contextlib.suppress(OSError):
                os.write(self._descriptor, note.encode())
        os.close(self._descriptor)
        self._descriptor = -1

    def _take(self, chunk: bytes) -> None:
        if self._descriptor < 0:
            self._early += chunk
            if len(self._early) <= self._threshold:
                return
            self._open()
            chunk = bytes(self._early)
            self._early.clear()
        room = max(0, SPILL_LIMIT - self._written)
        view = memoryview(chunk)[:room]
        self._cut += len(chunk) - len(view)
        while view:
            count = os.write(self._descriptor, view)
            self._written += count
            view = view[count:]

    def _open(self) -> None:
        assert self._wanted is not None
        make_folder(self._wanted.parent)
        self._descriptor = open_file(self._wanted, os.O_WRONLY)
        self.path = self._wanted
        os.ftruncate(self._descriptor, 0)

    def _give_up(self) -> None:
        self._cut = 0
        regular = self._descriptor >= 0 and stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self.close()
        if self.path is not None and regular:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.path = None
        self._wanted = None
        self._early.clear()


class LiveText:
    """The newest output as cleaned text, bounded however fast it comes."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._skipped = 0
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._pending += chunk
        excess = len(self._pending) - LIVE_LIMIT
        if excess > LIVE_LIMIT:
            del self._pending[:excess]
            self._skipped += excess

    def take(self, *, final: bool = False) -> str:
        """Text received since the last call; an incomplete escape sequence waits for its end."""
        text = self._held
        if self._skipped:
            text = f"\n[{self._skipped} bytes not shown]\n"
            self._decoder.reset()
            while self._pending and self._pending[0] in CONTINUATION:
                del self._pending[0]
            self._skipped = 0
        text += self._decoder.decode(bytes(self._pending), final)
        self._pending.clear()
        self._held = ""
        opened = None if final else OPEN_ESCAPE.search(text, max(0, len(text) - 80))
        if opened:
            self._held = text[opened.start() :]
            text = text[: opened.start()]
        return clean(text) if text else ""
