"""Paths of the installation's files (CONTRACT 4), and changes to those that several processes share."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from phoenix_tui.config.settings import ConfigError
from tools.files.own_files import is_open_to_all, make_folder, open_file


class Paths(Struct, frozen=True):
    """The folders of one installation; with PHOENIX_HOME all three are the same."""

    config: Path
    data: Path
    state: Path
    trust_of_run: Path | None = None
    """File of answers that hold for this run alone, and take the place of the user's; None: there is none."""

    @property
    def config_file(self) -> Path:
        """The user's settings."""
        return self.config / "config.toml"

    @property
    def credentials_file(self) -> Path:
        """API keys."""
        return self.config / "credentials.toml"

    @property
    def rules_file(self) -> Path:
        """Permission rules answered with "always"."""
        return self.config / "rules.toml"

    @property
    def trust_file(self) -> Path:
        """Folders whose own files are interpreted, in this run."""
        return self.trust_of_run or self.config / "trust.json"

    @property
    def servers_file(self) -> Path:
        """Model servers of this machine that the user has accepted."""
        return self.config / "servers.json"

    @property
    def keymap_file(self) -> Path:
        """The user's keys."""
        return self.config / "keymap.toml"

    @property
    def prompt_files(self) -> tuple[Path, ...]:
        """The user's own AGENTS.md and other files of the system prompt, for every folder."""
        names = ("AGENTS", "CLAUDE", "SOUL", "IDENTITY", "USER", "TOOLS", "BOOTSTRAP")
        return tuple(self.config / f"{name}.md" for name in names)

    @property
    def profiles(self) -> Path:
        """Agent profiles, one Markdown file each."""
        return self.config / "profiles"

    @property
    def themes(self) -> Path:
        """The user's themes."""
        return self.config / "themes"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.data / "phoenix.db"

    @property
    def attachments(self) -> Path:
        """Images, named by their SHA-256."""
        return self.data / "attachments"

    @property
    def checkpoints(self) -> Path:
        """Contents of files before agents changed them."""
        return self.data / "checkpoints" / "contents.db"

    @property
    def memory(self) -> Path:
        """Notes of agents between conversations."""
        return self.data / "memory"

    @property
    def models(self) -> Path:
        """Models that run on this machine."""
        return self.data / "models"

    @property
    def outputs(self) -> Path:
        """Whole outputs of commands whose middle was too long to keep in memory."""
        return self.state / "outputs"

    @property
    def placeholders(self) -> Path:
        """Journals of the placeholders that each running Phoenix has put into workspaces for its sandboxes."""
        return self.state / "placeholders"

    @property
    def taken_back(self) -> Path:
        """Contents that commands wrote into self-starting files and that were taken back."""
        return self.state / "taken-back"

    @property
    def locks(self) -> Path:
        """Locks of ownership between processes."""
        return self.state / "locks"

    @property
    def log_file(self) -> Path:
        """The log, JSON lines."""
        return self.state / "logs" / "phoenix.jsonl"

    def open_parents(self) -> tuple[Path, ...]:
        """Folders above these in which any user could put others in their place."""
        above = {parent for folder in (self.config, self.data, self.state) for parent in folder.resolve().parents}
        return tuple(sorted(filter(is_open_to_all, above)))

    def make(self) -> None:
        """Make the folders, private to this user.

        Raises:
            OSError: one of them cannot be made.
        """
        for folder in {self.config, self.data, self.state}:
            make_folder(folder)


def find_paths(environment: Mapping[str, str]) -> Paths:
    """The folders by PHOENIX_HOME, else the platform's own. Raises ConfigError."""
    home = environment.get("PHOENIX_HOME", "")
    if home:
        try:
            folder = Path(home).expanduser().absolute()
        except RuntimeError as error:  # of a `~name` that no user has
            raise ConfigError(f"PHOENIX_HOME is {home}, and there is no such home folder; give a path.") from error
        return Paths(folder, folder, folder)
    from platformdirs import PlatformDirs  # noqa: PLC0415 - not needed with PHOENIX_HOME

    platform = PlatformDirs("phoenix", appauthor=False)
    return Paths(platform.user_config_path, platform.user_data_path, platform.user_state_path)


PATIENCE: Final = 5.0
"""Seconds to wait for other processes: each holds the lock for one read and one write."""
STEP: Final = 0.01
LOCKED: Final = "another Phoenix keeps it locked"


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Be the only process that changes `path`, by a lock on `.NAME.lock` beside it; readers need none.

    The lock file stays: a process that waits for it must not get the lock of a file that is gone. The lock ends with
    its process.

    Raises:
        OSError: the folder cannot be written, or another process keeps the lock.
    """
    make_folder(path.parent)
    descriptor = open_file(path.with_name(f".{path.name}.lock"), os.O_RDWR)
    try:
        _wait(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, LOCKED, str(path)) from None
            time.sleep(STEP)
        else:
            return


LOOK_EVERY: Final = 1.0
"""Seconds between two looks; a look costs about 20 us for five files."""
FileStamp: TypeAlias = tuple[int, int] | None
"""Time and size, None while there is no such file."""


class LiveFiles:
    """Says which of some files changed since the last look."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._stamps = self._look()

    def _look(self) -> dict[Path, FileStamp]:
        return {path: stamp(path) for path in self._files()}

    def find_changed(self) -> list[Path]:
        """Files that were written, made or removed since."""
        before, self._stamps = self._stamps, self._look()
        return [path for path in {**before, **self._stamps} if before.get(path) != self._stamps.get(path)]


def stamp(path: Path) -> FileStamp:
    """Fingerprint of a file's version; None for a missing file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
