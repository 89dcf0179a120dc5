"""View of the file system for a sandboxed command: the limits of a command in, the places of its file system out.

`bwrap` gets the same sandbox in its own words, on systems that allow namespaces to it alone.
"""

from __future__ import annotations

import errno
import os
import pwd
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tools.contract import KeptPlaces, SandboxMode
from tools.files.links import follow_links, real_path
from tools.files.protected import PHOENIX_FOLDERS, SHELL_FILES, find_home_links
from tools.git.repository import has_repository
from tools.process import private_home
from tools.process.folder_index import OTHER_CONTROL
from tools.process.git_control import GitControl, Guarded, git_control, users_control
from tools.process.placeholders import Placeholders
from tools.process.private_home import (
    KEPT,
    key_places,
    list_hidden_entries,
    list_sockets,
    private_entries,
    socket_folders,
    tool_folders,
)
from tools.process.scratch import Lease, Scratch, cache_folders, make_caches, scratch_folders
from tools.process.server_home import ServerHome
from tools.process.workspace_watch import Watched, WorkspaceWatch
from tools.process.zygote import mount_places, wire
from tools.process.zygote.mount_places import PROC_READ_ONLY, MountPlace

MOST_NESTED: Final = 300
"""Repositories in sub-folders in which git works; each takes ten mounts."""
MOST_CLOSED: Final = 1_000
"""Repositories in sub-folders behind those whose `.git` is read-only as a whole; what holds more is read-only."""
HOME_PATIENCE: Final = 20.0
"""Seconds that a command waits for the first look at the home folder's links; after them its workspace is read-only."""
OWN_PROGRAMS: Final = (Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix))
"""Phoenix and its interpreter, which its helpers are made of."""


class Confinement(Struct, frozen=True):
    """One command's sandbox."""

    places: tuple[MountPlace, ...] = ()
    """Places from the outermost to the innermost; all paths resolved."""
    writable: tuple[Path, ...] = ()
    secret: tuple[Path, ...] = ()
    """Secret places for Landlock, which cannot mount over them."""
    shown: tuple[Path, ...] = ()
    """Folders inside those that it may read nevertheless."""
    temporary: Path | None = None
    """The private folder for temporary files, as it is called outside."""
    placeholders: tuple[Path, ...] = ()
    lease: Lease | None = None
    """Lease to be returned at the command's end."""
    watched: Watched | None = None
    """The look at its workspace, which is due then."""
    server_home: ServerHome | None = None
    """Home folder of a server, lent until its end."""


class SandboxPlaces(Struct, frozen=True):
    """Settings common to every command of this Phoenix."""

    environment: Mapping[str, str]
    protected: tuple[Path, ...] = ()
    """Read-only to commands."""
    hidden: tuple[Path, ...] = ()
    """Phoenix's own folders."""
    placeholders: Placeholders = field(default_factory=Placeholders)
    scratch: Scratch = field(default_factory=Scratch)
    watch: WorkspaceWatch = field(default_factory=WorkspaceWatch)


class SandboxRequest(Struct, frozen=True):
    """Request of one command to the sandbox."""

    mode: SandboxMode
    working_dir: Path
    owner: str = ""
    """The conversation, whose commands share their temporary files."""
    shown: tuple[Path, ...] = ()
    """Folders it may read, wherever they are."""
    is_helper: bool = False
    """True for Phoenix's own programs, which read what a call was allowed to read."""
    unreadable: tuple[Path, ...] = ()
    """Files that rules deny to read."""
    is_watched: bool = True
    """True where the workspace is looked at around the command."""
    kept: KeptPlaces | None = None
    """Places that a server keeps; only where it may write."""


def confine(wanted: SandboxRequest, around: SandboxPlaces) -> Confinement:
    """The sandbox of a command. Touches the disk: lends folders and claims placeholders.

    Raises:
        OSError: there is no place for its private folders, or the working directory is gone or behind a link.
    """
    layout = SandboxLayout(wanted, around)
    try:
        layout.build()
    except BaseException:
        if layout.server_home is not None:
            layout.server_home.close()
        around.scratch.give_back(layout.lease)
        around.placeholders.release(layout.claimed)
        if layout.watched is not None:
            around.watch.drop(layout.watched)
        raise
    return layout.build_confinement()


class SandboxLayout:
    """Collects the places of one command; of two at one path the later counts."""

    def __init__(self, wanted: SandboxRequest, around: SandboxPlaces) -> None:
        self._wanted = wanted
        self._around = around
        self._home = follow_links(Path.home())
        self._workspace = follow_links(wanted.working_dir)
        if str(self._workspace) != os.path.abspath(wanted.working_dir):
            # A command in the folder above may have put a link here: its target was not allowed.
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(wanted.working_dir))
        if not os.path.isdir(self._workspace):  # a placeholder would be created in its place
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(wanted.working_dir))
        self._writes = wanted.mode is SandboxMode.WORKSPACE
        self._places: dict[Path, MountPlace] = {}
        self._roots: list[Path] = []
        self._secret: list[Path] = []
        self.lease = around.scratch.lease(wanted.owner)
        self.claimed: list[Path] = []
        self.watched: Watched | None = None
        self.server_home: ServerHome | None = None

    def build(self) -> None:
        """Fill it, from covered places to those shown nevertheless."""
        git = git_control(self._workspace)
        if self._writes and not self._home.is_relative_to(self._workspace):
            make_caches(self._around.environment, self._home)
        self._cover()
        self._show(git)
        if self._writes:
            self._roots = [root for root in (self._workspace, *git.writable) if root != Path(root.anchor)]
            for root in self._roots:
                self._put(mount_places.WRITABLE, root)
            self._copy_caches()
            self._lay_programs()
            if self._wanted.is_watched:
                self.watched = self._around.watch.begin(self._workspace, tuple(self._roots))
            self._guard(git)
        self._hide_keys()
        self._hide_scratch()
        self._hide_sockets()
        self._pin()

    def build_confinement(self) -> Confinement:
        """The result."""
        ordered = tuple(self._places[path] for path in sorted(self._places, key=lambda path: path.parts))
        kinds = {root: self._places[root].kind for root in self._roots}
        roots = (root for root in self._roots if kinds[root] == mount_places.WRITABLE)
        writable = (*roots, self.lease.temporary) if self._writes else ()
        secret = tuple(dict.fromkeys(self._secret))
        shown = tuple(follow_links(path) for path in self._wanted.shown)
        temporary, claimed = self.lease.temporary, tuple(self.claimed)
        lent = (self.lease, self.watched, self.server_home)
        return Confinement(ordered, writable, secret, shown, temporary, claimed, *lent)

    def _cover(self) -> None:
        """Put empty or private folders where others keep temporary files and sockets."""
        for path in temp_folders():
            if self._writes:
                self._put(mount_places.INSTEAD, path, self.lease.temporary)
            else:
                self._put(mount_places.EMPTY, path)
        for path in socket_folders():
            self._put(mount_places.EMPTY, path)
        if not self._wanted.is_helper and not self._home.is_relative_to(self._workspace):
            self._cover_home()

    def _cover_home(self) -> None:
        """Hide documents and other projects: reading them needs a question, whichever tool reads."""
        caches = cache_folders(self._around.environment, self._home)
        if self._wanted.kept is not None and self._writes:
            self._lay_home(self._wanted.kept, caches)
            return
        entries = private_entries(self._home, caches)
        if len(entries) > private_home.MOST_ENTRIES and not self._is_covered(self._home):
            self._put(mount_places.EMPTY, self._home)
            for path in (*list_hidden_entries(self._home), *caches):
                self._put(mount_places.READ_ONLY, path)
            return
        for path in entries:
            if os.path.isdir(path):
                self._put(mount_places.EMPTY, path)
            else:
                self._put(mount_places.INSTEAD_READ_ONLY, path, self.lease.empty)

    def _lay_home(self, kept: KeptPlaces, caches: tuple[Path, ...]) -> None:
        """Give a server a home folder of its own."""
        kept.folder.mkdir(0o700, parents=True, exist_ok=True)
        self.server_home = ServerHome.open(follow_links(kept.folder), self.lease.layers)
        own = [follow_links(path) for path in self._around.hidden]
        apart = [path for path in caches if not str(path).startswith(f"{self._home}/.")]
        for place in self.server_home.places(self._home, own, apart):
            self._places[Path(place.path)] = place

    def _lay_programs(self) -> None:
        """Let a server change its own program and files as it sees them."""
        if self.server_home is None or self._wanted.kept is None:
            return
        for path in {follow_links(path) for path in self._wanted.kept.programs}:
            around = next((self._places[above] for above in path.parents if above in self._places), None)
            is_layered = around is not None and around.kind == mount_places.COPY
            if os.path.isdir(path) and not is_layered and not any(path.is_relative_to(root) for root in self._roots):
                self._places[path] = self.server_home.layer(path)

    def _show(self, git: GitControl) -> None:
        """Show again needed paths inside covered folders."""
        own = [path for path in OWN_PROGRAMS if not path.is_relative_to(self._workspace)]
        needed = [self._workspace, *git.writable, *own, *self._wanted.shown, *map(Path, KEPT)]
        needed += [*_repository_around(self._workspace), *tool_folders(self._around.environment, self._home)]
        covered = tuple(self._places)
        for path in needed:
            resolved = follow_links(path)
            if self._workspace in resolved.parents:
                continue  # the content of the workspace comes with it, writable
            if os.path.exists(resolved) and any(folder == resolved or _inside(resolved, folder) for folder in covered):
                self._put(mount_places.READ_ONLY, resolved)

    def _copy_caches(self) -> None:
        for number, path in enumerate(cache_folders(self._around.environment, self._home)):
            apart = not any(root == path or _inside(root, path) for root in self._roots)
            is_kept = self.server_home is not None and _inside(path, self._home)
            if apart and not is_kept and (path in self._places or not self._is_covered(path)):
                layers = self.lease.layers / str(number)
                for part in ("upper", "work"):
                    (layers / part).mkdir(0o700, parents=True, exist_ok=True)
                self._put(mount_places.COPY, path, layers)

    def _guard(self, git: GitControl) -> None:
        """Protect what makes a program outside run something at once: the control part of repositories."""
        inner = list(self._guard_nested(self._around.watch.places(self._workspace)))
        unkept = [
            Guarded(path, is_file=True) for path in self._around.watch.unkept(self._workspace) if os.path.isfile(path)
        ]
        for guarded in (*git.guarded, *inner, *self._control(), *unkept):
            self._keep(guarded)
            if os.path.islink(guarded.path) and not guarded.is_pointer:
                self._keep(replace(guarded, path=Path(real_path(guarded.path))))
        if self.watched is not None:
            kept = {mount_places.READ_ONLY, mount_places.LINK}
            walled = (path for path, place in self._places.items() if place.kind in kept)
            inside = [str(path) for path in walled if any(_inside(path, root) for root in self._roots)]
            self.watched.wall(inside)

    def _guard_nested(self, folders: Sequence[Path]) -> Iterator[Guarded]:
        """Guards of repositories in sub-folders; the more there are, the larger the folders that are kept whole."""
        for folder in folders[:MOST_NESTED]:
            yield from git_control(folder).guarded
        for folder in folders[MOST_NESTED : MOST_NESTED + MOST_CLOSED]:
            whole = folder / ".git" if _stands(folder / ".git") else folder
            yield Guarded(whole, is_file=os.path.isfile(whole), is_pointer=os.path.islink(whole))
            yield from (one for one in git_control(folder).guarded if not _inside(one.path, whole))
        rest = {folder.relative_to(self._workspace).parts[0] for folder in folders[MOST_NESTED + MOST_CLOSED :]}
        yield from (Guarded(self._workspace / name, is_file=False) for name in sorted(rest))

    def _keep(self, guarded: Guarded) -> None:
        if guarded.path in self._roots:
            self._put(mount_places.READ_ONLY, guarded.path)
        if not any(_inside(guarded.path, root) for root in self._roots):
            return
        if guarded.is_held:
            if os.path.isdir(guarded.path) and not os.path.islink(guarded.path):
                self._put(mount_places.WRITABLE, guarded.path)
            return
        if os.path.islink(guarded.path):
            self._put(mount_places.LINK, guarded.path)
            return
        target: Path | None = guarded.path
        if self._around.placeholders.is_claimed(guarded.path) or not _stands(guarded.path):
            claim = self._around.placeholders.claim
            target = claim(guarded.path, is_file=guarded.is_file, content=guarded.content)
            self.claimed += [target] if target else []
        if target is not None:
            self._put(mount_places.READ_ONLY, target)

    def _control(self) -> Iterator[Guarded]:
        """Files outside of git that run something at once: other version systems, Phoenix's own, those of a login."""
        for name, files in OTHER_CONTROL.items():
            paths = (self._workspace / name / file for file in files)
            yield from (Guarded(path, is_file=True) for path in paths if _stands(path))
        yield from (
            Guarded(follow_links(path) if os.path.exists(path) else follow_links(path.parent) / path.name, is_file=True)
            for path in self._around.protected
        )
        yield from users_control(self._workspace, self._home, self._around.environment)
        if self.watched is not None:
            linked = find_home_links(self._workspace, self._home, HOME_PATIENCE)
            if linked is None:
                linked = {self._workspace: self._home}
            yield from (Guarded(path, is_file=True) for path in linked if _stands(path))
            self.watched.awaited = frozenset(str(path) for path in linked if not _stands(path))
        if any(root == self._home or _inside(self._home, root) for root in self._roots):
            paths = (self._home / name for name in (*SHELL_FILES, *PHOENIX_FOLDERS))
            yield from (Guarded(follow_links(path), is_file=True) for path in paths if os.path.exists(path))

    def _hide_keys(self) -> None:
        own = [follow_links(path) for path in self._around.hidden if os.path.exists(path)]
        homes = {self._home, _home_of_the_account()}
        found = [path for home in homes for path in key_places(self._around.environment, home)]
        keys = [path for path in found if path != self._workspace]
        denied = [path for path in self._wanted.unreadable if os.path.exists(path) and path != self._workspace]
        for path in own:
            self._hide(path)
        for path in (*keys, *denied):
            self._hide(path, is_closed=any(_inside(path, root) for root in self._roots))
        for path in self._wanted.shown:
            resolved = follow_links(path)
            if os.path.isdir(resolved) and any(_inside(resolved, folder) for folder in own):
                self._put(mount_places.READ_ONLY, resolved)

    def _hide(self, path: Path, *, is_closed: bool = False) -> None:
        """Cover a path; one that `is_closed` cannot be opened, so that git does not commit it as empty or removed."""
        self._secret.append(path)
        if os.path.isdir(path):
            self._put(mount_places.CLOSED if is_closed else mount_places.EMPTY, path)
        else:
            self._put(mount_places.INSTEAD_READ_ONLY, path, self.lease.closed if is_closed else self.lease.empty)

    def _hide_scratch(self) -> None:
        """Cover the private folders of all conversations where the workspace is a folder of temporary files."""
        for base in scratch_folders():
            if any(_inside(base, root) for root in self._roots) and not self._is_covered(base):
                self._put(mount_places.EMPTY, base)

    def _hide_sockets(self) -> None:
        """Cover each socket that is still seen, except for those of the workspace's own programs."""
        is_shared = self._workspace in (*self._home.parents, self._home, *temp_folders())
        for path in list_sockets():
            inside = _inside(path, self._workspace) and not is_shared
            if not inside and not self._is_covered(path):
                self._put(mount_places.INSTEAD_READ_ONLY, path, self.lease.empty)

    def _is_covered(self, path: Path) -> bool:
        for folder in path.parents:
            place = self._places.get(folder)
            if place is not None:
                return place.kind in mount_places.EMPTIED | {mount_places.INSTEAD}
        return False

    def _pin(self) -> None:
        """Mount the folders above a guarded place on themselves, so that they cannot be renamed away."""
        guarded = sorted(
            (path for path, place in self._places.items() if place.kind != mount_places.WRITABLE), key=_depth
        )
        inside = [path for path in guarded if any(_inside(path, root) for root in self._roots)]
        fixed = set(inside)
        for folder in dict.fromkeys(path.parent for path in inside):
            above = [folder, *folder.parents]
            end = next(place for place, path in enumerate(above) if path in self._roots)
            if not any(path in fixed for path in above[:end]):
                for path in above[:end]:
                    self._places.setdefault(path, MountPlace(mount_places.WRITABLE, str(path)))

    def _put(self, kind: str, path: Path, source: Path | None = None) -> None:
        self._places[path] = MountPlace(kind, str(path), str(source or ""))


def temp_folders() -> tuple[Path, ...]:
    """Folders for temporary files that programs of the machine use."""
    named = {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")}
    return tuple(sorted({follow_links(path) for path in named if os.path.isdir(path)}))


def _home_of_the_account() -> Path:
    """The home folder that ssh and gpg use, whatever `$HOME` says."""
    try:
        return follow_links(Path(pwd.getpwuid(os.getuid()).pw_dir))
    except KeyError:
        return follow_links(Path.home())


def _repository_around(workspace: Path) -> list[Path]:
    """Repositories that a workspace is a part of, read for their history; where one is the home folder, or a folder for
    temporary files, its git folder alone.
    """
    found = [folder for folder in workspace.parents if has_repository(folder)]
    shared = (*temp_folders(), *follow_links(Path.home()).parents, follow_links(Path.home()))
    return [folder / ".git" if folder in shared else folder for folder in found]


def _inside(path: Path, folder: Path) -> bool:
    """True when `path` is below `folder`; avoids the objects that `path.parents` makes."""
    return str(path).startswith(f"{folder}/")


def _depth(path: Path) -> int:
    return len(path.parts)


def _stands(path: Path) -> bool:
    return os.path.exists(path) or os.path.islink(path)


def folder_of_temporary_files() -> str:
    """Path of the private temporary folder inside the sandbox, the one that programs expect."""
    return "/tmp" if real_path("/tmp") in map(str, temp_folders()) else tempfile.gettempdir()


PROGRAMS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap")


OPEN_DOOR = (
    "import os, socket, sys; door = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64);"
    " control = socket.socket(fileno=int(sys.argv[2])); socket.send_fds(control, [b'listening\\n'], [door.fileno()]);"
    " control.close(); door.close(); os.execvp(sys.argv[3], sys.argv[3:])"
)


def door_arguments() -> tuple[str, ...]:
    """The command line in front of the command, inside: it hands the listener of the namespace out, and is gone."""
    return (sys.executable, "-I", "-S", "-c", OPEN_DOOR, str(wire.DOOR_PORT), str(wire.DOOR))


def bubblewrap() -> str:
    """The system's own bwrap: AppArmor profiles know it by this path; empty when it is not installed."""
    return next((path for path in PROGRAMS if os.access(path, os.X_OK)), "")


def bubblewrap_arguments(
    program: str,
    seen: tuple[MountPlace, ...],
    working_dir: Path,
    *,
    network: bool,
    writable: bool,
    terminal: bool = False,
) -> list[str]:
    """The command line in front of the command; caches stay read-only, bwrap 0.8 knows no overlays."""
    arguments = [program, "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
    if not terminal:  # a session of its own would lose the terminal that is its own
        arguments.append("--new-session")
    arguments += ["--disable-userns", "--cap-drop", "ALL", "--seccomp", str(wire.FILTER)]
    arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if not network:
        arguments.append("--unshare-net")
    for name in PROC_READ_ONLY:
        arguments += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    emptied: list[str] = []
    for place in seen:
        arguments += _words(place)
        if place.kind in mount_places.EMPTIED:
            emptied.append(place.path)
    for path in emptied:
        arguments += ["--remount-ro", path]
    if not writable:
        arguments += ["--remount-ro", "/dev"]  # /dev/shm; device nodes are mounts of their own and stay usable
    return [*arguments, "--chdir", str(working_dir.resolve()), "--"]


def _words(place: MountPlace) -> list[str]:
    match place.kind:
        case mount_places.WRITABLE:
            return ["--bind", place.path, place.path]
        case mount_places.READ_ONLY:
            return ["--ro-bind", place.path, place.path]
        case mount_places.INSTEAD:
            return ["--bind", place.source, place.path]
        case mount_places.INSTEAD_READ_ONLY:
            return ["--ro-bind", place.source, place.path]
        case mount_places.EMPTY:
            return ["--perms", "0755", "--tmpfs", place.path]
        case mount_places.CLOSED:
            return ["--perms", mount_places.CLOSED_MODE, "--tmpfs", place.path]
        case mount_places.COPY:
            return ["--ro-bind", place.path, place.path]
        case _:
            return []
