"""Git that changes a working tree, its index or the objects, without the repository's configuration (SECURITY V2).

As for reading, git is pointed at an empty git folder of Phoenix's own and is given the index and the objects. It runs
no hook, filter or monitor, for it knows none. It has no sandbox, which would keep it from writing control files of the
working tree such as `.envrc`, but an empty environment and the absolute path of a program outside the repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.clean import clean_line
from tools.contract import UNCONFINED, Command, Finished, ProcessRunner
from tools.git.failure import GitFailure
from tools.git.reading import ALONE, NOWHERE, OPTIONS, OWN_FOLDERS
from tools.git.repository import NAME, Repository
from tools.process.programs import find_program, trusted_folders

SECONDS: Final = 600.0
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
            "PATH": os.pathsep.join(trusted_folders(repository.worktree)),
            "LC_ALL": "C.UTF-8",
        }
        together = {**ALONE, **places, **environment}
        words = tuple(f"{name}={value}" for name, value in together.items())
        argv = (env, "-i", *words, git, *OPTIONS, *NO_PROGRAMS, *self._settings, *arguments)
        command = Command(
            argv, repository.worktree, SECONDS, {}, stdin, keep_head=MOST_OUTPUT, keep_tail=0, sandbox=UNCONFINED
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
        return f"Git took longer than {SECONDS:.0f} s and was stopped."
    lines = finished.captured.head.decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.startswith(("error:", "fatal:"))] or lines[-1:] or ["it gave no reason"]
    return f"Git refused: {clean_line(said[0])[:300]}."
