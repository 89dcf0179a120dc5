"""Finds the program that a name means outside of a sandbox, and the variables that it inherits (SECURITY V5, S3).

A folder that an agent or a repository can write gives Phoenix no program: neither by its own name, nor through a link,
nor through the interpreter that a script names. Names and links are followed step by step, and folders are compared by
device and inode, so that another spelling of the same folder is the same folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from tools.contract import PathOrder, ProgramFact
from tools.files.links import real_path
from tools.git.repository import has_repository
from tools.known_secrets import SECRETS
from tools.process.environment import (
    KEY_NAMES,
    SEARCH_PATHS,
    USERS_PATH,
    absolute_entries,
    users_path,
    without_relative_entries,
)

HELPER_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "PWD", "TMPDIR"})
"""All of the user's environment that a helper receives besides `PATH` and the locale: none of it names code."""
PLACES: Final = frozenset({"HOME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP"})
"""Variables that may name a folder of an agent: where a program is or writes, not what it loads."""
OTHERS = (".hg", ".svn")
"""Folders of other systems of version control."""
WORLD_WRITABLE = stat.S_IWOTH
MOST_LINKS: Final = 40
"""Links in one path, as in the kernel; a longer chain counts as a folder of an agent."""
LONGEST_HASH_BANG: Final = 256
MOST_FACTS: Final = 40
"""Programs of one command line that are looked up; with more, one counts as an agent's, so no rule covers the line."""


class AgentFolders(Struct, frozen=True):
    """Folders whose files an agent or a repository can write."""

    paths: frozenset[str]
    """Resolved."""
    identities: frozenset[tuple[int, int]]
    """Device and inode of each: case and bind mounts give a folder other names."""
    wide: frozenset[str] = frozenset()
    """Folders that are the home folder or hold it: its programs are the user's own and come behind the system's."""

    def has(self, path: str) -> bool:
        """True where the way to `path`, links included, leads through one of them."""
        return any(self._is_one(place, self.paths) for place in _places(path))

    def has_widely(self, path: str) -> bool:
        """True where it leads through the home folder while that is a working directory."""
        return bool(self.wide) and any(_is_below(place, tuple(self.wide)) for place in _places(path))

    def _is_one(self, place: str, folders: frozenset[str]) -> bool:
        if not place:
            return True  # a chain of links without end
        if any(place == folder or place.startswith(f"{folder}/") for folder in folders):
            return True
        return _identity(place) in self.identities


_workspaces: Final[dict[str, None]] = {}
"""Working directories of this process in which commands could write."""


def note_workspace(folder: Path) -> None:
    """Note a folder in which a command can write: from now on it gives no program in any other folder either."""
    _workspaces[real_path(folder)] = None


def agent_folders(working_dir: Path | None = None) -> AgentFolders:
    """Folders that agents or a repository can write: the working directories of this process, and their repositories.

    A repository at or above the home folder, such as one for dotfiles, is the user's own.
    """
    home = real_path(Path.home())
    own = {real_path(folder) for folder in (working_dir or Path.cwd(), Path.cwd())}
    narrow, wide = set[str](), set[str]()
    for folder in (*own, *_workspaces):
        if folder == "/":
            continue
        (wide if _is_below(home, (folder,)) else narrow).add(folder)
        for parent in map(str, Path(folder).parents):
            if parent == "/" or _is_below(home, (parent,)):
                break
            if has_repository(Path(parent)) or _is_of_others(Path(parent)):
                narrow.add(parent)
    identities = (_identity(folder) for folder in narrow)
    return AgentFolders(frozenset(narrow), frozenset(one for one in identities if one is not None), frozenset(wide))


def order_path(value: str, folders: AgentFolders, order: PathOrder) -> str:
    """A value of `PATH` for a program outside of a sandbox; never empty, as that would mean the working directory.

    Folders that everybody can write count as those of an agent.
    """
    entries = [entry for entry in dict.fromkeys(value.split(os.pathsep)) if entry.startswith("/")]
    if order is not PathOrder.AS_GIVEN:
        agents = [entry for entry in entries if folders.has(entry) or _is_open(entry)]
        others = [entry for entry in entries if entry not in agents]
        homely = [entry for entry in others if folders.has_widely(entry)]
        entries = [entry for entry in others if entry not in homely] + homely
        entries += agents if order is PathOrder.LAST else []
    return os.pathsep.join(entries) or os.defpath


def outside_variables(environment: Mapping[str, str], folders: AgentFolders) -> dict[str, str]:
    """Inherited variables for a program outside of a sandbox, without those that lead it to files of an agent.

    A list of folders loses such entries; any other variable goes whose value names a path there, absolute or relative.
    Which variable names code is known to each program alone, so the value decides and not the name.
    """
    kept: dict[str, str] = {}
    for name, value in environment.items():
        if name in PLACES or name == "PATH":
            kept[name] = value
        elif name in SEARCH_PATHS or _is_list(value):
            entries = [entry for entry in value.split(os.pathsep) if not entry or not _leads_in(entry, folders)]
            if any(entries):
                kept[name] = os.pathsep.join(entries)
        elif not any(_leads_in(word, folders) for word in _paths_in(value)):
            kept[name] = value
    return kept


def foreground_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment of a program that Phoenix starts for the user beside the zygote: editor, browser, tab."""
    folders = agent_folders()
    path = order_path(environment.get("PATH", os.defpath), folders, PathOrder.LEFT_OUT)
    kept = outside_variables(without_relative_entries(environment), folders) | {"PATH": path}
    return {name: value for name, value in kept.items() if name != USERS_PATH}


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment of the user's own editor: everything but keys, which `/proc` would show for as long as it is open,
    and what leads to a program of an agent.
    """
    return foreground_environment({
        name: value for name, value in environment.items() if not KEY_NAMES.search(name) and not SECRETS.has_name(name)
    })


def foreground_start(argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a program that a variable such as `EDITOR` names, with its absolute path.

    Raises:
        FileNotFoundError: it is not there, is named relative to the working directory, or an agent can change it.
    """
    name = argv[0]
    if "/" in name and (not name.startswith("/") or is_agents(name, agent_folders())):
        raise FileNotFoundError(errno.ENOENT, "it is no program outside of the working directory", name)
    return start_of(argv, environment.get("PATH", os.defpath))


def start_of(argv: tuple[str, ...], path: str, working_dir: Path | None = None) -> tuple[str, ...]:
    """The words of a program that Phoenix starts by itself, with its absolute path.

    Raises:
        FileNotFoundError: no folder outside of those of agents has it; the message names one that was passed over.
    """
    name = argv[0]
    if "/" in name:
        return argv
    folders = agent_folders(working_dir)
    passed_over = ""
    for found in _candidates(name, order_path(path, folders, PathOrder.LAST)):
        if not is_agents(found, folders):
            return (found, *argv[1:])
        passed_over = passed_over or found
    if passed_over:
        why = f"{passed_over} can be changed by an agent, so it is run only where it is named by its path"
        raise FileNotFoundError(errno.ENOENT, why, name)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def program_facts(names: Iterable[str], working_dir: Path, order: PathOrder) -> tuple[ProgramFact, ...]:
    """Programs of a command line as the shell would find them outside of a sandbox; names of no file are left out."""
    folders = agent_folders(working_dir)
    path = order_path(users_path(), folders, order)
    facts: list[ProgramFact] = []
    named_once = list(dict.fromkeys(names))
    if len(named_once) > MOST_FACTS:
        facts.append(ProgramFact("one of its programs", "not looked up", "", is_agents=True, other="not looked up"))
    for name in named_once[:MOST_FACTS]:
        named = [os.path.join(working_dir, name)] if "/" in name else list(_candidates(name, path))
        if not named or not (resolved := _program(named[0], is_open=True)):
            continue
        first = is_agents(named[0], folders, order)
        across = (one for one in named[1:] if is_agents(one, folders, order) is not first)
        facts.append(ProgramFact(name, named[0], _stamp(resolved), first, next(across, "")))
    return tuple(facts)


def is_agents(program: str, folders: AgentFolders, order: PathOrder = PathOrder.LAST) -> bool:
    """True for a program whose file, or the interpreter in its first line, an agent or everybody can write.

    With the user's own order the file itself counts and not its name: `python` of a virtual environment is a link to
    the system's.
    """
    if not (resolved := _program(program)):
        return True
    named = resolved if order is PathOrder.AS_GIVEN else program
    interpreter = _interpreter(resolved)
    if interpreter and order is PathOrder.AS_GIVEN:
        interpreter = real_path(interpreter)
    return folders.has(named) or _is_open(os.path.dirname(named)) or (bool(interpreter) and folders.has(interpreter))


def find_program(name: str, working_dir: Path | None = None) -> str:
    """The absolute path of a helper program; empty when no trusted folder of `PATH` has it.

    `working_dir` is a folder that is not trusted; without it the one Phoenix runs in.
    """
    for folder in list_trusted_folders(working_dir):
        found = _program(f"{folder}/{name}")
        if found and not _is_below(found, _list_untrusted(working_dir)):
            return f"{folder}/{name}"
    return ""


def list_trusted_folders(working_dir: Path | None = None) -> tuple[str, ...]:
    """Folders of `PATH` that a helper may come from, in order."""
    untrusted, agents = _list_untrusted(working_dir), agent_folders(working_dir)
    return tuple(
        folder
        for folder in list_trusted_entries()
        if not _is_below(real_path(folder), untrusted) and not agents.has(folder)
    )


def outside_entries(value: str, working_dir: Path) -> str:
    """Remove folders in the repository of `working_dir` or of Phoenix's own folder from a list of folders."""
    untrusted = _list_untrusted(working_dir)
    kept = [entry for entry in absolute_entries(value).split(os.pathsep) if entry]
    return os.pathsep.join(entry for entry in kept if not _is_below(real_path(entry), untrusted))


def helper_environment(environment: Mapping[str, str], working_dir: Path) -> dict[str, str]:
    """Environment of a helper of Phoenix: no variable that names a library, a module path or a setting of a program."""
    kept = {name: value for name, value in environment.items() if name in HELPER_VARIABLES or name.startswith("LC_")}
    return kept | {"PATH": os.pathsep.join(list_trusted_folders(working_dir)) or os.defpath}


@cache
def list_trusted_entries() -> tuple[str, ...]:
    """Entries of Phoenix's own `PATH` that exist and that no other user can write, resolved once."""
    entries = dict.fromkeys(absolute_entries(os.environ.get("PATH", os.defpath)).split(os.pathsep))
    temporary = tuple({real_path(path) for path in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")})
    return tuple(
        entry for entry in entries if entry and _is_private(entry) and not _is_below(real_path(entry), temporary)
    )


def _candidates(name: str, path: str) -> Iterator[str]:
    """Executable files of this name in a list of folders, in its order."""
    for folder in path.split(os.pathsep):
        place = f"{folder.rstrip('/')}/{name}"
        if folder and _program(place, is_open=True):
            yield place


def _places(path: str) -> Iterator[str]:
    """Every place that the way to an absolute path passes, each with its folders resolved; empty for too many links."""
    left, current, links = deque(path.split("/")), "", 0
    while left:
        part = left.popleft()
        if part in {"", "."}:
            continue
        if part == "..":
            current = current.rpartition("/")[0]
            continue
        place = f"{current}/{part}"
        yield place
        try:
            target = os.readlink(place)
        except OSError:
            current = place
            continue
        links += 1
        if links > MOST_LINKS:
            yield ""
            return
        current = "" if target.startswith("/") else current
        left.extendleft(reversed(target.split("/")))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_open(folder: str) -> bool:
    """True for a folder in which everybody can put, or replace, a program: by itself or through one above it.

    In a folder with the sticky bit the entries of this user and of root cannot be replaced.
    """
    place = real_path(folder)
    below = ""
    while True:
        try:
            status = os.stat(place)
        except OSError:
            below, place = place, os.path.dirname(place)
            if place == below:
                return False
            continue
        if status.st_mode & WORLD_WRITABLE and not (status.st_mode & stat.S_ISVTX and _is_held(below)):
            return True
        if place == "/":
            return False
        below, place = place, os.path.dirname(place)


def _is_held(path: str) -> bool:
    """True for an entry that exists and belongs to this user or to root."""
    try:
        return bool(path) and os.lstat(path).st_uid in {0, os.getuid()}
    except OSError:
        return False


def _is_list(value: str) -> bool:
    return os.pathsep in value and "://" not in value and value.startswith("/") and " " not in value


def _paths_in(value: str) -> Iterator[str]:
    """Words of a value that may be paths, also behind `=`, `-I` and other beginnings of an option."""
    for word in value.translate(_BREAKS).split():
        yield word
        if word[:1] == "-" and "/" in word:
            yield word[word.index("/") :]
            yield word.lstrip("-")[1:]


_BREAKS: Final = {ord(each): " " for each in ":;,='\"()|&<>`@[]{}"}


def _leads_in(word: str, folders: AgentFolders) -> bool:
    """True for a path in such a folder; a relative one is there if it says so, or if a file of this name exists."""
    if word.startswith("/"):
        return not word.startswith("//") and folders.has(word)
    if word.startswith(("./", "../")) or word in {".", ".."}:
        return True
    named = "/" in word or "." in word
    return named and any(os.path.lexists(f"{folder}/{word}") for folder in folders.paths)


def _interpreter(program: str) -> str:
    """The interpreter in the first line of a script; empty for other files and for a relative one."""
    try:
        with open(program, "rb") as file:
            first = file.read(LONGEST_HASH_BANG)
    except OSError:
        return ""
    words = first[2:].split(b"\n", 1)[0].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""


def _stamp(resolved: str) -> str:
    try:
        status = os.stat(resolved)
    except OSError:
        return "gone"
    return f"{resolved}:{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_ctime_ns}"


def _is_private(folder: str) -> bool:
    """True for a folder that, with all folders above it, is not open to everybody's writes."""
    path = Path(folder).resolve()
    try:
        modes = [place.stat().st_mode for place in (path, *path.parents)]
    except OSError:
        return False
    return stat.S_ISDIR(modes[0]) and not any(mode & WORLD_WRITABLE for mode in modes)


def _program(path: str, *, is_open: bool = False) -> str:
    """The resolved path of an executable file, empty for anything else and for what everybody can write."""
    try:
        resolved = os.path.realpath(path, strict=True)
        mode = Path(resolved).stat().st_mode
    except OSError:
        return ""
    usable = stat.S_ISREG(mode) and (is_open or not mode & WORLD_WRITABLE) and os.access(resolved, os.X_OK)
    return resolved if usable else ""


def _list_untrusted(working_dir: Path | None) -> tuple[str, ...]:
    """The folder, the one Phoenix runs in and their repositories; never the root of the file system."""
    roots: list[Path] = []
    for folder in {Path(working_dir or Path.cwd()).resolve(), Path.cwd()}:
        roots.append(folder)
        roots += (parent for parent in folder.parents if has_repository(parent) or _is_of_others(parent))
    return tuple(str(root) for root in roots if root != Path(root.anchor))


def _is_of_others(folder: Path) -> bool:
    return any((folder / name).exists() for name in OTHERS)


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
