"""Textual's driver for a browser, with the filters that a terminal gets; each tab is a Phoenix of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Final

from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import (
    WebDriver,
    _ExitInput,
)
from textual.events import AppBlur, Resize
from textual.geometry import Size

from phoenix_tui.terminal.driver import FRAME_BEGINS, FRAME_ENDS, flood_gate
from phoenix_tui.terminal.input import TerminalInput
from phoenix_tui.terminal.output import drawing_only
from phoenix_tui.terminal.shadow import ShadowScreen
from phoenix_tui.terminal.size import drawable, terminal_size

MOST_WAITING: Final = 24
"""Frames that may wait for the server, as for a terminal (`driver.py`)."""
TO_THE_END: Final = 1.0
"""Seconds for the last writes at the end; a tab that reads needs milliseconds."""


class PacketWriter:
    """Takes whole packets in order; droppable ones are dropped while too many wait."""

    def __init__(self, fileno: int, when_empty: Callable[[], None]) -> None:
        self._fileno = fileno
        self._when_empty = when_empty
        self._packets: SimpleQueue[bytes] = SimpleQueue()
        self._put = self._written = 0
        self._dropped = False
        """True when the listener is to be called once the queue is empty."""
        self._ended: Event | None = None
        # A daemon: a write to an unread pipe never ends.
        self._thread = Thread(target=self._write, name="phoenix-web", daemon=True)
        self._thread.start()

    def put(self, packet: bytes) -> None:
        self._put += 1
        self._packets.put(packet)

    def offer(self, packet: bytes) -> bool:
        """Write this packet, or drop it if too many wait: `when_empty` is called, on the thread, when none does.

        Returns:
            Whether it will be written.
        """
        if self._put - self._written < MOST_WAITING:
            self.put(packet)
            return True
        self._dropped = True
        if self._put == self._written:  # the last one was written since
            self._tell()
        return False

    def end(self) -> None:
        """Wait until all is written, but not for a server that does not read."""
        self._ended = Event()
        self.put(b"")
        self._ended.wait(TO_THE_END)

    def _write(self) -> None:
        while packet := self._packets.get():
            with contextlib.suppress(OSError):  # the server may be gone
                while packet:
                    packet = packet[os.write(self._fileno, packet) :]
            self._written += 1
            if self._dropped and self._put == self._written:
                self._tell()
        if self._ended is not None:
            self._ended.set()

    def _tell(self) -> None:
        self._dropped = False
        self._when_empty()


GREETING: Final = b"__GANGLION__\n"
"""First bytes that textual-serve expects."""
ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"


def _size_of_tab() -> tuple[int, int]:
    """The size of the browser's window as the server reports it."""
    return terminal_size((), {"COLUMNS": os.environ.get("COLUMNS", ""), "LINES": os.environ.get("ROWS", "")})


class QuietWebDriver(WebDriver):
    """Driver that sends only what draws; a tab or a server that is gone ends Phoenix as a hang-up would.

    A tab that accepts nothing gets no frames until it does: then all is drawn again.
    """

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size or _size_of_tab())
        self._loop = asyncio.get_running_loop()
        self._packets = PacketWriter(self.fileno, self._draw_again)
        self._write: Any = self._packets.put
        self._frame: list[str] | None = None
        """Writes of the current frame."""
        self.shadow = ShadowScreen(capable=True)

    def write(self, data: str) -> None:
        """Write drawing sequences, a frame in one piece; all else is dropped."""
        if data == FRAME_BEGINS:
            self._frame = []
        elif self._frame is None:
            if not self.shadow.is_repeated(data):
                self._offer(drawing_only(data))
        elif data == FRAME_ENDS:
            frame, self._frame = "".join(self._frame), None
            if not self.shadow.is_repeated(frame):
                self._offer(f"{FRAME_BEGINS}{frame}{FRAME_ENDS}")
        else:
            self._frame.append(drawing_only(data))

    def _offer(self, text: str) -> None:
        content = text.encode()
        if not self._packets.offer(b"D%s%s" % (len(content).to_bytes(4, "big"), content)):
            self.shadow.forget()

    def _draw_again(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._app.refresh)

    def start_application_mode(self) -> None:
        """Greet the server and set its tab up as Textual does, but take no signal.

        Textual's handlers would leave at once, before the draft is kept, and end the watch for signals.
        """
        self._write(GREETING)
        self.write(ENTER_SCREEN)
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._request_terminal_sync_mode_support()
        size = Size(*drawable(*(self._size or _size_of_tab())))
        self._loop.call_soon(self._app.post_message, Resize(size, size))
        self._key_thread.start()
        self._app.call_later(self._app.post_message, AppBlur())

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        self._packets.end()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Handle a message of the server: a closed tab keeps its draft and stops its runs before the end."""
        if packet_type == "quit":
            os.kill(os.getpid(), signal.SIGTERM)
        elif packet_type == "resize":
            columns, rows = drawable(payload.get("width"), payload.get("height"))
            super().on_meta(packet_type, {**payload, "width": columns, "height": rows})
        else:
            super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read until the end; an unexpected one means that the server has died.

        Textual would read a browser's keys by its own parser, which a key or a byte that it does not know ends.
        """
        source, packets, flood = TerminalInput(), ByteStream(), flood_gate(self._app, self._loop)
        decode = getincrementaldecoder("utf-8")("replace").decode
        try:
            for data in self._input_reader:
                for kind, payload in packets.feed(data) if data else ():
                    if kind == "D":
                        for event in flood.admit([*source.feed(decode(payload))], self.exit_event.is_set):
                            self.process_message(event)
                    else:
                        self._on_meta(kind, payload)
                for event in source.tick():
                    self.process_message(event)
                flood.tick()
        except _ExitInput:
            pass
        finally:
            self._input_reader.close()
        if not self.exit_event.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
