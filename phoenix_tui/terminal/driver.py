"""Textual's terminal driver without wake-ups, with a short Esc and filtered output (docs/decisions/textual.md)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Any, TextIO

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size

from phoenix_tui.lifecycle.stop_signals import Impatience, handle, hang_up
from phoenix_tui.terminal import foreground_programs, state
from phoenix_tui.terminal.input import FloodGate, TerminalInput
from phoenix_tui.terminal.output import drawing_only, with_overlays
from phoenix_tui.terminal.shadow import ShadowScreen, is_capable, takes_links
from phoenix_tui.terminal.size import STREAMS, terminal_size

_READ_BYTES = 4096
FRAME_BEGINS = "\x1b[?2026h"
FRAME_ENDS = "\x1b[?2026l"
_SIZES_A_SECOND = 30
"""New sizes that are laid out at most; a window that is dragged sends thousands."""
_STALLED_SECONDS = 0.5
"""Seconds that the last words wait for a terminal that takes nothing."""
_MOST_WAITING = 24
"""Writes that may wait for the terminal; at 30 Textual's queue would block the loop."""


class LastingFile:
    """A terminal for Textual's writer thread that takes text until the end: a thread that died would block the app."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.writes = 0
        """Number of writes that have left the thread's queue."""
        self.when_empty: Callable[[], None] | None = None
        """Called once, on the writer's thread, when the queue is empty."""
        self._is_over = False

    def successor(self) -> LastingFile:
        """Return the file of the next writer thread; text that still waits for this one is dropped."""
        self._is_over = True
        return LastingFile(self._file)

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, text: str) -> None:
        if not self._is_over:
            with contextlib.suppress(OSError):
                self._file.write(text)
        self.writes += 1

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()
        told, self.when_empty = self.when_empty, None
        if told is not None:
            told()


def flood_gate(app: App[Any], loop: asyncio.AbstractEventLoop) -> FloodGate:
    """The gate of an app's keys; apps of tests have no order of their own."""

    def tell(words: str) -> None:
        warn: Callable[[str], None] | None = getattr(app, "warn", None)
        if warn is not None:
            loop.call_soon_threadsafe(warn, words)

    return FloodGate(lambda: int(getattr(app, "keys_waiting", 0)), tell)


def _raise(error: Exception) -> None:
    """Let the loop have a fault of the thread that reads."""
    raise error


class QuietDriver(LinuxDriver):
    """Sleeps until a byte comes; honours ESCDELAY to the millisecond; restores the terminal Phoenix was started in."""

    _size_read: tuple[int, int] = (0, 0)
    """Columns and rows as they were read last; Textual's own start reads them, too."""
    overlays: dict[str, str] | None = None
    """Characters of a private plane, and the sixels of Phoenix's own that are drawn in their place."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        # Textual's own signature says App without its parameter.
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._size = size or self._get_terminal_size()
        self._size_told = float("-inf")
        """Time of the newest report of a size."""
        self._size_waits: asyncio.TimerHandle | None = None
        out = sys.__stdout__
        if out is None or not out.isatty() or self._file.isatty():
            out = self._file  # it may take the errors (`2>errors`), but then there is no terminal to draw on
        self._file: Any = LastingFile(out)
        self._put = 0
        """Number of writes put into the thread's queue."""
        self._wake: tuple[int, int] | None = None
        self._greeting = self._parting = ""
        self.replies: list[Callable[[str], None]] = []
        """Listeners to the terminal's replies, called in the loop."""
        self._frame: list[str] | None = None
        """Writes of the current frame: each write would cost a wake-up of the writing thread."""
        self.shadow = ShadowScreen(capable=is_capable(os.environ), links=takes_links(os.environ))
        # In the loop, never during its work: a stock handler that runs while this thread holds the lock of
        # the writer's queue would wait for that lock forever.
        self._loop = asyncio.get_running_loop()
        handle(self._loop, signal.SIGTSTP, self._stop)
        handle(self._loop, signal.SIGCONT, self._continue)

    def write(self, data: str) -> None:
        if data == FRAME_BEGINS:
            self._frame = []
        elif self._frame is None:
            if not self.shadow.is_repeated(data):
                self.write_own(self._add_overlays(data))
        elif data == FRAME_ENDS:
            frame, self._frame = "".join(self._frame), None
            if not self.shadow.is_repeated(frame):
                self.write_own(f"{FRAME_BEGINS}{frame}{FRAME_ENDS}")
        else:
            self._frame.append(self._add_overlays(data))

    def _add_overlays(self, data: str) -> str:
        data = drawing_only(data)
        return with_overlays(data, self.overlays) if self.overlays else data

    def _tell_reply(self, reply: str) -> None:
        for listener in tuple(self.replies):
            self._loop.call_soon_threadsafe(listener, reply)

    def write_own(self, sequence: str) -> None:
        """Write a sequence of Phoenix's own as it is: a clipboard, a title. Never holds outside text.

        While the screen is given back it is dropped. While the terminal takes nothing (a stalled connection) it is
        dropped too: Textual would block, and every conversation with it; all is drawn again when the terminal reads.
        """
        if not self._listening:
            return
        if self._put - self._file.writes < _MOST_WAITING:
            self._put += 1
            super().write(sequence)
            return
        self.shadow.forget()
        self._file.when_empty = self._draw_again
        if self._put == self._file.writes:
            self._draw_again()

    def accompany(self, greeting: str, parting: str) -> None:
        """Set the sequences to write whenever the screen is taken again, and whenever it is given back; never outside
        text.
        """
        self._greeting, self._parting = greeting, parting
        state.parting(parting)

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """Open an address in the user's browser, which Textual's own way would give Phoenix's environment."""
        from tools.process.desktop import open_in_browser  # noqa: PLC0415 - seldom asked for

        with contextlib.suppress(OSError):
            open_in_browser(url)

    def watch_mouse(self, wanted: bool) -> None:
        """Take the mouse, or leave it to the terminal, which then selects and copies by itself."""
        if not wanted:
            self._disable_mouse_support()
        self._mouse = wanted
        if wanted:
            self._enable_mouse_support()

    def _draw_again(self) -> None:
        self._loop.call_soon_threadsafe(self._app.refresh)

    @property
    def _listening(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def start_application_mode(self) -> None:
        self._wake = os.pipe()
        self._file, self._put = self._file.successor(), 0
        self.shadow.forget()
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual left it untyped
        if not self._listening:
            return  # stopped in the background: SIGCONT starts again
        # Sizes are read in the loop, after the signal: stock handlers interrupt each other, and an old size may win.
        told = self._size_read
        handle(self._loop, signal.SIGWINCH, self._tell_size)
        if self._get_terminal_size() != told:  # a signal amidst the change of handlers is lost
            self._tell_newest_size()
        state.screen_entered(True)
        if self._greeting:
            self.write_own(self._greeting)
        original = state.original_attributes()
        if original is not None:
            self.attrs_before = original

    def _stop(self) -> None:
        """Stop after other pending signals were handled: one that ends Phoenix would otherwise wait for SIGCONT."""
        self._loop.call_soon(self._stop_now)

    def _stop_now(self) -> None:
        """Give the screen back, as Ctrl+Z in any program, and stop after the signals that came meanwhile."""
        if self._ends:
            return
        if (borrower := foreground_programs.borrower()) is not None:
            borrower.pause()
        elif self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        self._loop.call_soon(self._stop_process)

    def _stop_process(self) -> None:
        """Stop; take the screen again before anything else is done."""
        if self._ends:
            return
        os.kill(os.getpid(), signal.SIGSTOP)
        self._continue()

    @property
    def _ends(self) -> bool:
        """True once the end was requested, of PhoenixApp; tests have others."""
        return bool(getattr(getattr(self._app, "shutdown", None), "wanted", False))

    def _continue(self) -> None:
        """Take the screen again; a SIGCONT without a stop changes nothing."""
        if (borrower := foreground_programs.borrower()) is not None:
            borrower.go_on()
        elif not self._listening:
            self._sigcont_application()

    def close(self) -> None:
        """End the writing thread, at a stop and at the end; not for longer than a terminal may take nothing."""
        ending = threading.Thread(target=super().close, daemon=True)
        ending.start()
        ending.join(_STALLED_SECONDS)
        self._writer_thread = None

    def _get_terminal_size(self) -> tuple[int, int]:
        """The one answer to how large the screen is; Textual and Rich fall back to two sizes that differ."""
        self._size_read = terminal_size((self.fileno, *STREAMS))
        return self._size_read

    def newest_size(self) -> tuple[int, int]:
        return self._get_terminal_size()

    def _tell_size(self) -> None:
        """Lay out for the newest size, at a limited rate; the last one of a storm always counts."""
        if self._size_waits is None:
            wait = self._size_told + 1 / _SIZES_A_SECOND - self._loop.time()
            self._size_waits = self._loop.call_later(max(wait, 0.0), self._tell_newest_size)

    def _tell_newest_size(self) -> None:
        self._size_waits, self._size_told = None, self._loop.time()
        size = Size(*self._get_terminal_size())
        self._app.post_message(Resize(size, size))

    def stop_application_mode(self) -> None:
        """Give the screen back, in one write: a terminal that takes nothing has room for no more."""
        self._frame = []
        super().stop_application_mode()
        leaving, self._frame = self._frame, None
        super().write("".join((*leaving, self._parting)))
        state.screen_entered(False)

    def disable_input(self) -> None:
        """Stop listening: wake the input thread, which then ends."""
        wake, self._wake = self._wake, None
        if wake is not None:
            os.write(wake[1], b"\0")
        super().disable_input()
        if wake is not None:
            os.close(wake[0])
            os.close(wake[1])

    def run_input_thread(self) -> None:
        """Read until woken through the pipe; between bytes wait exactly as long as a lone ESC has left."""
        if self._wake is None:
            return
        wake = self._wake[0]
        source, flood = TerminalInput(tell=self._tell_reply), flood_gate(self._app, self._loop)
        decode = getincrementaldecoder("utf-8")("replace").decode
        impatience = Impatience(self._loop)
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while not self.exit_event.is_set():
            due = min((at for at in (source.due, flood.due) if at is not None), default=None)
            wait = None if due is None else max(0.0, due - time.monotonic()) * 1000 + 0.5
            ready = dict(poll.poll(wait))
            if wake in ready:
                break
            if self.fileno in ready:
                received = self._receive()
                if not received:
                    break
                impatience.note(received)
                try:
                    came = [*source.feed(decode(received))]
                except Exception as error:  # noqa: BLE001 - Textual would end the app, and print its variables
                    came, source = [], TerminalInput(tell=self._tell_reply)
                    self._app.call_later(_raise, error)
                for event in flood.admit(came, self.exit_event.is_set):
                    self.process_message(event)
            for event in source.tick():
                self.process_message(event)
            flood.tick()

    def _receive(self) -> bytes:
        """Read from the terminal; no bytes once it is gone, which is handled as a hang-up."""
        try:
            received = os.read(self.fileno, _READ_BYTES)
        except OSError:
            received = b""
        if not received and self.input_tty:
            hang_up()
        return received
