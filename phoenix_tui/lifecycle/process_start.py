"""First steps of a process: no code from its working directory (SECURITY V1), and stand-ins for missing streams.

Runs before anything else is imported, so it uses only modules that Python has loaded by then; even `__future__` is a
file that a repository can shadow.
"""

import os
import sys

STREAMS = ("stdin", "stdout", "stderr")
WORKING_DIRECTORY = "working directory"
lacking: set[str] = set()
"""Names of the streams, and the working directory, that were not there."""


def fill_in() -> None:
    """Put /dev/null in the place of each stream that is closed, and `/` in that of a folder that is gone.

    Without the first, the next file that is opened, such as the database, would be written to as stdout.
    """
    for number, name in enumerate(STREAMS):
        if getattr(sys, name) is None:
            lacking.add(name)
            _open(number, name)
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:
        lacking.add(WORKING_DIRECTORY)
        os.chdir("/")


def _open(number: int, name: str) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    os.set_inheritable(number, True)
    setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


def tell(text: str) -> None:
    """Write to stderr where that is possible; the exit code says the rest."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        forget(2)


def forget(number: int) -> None:
    """Point a stream at nothing, so that the interpreter's last flush does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)


REPOSITORIES = (".git/HEAD", ".hg", ".svn")
"""An empty `.git` makes no repository; a file `.git` does, see `_is_repository`."""
SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS")
"""Lists of folders that this process, or a program it starts for the user, is loaded from."""
USERS_PATH = "PHOENIX_USERS_PATH"
"""Variable with the `PATH` that Phoenix was started with."""


def leave_out_working_directory() -> None:
    """Drop from `sys.path` the entries inside the working directory or its repository, and relative entries of search
    paths.

    Python puts the folder there by itself for `python -m`, and for an empty entry of PYTHONPATH.
    """
    untrusted = _find_untrusted_folders()
    trusted = _find_installed_folders()
    sys.path[:] = [
        entry
        for entry in sys.path
        if entry.startswith("/") and (_is_below(entry, trusted) or not _is_below(entry, untrusted))
    ]
    if sys.pycache_prefix is not None and not sys.pycache_prefix.startswith("/"):
        sys.pycache_prefix = None  # compiled modules would be read from the working directory
    for name in SEARCH_PATHS:
        _drop_relative_entries(name)
    _leave_out_of_path(untrusted)


def _leave_out_of_path(untrusted: tuple[str, ...]) -> None:
    """Look in none of these folders for programs that a library of this process starts by itself, such as the
    `credential_process` of AWS. Commands of agents find `PATH` as it was (`tools.process.environment.users_path`).

    A home folder that is a working directory keeps its programs, which are the user's own.
    """
    given = os.environ.get("PATH", os.defpath)
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - as above
    closed = tuple(folder for folder in untrusted if home != folder and not home.startswith(f"{folder}/"))
    known = os.environ.get(USERS_PATH, "")
    if known and _outside(known, closed) == given:
        return  # a tab of `phoenix serve`, which has it from the server
    os.environ[USERS_PATH] = given
    os.environ["PATH"] = _outside(given, closed)


def _outside(path: str, folders: tuple[str, ...]) -> str:
    kept = (entry for entry in path.split(os.pathsep) if not _is_below(entry, folders))
    return os.pathsep.join(entry for entry in kept if not entry.startswith(tuple(f"{one}/" for one in folders)))


def _drop_relative_entries(name: str) -> None:
    value = os.environ.get(name)
    if value is None:
        return
    kept = os.pathsep.join(entry for entry in value.split(os.pathsep) if entry.startswith("/"))
    if kept != value:
        # Without PATH the C library searches the working directory or its default; the default is set here.
        os.environ[name] = kept or (os.defpath if name == "PATH" else "")


def _find_untrusted_folders() -> tuple[str, ...]:
    """The working directory and every repository around it; never the root of the file system."""
    try:
        folder = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib is not loaded yet, and could be planted
    except OSError:
        return ()
    found = [folder]
    while (parent := os.path.dirname(folder)) != folder:  # noqa: PTH120 - as above
        folder = parent
        found += [folder] if _is_repository(folder) else []
    return tuple(one for one in found if one != "/")


def _is_repository(folder: str) -> bool:
    """Shape alone: `tools.git.repository` decides elsewhere, and would have to be imported."""
    return os.path.isfile(f"{folder}/.git") or any(os.path.lexists(f"{folder}/{name}") for name in REPOSITORIES)  # noqa: PTH113 - as above


def _find_installed_folders() -> tuple[str, ...]:
    """Folders of Python, its packages and Phoenix itself: running those from the working directory is the user's
    choice.
    """
    site = sys.modules.get("site")
    user_site = getattr(site, "USER_SITE", None) if getattr(site, "ENABLE_USER_SITE", None) else None
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120 - as above
    named = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, user_site, own)
    return tuple(dict.fromkeys(os.path.realpath(folder) for folder in named if folder))


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(f"{folder.rstrip('/')}/") for folder in folders)
