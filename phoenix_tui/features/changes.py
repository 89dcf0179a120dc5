"""Changes on disk, in sets: all of a conversation, each of its turns, and those not committed in git."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ports import StorageError
from engine.ports.files import Coverage, FileChange, FileKind, FilesError
from engine.rewind.rewind import Changed, RewindPoint
from tools.clean import clean_line
from tools.contract import DiffDisplay, ProcessRunner
from tools.files.content import TextContent, diff_display, is_binary
from tools.git.commands import GitReader, open_repository

if TYPE_CHECKING:
    from engine.records import ConversationRecord
    from engine.rewind.rewind import Rewinding
    from phoenix_tui.features.front_end import FrontEnd


DIFF: Final = (
    "--relative",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--ignore-submodules=dirty",  # git would run itself in one to find changes
)
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_UNKNOWN: Final = 200
"""Files that git does not know whose lines are read."""
LARGEST: Final = 1024 * 1024
"""Bytes of such a file."""
_NEW: Final = "new file mode "
_QUOTED: Final = re.compile(r'"(.*)"')


class Uncommitted(Struct, frozen=True):
    """Files by path; one without lines (no text, too large, another mode) has an empty diff."""

    files: tuple[DiffDisplay, ...]
    note: str = ""


async def find_uncommitted(runner: ProcessRunner, folder: Path, since: str = "") -> Uncommitted | None:
    """Find the changes below a folder that are not in the newest commit, or in the commit `since`; None without git
    or a repository.
    """
    reader = await open_repository(runner, folder)
    if reader is None:
        return None
    if reader.repository.unreadable:
        return Uncommitted((), reader.repository.unreadable)
    compared = await compare(reader, since or reader.repository.compared_with)
    others = ("ls-files", "--others", "--exclude-standard", *reader.exclude(), "-z")
    listed = await reader.ask(*others, most=MOST_BYTES)
    if compared is None or listed is None:
        return None
    names = sorted(name for name in listed.captured.head.split(b"\0") if name)
    new = await asyncio.to_thread(lambda: [_as_new(folder, name) for name in names[:MOST_UNKNOWN]])
    notes = [
        f"{len(names) - MOST_UNKNOWN:,} more untracked files are not shown." if len(names) > MOST_UNKNOWN else "",
        compared.note,
    ]
    files = sorted((*compared.files, *new), key=lambda one: one.path)
    return Uncommitted(tuple(files), " ".join(filter(None, notes)))


async def compare(reader: GitReader, *between: str) -> Uncommitted | None:
    """The changes that `git diff` shows between these; None where git fails."""
    differs = await reader.ask("diff", *DIFF, "--unified=3", *between, "--", most=MOST_BYTES)
    if differs is None:
        return None
    known = list(patches(differs.captured.head.decode("utf-8", "surrogateescape")))
    if not differs.captured.dropped:
        return Uncommitted(tuple(known))
    counts = await reader.ask("diff", *DIFF, "--numstat", "-z", *between, "--", most=MOST_BYTES)
    known = with_counts(known, counts.captured.head if counts is not None else b"")
    return Uncommitted(tuple(known), "The changes are long; only their first lines are shown.")


def with_counts(known: Sequence[DiffDisplay], counts: bytes) -> list[DiffDisplay]:
    """Every file that `git diff --numstat -z` prints, with its own counts, where the lines of some were left out."""
    by_path = {file.path: file for file in known}
    for line in counts.split(b"\0"):
        added, removed, name = (*line.split(b"\t", 2), b"", b"")[:3]
        if added.isdigit() and removed.isdigit() and name:
            path = os.fsdecode(name)
            before = by_path.get(path, DiffDisplay(path, "", 0, 0))
            by_path[path] = replace(before, added=int(added), removed=int(removed))
    return list(by_path.values())


def patches(text: str) -> Iterator[DiffDisplay]:
    """Split the output of `git diff`, one file at a time."""
    for part in re.split(r"(?m)^(?=diff --git )", text):
        head, *body = re.split(r"(?m)^(?=--- )", part, maxsplit=1)
        if not head:
            continue
        lines = body[0].split("\n") if body else []
        yield DiffDisplay(
            path=_path_of(head, lines),
            diff="\n".join(lines),
            added=sum(line.startswith("+") for line in lines[2:]),
            removed=sum(line.startswith("-") for line in lines[2:]),
            created=f"\n{_NEW}" in head,
        )


def _path_of(head: str, lines: Sequence[str]) -> str:
    """The path after the change, or before it where the file is gone; without renames both are equal."""
    for line in lines[1::-1]:
        name = _unquote(line[4:].removesuffix("\t"))
        if name != "/dev/null":
            return name[2:]
    both = head.partition("\n")[0].removeprefix("diff --git ")
    return _unquote(both[: (len(both) - 1) // 2])[2:]


def _unquote(name: str) -> str:
    found = _QUOTED.fullmatch(name)
    if found is None:
        return name
    raw, _ = codecs.escape_decode(found[1].encode("utf-8", "surrogateescape"))  # the one reader of C's escapes there is
    return os.fsdecode(raw)


def _as_new(folder: Path, name: bytes) -> DiffDisplay:
    path = os.fsdecode(name)
    raw = _read(folder / path)
    text = "" if raw is None or is_binary(raw) else TextContent.parse(raw).text
    return diff_display(path, "", text, created=True) if text else DiffDisplay(path, "", 0, 0, created=True)


def _read(path: Path) -> bytes | None:
    """A regular file of bearable size; nothing waits for a pipe and no link is followed."""
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return None


EVERYTHING: Final = "all of this conversation"
UNCOMMITTED: Final = "not committed in git"
NO_TEXT: Final = "This file is not text, or is too large to show."
PARENTS: Final = "Changes by sub-agents belong to their parent's turn; use /diff in the parent."
NAMES_SHOWN: Final = 4
TODAY: Final = 24 * 3600.0


class ShownFile(Struct, frozen=True):
    """One file of a set: its change (+ - ~), its lines, and the source of its diff."""

    name: str
    sign: str
    added: int
    removed: int
    remark: str = ""
    """Remark about changes by others; empty without any."""
    change: FileChange | None = None
    """Change read from Phoenix's kept contents."""
    patch: DiffDisplay | None = None
    """Patch from git."""


class ChangeSet(Struct, frozen=True):
    """Files that changed together; `note` names hidden ones, or the reason why nothing is known."""

    title: str
    files: tuple[ShownFile, ...]
    note: str = ""


class FolderChanges(Struct, frozen=True):
    """All changes in a folder, even without a conversation there."""

    folder: Path
    runner: ProcessRunner
    rewinding: Rewinding | None = None
    record: ConversationRecord | None = None

    async def sets(self) -> Sequence[ChangeSet]:
        """Present sets, including a current run."""
        git = await find_uncommitted(self.runner, self.folder)
        if self.rewinding is None or self.record is None:
            return change_sets(Changed((), Coverage()), (), git, time.time())
        try:
            changed = await self.rewinding.read_changes(self.record)
            points = (await self.rewinding.points(self.record)).points
        except (FilesError, StorageError) as error:
            return change_sets(Changed((), Coverage(), str(error)), (), git, time.time())
        return change_sets(changed, points, git, time.time())

    async def diff(self, file: ShownFile) -> DiffDisplay | None:
        """The lines of one file; None where it has none, and `without_lines` says why."""
        if file.change is None:
            found = file.patch
        else:
            found = await self.rewinding.diff(file.change) if self.rewinding is not None else None
        return found if found is not None and found.diff else None


def changes_in_view(front: FrontEnd) -> FolderChanges | None:
    """The changes in the folder of the conversation in view, also of one that another process owns.

    None after a notice of the reason.
    """
    conversation = front.conversation
    record = conversation.record if conversation is not None else None
    if record is not None and record.agent is not None:
        front.tell(PARENTS)
        return None
    folder = record.cwd if record is not None else front.launch.cwd
    return FolderChanges(folder, front.services.runner, front.services.rewinding, record)


def change_sets(
    changed: Changed, points: Sequence[RewindPoint], git: Uncommitted | None, now: float
) -> list[ChangeSet]:
    """All of a conversation first, its turns that changed files, newest first, then the uncommitted changes in git."""
    whole = [_show_change(one.change, one.remark) for one in changed.files if not one.change.only_folder]
    sets = [ChangeSet(EVERYTHING, tuple(whole), changed.refusal or _note(changed.coverage))]
    for point in points:
        own = tuple(_show_change(change) for change in files_of(point.files))
        if own:
            title = f"{when(point.at, now)}  {clean_line(point.text) or '(only an image)'}"
            sets.append(ChangeSet(title, own, _note(point.coverage)))
    if git is not None and git.files:
        sets.append(ChangeSet(UNCOMMITTED, tuple(_from_git(one) for one in git.files), git.note))
    return sets


def files_of(changes: Sequence[FileChange]) -> list[FileChange]:
    """Files and links, each once with all its lines; folders come and go with their contents."""
    found: dict[bytes, FileChange] = {}
    for change in changes:
        known = found.get(change.path)
        if known is not None:
            change = FileChange(
                change.path, known.before, change.after, known.added + change.added, known.removed + change.removed
            )
        found[change.path] = change
    return [one for one in found.values() if not one.only_folder]


def sign_of(change: FileChange) -> str:
    """Sign of a change: created, removed or changed."""
    if change.before is None:
        return "+"
    return "-" if change.after is None else "~"


def when(at: float, now: float) -> str:
    """14:02 today, 20 Nov before."""
    details = time.localtime(at)
    return time.strftime("%H:%M" if now - at < TODAY else "%d %b", details)


def without_lines(file: ShownFile) -> str:
    """Text in place of a file without lines to show."""
    return words_of(file.change) if file.change is not None else "The file is empty, not text, or too large to show."


def words_of(change: FileChange) -> str:
    """Text in place of a change without lines to show."""
    before, after = change.before, change.after
    if before is not None and after is not None and before.content == after.content and before.kind is after.kind:
        return f"The mode changed from {before.mode & 0o7777:o} to {after.mode & 0o7777:o}."
    if after is not None and after.kind is FileKind.LINK:
        return f"The link now points to {clean_line(after.content.decode('utf-8', 'replace'))}."
    if any(state is not None and not state.kept for state in (before, after)):
        return "The file is too large; its content is not kept."
    return NO_TEXT


def _show_change(change: FileChange, remark: str = "") -> ShownFile:
    return ShownFile(change.name, sign_of(change), change.added, change.removed, remark, change)


def _from_git(patch: DiffDisplay) -> ShownFile:
    gone = patch.diff.partition("\n")[2].startswith("+++ /dev/null")
    sign = "+" if patch.created else "-" if gone else "~"
    return ShownFile(patch.path, sign, patch.added, patch.removed, patch=patch)


def _note(coverage: Coverage) -> str:
    names = ", ".join(clean_line(name) for name in coverage.too_large[:NAMES_SHOWN])
    return coverage.refusal or (f"Too large to show: {names}." if names else "")
