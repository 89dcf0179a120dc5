"""The one way in which Phoenix itself runs git: to look, without the configuration of the repository (SECURITY V2).

Git is pointed at a git folder of Phoenix's own, whose configuration is empty and which has no hooks, and is given the
index and the objects of the repository. So no key of the repository's configuration, of what that includes, of a
worktree's own or of an attribute can name a program: git never reads them. A few settings that only say how files are
compared are read here and handed on.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

from tools.clean import clean_line
from tools.contract import HELPER_SANDBOX, Command, Finished, ProcessRunner
from tools.git.repository import Repository, find_repository, read_small

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
