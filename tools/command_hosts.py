"""Hosts that a command is known to reach before it runs: for the question about it, never for a limit.

A package manager's registry is offered here and allowed nowhere (docs/decisions/network.md).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from tools.command_access import DIRECT_PROGRAMS, NEEDS_PORT, command_access, programs_in
from tools.contract import Access
from tools.web.public_addresses import host_and_port

MOST_HOSTS: Final = 20
MOST_OF_FILE: Final = 64 * 1024
ANY: Final = "*"
URL: Final = re.compile(r"\bhttps?://(?:[^\s/@'\"`<>|;&()\\]*@)?([^\s/'\"`<>|;&()\\?#]+)", re.IGNORECASE)
BARE: Final = re.compile(r"(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?=/|$)", re.IGNORECASE)
"""A host without a scheme, as `curl example.com/x` has it."""
FETCHERS: Final = frozenset({"curl", "wget", "http", "https", "xh"})
SCHEMES: Final = {"http": 80, "https": 443}
LOCAL: Final = (".local", ".localhost", ".internal", ".home.arpa")
_PYPI: Final = ("pypi.org", "files.pythonhosted.org")
_NPM: Final = ("registry.npmjs.org",)
_MAVEN: Final = ("repo.maven.apache.org",)
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("pip", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch"), _PYPI),
    **dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "bun", "bunx"), _NPM),
    "yarn": ("registry.yarnpkg.com", *_NPM),
    "cargo": ("index.crates.io", "static.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "gem": ("rubygems.org", "index.rubygems.org"),
    "bundle": ("rubygems.org", "index.rubygems.org"),
    "composer": ("repo.packagist.org", "api.github.com", "codeload.github.com"),
    "dotnet": ("api.nuget.org",),
    "deno": ("jsr.io", "deno.land", *_NPM),
    "mix": ("hex.pm", "repo.hex.pm"),
    "conda": ("conda.anaconda.org", "repo.anaconda.com"),
    "mvn": _MAVEN,
    "gradle": (*_MAVEN, "plugins.gradle.org", "services.gradle.org"),
}
"""Registries of package managers, as they come."""
PYTHON: Final = frozenset({"pip", "uv", "uvx", "poetry", "pdm", "pipenv", "hatch"})
NODE: Final = frozenset({"npm", "npx", "pnpm", "pnpx", "bun", "bunx", "yarn"})
PIP_FILES: Final = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
PIP_INDEX: Final = re.compile(r"^\s*(?:extra-)?index-url\s*=\s*(.+)$", re.MULTILINE)
NPM_REGISTRY: Final = re.compile(r"^\s*(?:@[\w.-]+:)?registry\s*=\s*(\S+)", re.MULTILINE)
VERSIONED: Final = re.compile(r"(pip|python|pypy)[\d.]*")


class NeededHosts(Struct, frozen=True):
    """Hosts of a command, as `host` or `host:port`; `any_host` where the network by host is not enough."""

    hosts: tuple[str, ...] = ()
    any_host: bool = False


NO_HOSTS: Final = NeededHosts()


def find_needed_hosts(command: str, declared: Sequence[str], folder: Path) -> NeededHosts:
    """The hosts that the command names, those that the model `declared`, and the registries of its package managers.

    Reads settings of package managers in `folder` and in the home folder; starts nothing.
    """
    if ANY in declared:
        return NeededHosts(any_host=True)
    found = [*valid_hosts(declared), *_addresses(command)]
    direct = any(_is_local(host) for host in found)
    for words in programs_in(command):
        name = _name(words)
        direct = direct or name in DIRECT_PROGRAMS or command_access(shlex.join(words))[1].endswith(NEEDS_PORT)
        if name in FETCHERS:
            found += valid_hosts(word.partition("/")[0] for word in words[1:] if BARE.match(word) and "://" not in word)
        if name in PRESETS and command_access(shlex.join(words))[0] is not Access.CONFINED:
            found += _registries(name, folder, command)
    hosts = tuple(dict.fromkeys(found))
    direct = direct or any(_is_local(host) for host in hosts)
    return NeededHosts(() if direct else hosts[:MOST_HOSTS], direct)


def _addresses(text: str) -> list[str]:
    """Hosts of the addresses in a text; one that a variable is part of is not known."""
    found: list[str] = []
    for match in URL.finditer(text):
        scheme = match[0].partition(":")[0].lower()
        found += valid_hosts([match[1]], SCHEMES[scheme])
    return found


def valid_hosts(texts: Iterable[str], usual: int = 443) -> list[str]:
    """Hosts among the texts, each in one spelling; `usual` is the port that none of them names."""
    found: list[str] = []
    for text in texts:
        below = text.startswith("*.")
        try:
            host, port = host_and_port(text.removeprefix("*.").rstrip(".,"), usual)
        except ValueError:
            continue
        named = f"[{host}]" if ":" in host else host
        host = named if port in SCHEMES.values() else f"{named}:{port}"
        found.append(f"*.{host}" if below else host)
    return found


def _is_local(host: str) -> bool:
    """True for a host of this machine or its network, which the proxy never reaches."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
    if "." not in name and ":" not in name:
        return True
    return name.endswith(LOCAL) or name.startswith(("127.", "10.", "192.168.", "[::1]", "[fe80", "[fc", "[fd"))


def _name(words: Sequence[str]) -> str:
    """The program, by the name under which it is known here."""
    name = PurePosixPath(words[0]).name
    match = VERSIONED.fullmatch(name)
    if match is None:
        return name
    if match[1] == "pip":
        return "pip"
    return _name(words[2:]) if len(words) > 2 and words[1] == "-m" else name


def _registries(name: str, folder: Path, command: str) -> list[str]:
    """Registries of a package manager: those that its settings name, else the usual ones."""
    named: list[str] = []
    if name in PYTHON:
        if re.search(r"(?:--index-url|--default-index|\s-i)\b", command):
            return []  # the address itself is in the command
        named = [url for path in PIP_FILES for url in _settings(Path(path).expanduser(), PIP_INDEX)]
        replaced = any("extra" not in line for line in _lines(PIP_FILES, PIP_INDEX))
        return [*([] if replaced else _PYPI), *named]
    if name in NODE:
        if "--registry" in command:
            return []
        named = [*_settings(folder / ".npmrc", NPM_REGISTRY), *_settings(Path("~/.npmrc").expanduser(), NPM_REGISTRY)]
    if name == "go":
        named = _addresses(os.environ.get("GOPROXY", ""))
    return named or list(PRESETS[name])


def _settings(path: Path, pattern: re.Pattern[str]) -> list[str]:
    return [host for match in pattern.finditer(_text(path)) for host in _addresses(match[1])]


def _lines(paths: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    for path in paths:
        for match in pattern.finditer(_text(Path(path).expanduser())):
            yield match[0]


def _text(path: Path) -> str:
    """The beginning of a settings file; empty for one that is none, such as a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(MOST_OF_FILE).decode("utf-8", "replace")
