"""Asks the package index of this machine for the newest Phoenix, and keeps what it said."""

from __future__ import annotations

import asyncio
import configparser
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.cli.names import VERSION
from phoenix_tui.config.paths import lock_file
from tools.arguments import ToolFailure
from tools.files.own_files import MOST_SETTINGS, read_text, write_file
from tools.web.fetching import ChosenReach, HttpAnswer, HttpAsk, ask, read_chosen_address

NAME: Final = "phoenix-tui"
FROM_FOLDER: Final = "Phoenix was installed from a folder or an address, not from a package index"
NOT_INSTALLED: Final = "Phoenix runs without being installed"
UNKNOWN: Final = "the program that installed Phoenix is not known"


class Installation(Struct, frozen=True):
    """Installer of Phoenix, or the reason why it has no command for a newer one."""

    installer: str = ""
    """uv tool, pipx, pip or uv pip."""
    command: str = ""
    why_not: str = ""

    @property
    def by_uv(self) -> bool:
        """True where uv installed it."""
        return self.installer.startswith("uv")


def find_installation(prefix: Path, executable: str = sys.executable) -> Installation:
    """Look at the metadata of the installed package, and at marks of its installer in the environment `prefix`."""
    try:
        found = distribution(NAME)
        installer, source = (found.read_text(name) or "" for name in ("INSTALLER", "direct_url.json"))
    except (PackageNotFoundError, OSError, ValueError):
        return Installation(why_not=NOT_INSTALLED)
    if source.strip():
        return Installation(why_not=FROM_FOLDER)
    if (prefix / "uv-receipt.toml").is_file():
        return Installation("uv tool", f"uv tool upgrade {NAME}")
    if (prefix / "pipx_metadata.json").is_file():
        return Installation("pipx", f"pipx upgrade {NAME}")
    match installer.strip().lower():
        case "pip":
            return Installation("pip", f"{shlex.quote(executable)} -m pip install --upgrade {NAME}")
        case "uv":
            return Installation("uv pip", f"uv pip install --python {shlex.quote(executable)} --upgrade {NAME}")
        case _:
            return Installation(why_not=UNKNOWN)


LONGEST: Final = 1_000
NOT_WEB: Final = "the index of {source} is no http:// or https:// address"
NEEDS_NAME: Final = "the index of {source} needs a user name, which is not sent"
NONE: Final = "no package index is configured; set update_index to the address of one, ending in /simple"
OFFLINE: Final = "{source} keeps programs off the package index"
_OFF: Final = frozenset({"", "0", "false", "no", "off"})
_SWITCHES: Final = ("PIP_NO_INDEX", "UV_NO_INDEX", "UV_OFFLINE")


class PackageIndex(Struct, frozen=True):
    """An index that can be asked, or the reason why there is none."""

    url: str = ""
    """Address without a slash at its end."""
    source: str = ""
    """Setting, variable or file that names it."""
    why_not: str = ""


class ConfigurationPlaces(Struct, frozen=True):
    """Folders in which pip and uv look for their configuration."""

    home: Path
    prefix: Path
    """Folder of the running Python's environment."""
    system: Path = Path("/etc")


def find_index(setting: str, environment: Mapping[str, str], places: ConfigurationPlaces, *, uv: bool) -> PackageIndex:
    """The index by the setting `update_index`, else by the configuration of pip and uv; `uv` comes first if true."""
    for name in _SWITCHES:
        if environment.get(name, "").strip().lower() not in _OFF:
            return PackageIndex(why_not=OFFLINE.format(source=name))
    if setting:
        return _check_address(setting, "update_index")
    readers = (_read_uv, _read_pip) if uv else (_read_pip, _read_uv)
    for reader in readers:
        for url, source in reader(environment, places):
            return _check_address(url, source)
    return PackageIndex(why_not=NONE)


def _check_address(url: str, source: str) -> PackageIndex:
    url = url.strip()
    try:
        parts = urlsplit(url)
        named, host, port = parts.username or parts.password, parts.hostname, parts.port
    except ValueError:
        return PackageIndex(source=source, why_not=NOT_WEB.format(source=source))
    is_web = parts.scheme in {"http", "https"} and host and port != 0 and not parts.query and not parts.fragment
    if not is_web or len(url) > LONGEST or not url.isascii() or any(sign.isspace() for sign in url):
        return PackageIndex(source=source, why_not=NOT_WEB.format(source=source))
    if named:
        return PackageIndex(source=source, why_not=NEEDS_NAME.format(source=source))
    return PackageIndex(url.rstrip("/"), source)


def _read_pip(environment: Mapping[str, str], places: ConfigurationPlaces) -> Iterator[tuple[str, str]]:
    if url := environment.get("PIP_INDEX_URL"):
        yield url, "PIP_INDEX_URL"
    for path in _list_pip_files(environment, places):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(read_text(path, MOST_SETTINGS))
        except (OSError, configparser.Error):
            continue
        for section in ("install", "global"):
            if url := parser.get(section, "index-url", fallback=""):
                yield url, str(path)


def _list_pip_files(environment: Mapping[str, str], places: ConfigurationPlaces) -> Sequence[Path]:
    """Configuration files of pip, the one that counts most first (its documentation, "Configuration")."""
    given, home = environment.get("PIP_CONFIG_FILE", ""), places.home
    if given == "/dev/null":
        return ()
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    users = (config / "pip/pip.conf", home / "Library/Application Support/pip/pip.conf", home / ".pip/pip.conf")
    system = (places.system / "xdg/pip/pip.conf", places.system / "pip.conf")
    return (*([Path(given)] if given else []), places.prefix / "pip.conf", *users, *system)


def _read_uv(environment: Mapping[str, str], places: ConfigurationPlaces) -> Iterator[tuple[str, str]]:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if given := environment.get(name):
            label, _, rest = given.partition("=")
            yield (rest if rest and label.replace("-", "").replace("_", "").isalnum() else given), name
    given, config = environment.get("UV_CONFIG_FILE", ""), environment.get("XDG_CONFIG_HOME") or places.home / ".config"
    system = (places.system / "xdg/uv/uv.toml", places.system / "uv/uv.toml")
    for path in (*([Path(given)] if given else []), Path(config) / "uv/uv.toml", *system):
        try:
            document = tomllib.loads(read_text(path, MOST_SETTINGS))
        except (OSError, tomllib.TOMLDecodeError):
            continue
        for url in _read_urls(document):
            yield url, str(path)


def _read_urls(document: Mapping[str, object]) -> Iterator[str]:
    """Default index of a uv.toml."""
    listed = document.get("index")
    for entry in cast("list[object]", listed) if isinstance(listed, list) else []:
        table = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        address = table.get("url")
        if table.get("default") is True and isinstance(address, str):
            yield address
    section = document.get("pip")
    of_pip: Mapping[str, object] = cast("dict[str, object]", section) if isinstance(section, dict) else {}
    for url in (document.get("index-url"), of_pip.get("index-url")):
        if isinstance(url, str) and url:
            yield url


Release: TypeAlias = "tuple[int, ...]"
"""Numbers of a version, without zeros at its end."""
_VERSION: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}")
"""A final release: no alpha, beta, candidate or local version (PEP 440)."""
_FILE: Final = re.compile(
    r"phoenix[-_.]tui-([0-9][0-9.]{0,59}?)(?:-py[0-9a-z.]{1,20}-\w{1,20}-\w{1,80}\.whl|\.tar\.gz)"
)
LONGEST_NAME: Final = 200
"""Characters of the name of a file."""


class _File(msgspec.Struct):
    filename: str = ""
    yanked: bool | str = False
    """A reason, or true, for a release that was withdrawn."""


class _Project(msgspec.Struct):
    files: list[_File]


_DECODER: Final = msgspec.json.Decoder(_Project)


def read_release(version: str) -> Release | None:
    """The numbers of a final release; None for any other text."""
    if not _VERSION.fullmatch(version):
        return None
    numbers = [int(number) for number in version.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def find_newest(content: bytes) -> str:
    """The newest final release of a project's JSON that was not withdrawn; empty without any.

    Raises:
        ValueError: it is no such JSON.
    """
    try:
        project = _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("the index sent no list of files") from error
    offered = (one.filename for one in project.files if one.yanked is False and len(one.filename) <= LONGEST_NAME)
    names = map(_FILE.fullmatch, offered)
    versions = {found[1] for found in names if found is not None}
    known = {release: version for version in versions if (release := read_release(version)) is not None}
    return known[max(known)] if known else ""


def is_newer(version: str, than: str) -> bool:
    """True where a final release is newer than the running version."""
    release, running = read_release(version), read_release(than)
    return release is not None and running is not None and release > running


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
_OPT_OUTS: Final = ("DO_NOT_TRACK", "NO_UPDATE_NOTIFIER")


class UpdateCheckFailed(Exception):
    """The index cannot be asked; the message is one sentence for the user."""


class KnownRelease(Struct, frozen=True):
    """Last answer of the index."""

    checked_at: float = 0.0
    """Wall clock of the newest request, also of one that failed."""
    index: str = ""
    etag: str = ""
    newest: str = ""


def find_opt_out(environment: Mapping[str, str]) -> str:
    """The variable by which the user wants no program to look for updates; empty without."""
    return next((name for name in _OPT_OUTS if environment.get(name, "") not in {"", "0", "false"}), "")


def read_known_release(state: Path) -> KnownRelease:
    """The answer that is kept; an empty one for a file that cannot be read or used."""
    try:
        known = msgspec.json.decode(read_text(state / STATE, MOST_STATE), type=KnownRelease)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return KnownRelease()
    return known if not known.newest or read_release(known.newest) is not None else KnownRelease()


def claim(state: Path, now: float) -> bool:
    """Note a request that is about to be made; False where one was made within a day, by this or another process.

    Raises:
        OSError: it cannot be noted.
    """
    with lock_file(state / STATE):
        known = read_known_release(state)
        if 0 <= now - known.checked_at < DAY:
            return False
        _keep(state, replace(known, checked_at=now))
        return True


async def ask_index(state: Path, index: PackageIndex, now: float) -> str:
    """The newest release by the index, which is kept with its ETag.

    Raises:
        CheckFailed: the index cannot be asked, or says nothing of use.
        OSError: its answer cannot be kept.
    """
    known = await asyncio.to_thread(read_known_release, state)
    same = known.index == index.url
    headers = {"Accept": JSON} | ({"If-None-Match": known.etag} if same and known.etag else {})
    try:
        async with asyncio.timeout(PATIENCE):
            request = HttpAsk(headers=headers, most=MOST_BYTES)
            answer = await ask(read_chosen_address(f"{index.url}/{NAME}/"), ChosenReach(), request)
    except TimeoutError:
        raise UpdateCheckFailed(f"The package index did not answer within {PATIENCE:.0f} s.") from None
    except ToolFailure as failure:
        raise UpdateCheckFailed(str(failure)) from failure
    if answer.status == _UNCHANGED and same:
        newest, etag = known.newest, known.etag
    else:
        newest, etag = _read_newest(answer), answer.etag
    kept = KnownRelease(now, index.url, etag if etag.isprintable() and len(etag) <= LONGEST_ETAG else "", newest)
    await asyncio.to_thread(_keep_locked, state, kept)
    return newest


def _read_newest(answer: HttpAnswer) -> str:
    if answer.location:
        raise UpdateCheckFailed(
            "The package index redirects, which is not followed; set update_index to its own address."
        )
    if answer.status != _OK:
        raise UpdateCheckFailed(f"The package index answers with HTTP status {answer.status}.")
    if answer.cut or answer.media_type not in {JSON, "application/json"}:
        raise UpdateCheckFailed("The package index has no list in the form that is read (PEP 691).")
    try:
        return find_newest(answer.content)
    except ValueError:
        raise UpdateCheckFailed("The package index has no list in the form that is read (PEP 691).") from None


def newer_sentence(newest: str, installation: Installation) -> str:
    """The line about a newer release, with its command; empty where there is none."""
    if not is_newer(newest, VERSION) or installation.why_not:
        return ""
    return f"Phoenix {newest} is available, this is {VERSION}; `{installation.command}` installs it."


def _keep(state: Path, known: KnownRelease) -> None:
    write_file(state / STATE, msgspec.json.encode(known))


def _keep_locked(state: Path, known: KnownRelease) -> None:
    with lock_file(state / STATE):
        _keep(state, known)
