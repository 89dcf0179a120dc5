"""Calls of git that read a repository, write to it, and hold or move its references."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tools.clean import clean_line, reveal_name
from tools.contract import HELPER_SANDBOX, UNCONFINED, Command, Finished, ProcessRunner
from tools.files.location import Location, open_folder
from tools.git.repository import MOST_REFERENCES, NAME, SMALL, GitFailure, Repository, find_repository, read_small
from tools.process.programs import find_program, list_trusted_folders

OWN_FOLDERS: Final = Path(__file__).parent / "empty"
SECONDS: Final = 10.0
MOST_CONFIG: Final = 256 * 1024
"""Bytes of a configuration that are looked at."""
COMPARING: Final = frozenset({
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.trustctime",
    "core.checkstat",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
})
"""Settings that say how files are compared; none names a file or a program."""
HARMLESS: Final = re.compile(r"[A-Za-z0-9]{0,10}")
NOWHERE: Final = "/dev/null/nowhere"
"""No folder, and no user can make one of it."""
ALONE: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",  # unknown before git 2.39.4 and 2.45, where the own git folder names no promisor remote
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
}
OPTIONS: Final = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotepath=off"),
    *("-c", "core.safecrlf=false"),  # its warnings would mix with the output
    *("-c", "credential.helper="),
    *("-c", "core.askPass="),  # empty: no program asks for a password, SSH_ASKPASS neither
)


class GitReader:
    """Looks at one repository."""

    def __init__(self, runner: ProcessRunner, repository: Repository, folder: Path) -> None:
        self.repository = repository
        self._runner = runner
        self._folder = folder
        self._settings: tuple[str, ...] = ()
        self._given: dict[str, str] = {}
        """Settings of the repository, which are texts here."""

    async def ask(self, *arguments: str, most: int, stdin: bytes | None = None) -> Finished | None:
        """Output of git, at most `most` bytes; None when it fails or takes longer than `SECONDS`."""
        words = (*OPTIONS, *self._settings, *arguments)
        return await self._run(words, most, stdin=stdin, HOME=NOWHERE, XDG_CONFIG_HOME=NOWHERE)

    async def prepare(self) -> None:
        """Read the few settings that count: those of comparing, and the user's own file of ignored names."""
        config = await asyncio.to_thread(read_small, self.repository.common / "config", MOST_CONFIG)
        listed = await self._run(
            ("config", "--file", "-", "--no-includes", "-z", "--list"), MOST_CONFIG, stdin=config, HOME=NOWHERE
        )
        named = await self._run(
            ("config", "--global", "--includes", "--type=path", "-z", "--get", "core.excludesFile"),
            4096,
            GIT_CONFIG_GLOBAL="",
        )
        given = listed.captured.head.decode("utf-8", "replace") if listed is not None else ""
        self._given = _values(given)
        ignored = named.captured.head.decode("utf-8", "surrogateescape").rstrip("\0\n") if named is not None else ""
        ignored = ignored or str(Path.home() / ".config/git/ignore")
        self._settings = (*_comparing(given), "-c", f"core.excludesFile={ignored}")

    @property
    def for_checkout(self) -> tuple[str, ...]:
        """The settings for a working tree that holds all files, whatever this one leaves out."""
        return (*self._settings, "-c", "core.sparseCheckout=false")

    @property
    def is_sparse(self) -> bool:
        """True where the working tree may leave out files."""
        return self._given.get("core.sparsecheckout", "false").lower() not in {"false", "no", "off", "0"}

    async def identity(self) -> dict[str, str]:
        """The user's name and address for a commit, as variables of git; empty where git knows neither."""
        values: dict[str, str] = {}
        for key in ("name", "email"):
            value = self._given.get(f"user.{key}", "") or await self._of_the_user(f"user.{key}")
            if not value:
                return {}
            value = clean_line(value)
            values |= {f"GIT_{role}_{key.upper()}": value for role in ("AUTHOR", "COMMITTER")}
        return values

    async def _of_the_user(self, key: str) -> str:
        said = await self._run(("config", "--global", "--includes", "-z", "--get", key), 4096, GIT_CONFIG_GLOBAL="")
        return said.captured.head.decode("utf-8", "replace").partition("\0")[0].strip() if said is not None else ""

    def exclude(self) -> tuple[str, ...]:
        """Arguments that name the repository's own list of ignored files, where it has one."""
        path = self.repository.common / "info" / "exclude"
        return (f"--exclude-from={path}",) if read_small(path, 1) else ()

    async def _run(
        self, arguments: tuple[str, ...], most: int, *, stdin: bytes | None = None, **environment: str
    ) -> Finished | None:
        repository = self.repository
        places = {
            "GIT_DIR": str(OWN_FOLDERS / repository.objects_by),
            "GIT_WORK_TREE": str(repository.worktree),
            "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
            "GIT_INDEX_FILE": str(repository.own / "index"),
        }
        together = {name: value for name, value in {**ALONE, **places, **environment}.items() if value}
        command = Command(
            ("git", *arguments),
            self._folder,
            SECONDS,
            together,
            stdin,
            keep_head=most,
            keep_tail=0,
            sandbox=HELPER_SANDBOX,
        )
        try:
            finished = await self._runner.run(command)
        except OSError:
            return None
        return finished if finished.exit_code == 0 else None


async def open_repository(runner: ProcessRunner, folder: Path) -> GitReader | None:
    """Open a reader for the repository of `folder`; None outside a repository."""
    repository = await asyncio.to_thread(find_repository, folder)
    if repository is None:
        return None
    reader = GitReader(runner, repository, folder)
    if not repository.unreadable:
        await reader.prepare()
    return reader


def _values(listed: str) -> dict[str, str]:
    """Values that `git config -z --list` prints, by key; of several the last."""
    parts = (entry.partition("\n") for entry in listed.split("\0"))
    return {key: value if given else "true" for key, given, value in parts}


def _comparing(listed: str) -> tuple[str, ...]:
    """Options for the settings of comparing in what `git config -z --list` prints; a key without a value is true."""
    found: dict[str, str] = {}
    for entry in listed.split("\0"):
        key, given, value = entry.partition("\n")
        if key in COMPARING and HARMLESS.fullmatch(value):
            found[key] = value if given else "true"
    return tuple(word for key, value in found.items() for word in ("-c", f"{key}={value}"))


BRANCHES: Final = "refs/heads/"
PLACES: Final = ("refs/heads/", "refs/tags/", "refs/remotes/")
LONGEST_NAME: Final = 200
"""Characters of a name that a user or a record may give."""
_PART: Final = re.compile(r"(?![.-])[^\x00-\x20\x7f~^:?*\[\\]+(?<![.])")
NEVER: Final = ("..", "@{", "//")


def is_name(name: str) -> bool:
    """True for the name of a branch or tag that git would take, and that begins with no dash."""
    parts = name.split("/")
    fits = 0 < len(name) <= LONGEST_NAME and name != "@" and not any(word in name for word in NEVER)
    return fits and all(_PART.fullmatch(part) and not part.endswith(".lock") for part in parts)


def read_reference(common: Path, name: str) -> str:
    """The object that the full `name` names, as 40 or 64 hexadecimal digits; empty where there is none."""
    said = read_small(common / name).strip() if _is_file(common / name) else b""
    if not said:
        packed = read_small(common / "packed-refs", MOST_REFERENCES)
        found = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(name)) + rb"$", packed, re.MULTILINE)
        said = found[1] if found else b""
    return said.decode("ascii") if NAME.fullmatch(said) else ""


def has_below(common: Path, name: str) -> bool:
    """True where references have `name` as a folder."""
    with suppress(OSError):
        if any(files for _, _, files in os.walk(common / name)):
            return True
    packed = read_small(common / "packed-refs", MOST_REFERENCES)
    return b" " + os.fsencode(name) + b"/" in packed


@contextmanager
def lock_reference(common: Path, name: str, expected: str) -> Generator[Callable[[str], None]]:
    """Hold the lock of a reference that has the value `expected`, empty for none; gives the function that sets it.

    Raises:
        GitFailure: it has another value, is held by another git, or cannot be written.
    """
    parts = tuple(name.split("/"))
    leaf, lock = parts[-1], f"{parts[-1]}.lock"
    try:
        with open_folder(Location(common, parts, name), create=True) as folder:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666, dir_fd=folder)
            try:
                if read_reference(common, name) != expected:
                    raise GitFailure(f"{reveal_name(name)} was changed by another program; try again.")

                def put(value: str) -> None:
                    os.write(descriptor, f"{value}\n".encode("ascii"))
                    os.fsync(descriptor)
                    os.rename(lock, leaf, src_dir_fd=folder, dst_dir_fd=folder)

                yield put
            finally:
                os.close(descriptor)
                with suppress(OSError):
                    os.unlink(lock, dir_fd=folder)
    except FileExistsError:
        where = reveal_name(common / f"{name}.lock")
        raise GitFailure(f"Another git is at work here; if none is, remove {where}.") from None
    except OSError as error:
        raise GitFailure(f"{reveal_name(common / name)} cannot be written: {error.strerror}.") from None


def set_reference(common: Path, name: str, value: str, expected: str) -> None:
    """Set a reference that has the value `expected`, empty for none. Raises GitFailure."""
    with lock_reference(common, name, expected) as put:
        put(value)


def drop_new_reference(common: Path, name: str, value: str) -> None:
    """Remove a reference that was made just now, where it still has this value."""
    with suppress(GitFailure), lock_reference(common, name, value):
        (common / name).unlink(missing_ok=True)


def log_change(folder: Path, name: str, values: tuple[str, str], who: str, why: str) -> None:
    """Append a move of a reference from one value to another to its log, as git does; `who` is `NAME <ADDRESS>`."""
    old, new = values
    zone = time.strftime("%z")
    line = f"{old or '0' * len(new)} {new} {who} {int(time.time())} {zone}\t{why}\n"
    parts = ("logs", *name.split("/"))
    with suppress(OSError), open_folder(Location(folder, parts, name), create=True) as inside:
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(parts[-1], how, 0o666, dir_fd=inside)
        try:
            os.write(descriptor, line.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)


def find_object(common: Path, text: str) -> tuple[str, str]:
    """The object of a branch, tag or remote branch, or the given digits of one; and the branch, where it is one."""
    if is_name(text):
        for place in PLACES:
            if found := read_reference(common, f"{place}{text}"):
                return found, text if place == BRANCHES else ""
    return (text, "") if re.fullmatch(r"[0-9a-f]{4,64}", text) else ("", "")


def _is_file(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return path.is_file() and path.stat().st_size <= SMALL
    return False


WRITING_SECONDS: Final = 600.0
"""Time for the checkout of a large repository."""
MOST_OUTPUT: Final = 16 * 1024 * 1024
"""Bytes."""
NO_VARIABLES: Final[Mapping[str, str]] = {}
NO_PROGRAMS: Final = ("-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false", "-c", "gc.auto=0")


class GitWriter:
    """Changes one working tree; `settings` are the words that `GitReader` found, on how files are compared."""

    def __init__(self, runner: ProcessRunner, repository: Repository, settings: tuple[str, ...] = ()) -> None:
        self.repository = repository
        self._runner = runner
        self._settings = settings

    async def attempt(
        self,
        *arguments: str,
        index: Path | None = None,
        stdin: bytes | None = None,
        environment: Mapping[str, str] = NO_VARIABLES,
    ) -> Finished:
        """Run git, however it ends; `index` in place of the repository's. Raises GitFailure where there is no git."""
        repository = self.repository
        git, env = (find_program(name, repository.worktree) for name in ("git", "env"))
        if not git or not env:
            raise GitFailure("There is no git in a folder of PATH that only you can write; install git.")
        places = {
            "GIT_DIR": str(OWN_FOLDERS / repository.objects_by),
            "GIT_WORK_TREE": str(repository.worktree),
            "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
            "GIT_INDEX_FILE": str(index or repository.own / "index"),
            "HOME": NOWHERE,
            "XDG_CONFIG_HOME": NOWHERE,
            "PATH": os.pathsep.join(list_trusted_folders(repository.worktree)),
            "LC_ALL": "C.UTF-8",
        }
        together = {**ALONE, **places, **environment}
        words = tuple(f"{name}={value}" for name, value in together.items())
        argv = (env, "-i", *words, git, *OPTIONS, *NO_PROGRAMS, *self._settings, *arguments)
        command = Command(
            argv,
            repository.worktree,
            WRITING_SECONDS,
            {},
            stdin,
            keep_head=MOST_OUTPUT,
            keep_tail=0,
            sandbox=UNCONFINED,
        )
        try:
            return await self._runner.run(command)
        except OSError as error:
            raise GitFailure(f"Git cannot be started: {error.strerror or error}.") from error

    async def run(
        self,
        *arguments: str,
        index: Path | None = None,
        stdin: bytes | None = None,
        environment: Mapping[str, str] = NO_VARIABLES,
    ) -> str:
        """Run git to a good end; its output. Raises GitFailure with git's own words."""
        finished = await self.attempt(*arguments, index=index, stdin=stdin, environment=environment)
        if finished.exit_code != 0:
            raise GitFailure(refusal(finished))
        if finished.captured.dropped:
            raise GitFailure("Git lists more files here than Phoenix takes; do this with git.")
        return os.fsdecode(finished.captured.head).removesuffix("\n")

    async def name(
        self, *arguments: str, index: Path | None = None, environment: Mapping[str, str] = NO_VARIABLES
    ) -> str:
        """Run git for the name of an object that it made. Raises GitFailure, also where it says anything else."""
        said = await self.run(*arguments, index=index, environment=environment)
        if not NAME.fullmatch(os.fsencode(said)):
            raise GitFailure(f"Git gave no name of an object: {clean_line(said)[:300]}.")
        return said


def refusal(finished: Finished) -> str:
    """Git's own words about a failure, as one sentence."""
    if finished.timed_out:
        return f"Git took longer than {WRITING_SECONDS:.0f} s and was stopped."
    lines = finished.captured.head.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.startswith(("error:", "fatal:"))] or lines[-1:] or ["it gave no reason"]
    return f"Git refused: {clean_line(said[0])[:300]}."
