"""The user's terminal in the hands of a shell line, whose bytes are copied both ways, or of the user's own editor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import tempfile
import termios
import tty
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.app import App, SuspendNotSupported

from phoenix_tui.keys.key_bytes import NAME, TWICE_WITHIN, ReturnKey
from phoenix_tui.lifecycle.stop_signals import handle, hang_up
from phoenix_tui.terminal import foreground_programs, state
from phoenix_tui.terminal.output_thread import OutputThread
from phoenix_tui.terminal.size import terminal_size
from tools.process.programs import foreground_start, without_keys
from tools.process.workspace_watch import trouble_at
from tools.terminal.values import TerminalSize

if TYPE_CHECKING:
    from engine.executor.tool_call import UserTerminal
    from tools.process.command_terminal import TerminalLoan


LOOK: Final = 0.25
"""Seconds that the wait for the writing thread may outlast its cancelling."""


@asynccontextmanager
async def suspend_screen(app: App[object]) -> AsyncGenerator[None]:
    """Give the screen back for the time of the block, and draw all of it again behind it.

    A terminal that takes nothing for a while (a slow line) delays the block: what Phoenix wrote before would come
    amidst the other program's output.

    Raises:
        OSError, termios.error: the terminal is gone.
        SuspendNotSupported: this one cannot be given back.
    """
    with app.batch_update(), app.suspend():
        while (writer := state.writer()) is not None:
            await asyncio.to_thread(writer.join, LOOK)
        yield
    app.refresh(layout=True)


READ_SIZE: Final = 4096
TAKEN_WITHIN: Final = 0.5
"""Seconds for the last output at Phoenix's end, where the terminal takes nothing."""
AT_ONCE: Final = 4096
"""Bytes of one system call: what is still written of a flood when the user takes the terminal back."""
REMINDED_AFTER: Final = 0.5
"""Seconds behind the alternate screen after which a program that runs on is no longer about to end."""
REMINDER: Final = f"\r\n[phoenix: {NAME} returns]\r\n".encode()
_GIVEN_BACK: Final = ("\x18" + state.FROM_PROGRAMS + state.RESTORE).encode()
"""CAN first: the program's output may end amidst a sequence."""
GIVEN: Final = 0
"""Descriptor of the terminal's keys."""


async def hand_over(app: App[object], terminal: UserTerminal) -> bool:
    """Lend the terminal to the running line until its program ends or the user takes it back.

    False where this terminal cannot be lent. Other conversations go on; nothing is painted meanwhile.
    """
    if foreground_programs.borrower() is not None or terminal.modes is None:
        return True
    try:
        async with suspend_screen(app):
            if (lent := terminal.lend(_size())) is not None:
                await Lending(lent).run()
    except (OSError, termios.error):
        return True  # the terminal is gone, and Phoenix ends
    except SuspendNotSupported:
        return False
    return True


class Lending:
    """One loan; implements `foreground_programs.Borrower`."""

    def __init__(self, lent: TerminalLoan) -> None:
        self._lent = lent
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._phoenix_ends = asyncio.Event()
        self._ended = asyncio.Event()
        self._return_key = ReturnKey()
        self._before = termios.tcgetattr(GIVEN)
        self._shown = 1 if os.isatty(1) else 2  # as the screen is drawn
        self._output = OutputThread(lambda: self._loop.call_soon_threadsafe(self._over.set), self._shown, AT_ONCE)

    async def run(self) -> None:
        """Copy until the program ends, the user takes the terminal back, or it is gone.

        Raises:
            OSError, termios.error: it is gone.
        """
        foreground_programs.borrow(self)
        ends = [asyncio.create_task(self._copy()), asyncio.create_task(self._over.wait())]
        try:
            state.screen_entered(True)
            tty.setraw(GIVEN, termios.TCSANOW)
            self._loop.add_reader(GIVEN, self._take_keys)
            handle(self._loop, signal.SIGWINCH, lambda: self._lent.resize(_size()))
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.wait(ends)
            self._lent.give_back()
            self._loop.remove_reader(GIVEN)
            try:
                with contextlib.suppress(OSError):
                    if self._over.is_set():
                        self._output.drop()
                    self._output.write(self._shown, _GIVEN_BACK)
                await self._wait_until_written()
                termios.tcsetattr(GIVEN, termios.TCSANOW, self._before)
                state.screen_entered(False)
            finally:
                foreground_programs.borrow(None)
                self._ended.set()

    def pause(self) -> None:
        """Give the terminal to the shell: Phoenix is about to be stopped."""
        with contextlib.suppress(OSError, termios.error):
            state.within(TAKEN_WITHIN, lambda: os.write(self._shown, _GIVEN_BACK))
            termios.tcsetattr(GIVEN, termios.TCSANOW, self._before)

    def go_on(self) -> None:
        """Take it again; the program draws all of it."""
        with contextlib.suppress(OSError, termios.error):
            tty.setraw(GIVEN, termios.TCSANOW)
            self._lent.draw_again(_size())

    async def end(self) -> None:
        self._over.set()
        self._phoenix_ends.set()
        await self._ended.wait()

    async def _wait_until_written(self) -> None:
        """Wait for a terminal that takes nothing, until Phoenix ends."""
        written = asyncio.create_task(self._output.drain())
        ends = asyncio.create_task(self._phoenix_ends.wait())
        try:
            await asyncio.wait((written, ends), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((written,), timeout=TAKEN_WITHIN)
        finally:
            for task in (written, ends):
                task.cancel()
            await asyncio.gather(written, ends, return_exceptions=True)  # lost output ends the loan, too
            self._output.close()

    async def _copy(self) -> None:
        drew = self._lent.is_drawing
        with contextlib.suppress(OSError):  # its thread has told
            while content := await self._lent.read():
                self._output.write(self._shown, content)
                await self._output.drain()
                if drew and not self._lent.is_drawing:
                    self._loop.call_later(REMINDED_AFTER, self._remind)
                drew = self._lent.is_drawing

    def _remind(self) -> None:
        """Name the key where the program goes on in lines."""
        if not (self._over.is_set() or self._ended.is_set() or self._lent.is_drawing):
            with contextlib.suppress(OSError):
                self._output.write(self._shown, REMINDER)

    def _take_keys(self) -> None:
        try:
            typed = os.read(GIVEN, READ_SIZE)
        except OSError:
            typed = b""
        if not typed:
            self._loop.remove_reader(GIVEN)
            self._over.set()
            hang_up()
            return
        keys, returns = self._return_key.feed(typed)
        if keys:
            self._lent.type(keys)
        if returns:
            self._over.set()
        elif self._return_key.holds:
            self._loop.call_later(TWICE_WITHIN, self._type_held)

    def _type_held(self) -> None:
        """Give the program a press that stayed alone."""
        if not self._over.is_set() and (keys := self._return_key.take_late()):
            self._lent.type(keys)


def _size() -> TerminalSize:
    columns, rows = terminal_size()
    return TerminalSize(rows, columns)


SAVING: Final = 1.0
"""Seconds for an editor after a hang-up to save, before it is killed."""
TAKING: Final = 0.5
"""Seconds in which its saved text is taken into the draft."""
GIT_OFF: Final = "/dev/null/switched off: Phoenix does not know what sandboxed commands left here"
"""A git folder that cannot exist; git names it in its refusal."""
_open: Final[dict[asyncio.subprocess.Process, asyncio.Task[object] | None]] = {}
"""Editors that have the terminal, and the task waiting for each."""


async def edit_outside(app: App[object], text: str) -> str | None:
    """The text as the editor left it; None when it could not be started or failed.

    The loop continues, and so do other conversations; nothing is painted meanwhile. Where Phoenix ends before the
    editor does, the saved text counts.
    """
    descriptor, name = tempfile.mkstemp(prefix="phoenix-", suffix=".md")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if not await _with_terminal(app, (*_editor(os.environ), name), path.parent):
            return None
        return (await asyncio.to_thread(path.read_text, "utf-8", "replace")).rstrip("\n")
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(path.unlink)


def with_changes(before: str, now: str, edited: str) -> str:
    """The edited draft with what came before or behind it meanwhile: a message that was refused, keys typed ahead."""
    if now.startswith(before):
        return edited + now[len(before) :]
    if now.endswith(before):
        return now[: len(now) - len(before)] + edited
    return f"{edited}\n{now}" if now else edited


async def open_outside(app: App[object], path: Path, line: int, environment: Mapping[str, str] = os.environ) -> bool:
    """Show a file in the user's own editor at a line; False when it could not be started or failed."""
    editor = _editor(environment)
    return await _with_terminal(app, (*editor, *place_arguments(editor[0], path, line)), path.parent)


async def end_editors() -> None:
    """Hang up programs on the terminal at Phoenix's end, and wait until their saved text was taken over."""
    waiting = [task for task in _open.values() if task is not None]
    if not _open:
        return
    foreground_programs.hang_up()
    ends = [asyncio.ensure_future(process.wait()) for process in _open]
    _, alive = await asyncio.wait(ends, timeout=SAVING)
    for process in tuple(_open) if alive else ():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if waiting:
        await asyncio.wait(waiting, timeout=TAKING)


async def _with_terminal(app: App[object], argv: Sequence[str], folder: Path) -> bool:
    """Run a program that takes the terminal, for a file in `folder`; False where it could not be started, or failed by
    itself.
    """
    begun = succeeded = False
    try:
        words = foreground_start(tuple(argv), os.environ)
        given = await asyncio.to_thread(editor_environment, folder)
        async with suspend_screen(app):
            process = await asyncio.create_subprocess_exec(*words, env=given)
            begun = True
            succeeded = await _wait_for_end(process)
    except (OSError, termios.error, SuspendNotSupported):
        return begun and succeeded  # the terminal is gone, and Phoenix ends
    return succeeded


async def _wait_for_end(process: asyncio.subprocess.Process) -> bool:
    """Wait for its end; True where it went well or was brought about by `end_editors`."""
    _open[process] = asyncio.current_task()
    with foreground_programs.has_terminal(process.pid) as guest:
        try:
            return await process.wait() == 0 or guest.hung_up
        finally:
            del _open[process]
            if process.returncode is None:
                process.terminate()


def editor_environment(folder: Path) -> dict[str, str]:
    """Variables of the user's editor, once it was looked at what sandboxed commands left in `folder` and where it
    starts; without git where that is not known. Blocks.
    """
    here = os.environ.get("PWD", folder)  # the folder itself may be gone
    given = without_keys(os.environ)
    return given | {"GIT_DIR": GIT_OFF} if trouble_at(Path(here), folder) else given


def _editor(environment: Mapping[str, str]) -> list[str]:
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi") or ["vi"]


def place_arguments(program: str, path: Path, line: int) -> tuple[str, ...]:
    """Arguments that open an editor at a line; all but those with windows understand `+LINE FILE`."""
    match Path(program).name:
        case "code" | "code-insiders" | "codium" | "cursor" | "windsurf":
            return ("--goto", f"{path}:{line}")
        case "hx" | "helix" | "subl" | "zed":
            return (f"{path}:{line}",)
        case "ed" | "gedit" | "notepad" | "open":
            return (str(path),)
        case _:
            return (f"+{line}", str(path))
