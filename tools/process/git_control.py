"""Files that decide what git runs in a repository, and traps: parts through which git, or another version system,
starts a program (SECURITY S1, S2).

Parts of repositories are judged by what they contain: a command may make repositories, and clone, commit and rebase in
them, but leaves none whose settings or hooks name a program. Traps are looked for in the helper process of
`tools.process.workspace_look`, which knows what was there before.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.clean import reveal_name
from tools.files.links import follow_links, links_towards
from tools.files.location import Location, open_folder
from tools.files.own_files import read_regular
from tools.git.repository import first_line, is_git_folder, is_head, may_be_git_folder, read_git_pointer
from tools.process.scratch import PREFIX

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


MOST_CONFIG: Final = 256 * 1024
SAMPLE: Final = ".sample"
_OTHER_VIEW: Final = re.compile(r"/proc/\d+/")
_SECTION: Final = re.compile(
    rb"\[(core|remote|branch|submodule|user|extensions|init|lfs|gc|advice)( \"[^\"\\\n]*\")?\]"
)
_SETTING: Final = re.compile(
    rb"(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode|autocrlf|eol"
    rb"|url|pushurl|fetch|push|mirror|promisor|partialclonefilter|tagopt|prune|remote|merge|rebase|active"
    rb"|name|email|objectformat|refstorage|partialclone|worktreeconfig|sparsecheckout|sparsecheckoutcone|preciousobjects|compatobjectformat"
    rb"|defaultbranch|auto|autodetach|access|detachedhead)"
    rb"\s*=[^\\\n]*",
    re.IGNORECASE,
)
"""Settings that git itself writes into a new repository; none names a program or another file of settings."""
_WORKTREE: Final = re.compile(rb"worktree\s*=\s*\"?([^\"\\\n#;]+)\"?", re.IGNORECASE)
_ADDRESS: Final = re.compile(rb"(?:url|pushurl)\s*=\s*(?:ext::|-)", re.IGNORECASE)
"""Addresses that name a program or an option; git takes out quotation marks anywhere in a value."""
_NAMED: Final = re.compile(rb"^[ \t]*(?:\[[^\]\n]*\][ \t]*)?([\w-]+)[ \t]*=[ \t]*\"?([^\"\n#;]+)", re.MULTILINE)
_PATHS: Final = frozenset({b"hookspath", b"path", b"attributesfile", b"excludesfile", b"worktree", b"fsmonitor"})
"""Settings with a path, also without a slash."""
MOVING: Final = ("config", "config.worktree", "commondir", "objects/info/alternates")
"""Files of a git folder that name other places."""
PARTS: Final = ("config", "config.worktree")
_RUNS: Final = re.compile(rb"^\s*(?:x|exec)\s", re.MULTILINE)
TODO: Final = "git-rebase-todo"
TODO_LISTS: Final = (f"rebase-merge/{TODO}", f"rebase-apply/{TODO}")
"""Lists that a rebase goes on with; a line of one may run a command."""
FILLED: Final = ("hooks", "remotes", "branches")
"""Folders of programs, and of addresses as git kept them before it had a file of settings."""
STRATEGIES: Final = ("rebase-merge/strategy", "sequencer/opts")
"""Files whose name of a strategy git turns into that of a program, which a slash makes a path."""
AT_WORK: Final = tuple(f"/{name}" for name in (*TODO_LISTS, *STRATEGIES))
"""Ends of paths of what git itself writes for a rebase or cherry-pick that goes on."""
_OPTION: Final = re.compile(rb"^[ \t]*strategy-option[ \t]*=[^\\\n]*$", re.MULTILINE)
"""A setting of `sequencer/opts` that only reaches the strategy as an option."""


class StuckError(Exception):
    """Raised where a trap stays armed; the message is a clause about it."""


def find_armed(folder: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    """Parts at `folder` through which git there starts a program, or uses a git folder out of reach of a command.

    `roots` are the resolved folders that a command can write.
    """
    if may_be_git_folder(folder) and is_within(follow_links(folder), roots):
        yield from find_armed_parts(follow_links(folder), roots)
    pointer = folder / ".git"
    if os.path.islink(pointer):
        yield pointer
        return
    target = read_git_pointer(pointer)
    if target:
        named = _resolve(folder / target)
        if named is None or not is_within(named, roots):
            yield pointer  # it names a git folder that no command made
            return
        pointer = named
    if may_be_git_folder(pointer) and is_within(follow_links(pointer), roots):
        yield from find_armed_parts(follow_links(pointer), roots)


def find_armed_parts(folder: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    """Parts of a git folder that name programs, or that lead to another folder which may."""
    for name in PARTS:
        settings = read_regular(folder / name, MOST_CONFIG, follow=False)
        if os.path.lexists(folder / name) and _find_risks(settings, folder, roots) != frozenset():
            yield folder / name
    for name in FILLED:
        if os.path.islink(folder / name) or _holds_programs(folder / name):
            yield folder / name
    moved = folder / "commondir"
    own = b"../.." if folder.parent.name == "worktrees" else b"."
    if os.path.lexists(moved) and read_regular(moved, len(own) + 2, follow=False) not in {own, own + b"\n"}:
        yield moved
    others = folder / "objects/info/alternates"
    if os.path.lexists(others) and not _stays_within(others, folder / "objects", roots):
        yield others
    yield from _find_at_work(folder)


def _find_at_work(folder: Path) -> Iterator[Path]:
    for name in TODO_LISTS:
        content = read_regular(folder / name, MOST_CONFIG + 1, follow=False) or b""
        if len(content) > MOST_CONFIG or _RUNS.search(content):
            yield folder / name
    for name in STRATEGIES:
        content = read_regular(folder / name, MOST_CONFIG, follow=False) or b""
        if b"/" in _OPTION.sub(b"", content) or len(content) == MOST_CONFIG:
            yield folder / name


def find_named(part: Path, worktree: Path) -> Iterator[Path]:
    """Paths that a control file of git names, unresolved: settings, `commondir`, `alternates` and a `.git` file."""
    if part.name == ".git":
        yield worktree / read_git_pointer(part)
        return
    content = read_regular(part, MOST_CONFIG, follow=False) or b""
    if part.name == "alternates":
        yield from (part.parent.parent / os.fsdecode(line) for line in content.split(b"\n"))
    if part.name == "commondir":
        yield part.parent / os.fsdecode(content.rstrip())
    if part.name not in PARTS:
        return
    for key, value in _NAMED.findall(content):
        for word in (value, *value.split()):
            if b"/" in word or key.lower() in _PATHS:
                name = os.path.expanduser(os.fsdecode(word.strip()))
                yield from (part.parent / name, worktree / name)


def find_inner(folder: Path, folders: Iterator[str]) -> Iterator[Path]:
    """Git folders inside a git folder, of submodules and linked worktrees; `folders` are those below it."""
    for path in folders:
        inner = Path(path)
        if inner != folder and (
            may_be_git_folder(inner) or (inner.parent.name == "worktrees" and is_head(inner / "HEAD"))
        ):
            yield inner


def is_within(path: Path, roots: tuple[Path, ...]) -> bool:
    """True where `path` is one of the `roots` or below one."""
    return any(path.is_relative_to(root) for root in roots)


def leads_to_private(link: Path, roots: tuple[Path, ...]) -> bool:
    """True for a link into private folders of a sandbox, by their own path or that of a process: no look sees these."""
    real = _resolve(link)
    if any(_OTHER_VIEW.match(str(hop)) and hop.parts[2] != str(os.getpid()) for hop in links_towards(link)):
        return True
    return real is not None and not is_within(real, roots) and any(part.startswith(PREFIX) for part in real.parts)


def is_walled(path: Path, walled: Set[str]) -> bool:
    """True for a path that no command could change, or one below it."""
    return not walled.isdisjoint((str(path), *map(str, path.parents)))


def is_old_head(path: str) -> bool:
    """True for a HEAD as git once made it, the one link that git does not write through."""
    if os.path.basename(path) != "HEAD":
        return False
    with suppress(OSError):
        target = os.readlink(path)
        return target.startswith("refs/") and ".." not in target.split("/")
    return False


def set_aside(path: Path, roots: tuple[Path, ...]) -> str:
    """Remove a link, rename anything else; returns a sentence, empty where nothing is there.

    No link is followed, whatever a command that still runs puts in between.

    Raises:
        StuckError: that is not possible.
    """
    root = next((root for root in roots if path.is_relative_to(root)), None)
    if root is None:
        return ""
    name, aside = path.name, f"{path.name}-set-aside-{secrets.token_hex(3)}"
    shown = reveal_name(path.relative_to(root))
    try:
        with open_folder(Location(root, path.relative_to(root).parts, "")) as folder:
            with suppress(OSError):  # a command may have removed its owner's access
                Path(f"/proc/self/fd/{folder}").chmod(stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                target = os.readlink(name, dir_fd=folder)
                os.unlink(name, dir_fd=folder)
                return f"the link {shown} to {reveal_name(target)} was removed: git would write or load what it names"
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StuckError(f"{shown} could not be renamed ({error.strerror}): git would start what it names") from error
    return f"{shown} was renamed to {aside}: a program outside the sandbox would start what it names"


def _holds_programs(folder: Path) -> bool:
    """True where a folder has other files than samples, or may have: git needs only the right to enter it."""
    try:
        return any(not name.endswith(SAMPLE) for name in os.listdir(folder))
    except PermissionError:
        return True
    except OSError:
        return False


def _find_risks(content: bytes | None, folder: Path, roots: tuple[Path, ...]) -> frozenset[bytes] | None:
    """Lines of the settings in `folder` that may have any meaning, since git itself does not write them, with the line
    of their section; None where lines cannot be separated.
    """
    if content is None or len(content) >= MOST_CONFIG or b"\r" in content:
        return None
    risks, section, is_plain = set[bytes](), b"", False
    for line in map(bytes.strip, content.split(b"\n")):
        if not line or line[:1] in {b"#", b";"}:
            continue
        if line.endswith(b"\\"):  # it goes on in the next one
            return None
        if line[:1] == b"[":
            section, is_plain = line, _SECTION.fullmatch(line) is not None
            risks |= set() if is_plain else {line}
        elif not is_plain or not _is_plain(line, folder, roots):
            risks.add(section + b"\n" + line)
    return frozenset(risks)


def adds_nothing(part: Path, before: bytes | None, roots: tuple[Path, ...]) -> bool:
    """True for settings, or the list of a rebase, that were there `before` and have no further line that may have a
    program run.
    """
    known, now = (
        _find_runs(content) if part.name == TODO else _find_risks(content, part.parent, roots)
        for content in (before, read_regular(part, MOST_CONFIG, follow=False) if before is not None else None)
    )
    return known is not None and now is not None and now <= known


def _find_runs(content: bytes | None) -> frozenset[bytes] | None:
    if content is None or len(content) >= MOST_CONFIG:
        return None
    return frozenset(line.strip() for line in content.split(b"\n") if _RUNS.match(line + b" "))


def _is_plain(line: bytes, folder: Path, roots: tuple[Path, ...]) -> bool:
    """True for a setting as git itself writes it into the settings in `folder`."""
    tree = _WORKTREE.fullmatch(line)
    if tree is not None:
        named = _resolve(folder / os.fsdecode(tree[1].strip()))
        return named is not None and is_within(named, roots)
    return _SETTING.fullmatch(line) is not None and not _ADDRESS.match(line.replace(b'"', b""))


def _resolve(path: Path) -> Path | None:
    """Follow a path to its end; None where that fails."""
    with suppress(OSError, ValueError, RuntimeError):
        return follow_links(path)
    return None


def _stays_within(alternates: Path, objects: Path, roots: tuple[Path, ...]) -> bool:
    """True where every further folder of objects lies where a command can write anyway."""
    content = read_regular(alternates, MOST_CONFIG, follow=False)
    if content is None:
        return False
    named = [os.fsdecode(line) for line in content.split(b"\n") if line and not line.startswith(b"#")]
    with suppress(OSError, ValueError, RuntimeError):
        return all(is_within(follow_links(objects / name), roots) for name in named)
    return False
