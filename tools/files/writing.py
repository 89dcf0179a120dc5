"""Changes of files: only as they were read, written whole or not at all, then formatted."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from tools.arguments import ToolFailure, explain, failure_output
from tools.contract import DiffDisplay, ToolContext, ToolInputError, ToolOutput, ToolRequest
from tools.files.content import TextContent, diff_display, is_binary, speakable
from tools.files.location import Location, admit, open_folder, open_regular, resolve, show_path


def replace_file(location: Location, content: bytes) -> os.stat_result:
    """Write `content` beside `location`, sync it, and rename it into place; returns the new file's state.

    Missing folders are made. Mode bits and owner of an existing file stay; a hard link's other names keep the
    old content.

    Raises:
        OSError: nothing changed.
        ToolFailure: the file is read-only or no regular file.
    """
    name = location.parts[-1]
    temporary = f".phoenix-{secrets.token_hex(8)}.tmp"
    with open_folder(location, create=True) as folder:
        before = _existing(location, folder)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                if before is not None:
                    # The owner first: a change of it clears set-id bits.
                    with suppress(PermissionError):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                stream.flush()
                os.fsync(descriptor)
                after = os.fstat(descriptor)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(listing)
        finally:
            os.close(listing)
    return after


def _existing(location: Location, folder: int) -> os.stat_result | None:
    name = location.parts[-1]
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(state.st_mode):
        raise ToolFailure(f"{location.shown} is not a regular file.")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolFailure(f"{location.shown} is read-only; it is unchanged.")
    return state


class Version(Struct, frozen=True):
    """One state of a file: its content where it was small enough to hash, and its look from outside."""

    inode: int
    size: int
    modified_ns: int
    digest: bytes = b""

    @classmethod
    def of(cls, state: os.stat_result, content: bytes | None = None) -> Version:
        """The version seen by `fstat`, with the digest of `content` when all of it was read."""
        digest = b"" if content is None else hashlib.blake2b(content, digest_size=16).digest()
        return cls(state.st_ino, state.st_size, state.st_mtime_ns, digest)

    def same_as(self, other: Version) -> bool:
        """True when both have the same content, as far as digests or inode, size and time show."""
        if self.digest and other.digest:
            return self.digest == other.digest
        return (self.inode, self.size, self.modified_ns) == (other.inode, other.size, other.modified_ns)


class _Written(Struct, frozen=True):
    by: str
    """Author in words."""
    version: Version


class ReadLedger:
    """Remembers reads and writes of all conversations of this process, and locks files against each other."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Path], Version] = {}
        self._written: dict[Path, _Written] = {}
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def lock(self, path: Path) -> asyncio.Lock:
        """The lock to hold from reading the old content to having written the new."""
        return self._locks.setdefault(path, asyncio.Lock())

    def note_read(self, conversation_id: str, path: Path, version: Version) -> None:
        """The conversation now knows this version."""
        self._seen[conversation_id, path] = version

    def note_write(self, conversation_id: str, path: Path, version: Version, actor: str = "") -> None:
        """The conversation made this version, and so knows it; `actor` names it to others."""
        self._seen[conversation_id, path] = version
        self._written[path] = _Written(actor or f"conversation {conversation_id}", version)

    def forget(self, conversation_id: str) -> None:
        """Forget the reads of a conversation that closes."""
        # Reads are noted from threads, so the keys are copied in one step.
        for key in list(self._seen):
            if key[0] == conversation_id:
                self._seen.pop(key, None)

    def check(self, conversation_id: str, path: Path, now: Version, name: str) -> None:
        """Make sure the conversation knows the file as it is `now`.

        Raises:
            ToolFailure: never read, or changed since by another, who is named.
        """
        seen = self._seen.get((conversation_id, path))
        if seen is None:
            written = self._written.get(path)
            known = written is not None and written.version.same_as(now)
            by = f", written by {written.by}," if written is not None and known else ""
            raise ToolFailure(f"{name} exists{by} and was not read in this conversation; read it with read_file first.")
        if seen.same_as(now):
            return
        raise ToolFailure(f"{name} was changed by {self._writer(path, now)} since it was last read; read it again.")

    def _writer(self, path: Path, now: Version) -> str:
        written = self._written.get(path)
        if written is None or not written.version.same_as(now):
            return "a command or another program"
        return written.by


MOST_EDITED = 16 * 1024 * 1024
"""Bytes; a larger file is nothing to rewrite through a conversation."""

Change = Callable[[TextContent | None], str]
"""Function from the old content to the new text; None means a file that does not exist. May raise ToolFailure."""

_T = TypeVar("_T")


class Existing(Struct, frozen=True):
    """A file as it is now."""

    content: TextContent
    version: Version


def read_existing(location: Location) -> Existing | None:
    """The text file at `location`, None when there is none.

    Raises:
        OSError: it cannot be read.
        ToolFailure: it is no text file, or too large to edit.
    """
    try:
        with open_regular(location) as stream:
            state = os.fstat(stream.fileno())
            if state.st_size > MOST_EDITED:
                raise ToolFailure(f"{location.shown} is too large to edit ({state.st_size:,} bytes); use bash.")
            raw = stream.read()
    except FileNotFoundError:
        return None
    if is_binary(raw):
        raise ToolFailure(f"{location.shown} is a binary file ({len(raw):,} bytes); it can only be changed with bash.")
    return Existing(TextContent.parse(raw), Version.of(state, raw))


def preview(location: Location, change: Change) -> DiffDisplay:
    """Return the diff of `change` without applying it.

    Raises:
        OSError: the file cannot be read.
        ToolFailure: the change does not apply.
    """
    existing = read_existing(location)
    return _difference(location, existing, change(existing.content if existing else None))


async def rewrite(location: Location, context: ToolContext, ledger: ReadLedger, change: Change) -> DiffDisplay:
    """Apply `change` under the file's lock; a cancelled call ends only once the file is whole again.

    Raises:
        OSError: nothing changed.
        ToolFailure: not read, changed since, or the change does not apply; nothing changed.
    """
    async with ledger.lock(location.path):
        return await _to_the_end(lambda: _rewrite(location, context, ledger, change))


def _rewrite(location: Location, context: ToolContext, ledger: ReadLedger, change: Change) -> DiffDisplay:
    existing = read_existing(location)
    if existing is not None:
        ledger.check(context.conversation_id, location.path, existing.version, location.shown)
    text = change(existing.content if existing else None)
    difference = _difference(location, existing, text)
    if existing is None or text != existing.content.text:
        manner = existing.content if existing else TextContent("")
        raw = manner.encode(text)
        version = Version.of(replace_file(location, raw), raw)
        ledger.note_write(context.conversation_id, location.path, version, context.actor)
    return difference


def _difference(location: Location, existing: Existing | None, text: str) -> DiffDisplay:
    old = existing.content.text if existing else ""
    return diff_display(location.shown, old, text, created=existing is None)


async def _to_the_end(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread; cancellation waits for it, since a thread cannot be stopped."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


LONGEST_DIFF: Final = 3_000
"""Characters of the formatter's change that the model reads."""
CHANGED_SINCE: Final = "the file was changed before it had an answer"


class Formatted(Struct, frozen=True):
    """Outcome of a formatter: a text, or the reason for having none."""

    name: str
    text: str = ""
    trouble: str = ""


class TextFormatter(Protocol):
    """Formats the text of a file that an edit has written."""

    async def format(self, path: Path, text: str, context: ToolContext) -> Formatted | None:
        """Format a text, within a time limit; None where no formatter is set for such files. Never raises."""
        ...


class NotedChange:
    """A change that remembers the texts it was between."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self.before = self.after = ""
        self.is_crlf = False

    def __call__(self, existing: TextContent | None) -> str:
        """Make the change."""
        self.before = existing.text if existing is not None else ""
        self.is_crlf = existing is not None and existing.crlf
        self.after = self._change(existing)
        return self.after


async def with_format(
    output: ToolOutput,
    noted: NotedChange,
    location: Location,
    context: ToolContext,
    ledger: ReadLedger,
    formatter: TextFormatter,
) -> ToolOutput:
    """The output of an edit with what the formatter changed, which is written as a further edit of the same call."""
    display = output.display
    if not isinstance(display, DiffDisplay) or noted.before == noted.after or speakable(noted.after) != noted.after:
        return output
    made = await formatter.format(location.path, noted.after, context)
    if made is None:
        return output
    text = made.text.replace("\r\n", "\n") if noted.is_crlf else made.text
    trouble = made.trouble
    if not trouble and text != noted.after:
        try:
            await rewrite(location, context, ledger, lambda existing: _format_unchanged(existing, noted.after, text))
        except ToolFailure as failure:
            trouble = str(failure)
        except OSError as error:
            trouble = explain(error, location.shown)
    if trouble:
        return replace(output, text=f"{output.text}\n[Formatter {made.name}: {trouble}; the file is as you wrote it.]")
    if text == noted.after:
        return output
    whole = diff_display(display.path, noted.before, text, created=display.created)
    return replace(
        output, text=f"{output.text}\n{_describe_formatting(made.name, display.path, noted.after, text)}", display=whole
    )


def _format_unchanged(existing: TextContent | None, written: str, text: str) -> str:
    """The formatted text, where the file is still as the edit left it."""
    if existing is None or existing.text != written:
        raise ToolFailure(CHANGED_SINCE)
    return text


def _describe_formatting(name: str, path: str, written: str, text: str) -> str:
    difference = diff_display(path, written, text).diff.partition("@@")
    shown = difference[1] + difference[2].rstrip("\n")
    if len(shown) > LONGEST_DIFF:
        shown = shown[:LONGEST_DIFF].rpartition("\n")[0] + "\n… the rest is left out; read the file"
    return f"[Formatter {name} changed it after your edit:\n{shown}\n]"


def change_request(path: str, working_dir: Path, change: Change) -> ToolRequest:
    """The path and the whole diff of a change that is not made yet, or its trouble where it cannot be made.

    Raises:
        ToolInputError: there can be no such path.
    """
    target = resolve(path, working_dir)
    location = Location(Path(target.anchor), target.parts[1:], show_path(target, working_dir))
    try:
        difference = preview(location, change)
    except ToolFailure as failure:
        return ToolRequest(location.shown, (target,), trouble=str(failure))
    except OSError as error:
        return ToolRequest(location.shown, (target,), trouble=explain(error, location.shown))
    return ToolRequest(summary=location.shown, paths=(target,), preview=difference)


async def foresee_change(path: str, context: ToolContext, ledger: ReadLedger) -> None:
    """Make sure the conversation has read the file that it is about to change.

    Raises:
        ToolInputError: it has not, or the file has changed since.
    """
    try:
        await asyncio.to_thread(_check_seen, path, context, ledger)
    except ToolFailure as failure:
        raise ToolInputError(str(failure)) from failure
    except OSError as error:
        raise ToolInputError(explain(error, path)) from error


def _check_seen(path: str, context: ToolContext, ledger: ReadLedger) -> None:
    location = admit(path, context)
    existing = read_existing(location)
    if existing is not None:
        ledger.check(context.conversation_id, location.path, existing.version, location.shown)


async def change_file(
    path: str, context: ToolContext, ledger: ReadLedger, change: Change, formatter: TextFormatter | None = None
) -> ToolOutput:
    """Make a change and describe it; a failure leaves the file unchanged."""
    noted = NotedChange(change)
    try:
        location = await asyncio.to_thread(admit, path, context)
        difference = await rewrite(location, context, ledger, noted)
    except ToolFailure as failure:
        return failure_output(str(failure))
    except OSError as error:
        return failure_output(explain(error, path))
    output = ToolOutput(_summary(difference), display=difference)
    if formatter is None:
        return output
    return await with_format(output, noted, location, context, ledger, formatter)


def _summary(difference: DiffDisplay) -> str:
    if difference.created:
        return f"Created {difference.path}: +{difference.added} lines."
    if not difference.added and not difference.removed:
        return f"{difference.path} already has this content; nothing was written."
    return f"Changed {difference.path}: +{difference.added} -{difference.removed} lines."
