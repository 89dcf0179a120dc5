"""Asks the package index for the newest Phoenix, and keeps what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.cli.names import VERSION
from phoenix_tui.config.file_lock import locked
from phoenix_tui.updates.installation import NAME, Installation
from phoenix_tui.updates.package_index import PackageIndex
from phoenix_tui.updates.releases import is_newer, newest_in, release_of
from tools.failure import ToolFailure
from tools.files.own_files import read_text, write_file
from tools.web.addresses import Reach
from tools.web.chosen_hosts import ChosenReach, chosen_address
from tools.web.fetching import HttpAnswer, HttpAsk, ask

STATE: Final = "update.json"
DAY: Final = 24 * 3600.0
"""Least seconds between two requests without a command of the user."""
PATIENCE: Final = 3.0
"""Seconds for a request."""
MOST_BYTES: Final = 2 * 1024 * 1024
"""Bytes of an answer: about 4,000 files."""
MOST_STATE: Final = 16 * 1024
LONGEST_ETAG: Final = 200
JSON: Final = "application/vnd.pypi.simple.v1+json"
"""Media type of PEP 691."""
_OK, _UNCHANGED = 200, 304
_SWITCHES: Final = ("DO_NOT_TRACK", "NO_UPDATE_NOTIFIER")


class CheckFailed(Exception):
    """The index cannot be asked; the message is one sentence for the user."""


class KnownRelease(Struct, frozen=True):
    """Last answer of the index."""

    checked_at: float = 0.0
    """Wall clock of the newest request, also of one that failed."""
    index: str = ""
    etag: str = ""
    newest: str = ""


def opted_out(environment: Mapping[str, str]) -> str:
    """The variable by which the user wants no program to look for updates; empty without."""
    return next((name for name in _SWITCHES if environment.get(name, "") not in {"", "0", "false"}), "")


def known_release(state: Path) -> KnownRelease:
    """The answer that is kept; an empty one for a file that cannot be read or used."""
    try:
        known = msgspec.json.decode(read_text(state / STATE, MOST_STATE), type=KnownRelease)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return KnownRelease()
    return known if not known.newest or release_of(known.newest) is not None else KnownRelease()


def claim(state: Path, now: float) -> bool:
    """Note a request that is about to be made; False where one was made within a day, by this or another process.

    Raises:
        OSError: it cannot be noted.
    """
    with locked(state / STATE):
        known = known_release(state)
        if 0 <= now - known.checked_at < DAY:
            return False
        _keep(state, replace(known, checked_at=now))
        return True


async def ask_index(state: Path, index: PackageIndex, now: float, reach: Reach | None = None) -> str:
    """The newest release by the index, which is kept with its ETag.

    Raises:
        CheckFailed: the index cannot be asked, or says nothing of use.
        OSError: its answer cannot be kept.
    """
    known = await asyncio.to_thread(known_release, state)
    same = known.index == index.url
    headers = {"Accept": JSON} | ({"If-None-Match": known.etag} if same and known.etag else {})
    try:
        async with asyncio.timeout(PATIENCE):
            request = HttpAsk(headers=headers, most=MOST_BYTES)
            answer = await ask(chosen_address(f"{index.url}/{NAME}/"), reach or ChosenReach(), request)
    except TimeoutError:
        raise CheckFailed(f"The package index did not answer within {PATIENCE:.0f} s.") from None
    except ToolFailure as failure:
        raise CheckFailed(str(failure)) from failure
    if answer.status == _UNCHANGED and same:
        newest, etag = known.newest, known.etag
    else:
        newest, etag = _newest(answer), answer.etag
    kept = KnownRelease(now, index.url, etag if etag.isprintable() and len(etag) <= LONGEST_ETAG else "", newest)
    await asyncio.to_thread(_keep_locked, state, kept)
    return newest


def _newest(answer: HttpAnswer) -> str:
    if answer.location:
        raise CheckFailed("The package index redirects, which is not followed; set update_index to its own address.")
    if answer.status != _OK:
        raise CheckFailed(f"The package index answers with HTTP status {answer.status}.")
    if answer.cut or answer.media_type not in {JSON, "application/json"}:
        raise CheckFailed("The package index has no list in the form that is read (PEP 691).")
    try:
        return newest_in(answer.content)
    except ValueError:
        raise CheckFailed("The package index has no list in the form that is read (PEP 691).") from None


def newer_sentence(newest: str, installation: Installation) -> str:
    """The line about a newer release, with its command; empty where there is none."""
    if not is_newer(newest, VERSION) or installation.why_not:
        return ""
    return f"Phoenix {newest} is available, this is {VERSION}; `{installation.command}` installs it."


def _keep(state: Path, known: KnownRelease) -> None:
    write_file(state / STATE, msgspec.json.encode(known))


def _keep_locked(state: Path, known: KnownRelease) -> None:
    with locked(state / STATE):
        _keep(state, known)
