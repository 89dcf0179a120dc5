"""Files that decide what git runs in a repository, and the submodules that its index names."""

from __future__ import annotations

import contextlib
import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.files.links import follow_links, links_towards
from tools.files.own_files import read_regular
from tools.git.repository import first_line, is_git_folder, read_git_pointer

FILES: Final = (
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/http-alternates",
)
HEAD: Final = "HEAD"
HOOKS: Final = "hooks"
HELD: Final = ("refs", "objects")
"""Folders without which git takes another folder for the repository."""
OLD_FOLDERS: Final = ("remotes", "branches")
"""Addresses as git kept them before it had a file of settings."""
COMMON_DIR: Final = "commondir"
"""Moves config, hooks and objects to another folder; git dies of an empty one, and "." means no move."""
HERE: Final = ".\n"
MOST_MODULES: Final = 200
"""Submodules, and linked worktrees, that are looked at; of more the whole folder is read-only."""
MOST_READ: Final = 4 << 20
"""Bytes of a configuration and its includes that are looked at; of more the working tree is read-only as a whole."""
MOST_INCLUDES: Final = 100
"""Files of a configuration that are looked at; of more the working tree is read-only as a whole."""
BETWEEN: Final = re.compile(r"[\s\"'\\;|&<>()={}!`#,]+")
"""Between the words of a line of shell, roughly: a word too many is no file."""
NAMED: Final = re.compile(
    r"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hookspath|path|attributesfile|excludesfile)\s*=\s*\"?([^\"\n#;]+)", re.I | re.M
)
DATA: Final = re.compile(
    r"^[ \t]*(?:\[[^\]\n]*\]"
    r"|(?:template|\w*file|\w*url|name|email|merge|remote|fetch|push|signingkey|ssl\w+)[ \t]*=(?!.*!).*)",
    re.I | re.M,
)
"""Heads of sections, and settings whose value is a file of text or none: what any other names may be started."""
HOME: Final = re.compile(r"\$HOME\b|\$\{HOME\}")


class Guarded(Struct, frozen=True):
    """A path that must stay unchanged, with the content of its placeholder while it does not exist."""

    path: Path
    is_file: bool
    content: str | None = None
    """Content of a file's placeholder; None: one that no program can open and git does not see."""
    is_pointer: bool = False
    """True when a link itself is kept, and not its target."""
    is_held: bool = False
    """True for a folder that stays where it is, while what is in it may change."""


class GitControl(Struct, frozen=True):
    """Parts of a repository that a command may change, and exceptions within them."""

    writable: tuple[Path, ...] = ()
    """Folders of git outside the working tree, of a linked worktree or a submodule."""
    guarded: tuple[Guarded, ...] = ()


def git_control(worktree: Path) -> GitControl:
    """The control part of the repository whose working tree is the resolved `worktree`."""
    pointer = worktree / ".git"
    if not os.path.islink(pointer) and (
        not os.path.exists(pointer) or (os.path.isdir(pointer) and not is_git_folder(pointer))
    ):
        return GitControl((), tuple(_of_repository(worktree, worktree)) if is_git_folder(worktree) else ())
    if os.path.islink(pointer) or not os.path.isfile(pointer):
        folder = follow_links(pointer) if os.path.isdir(pointer) else pointer
        linked = [Guarded(pointer, is_file=True, is_pointer=True)] if os.path.islink(pointer) else []
        return GitControl((), (*linked, *_of_repository(folder, worktree)))
    turned = [
        Guarded(link, is_file=True, is_pointer=True) for link in links_towards(worktree / read_git_pointer(pointer))
    ]
    own, common = _find_linked_folders(pointer)
    if own is None or common is None:
        return GitControl((), (Guarded(pointer, is_file=True), *turned))
    guarded = [Guarded(pointer, is_file=True), *turned, *_of_repository(common, worktree)]
    if own != common:
        guarded += _of_worktree(own)
    return GitControl((common,) if own.is_relative_to(common) else (common, own), tuple(dict.fromkeys(guarded)))


def users_control(workspace: Path, home: Path, environment: Mapping[str, str]) -> Iterator[Guarded]:
    """Existing files that the user's own settings of git name, which hold in every repository."""
    others = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    named = environment.get("GIT_CONFIG_GLOBAL", "")
    for config in (home / ".gitconfig", others / "git/config", *([Path(named)] if named else [])):
        yield from (one for one in _find_named_files(config, workspace) if os.path.lexists(one.path))


def _of_repository(folder: Path, worktree: Path) -> Iterator[Guarded]:
    """Guards of a git folder, including those of submodules and linked worktrees in it."""
    if not os.path.isdir(folder):
        yield Guarded(folder, is_file=False)
        return
    yield from (Guarded(folder / name, is_file=True, content="") for name in FILES)
    yield Guarded(folder / HOOKS, is_file=False)
    yield from (Guarded(folder / name, is_file=False) for name in OLD_FOLDERS if os.path.isdir(folder / name))
    yield Guarded(folder / COMMON_DIR, is_file=True, content=HERE)
    yield from (Guarded(folder / name, is_file=False, is_held=True) for name in HELD)
    yield from _find_named_files(folder / "config", worktree)
    yield from _programs(_links_in(folder / HOOKS))
    worktrees, modules = _folders(folder / "worktrees"), _modules(folder / "modules")
    for linked in worktrees[:MOST_MODULES]:
        yield from _of_worktree(linked)
    for module in modules[:MOST_MODULES]:
        yield from _of_repository(module, module)
    large = (name for name, found in (("worktrees", worktrees), ("modules", modules)) if len(found) > MOST_MODULES)
    yield from (Guarded(folder / name, is_file=False) for name in large)


def _of_worktree(folder: Path) -> Iterator[Guarded]:
    yield Guarded(folder / COMMON_DIR, is_file=True, content="../..\n")
    yield Guarded(folder / "config.worktree", is_file=True, content="")
    yield Guarded(folder / "gitdir", is_file=True, content="")


def _find_named_files(config: Path, worktree: Path) -> Iterator[Guarded]:
    """Files of settings and folders of hooks that a configuration names, those that are missing too, and programs.

    The working tree as a whole where the configuration is too large to be looked at.
    """
    waiting, seen, left = [config], set[Path](), MOST_READ
    while waiting:
        config = waiting.pop()
        if config in seen:
            continue
        seen.add(config)
        content = _read_text(config, left + 1, follow=True)
        left -= len(content)
        if left < 0 or len(seen) > MOST_INCLUDES:
            yield Guarded(worktree, is_file=False)
            return
        yield from _programs(_files_in(content, worktree))
        for key, named in NAMED.findall(content):
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                word = Path(named.strip()).expanduser()
                is_include = key.lower() == "path"
                unresolved = (config.parent if is_include else worktree) / word
                yield from (Guarded(link, is_file=True, is_pointer=True) for link in links_towards(unresolved))
                path = follow_links(unresolved)
                if path != worktree and not worktree.is_relative_to(path):
                    is_file = key.lower() != "hookspath"
                    yield Guarded(path, is_file=is_file, content="" if is_file else None)
                if is_include:
                    waiting.append(path)


def _files_in(settings: str, worktree: Path) -> list[Path]:
    """Existing files that any word of settings names; git starts commands at the top of the working tree."""
    words = dict.fromkeys(BETWEEN.split(HOME.sub("~", DATA.sub("", settings))))
    named = (os.path.expanduser(f"{worktree}/{word}" if word[:1] not in {"/", "~"} else word) for word in words if word)
    return [Path(path) for path in named if os.path.isfile(path)]


def _programs(paths: list[Path]) -> Iterator[Guarded]:
    """Existing files that settings and hooks start, and links towards them."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if os.path.isfile(path):
                yield from (Guarded(link, is_file=True, is_pointer=True) for link in links_towards(path))
                yield Guarded(follow_links(path), is_file=True)


def _links_in(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if os.path.islink(path)]
    except OSError:
        return []


def _find_linked_folders(pointer: Path) -> tuple[Path | None, Path | None]:
    """The git folders of a linked worktree or submodule: its own, and the shared one.

    A repository's contents could name any folder as its git folder, so the folder named must name this one back: only
    git writes that.
    """
    target = read_git_pointer(pointer)
    own = follow_links(pointer.parent / target) if target else None
    if own is None or not os.path.isfile(own / HEAD):
        return None, None
    back = first_line(own / "gitdir")
    if back:
        common = follow_links(own / (first_line(own / COMMON_DIR) or "."))
        mutual = Path(back) == pointer and own.parent == common / "worktrees"
        return (own, common) if mutual else (None, None)
    named = re.search(r"^[ \t]*worktree\s*=\s*\"?([^\"\n]+)", _read_text(own / "config", MOST_READ), re.M | re.I)
    if named and "modules" in own.parts and follow_links(own / named[1].strip()) == pointer.parent:
        return own, own
    return None, None


def _read_text(path: Path, limit: int, *, follow: bool = False) -> str:
    return os.fsdecode(read_regular(path, limit, follow=follow) or b"")


def _modules(folder: Path) -> list[Path]:
    """Git folders of submodules, whose names may have several parts; with more than are looked at, too many."""
    waiting, found = _folders(folder), list[Path]()
    for _ in range(MOST_MODULES):
        if not waiting:
            return found
        one = waiting.pop()
        if os.path.isfile(one / HEAD):
            found.append(one)
        else:
            waiting += _folders(one)
    return found + waiting + [folder] * bool(waiting) * MOST_MODULES


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if os.path.isdir(path) and not os.path.islink(path))[
            : MOST_MODULES + 1
        ]
    except OSError:
        return []


LARGEST: Final = 256 * 1024 * 1024
"""Bytes of an index that is read: some two million files."""
SIGNATURE: Final = b"DIRC"
HEADER: Final = struct.Struct(">4sII")
SUBMODULE: Final = (0o160000).to_bytes(4, "big")
MODE_OFFSET: Final = 24
NAME_OFFSET: Final = 40
"""Offset of the mode, and the name of the object, in an entry."""
EXTENDED: Final = 0x4000
HASHES: Final = (20, 32)
"""Bytes of an object's name; the configuration says which applies, so both are tried."""


def submodules(git_folder: Path) -> tuple[str, ...]:
    """Relative paths of the submodules in the index of `git_folder`, and in the parts that it is split into."""
    found: dict[str, None] = {}
    for index in (git_folder / "index", *sorted(git_folder.glob("sharedindex.*"))):
        data = read_regular(index, LARGEST, follow=False) or b""
        if SUBMODULE in data:
            found.update(dict.fromkeys(name for size in HASHES for name in _names(data, size)))
    return tuple(name for name in found if bool(name) and {"", ".", "..", ".git"}.isdisjoint(name.split("/")))


def _names(data: bytes, hash_size: int) -> Iterator[str]:
    """Names of submodules, as far as the entries make sense with object names of this size."""
    if len(data) < HEADER.size or data[:4] != SIGNATURE:
        return
    _, version, count = HEADER.unpack_from(data)
    place, before = HEADER.size, b""
    for _ in range(count):
        flags_at = place + NAME_OFFSET + hash_size
        if flags_at + 2 > len(data):
            return
        flags = int.from_bytes(data[flags_at : flags_at + 2], "big")
        name_at = flags_at + (4 if flags & EXTENDED and version > 2 else 2)
        kept = b""
        if version == 4:
            removed, name_at = _number(data, name_at)
            kept = before[: max(len(before) - removed, 0)]
        end = data.find(b"\0", name_at)
        if end < 0:
            return
        before = kept + data[name_at:end]
        if data[place + MODE_OFFSET : place + MODE_OFFSET + 4] == SUBMODULE:
            yield os.fsdecode(before)
        place = end + 1 if version == 4 else place + (end - place + 8) // 8 * 8


def _number(data: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and where the next byte is."""
    byte = data[place] if place < len(data) else 0
    place += 1
    value = byte & 0x7F
    while byte & 0x80 and place < len(data):
        byte = data[place]
        place += 1
        value = (value + 1 << 7) | byte & 0x7F
    return value, place
