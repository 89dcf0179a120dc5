"""Files of server definitions: by precedence, with their changes and the choices of the user about
servers.

Precedence: command line, `.phoenix/config.toml`, `.mcp.json`, the files of the user.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports.mcp import FolderServers, ServerDefinition, ServerOrigin, Unchosen
from phoenix_tui.config.load import user_layer
from phoenix_tui.config.paths import FileStamp, stamp
from phoenix_tui.config.sources.extension_files import SourceKind, fill_root
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source
from phoenix_tui.config.sources.server_definitions import DefinitionPlace, parse_definition
from phoenix_tui.config.trust import Trust, find_project, places_of
from tools.call_values import SandboxMode
from tools.clean import clean_line, reveal_name
from tools.files.location import Location
from tools.files.own_files import MOST_SETTINGS, read_file, read_text, write_file
from tools.files.writing import replace_file

MOST: Final = 1_000
"""Choices of a kind that are kept; the oldest go first, and are asked about again."""


class _Choices(Struct, omit_defaults=True):
    """Content of the file: keys of definitions."""

    off: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    sandboxes: dict[str, SandboxMode] = field(default_factory=dict[str, SandboxMode])


class ServerChoices(Struct, frozen=True):
    """The file `mcp_choices.json`, 0600; its methods touch the disk and belong in a thread."""

    path: Path

    def read(self) -> tuple[frozenset[str], frozenset[str], Mapping[str, SandboxMode]]:
        """Keys of servers that are off, of those that may have their secrets, and of those with another sandbox."""
        found = self._read()
        return frozenset(found.off), frozenset(found.secrets), found.sandboxes

    def switch(self, definition: ServerDefinition, *, on: bool) -> None:
        """Switch a server off for good, or on again. Raises OSError."""
        found, key = self._read(), off_key(definition)
        found.off = [one for one in found.off if one != key]
        found.off += [] if on else [key]
        self._write(found)

    def choose_sandbox(self, definition: ServerDefinition, mode: SandboxMode | None) -> None:
        """Run a definition in another sandbox, as long as nothing of it changes. Raises OSError."""
        found, key = self._read(), sandbox_key(definition)
        found.sandboxes.pop(key, None)
        if mode is not None:
            found.sandboxes[key] = mode
        self._write(found)

    def allow_secrets(self, definition: ServerDefinition) -> None:
        """Let a definition have the secrets that it names, as long as nothing of it changes. Raises OSError."""
        found, key = self._read(), secrets_key(definition)
        found.secrets = [*(one for one in found.secrets if one != key), key]
        self._write(found)

    def _read(self) -> _Choices:
        try:
            return msgspec.json.decode(read_file(self.path, MOST_BYTES, follow=False), type=_Choices)
        except (OSError, msgspec.MsgspecError, RecursionError):
            return _Choices()  # damaged: what lasts is asked again

    def _write(self, choices: _Choices) -> None:
        newest = dict(list(choices.sandboxes.items())[-MOST:])
        write_file(self.path, msgspec.json.encode(_Choices(choices.off[-MOST:], choices.secrets[-MOST:], newest)))


def off_key(definition: ServerDefinition) -> str:
    """Key of a server by its place and name, however it is defined there."""
    return _hash(definition.source, definition.name)


def secrets_key(definition: ServerDefinition) -> str:
    """Key of a definition as it is written, with the secrets it names: another command or variable has another."""
    return _hash(definition.digest, *sorted(definition.secrets))


def sandbox_key(definition: ServerDefinition) -> str:
    """Key of a definition as it is written: another command has another."""
    return _hash("sandbox", definition.digest)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


MOST_BYTES: Final = 1024 * 1024
"""Bytes of one file of servers."""
MOST_SERVERS: Final = 64
"""Servers of one folder; more are left out."""
KEY: Final = "mcpServers"
UNTRUSTED: Final = (
    "'{name}' starts {file}, a file of the project that is not trusted with it; name it in .mcp.json by its path, "
    "without variables."
)


class BadServers(ValueError):
    """A file or text that defines no servers; the message is a sentence."""


class _Found(Struct):
    """Definitions by name, those of the highest place first."""

    off: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    """Keys of the user's choices."""
    sandboxes: Mapping[str, SandboxMode] = field(default_factory=dict[str, SandboxMode])
    servers: dict[str, ServerDefinition] = field(default_factory=dict[str, ServerDefinition])
    notices: list[str] = field(default_factory=list[str])

    def take(self, table: Mapping[str, object], place: DefinitionPlace) -> None:
        """Add the definitions of one place; a name that a higher place has stays as it is."""
        for name, value in table.items():
            made, notices = parse_definition(name, value, place)
            if made.secrets and secrets_key(made) in self.allowed:
                made, notices = parse_definition(name, value, replace(place, may_have_secrets=True))
            if (mode := self.sandboxes.get(sandbox_key(made))) is not None and made.digest:
                made = replace(made, sandbox=mode, has_chosen_sandbox=True, identity=f"{made.identity} {mode}")
            if off_key(made) in self.off:
                made = replace(made, is_enabled=False, is_off=True)
            if made.name in self.servers:
                if self.servers[made.name].origin is ServerOrigin.PROJECT and place.origin is ServerOrigin.USER:
                    self.notices.append(f"The project's server '{made.name}' takes the place of yours.")
                continue
            if len(self.servers) >= MOST_SERVERS:
                self.notices.append(f"A folder has at most {MOST_SERVERS} MCP servers; '{made.name}' is left out.")
                return
            self.servers[made.name] = made
            self.notices += notices


class ServerFiles(Struct, eq=False):
    """Implements `engine.ports.mcp.ServerDefinitions`: reads the files anew where they have changed."""

    sources: ProjectSources
    user_file: Path
    """The user's config.toml."""
    environment: Mapping[str, str]
    choices: ServerChoices
    given: tuple[str, ...] = ()
    """Values of `--mcp-config`, checked: files or JSON."""
    only_given: bool = False
    _kept: dict[Path, tuple[TrustedSources, tuple[FileStamp, FileStamp], FolderServers]] = field(
        default_factory=dict[Path, tuple[TrustedSources, tuple[FileStamp, FileStamp], FolderServers]]
    )

    def is_quick(self, folder: Path) -> bool:
        """True where the next look reads no file."""
        try:
            real = folder.resolve()
            kept = self._kept.get(real)
            same = kept is not None and kept[1] == self._stamps() and kept[0] is self.sources.current(real)
            return same and not _has_settings(real) and self.sources.is_quick(real)
        except OSError:
            return False

    def look(self, folder: Path) -> FolderServers:
        """Read the files as they are now."""
        try:
            real = folder.resolve()
            trusted, now = self.sources.look(real), self._stamps()
            kept = self._kept.get(real)
            if kept is None or kept[0] is not trusted or kept[1] != now or _has_settings(real):
                found = self._read(real, trusted)
                if len(self._kept) >= MOST_SERVERS:
                    self._kept.clear()
                self._kept[real] = kept = (trusted, now, found)
            return replace(kept[2], trusted=self.sources.is_trusted(real))
        except OSError as error:
            return FolderServers(folder, notices=(f"{reveal_name(folder)} cannot be read: {error.strerror or error}.",))

    def switch(self, folder: Path, name: str, *, on: bool) -> None:
        """Switch a server off for good, or on again. Raises Unchosen."""
        _keeping(self.choices, lambda: self.choices.switch(self._find_server(folder, name), on=on))

    def choose_sandbox(self, folder: Path, name: str, mode: SandboxMode | None) -> None:
        """Run a server in another sandbox than its definition says, None: in that. Raises Unchosen."""
        _keeping(self.choices, lambda: self.choices.choose_sandbox(self._find_server(folder, name), mode))

    def allow_secrets(self, folder: Path, name: str) -> None:
        """Let a project's server have the secrets that it names. Raises Unchosen."""
        _keeping(self.choices, lambda: self.choices.allow_secrets(self._find_server(folder, name)))

    def _find_server(self, folder: Path, name: str) -> ServerDefinition:
        for server in self.look(folder).servers:
            if server.name == name:
                return server
        raise Unchosen(f"There is no MCP server {clean_line(name)} here any more.")

    def _stamps(self) -> tuple[FileStamp, FileStamp]:
        return stamp(self.user_file), stamp(self.choices.path)

    def _read(self, folder: Path, trusted: TrustedSources) -> FolderServers:
        found, root = _Found(*self.choices.read()), places_of(folder)[0]
        for value in self.given:
            source = "" if value.lstrip().startswith("{") else reveal_name(Path(value).expanduser())
            place = DefinitionPlace(ServerOrigin.FLAG, source, folder, self.environment)
            _collect(found, lambda value=value, place=place: found.take(read_given_servers(value), place))
        self._plugins(found, folder, trusted)
        if not self.only_given:
            self._projects(found, folder, trusted)
            place = DefinitionPlace(ServerOrigin.USER, str(self.user_file), folder, self.environment)
            _collect(found, lambda: found.take(toml_servers(_text(self.user_file)), place))
        servers = tuple(found.servers[name] for name in sorted(found.servers))
        return _with_programs(FolderServers(root, servers, tuple(found.notices)), trusted)

    def _projects(self, found: _Found, folder: Path, trusted: TrustedSources) -> None:
        for path, text in self._own_settings(folder):
            place = DefinitionPlace(ServerOrigin.PROJECT, reveal_name(path), folder, self.environment)
            _collect(found, lambda text=text, place=place: found.take(toml_servers(text), place))
        for file in trusted.of(SourceKind.SERVERS):
            if file.plugin is not None:
                continue
            content = read_source(file, MOST_BYTES)
            if content is None:
                continue  # it changed since the look; the next one asks
            place = DefinitionPlace(ServerOrigin.PROJECT, reveal_name(file.path), file.path.parent, self.environment)
            _collect(found, lambda content=content, place=place: found.take(json_servers(content, place.source), place))

    def _plugins(self, found: _Found, folder: Path, trusted: TrustedSources) -> None:
        """The servers of plugins, which the caller has named as it names those of `--mcp-config`."""
        for file in trusted.of(SourceKind.SERVERS):
            plugin, content = file.plugin, read_source(file, MOST_BYTES) if file.plugin is not None else None
            if plugin is None or content is None:
                continue
            place = DefinitionPlace(ServerOrigin.FLAG, reveal_name(file.path), folder, self.environment)
            text, prefix = fill_root(content, plugin), f"plugin:{plugin.name}:"
            _collect(
                found,
                lambda text=text, place=place, prefix=prefix: found.take(
                    {f"{prefix}{name}": table for name, table in json_servers(text, place.source).items()}, place
                ),
            )

    def _own_settings(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """`.phoenix/config.toml` of a trusted folder, the nearest first."""
        if not _has_settings(folder):
            return
        project = find_project(folder)
        if self.sources.trust.status(project).trust is Trust.GIVEN:
            for file in reversed(project.settings_files()):
                yield file.path, file.text


def _keeping(choices: ServerChoices, keep: Callable[[], None]) -> None:
    try:
        keep()
    except OSError as error:
        raise Unchosen(f"{reveal_name(choices.path)} cannot be written: {error.strerror or error}.") from error


def _collect(found: _Found, take: Any) -> None:
    try:
        take()
    except BadServers as error:
        found.notices.append(str(error))


def _has_settings(folder: Path) -> bool:
    return any(os.path.lexists(place / ".phoenix" / "config.toml") for place in places_of(folder))


def json_servers(content: bytes | str, source: str) -> dict[str, object]:
    """Definitions by name in a text such as `.mcp.json`.

    Raises:
        BadServers: it is none.
    """
    try:
        document: object = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise BadServers(f"{source} is not valid JSON: {clean_line(where)[:200]}.") from error
    table = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    servers = table.get(KEY)
    if not isinstance(servers, dict):
        raise BadServers(f'{source} defines no servers; it needs {{"{KEY}": {{"NAME": {{…}}}}}}.')
    return cast("dict[str, object]", servers)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table: dict[str, object] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key '{key[:60]}' is there twice")
        table[key] = value
    return table


def toml_servers(text: str) -> dict[str, object]:
    """Definitions by name of a config.toml; none where it is broken, which is said elsewhere."""
    if "mcp" not in text:
        return {}
    try:
        servers: object = tomllib.loads(text).get("mcp", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return cast("dict[str, object]", servers) if isinstance(servers, dict) else {}


def read_given_servers(value: str) -> dict[str, object]:
    """Definitions of one `--mcp-config`: JSON, or the name of a file with it.

    Raises:
        BadServers: it is neither.
    """
    if value.lstrip().startswith("{"):
        return json_servers(value, "--mcp-config")
    path = Path(value).expanduser()
    try:
        text = read_text(path, MOST_BYTES)
    except OSError as error:
        raise BadServers(f"--mcp-config {reveal_name(path)} cannot be read: {error.strerror or error}.") from error
    return json_servers(text, reveal_name(path))


def _text(path: Path) -> str:
    try:
        return read_text(path, MOST_SETTINGS)
    except OSError:
        return ""


def _with_programs(found: FolderServers, trusted: TrustedSources) -> FolderServers:
    """Switch off a server of the project that starts a file of it which the trust does not cover."""
    known = {file.path.resolve() for file in trusted.of(SourceKind.PROGRAM)}
    servers: list[ServerDefinition] = []
    for server in found.servers:
        if server.origin is ServerOrigin.PROJECT and not server.trouble:
            for word in (*server.command, *server.headers_helper):
                if (path := _file_of(word, server, found.root)) is not None and path not in known:
                    trouble = UNTRUSTED.format(name=clean_line(server.name), file=reveal_name(path.name))
                    server = replace(server, trouble=trouble)
        servers.append(server)
    return replace(found, servers=tuple(servers))


def _file_of(word: str, server: ServerDefinition, root: Path) -> Path | None:
    """The file of the project that a word of a command names, resolved; None for other words."""
    word = word.rpartition("=")[2] if word.startswith("-") else word
    for base in (Path(server.cwd or root), Path(server.source).parent, root):
        try:
            real = (base / word).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            continue
        if real.is_file() and real.is_relative_to(root):
            return real
    return None


PROJECT_FILE: Final = ".mcp.json"
TABLE: Final = "mcp"


def add_server(path: Path, name: str, definition: dict[str, object]) -> None:
    """Write a definition into the file `path`, which is made if need be.

    Raises:
        BadServers: the file is broken, or has a server of this name.
        ConfigError: as above, of a config.toml.
        OSError: it cannot be written.
    """
    servers, document = _read(path)
    if name in servers:
        raise BadServers(f"{reveal_name(path)} has a server {clean_line(name)}; remove it first.")
    servers[name] = definition
    _write(path, document)


def remove_server(path: Path, name: str) -> None:
    """Take a definition out of the file `path`.

    Raises:
        BadServers: there is no such server, or the file is broken.
        ConfigError: as above, of a config.toml.
        OSError: it cannot be written.
    """
    nothing: dict[str, object] = {}
    servers, document = _read(path) if path.exists() else (nothing, nothing)
    if name not in servers:
        raise BadServers(f"{reveal_name(path)} has no server {clean_line(name)}; `phoenix mcp list` shows all.")
    del servers[name]
    _write(path, document)


def _read(path: Path) -> tuple[Any, Any]:
    """Servers by name inside the document that they belong to."""
    if path.name == PROJECT_FILE:
        if not path.exists():
            servers: dict[str, object] = {}
            return servers, {KEY: servers}
        text = read_text(path, MOST_BYTES)
        json_servers(text, reveal_name(path))  # a file with an error stays as the user left it
        document = cast("dict[str, Any]", json.loads(text))
        return document[KEY], document
    user_layer(path)  # as above
    import tomlkit  # noqa: PLC0415 - 40 ms, needed only to change a file

    made: Any = tomlkit.parse(read_text(path, MOST_SETTINGS) if path.exists() else "")
    if TABLE not in made:
        made[TABLE] = tomlkit.table(is_super_table=True)
    if not isinstance(made[TABLE], dict):
        raise BadServers(f"{reveal_name(path)}: 'mcp' must be tables [mcp.NAME].")
    return made[TABLE], made


def _write(path: Path, document: Any) -> None:
    if path.name == PROJECT_FILE:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        replace_file(Location(path.parent, (path.name,), path.name), text.encode("utf-8", "replace"))
        return
    import tomlkit  # noqa: PLC0415 - as above

    write_file(path, tomlkit.dumps(document))
