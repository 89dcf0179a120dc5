"""The package index of this machine: that of a setting, else the one that pip or uv is configured with.

Neither program is started, and no index is built in: where none is configured there is none to ask.
"""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from tools.files.own_files import MOST_SETTINGS, read_text

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
        return _checked(setting, "update_index")
    readers = (_of_uv, _of_pip) if uv else (_of_pip, _of_uv)
    for reader in readers:
        for url, source in reader(environment, places):
            return _checked(url, source)
    return PackageIndex(why_not=NONE)


def _checked(url: str, source: str) -> PackageIndex:
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


def _of_pip(environment: Mapping[str, str], places: ConfigurationPlaces) -> Iterator[tuple[str, str]]:
    if url := environment.get("PIP_INDEX_URL"):
        yield url, "PIP_INDEX_URL"
    for path in _pip_files(environment, places):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read_string(read_text(path, MOST_SETTINGS))
        except (OSError, configparser.Error):
            continue
        for section in ("install", "global"):
            if url := parser.get(section, "index-url", fallback=""):
                yield url, str(path)


def _pip_files(environment: Mapping[str, str], places: ConfigurationPlaces) -> Sequence[Path]:
    """Configuration files of pip, the one that counts most first (its documentation, "Configuration")."""
    given, home = environment.get("PIP_CONFIG_FILE", ""), places.home
    if given == "/dev/null":
        return ()
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    users = (config / "pip/pip.conf", home / "Library/Application Support/pip/pip.conf", home / ".pip/pip.conf")
    system = (places.system / "xdg/pip/pip.conf", places.system / "pip.conf")
    return (*([Path(given)] if given else []), places.prefix / "pip.conf", *users, *system)


def _of_uv(environment: Mapping[str, str], places: ConfigurationPlaces) -> Iterator[tuple[str, str]]:
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
        for url in _urls_of(document):
            yield url, str(path)


def _urls_of(document: Mapping[str, object]) -> Iterator[str]:
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
