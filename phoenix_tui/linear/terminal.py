"""Stdout as lines: everything is appended; the line being typed is the last one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from phoenix_tui.linear.line_buffer import LeaveTyped, LineBuffer, LineRequest, LineTyped, StopWanted
from phoenix_tui.terminal.output_thread import OutputThread, write_all
from phoenix_tui.terminal.state import Attributes
from tools.clean import clean

READ: Final = 65_536
LONE_ESC: Final = 0.05
"""Seconds after which an ESC byte alone is the Esc key."""
PASTE_BEGINS: Final = "\x1b[200~"
PASTE_ENDS: Final = "\x1b[201~"
LONGEST_SEQUENCE: Final = 32


class Keyboard:
    """Gives whole pieces of input: a sequence or a paste is never cut."""

    def __init__(self, listener: LineTerminal) -> None:
        self.is_terminal = os.isatty(0)
        self._listener = listener
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def listening(self) -> Generator[None]:
        """Read stdin; the terminal is as it was afterwards."""
        loop = asyncio.get_running_loop()
        before = _single_keys() if self.is_terminal else None
        regular = stat.S_ISREG(os.fstat(0).st_mode)
        if regular:
            loop.call_soon(self._read_file)
        else:
            loop.add_reader(0, self._read)
        try:
            yield
        finally:
            if not regular:
                loop.remove_reader(0)
            if before is not None:
                with contextlib.suppress(termios.error):  # not TCSADRAIN: a terminal stopped with Ctrl+S never drains
                    termios.tcsetattr(0, termios.TCSANOW, before)

    def resume(self) -> None:
        """Take single keys again after a stop (Ctrl+Z)."""
        if self.is_terminal:
            _single_keys()

    def _read_file(self) -> None:
        while self._receive(os.read(0, READ)):
            pass

    def _read(self) -> None:
        try:
            received = os.read(0, READ)
        except OSError:
            received = b""
        if not self._receive(received):
            asyncio.get_running_loop().remove_reader(0)

    def _receive(self, received: bytes) -> bool:
        """Pass on complete input; False at the end of the input."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not received:
            self._listener.end_input()
            return False
        text = self._pending + self._decode(received)
        self._pending = find_unfinished(text) if self.is_terminal else ""
        whole = text[: len(text) - len(self._pending)]
        if whole:
            self._listener.take_input(whole)
        if self._pending and not self._pending.startswith(PASTE_BEGINS):
            self._timer = asyncio.get_running_loop().call_later(LONE_ESC, self._give_up_waiting)
        return True

    def _give_up_waiting(self) -> None:
        """Handle an incomplete sequence as the Esc key."""
        pending, self._pending = self._pending, ""
        self._listener.take_input(pending[:1])
        if pending[1:]:
            self._listener.take_input(pending[1:])


def _single_keys() -> Attributes:
    """Switch echo off and read key by key; Ctrl+C and Ctrl+Z stay signals. Returns the attributes to restore."""
    before: Attributes = termios.tcgetattr(0)
    now = termios.tcgetattr(0)
    now[0] &= ~(termios.ICRNL | termios.IXON)
    now[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    termios.tcsetattr(0, termios.TCSANOW, now)
    return before


def find_unfinished(text: str) -> str:
    """The end of `text` that may be the beginning of a sequence or a paste."""
    paste = text.rfind(PASTE_BEGINS)
    if paste >= 0 and PASTE_ENDS not in text[paste:]:
        return text[paste:]
    start = text.rfind("\x1b")
    rest = text[start:] if start >= 0 else ""
    if not rest or len(rest) > LONGEST_SEQUENCE:
        return ""
    begins = rest == "\x1b" or (rest[1] in "[O" and not rest[2:].rstrip("0123456789;:?<>="))
    return rest if begins else ""


PATIENCE: Final = 5.0
"""Seconds without a key after which held output is printed, even during an incomplete line."""
ASCII_SIGNS: Final = {
    ord("…"): "...",
    ord("·"): "-",
    ord("–"): "-",
    ord("—"): "-",
    ord("×"): "x",
    ord("“"): '"',
    ord("”"): '"',
    ord("‘"): "'",
    ord("’"): "'",
    ord("→"): "->",
    ord("•"): "*",
}
FINISHING: Final = 1.0
"""Seconds that a terminal which accepts nothing may delay the end."""
PASTES_ON: Final = "\x1b[?2004h"
PASTES_OFF: Final = "\x1b[?2004l"
PROMPT_BEGINS: Final = "\x1b]133;A\a"
PROMPT_ENDS: Final = "\x1b]133;B\a"
OUTPUT_BEGINS: Final = "\x1b]133;C\a"
OUTPUT_ENDS: Final = "\x1b]133;D\a"
"""Marks by which a terminal jumps from prompt to prompt and selects one output (OSC 133, FinalTerm)."""
SPEECHLESS: Final = frozenset({"", "dumb", "unknown"})
"""Values of TERM that promise no escape sequence at all."""
UNMARKED: Final = SPEECHLESS | {"linux", "vt100", "vt102", "vt220"}
"""Values of TERM of terminals that would print a mark."""


class LineTerminal:
    """One line being typed at the end of all output."""

    def __init__(self, *, ascii_only: bool, rings: bool = True) -> None:
        self.line = LineBuffer()
        self.prompt = ""
        """Text before the typed line."""
        self._ascii = ascii_only
        self._rings = rings
        self._at_prompt = False
        """True when the prompt is on the last row."""
        self._asking = False
        """True while a line is requested that is neither message nor answer."""
        self._held: list[str] = []
        self._typed_at = 0.0
        self._output: OutputThread | None = None
        """Thread that writes while keys are read: a terminal that accepts nothing (Ctrl+S, a lost link) must not block
        a run.
        """
        self._requests: deque[LineRequest] = deque()
        self._heard = asyncio.Event()
        self._typed = asyncio.Event()
        """Set with each request, for whoever waits for one of a kind."""
        self._piped = ""
        """The line of a pipe whose end has not come."""
        self.keyboard = Keyboard(self)
        self._end = "\r\n" if self.keyboard.is_terminal else "\n"
        self._marks = self.keyboard.is_terminal and os.isatty(1) and os.environ.get("TERM", "") not in UNMARKED
        """True where prompts and outputs are marked for the terminal."""
        self._answering = False
        """True from a typed line until the next prompt."""

    def say(self, *lines: str) -> None:
        """Append lines, each in one row and without anything that acts; they wait while a line is being typed."""
        self._held += [clean(line).replace("\n", " ") for line in lines]
        self.tick()

    def tick(self) -> None:
        """Print held lines, unless a line is being typed."""
        if self._held and (not self.line.text or time.monotonic() - self._typed_at > PATIENCE):
            held, self._held = self._held, []
            before = self._end if self._at_prompt else ""
            self._at_prompt = False
            self._write(before + "".join(f"{line}{self._end}" for line in held))
            if self.line.text:
                self.show_prompt()

    def show_prompt(self) -> None:
        """Put the prompt on the last row, with the half-typed line behind it."""
        self.tick()
        if not self._at_prompt:
            self._at_prompt = True
            self._write(self._mark_prompt() + self.line.text.replace("\n", " "))

    def _mark_prompt(self) -> str:
        """The prompt between its marks; a question within the work has none."""
        if not self._marks or self._asking:
            return self.prompt
        ended, self._answering = OUTPUT_ENDS if self._answering else "", False
        return f"{ended}{PROMPT_BEGINS}{self.prompt}{PROMPT_ENDS}"

    def invite(self, prompt: str) -> None:
        """Show this prompt, unless a line is requested."""
        if not self._asking:
            self.prompt = prompt
            self.show_prompt()

    async def ask(self, prompt: str, text: str = "") -> LineRequest:
        """Request one line, with `text` to be changed in a terminal; returns the typed line."""
        self.prompt = prompt
        self._asking = True
        self.show_prompt()
        if text and self.keyboard.is_terminal:  # the lines of a pipe are there already: they would leave it behind
            self.put(text)
        request = await self.next_request()
        self._asking = False
        return request

    def put(self, text: str) -> None:
        """Replace the line being typed."""
        self.show_prompt()
        self._write(self.line.put(text))

    def ring(self) -> None:
        """The bell, where someone listens."""
        if self._rings and os.isatty(1):
            self._write("\a")

    async def wait_for_request(self) -> None:
        """Wait for a request; it stays until it is taken."""
        await self._heard.wait()

    async def stop_typed(self) -> None:
        """Wait until Esc is among the requests, and take it: a message that is being sent is not waited for."""
        while not any(isinstance(one, StopWanted) for one in self._requests):
            self._typed.clear()
            await self._typed.wait()
        self._requests.remove(StopWanted())
        if not self._requests:
            self._heard.clear()

    async def next_request(self) -> LineRequest:
        """The next line, stop or end."""
        await self.wait_for_request()
        request = self._requests.popleft()
        if not self._requests:
            self._heard.clear()
        if isinstance(request, LineTyped) and not self.keyboard.is_terminal:  # not echoed by a terminal
            self.show_prompt()
            self._at_prompt = False
            self._write(f"{clean(request.text)}{self._end}")
        return request

    def wake(self) -> None:
        """End every wait for a request."""
        self._request(StopWanted())

    @contextmanager
    def listening(self) -> Generator[None]:
        """Take keys; pastes come whole where the terminal can say so."""
        pastes = self.keyboard.is_terminal and os.isatty(1) and os.environ.get("TERM", "") not in SPEECHLESS
        with self.keyboard.listening():
            self._output = output = OutputThread(lambda: None)
            self._write(PASTES_ON if pastes else "")
            try:
                yield
            finally:
                self._write((self._end if self._at_prompt else "") + (PASTES_OFF if pastes else ""))
                self._output = None
                output.finish(FINISHING)

    def resume(self) -> None:
        """Continue after a stop (Ctrl+Z)."""
        self.keyboard.resume()
        self._at_prompt = False
        self.show_prompt()

    def take_input(self, text: str) -> None:
        """Take keys, or lines of a pipe."""
        self._typed_at = time.monotonic()
        if not self.keyboard.is_terminal:
            *whole, self._piped = (self._piped + text).replace("\r\n", "\n").split("\n")
            for line in whole:
                self._request(LineTyped(line))
            return
        if not self._at_prompt and not self.line.text and text[0].isprintable():
            self.show_prompt()
        echo = self.line.feed(text)
        self._write(echo if self._at_prompt else "")
        for request in self.line.requests:
            if isinstance(request, LineTyped) and self._at_prompt:
                self._at_prompt = False
                self._answering = self._marks and not self._asking
                self._write(self._end + (OUTPUT_BEGINS if self._answering else ""))
            self._request(request)
        self.line.requests.clear()
        self.tick()

    def _request(self, request: LineRequest) -> None:
        self._requests.append(request)
        self._heard.set()
        self._typed.set()

    def end_input(self) -> None:
        """Take the end of the input: its last line, then a request to leave."""
        if self._piped:
            self._request(LineTyped(self._piped))
            self._piped = ""
        self._request(LeaveTyped())

    def _write(self, text: str) -> None:
        if self._ascii:
            text = text.translate(ASCII_SIGNS).encode("ascii", "replace").decode("ascii")
        content = text.encode(sys.stdout.encoding or "utf-8", "replace")
        with contextlib.suppress(OSError):  # the terminal may have hung up
            if self._output is not None:
                self._output.write(1, content)
            else:
                write_all(1, content)
