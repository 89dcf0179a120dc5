"""What a sandbox allows, as paths for the kernel: the policy in, the lists of one command out."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tools.contract import SandboxMode
from tools.process.placeholders import Placeholders


class Confinement(Struct, frozen=True):
    """Paths of one command, all resolved."""

    writable: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    """Folders above a denied path; mounted on themselves, so that they cannot be renamed away."""
    denied: tuple[Path, ...] = ()
    """Read-only although below a writable folder."""
    hidden: tuple[Path, ...] = ()
    """Sockets that lead out of the sandbox: session bus, container daemons."""
    placeholders: tuple[Path, ...] = ()
    """Claimed where a denied path did not exist, to have something to deny; to be released."""


GIT_FILES = ("config",)
GIT_FOLDERS = ("hooks",)
SHELL_FILES = (
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".inputrc",
    ".gitconfig",
    ".ssh/config",
    ".ssh/authorized_keys",
    ".config/fish/config.fish",
    ".config/git/config",
)
CONTAINER_SOCKETS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")


def temp_folders() -> tuple[Path, ...]:
    """Where a workspace sandbox lets programs keep temporary files."""
    named = {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")}
    return tuple(sorted(path.resolve() for path in named if path.is_dir()))


def confine(
    mode: SandboxMode,
    working_dir: Path,
    temps: tuple[Path, ...],
    placeholders: Placeholders,
    protected: tuple[Path, ...] = (),
) -> Confinement:
    """The lists for a command that starts in `working_dir`. Touches the disk: claims placeholders.

    `protected` are Phoenix's own files and folders, which no command may change.
    """
    hidden = tuple(path for path in _sockets() if path.exists())
    if mode is not SandboxMode.WORKSPACE:
        return Confinement(hidden=hidden)
    workspace = working_dir.resolve()
    roots = _outermost((workspace, *temps))
    claimed: list[Path] = []
    denied: list[Path] = []
    pinned: set[Path] = set()
    for path, is_file in _guarded(protected, workspace):
        root = next((root for root in roots if root in path.parents), None)
        if root is None:
            continue
        target: Path | None = path
        if not path.exists() or placeholders.is_claimed(path):
            target = placeholders.claim(path, is_file=is_file)
            claimed += [target] if target else []
        if target is not None and target not in denied:
            denied.append(target)
            pinned |= {folder for folder in target.parents if root in folder.parents}
    return Confinement(roots, tuple(sorted(pinned)), tuple(denied), hidden, tuple(claimed))


def _guarded(protected: tuple[Path, ...], workspace: Path) -> Iterator[tuple[Path, bool]]:
    """Every path that must stay as it is, and whether it is a file."""
    git = workspace / ".git"
    folders = [git]
    if git.is_file():
        yield git, True
        folders = [_git_folder(git)]
    for folder in folders:
        yield from ((folder / name, False) for name in GIT_FOLDERS)
        yield from ((folder / name, True) for name in GIT_FILES)
    home = Path.home()
    yield from ((_resolved(home / name), True) for name in SHELL_FILES)
    yield from ((_resolved(path), path.suffix != "") for path in protected)


def _git_folder(pointer: Path) -> Path:
    """Where the `.git` file of a worktree or submodule points."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        word, _, target = pointer.read_text("utf-8").partition(":")
        if word == "gitdir":
            return (pointer.parent / target.strip()).resolve()
    return pointer.parent


def _resolved(path: Path) -> Path:
    return path.resolve() if path.exists() else path.parent.resolve() / path.name


def _outermost(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Without the paths that lie below another one."""
    unique = sorted(set(paths))
    return tuple(path for path in unique if not any(other in path.parents for other in unique))


def _sockets() -> tuple[Path, ...]:
    return (Path(f"/run/user/{os.getuid()}"), *(Path(path) for path in CONTAINER_SOCKETS))


def bubblewrap_arguments(program: str, confinement: Confinement, working_dir: Path, *, network: bool) -> list[str]:
    """The same sandbox in the words of `bwrap`, for systems that allow namespaces to it alone."""
    arguments = [program, "--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--disable-userns"]
    arguments += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if not network:
        arguments.append("--unshare-net")
    for path in (*confinement.writable, *confinement.pinned):
        arguments += ["--bind", str(path), str(path)]
    for path in confinement.denied:
        arguments += ["--ro-bind", str(path), str(path)]
    for path in confinement.hidden:
        arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    if not confinement.writable:
        arguments += ["--remount-ro", "/dev"]  # /dev/shm; device nodes are mounts of their own and stay usable
    return [*arguments, "--chdir", str(working_dir), "--"]
