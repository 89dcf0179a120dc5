"""New worktrees: made, filled with included files, and undone where a later step fails."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from tools.arguments import ToolFailure
from tools.clean import reveal_name
from tools.contract import ProcessRunner
from tools.files.location import Location, open_folder, open_regular
from tools.files.own_files import make_folder, open_file, read_regular
from tools.fresh_ids import slug_of
from tools.git.checkouts import (
    GONE,
    LOCK,
    MAKING,
    RECORD,
    Worktree,
    WorktreeOrigin,
    checkouts,
    home_of,
    own_folder,
    put_back,
    read_kept_origin,
    repository_of,
    worktree_at,
)
from tools.git.commands import (
    BRANCHES,
    GitReader,
    GitWriter,
    drop_new_reference,
    find_object,
    has_below,
    log_change,
    read_reference,
    set_reference,
)
from tools.git.ending import remove_worktree, standing_at
from tools.git.repository import PREFIX, GitFailure, Repository, first_line, read_small
from tools.wording import pluralize

FILE: Final = ".worktreeinclude"
MOST_PATTERNS: Final = 64 * 1024
"""Bytes."""
MOST_BYTES: Final = 100_000_000
MOST_FILES: Final = 10_000
MOST_LISTED: Final = 16 * 1024 * 1024
"""Bytes of names."""


async def copy_included(reader: GitReader, target: Path) -> str:
    """Copy the files that git ignores and `.worktreeinclude` names; a sentence about it, empty without such a file."""
    top = reader.repository.worktree
    patterns = await asyncio.to_thread(read_regular, top / FILE, MOST_PATTERNS, follow=False)
    if not patterns:
        return ""
    others = ("ls-files", "--others", "--ignored", "-z")
    named = await reader.ask(*others, f"--exclude-from={top / FILE}", most=MOST_LISTED)
    ignored = await reader.ask(*others, "--exclude-standard", *reader.exclude(), most=MOST_LISTED)
    if named is None or ignored is None or named.captured.dropped or ignored.captured.dropped:
        return f"Nothing of {FILE} was copied: git could not list these files."
    wanted = sorted(set(named.captured.head.split(b"\0")) & set(ignored.captured.head.split(b"\0")) - {b""})
    return await asyncio.to_thread(_copy_all, top, target, [os.fsdecode(name) for name in wanted])


def _copy_all(top: Path, target: Path, names: list[str]) -> str:
    room, copied, left = MOST_BYTES, 0, list[str]()
    for name in names[:MOST_FILES]:
        size = _copy(Location(top, Path(name).parts, name), Location(target, Path(name).parts, name), room)
        if size is None:
            left.append(name)
        else:
            room, copied = room - size, copied + 1
    left += names[MOST_FILES:]
    said = f"{pluralize(copied, 'ignored file')} copied by {FILE}."
    if left:
        said += (
            f" Not copied: {reveal_name(left[0])}{f' and {len(left) - 1:,} more' if len(left) > 1 else ''} "
            "(no regular files, unreadable, or more than 100 MB together)."
        )
    return said


def _copy(source: Location, target: Location, room: int) -> int | None:
    """Copy one regular file of at most `room` bytes; its size, None where that is not possible. Follows no link."""
    if {"..", ".git"} & {part.lower() for part in source.parts}:
        return None
    leaf, made = target.parts[-1], False
    with suppress(OSError, ToolFailure), open_regular(source) as reading, open_folder(target, create=True) as folder:
        status = os.fstat(reading.fileno())
        if status.st_size > room:
            return None
        mode = 0o600 | (status.st_mode & stat.S_IXUSR)
        descriptor = os.open(leaf, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, mode, dir_fd=folder)
        made = True
        with os.fdopen(descriptor, "wb") as writing:
            shutil.copyfileobj(_Bounded(reading, room), writing)
            return writing.tell()
    if made:
        with suppress(OSError), open_folder(target) as folder:
            os.unlink(leaf, dir_fd=folder)
    return None


class _Bounded:
    """Reads a file that may grow meanwhile, and fails behind its bound."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        part = self._stream.read(size)
        self._left -= len(part)
        if self._left < 0:
            raise OSError("it grew beyond the bound")
        return part


UNNAMED: Final = "work"
ABOVE: Final = PREFIX.rstrip("/")
RESERVED: Final = frozenset({"list", "merge", "remove"})
"""Words of `/worktree` that are no names."""
MOST_NUMBERS: Final = 1_000
MAKER: Final = "Phoenix <phoenix@localhost>"
"""Author in the log of a branch that is made."""


class Made(Struct, frozen=True):
    """A worktree to begin in."""

    worktree: Worktree
    folder: Path
    """The part of it that is the working directory: that of the source, where it has one."""
    notes: tuple[str, ...] = ()
    """Sentences about it."""
    is_new: bool = False
    """True where neither it nor its branch existed before."""


async def make_worktree(runner: ProcessRunner, folder: Path, name: str = "", base: str = "") -> Made:
    """Make a worktree of the repository of `folder`, or take up the one of this name.

    Where its branch exists without a worktree, as after a removal, the branch is checked out again, with the changes
    that were not committed then.

    Raises:
        GitFailure: it cannot be made; nothing is left of it.
    """
    source = await asyncio.to_thread(repository_of, folder)
    home = home_of(source)
    await asyncio.to_thread(_make_home, home)
    with _claim_name(source, home, name) as slug:
        return await _make_claimed(runner, source, folder, slug, base)


async def _make_claimed(runner: ProcessRunner, source: Repository, folder: Path, slug: str, base: str) -> Made:
    """Make or take up one whose name is claimed."""
    before = await asyncio.to_thread(worktree_at, source, slug)
    if before.complete:
        if base:
            raise GitFailure(f"The worktree {slug} exists already; leave the base out, or choose another name.")
        return Made(before, _within(before, source, folder), (f"The worktree {slug} exists and is used again.",))
    commit, origin = await _commit(runner, source, before, base)
    making = _Making(runner, source, before, commit, origin)
    notes = await making.run()
    made = await asyncio.to_thread(worktree_at, source, slug)
    return Made(made, _within(made, source, folder), notes, is_new=origin is not None)


async def _commit(
    runner: ProcessRunner, source: Repository, before: Worktree, base: str
) -> tuple[str, WorktreeOrigin | None]:
    """The commit to check out, and the origin of a branch that is new; None for one that exists."""
    branch = before.branch
    present = read_reference(source.common, f"{BRANCHES}{branch}")
    if read_reference(source.common, f"{BRANCHES}{ABOVE}"):
        raise GitFailure(f"A branch {ABOVE} is in the way of {branch}; rename it: git branch -m {ABOVE} OTHER.")
    if has_below(source.common, f"{BRANCHES}{branch}"):
        raise GitFailure(f"Branches below {branch}/ are in the way of it; choose another name.")
    if present:
        if base:
            raise GitFailure(f"The branch {branch} exists already; leave the base out, or choose another name.")
        used = next(
            (one for one in checkouts(source.common) if one.branch == branch and one.folder != before.folder), None
        )
        if used is not None:
            raise GitFailure(f"The branch {branch} is checked out in {reveal_name(used.folder)}; choose another name.")
        return present, None
    if not base and not source.head:
        raise GitFailure("This repository has no commits yet; commit once, then make a worktree.")
    found, on = find_object(source.common, base) if base else (source.head, _head_branch(source))
    peeled = await GitWriter(runner, source).attempt("rev-parse", "--verify", "--quiet", f"{found}^{{commit}}")
    commit = os.fsdecode(peeled.captured.head).strip()
    if not found or peeled.exit_code != 0:
        raise GitFailure(f"There is no branch, tag or commit {reveal_name(base)} here; `git branch` lists them.")
    return commit, WorktreeOrigin(commit, on)


def _head_branch(source: Repository) -> str:
    said = os.fsdecode(read_small(source.own / "HEAD").strip())
    name = said.removeprefix("ref:").strip()
    return name.removeprefix(BRANCHES) if said.startswith("ref:") and name.startswith(BRANCHES) else ""


class _Making:
    """One worktree while it is made; whatever fails, all of it goes again."""

    def __init__(
        self, runner: ProcessRunner, source: Repository, before: Worktree, commit: str, origin: WorktreeOrigin | None
    ) -> None:
        self._runner = runner
        self._source = source
        self._before = before
        self._commit = commit
        self._origin = origin
        self._own = Path()
        self._reference = f"{BRANCHES}{before.branch}"

    async def run(self) -> tuple[str, ...]:
        """Make it; sentences about it. Raises GitFailure."""
        await asyncio.to_thread(self._make_folders)
        try:
            await asyncio.to_thread(self._connect)
            notes = await self._fill()
            (self._own / LOCK).unlink()
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self._take_away))
            raise
        return notes

    def _make_folders(self) -> None:
        """Make the two folders; leftovers of a crash go first, as no work is in them."""
        before, admin = self._before, self._source.common / "worktrees"
        try:
            if before.own is not None:
                shutil.rmtree(before.folder)
                shutil.rmtree(before.own)
            if admin.is_symlink():
                raise GitFailure(f"{reveal_name(admin)} is a link, through which nothing is written; remove it.")
            admin.mkdir(exist_ok=True)
            _drop_stale(admin / f"phoenix-{before.name}", before.folder)
            with suppress(FileNotFoundError):
                before.folder.rmdir()
            before.folder.mkdir(mode=0o700)
            names = (f"phoenix-{before.name}{f'-{number}' if number else ''}" for number in itertools.count())
            for name in itertools.islice(names, MOST_NUMBERS):
                with suppress(FileExistsError):
                    (admin / name).mkdir()
                    self._own = (admin / name).resolve()
                    break
        except OSError as error:
            where = reveal_name(Path(error.filename or before.folder))
            why = f"is in the way, or cannot be made: {error.strerror}; choose another name"
            raise GitFailure(f"{where} {why}.") from error

    def _connect(self) -> None:
        """Write the files that make it a working tree of the repository, and its branch."""
        folder, own = self._before.folder, self._own
        (own / LOCK).write_text("Phoenix is making this worktree.\n", "ascii")
        (own / "commondir").write_text("../..\n", "ascii")
        (own / "gitdir").write_bytes(os.fsencode(folder / ".git") + b"\n")
        (own / "HEAD").write_text(f"ref: {self._reference}\n", "utf-8")
        if self._origin is not None:
            (own / RECORD).write_bytes(msgspec.json.encode(self._origin))
            set_reference(self._source.common, self._reference, self._commit, "")
            log_change(self._source.common, self._reference, ("", self._commit), MAKER, "branch: Created by Phoenix")
        else:
            kept = (
                read_kept_origin(folder.parent, self._before.name)
                or self._before.origin
                or WorktreeOrigin(self._commit)
            )
            (own / RECORD).write_bytes(msgspec.json.encode(kept))
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(own) + b"\n")

    async def _fill(self) -> tuple[str, ...]:
        repository = Repository(self._before.folder, self._own, self._source.common, self._commit)
        reader = GitReader(self._runner, self._source, self._source.worktree)
        await reader.prepare()
        writer = GitWriter(self._runner, repository, reader.for_checkout)
        await writer.run("read-tree", "--reset", "-u", self._commit)
        notes = [await put_back(writer, self._before.name), await copy_included(reader, self._before.folder)]
        if b"filter=" in read_small(self._before.folder / ".gitattributes", 64 * 1024):
            notes.append("Filters of .gitattributes did not run: with LFS, run `git lfs pull` in the worktree.")
        return tuple(filter(None, notes))

    def _take_away(self) -> None:
        shutil.rmtree(self._before.folder, ignore_errors=True)
        shutil.rmtree(self._own, ignore_errors=True)
        if self._origin is not None:
            drop_new_reference(self._source.common, self._reference, self._commit)


def _drop_stale(own: Path, folder: Path) -> None:
    """Remove the git folder of a worktree whose making ended before its own folder named it."""
    back = first_line(own / "gitdir", follow=False)
    if own.is_dir() and not own.is_symlink() and back in {"", str(folder / ".git")} and not (folder / ".git").exists():
        shutil.rmtree(own)


@contextmanager
def _claim_name(source: Repository, home: Path, name: str) -> Generator[str]:
    """Hold a name while its worktree is made, and give its slug; a crash lets it go.

    Without a name it is the first of a row that nothing has yet.

    Raises:
        GitFailure: another Phoenix has it, or it has no slug.
    """
    slugs = [slug_of(name)] if name else [f"{UNNAMED}-{number}" for number in range(1, MOST_NUMBERS)]
    for slug in slugs:
        if not slug or slug in RESERVED:
            why = "has no letters or digits of ASCII, or is a word of /worktree"
            raise GitFailure(f"The name {reveal_name(name)} {why}.")
        if not name and _is_taken(source, home, slug):
            continue
        descriptor = _lock(home / MAKING / slug)
        try:
            if descriptor >= 0 and (name or not _is_taken(source, home, slug)):
                yield slug
                return
        finally:
            if descriptor >= 0:
                os.close(descriptor)
    raise GitFailure("Another Phoenix is making this worktree; try again when it is done.")


def _lock(path: Path) -> int:
    """Lock the file of a name; -1 where another has it."""
    try:
        make_folder(path.parent)
        descriptor = open_file(path, os.O_RDWR)
    except OSError as error:
        raise GitFailure(f"{reveal_name(path)} cannot be opened: {error.strerror}; remove it.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _is_taken(source: Repository, home: Path, slug: str) -> bool:
    return os.path.lexists(home / slug) or bool(read_reference(source.common, f"{BRANCHES}{PREFIX}{slug}"))


def _make_home(home: Path) -> None:
    own_folder(home.parent)
    own_folder(home)


def _within(made: Worktree, source: Repository, folder: Path) -> Path:
    """The same place in the worktree as `folder` in its own working tree, where it is a folder there."""
    below = folder.resolve().relative_to(source.worktree)
    inside = made.folder / below
    return inside if inside.is_dir() and inside.resolve() == inside else made.folder


async def undo_worktree(runner: ProcessRunner, made: Made) -> None:
    """Remove a worktree with the branch that was made with it; one that existed before, or has work in it, stays.

    Raises:
        GitFailure: it cannot be removed.
    """
    worktree = made.worktree
    if not made.is_new or worktree.origin is None:
        return
    repository = await asyncio.to_thread(repository_of, worktree.folder)
    found = await standing_at(runner, repository, worktree.name)
    if found.ahead or found.dirty or not found.known or found.checked_out != worktree.branch:
        raise GitFailure(f"The worktree {worktree.name} has work in it; /worktree remove {worktree.name} removes it.")
    await remove_worktree(runner, found)
    await asyncio.to_thread(drop_new_reference, repository.common, f"{BRANCHES}{worktree.branch}", worktree.origin.base)
    with suppress(OSError):
        (home_of(repository) / GONE / f"{worktree.name}.json").unlink()
