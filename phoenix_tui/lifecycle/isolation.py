"""Keeps the working directory out of this process: neither a module nor a program is loaded from it (SECURITY V1).

Runs before anything else is imported, so it uses only modules that Python has loaded by then; even `__future__` is a
file that a repository can shadow.
"""

import os
import sys

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
    untrusted = _untrusted_folders()
    trusted = _installed_folders()
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


def _untrusted_folders() -> tuple[str, ...]:
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


def _installed_folders() -> tuple[str, ...]:
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
