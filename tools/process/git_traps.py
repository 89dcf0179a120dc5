"""Traps: parts of repositories through which git, or another version system, starts a program (SECURITY S1, S2).

Parts of repositories are judged by what they contain: a command may make repositories, and clone, commit and rebase in
them, but leaves none whose settings or hooks name a program. Runs in the helper process of
`tools.process.workspace_look`, which knows what was there before.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.clean import reveal_name
from tools.files.links import follow_links, links_towards
from tools.files.location import Location, open_folder
from tools.files.own_files import read_regular
from tools.git.repository import is_head, may_be_git_folder, read_git_pointer
from tools.process.scratch import PREFIX

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
