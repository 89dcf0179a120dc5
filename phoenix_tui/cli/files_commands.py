"""Sub-commands on the user's own files: `phoenix config` shows settings, their path and edits them; `phoenix memory`
lists, shows and deletes notes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine.memory.memory import USER, NoteFolder, NoteRefused, first_line, project_scope
from engine.permissions.place import project_of
from engine.ports.note_index import NoteFile
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import utc_time, write_json, write_line, write_table
from phoenix_tui.config.credentials import load_credentials
from phoenix_tui.config.load import Layer, environment_layer, merge, user_layer
from phoenix_tui.config.paths import Paths
from phoenix_tui.config.settings import KEYS, ConfigError, Settings
from tools.clean import clean_line
from tools.contract import JsonObject
from tools.files.own_files import write_file
from tools.process.programs import foreground_start, without_keys

TEMPLATE = "# Phoenix settings; `phoenix config show` lists every key with its value and source.\n"


def run_config(arguments: CommandArguments, paths: Paths, environment: Mapping[str, str]) -> Exit:
    """Do one action.

    Raises:
        CommandError: a setting is wrong, or no editor can be started.
    """
    match arguments.action:
        case "path":
            if arguments.json:
                write_json({"path": str(paths.config_file)})
            else:
                write_line(str(paths.config_file))
        case "edit":
            _edit(paths, environment)
        case _:
            _show(arguments, paths, environment)
    return Exit.OK


def _show(arguments: CommandArguments, paths: Paths, environment: Mapping[str, str]) -> None:
    settings = _settings(paths, environment)
    if arguments.json:
        shown: JsonObject = {
            name: {"value": settings.values[name], "source": settings.sources[name], "allowed": key.allowed}
            for name, key in KEYS.items()
        }
        write_json(shown)
        return
    rows = [(name, _text(settings, name), settings.sources[name], key.allowed) for name, key in KEYS.items()]
    rows += [(f"providers.{added.name}", added.base_url, str(paths.config_file), "") for added in settings.providers]
    if settings.web is not None:
        rows.append(("web", f"{settings.web.search} at {settings.web.url}", str(paths.config_file), ""))
    write_table(("KEY", "VALUE", "SOURCE", "ALLOWED"), rows)


def _text(settings: Settings, name: str) -> str:
    value = settings.values[name]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else "-"


def _settings(paths: Paths, environment: Mapping[str, str]) -> Settings:
    try:
        return merge(user_layer(paths.config_file), Layer(), environment_layer(environment), Layer())
    except ConfigError as error:
        raise CommandError(str(error)) from error


def _edit(paths: Paths, environment: Mapping[str, str]) -> None:
    """Open the file in the user's editor, then check it."""
    editor = shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")
    if not paths.config_file.exists():
        write_file(paths.config_file, TEMPLATE)
    try:
        # The user's own editor needs the terminal; it is no tool of an agent.
        words = foreground_start((*editor, str(paths.config_file)), os.environ)
        status = subprocess.run(words, check=False, env=without_keys(os.environ)).returncode
    except OSError as error:
        raise CommandError(f"The editor '{editor[0]}' cannot be started; set EDITOR to another one.") from error
    if status:
        raise CommandError(f"The editor '{editor[0]}' exited with status {status}.", Exit.FAILED)
    _settings(paths, environment)
    try:
        load_credentials(paths.credentials_file, environment)
    except ConfigError as error:
        raise CommandError(str(error)) from error


PROJECT: Final = "project"
BEGINNING: Final = 2_000
"""Bytes that are read of a file for its first line."""


def run_memory(arguments: CommandArguments, paths: Paths) -> Exit:
    """Do one action.

    Raises:
        CommandError: there is no such note, or it cannot be read or deleted.
    """
    notes = NoteFolder(paths.memory)
    scopes = {project_scope(project_of(Path.cwd())): PROJECT, USER: USER}  # those that agents in this folder search
    try:
        match arguments.action:
            case "list":
                _list(notes, {scope: scope for scope in notes.scopes()} if arguments.all else scopes, arguments)
            case "show":
                text = notes.read(_path(arguments.path, scopes))
                if arguments.json:
                    write_json({"path": arguments.path, "text": text})
                else:
                    write_line(text.rstrip("\n"))
            case _:
                _delete(notes, _path(arguments.path, scopes), arguments)
    except FileNotFoundError as error:
        name = clean_line(arguments.path)
        raise CommandError(f"There is no note {name}; `phoenix memory list` shows all.") from error
    except NoteRefused as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{clean_line(arguments.path)}: {error.strerror}.", Exit.FAILED) from error
    return Exit.OK


def _path(text: str, scopes: dict[str, str]) -> str:
    """A path as the list shows it, with the name of its folder."""
    name, _, rest = text.partition("/")
    folder = next((scope for scope, shown in scopes.items() if shown == name), name)
    return f"{folder}/{rest}"


def _list(notes: NoteFolder, scopes: dict[str, str], arguments: CommandArguments) -> None:
    found = [
        (f"{shown}/{file.path.rpartition('/')[2]}", file)
        for scope, shown in scopes.items()
        for file in notes.files(scope)
    ]
    if arguments.json:
        write_json([_object(notes, shown, file) for shown, file in found])
    elif found:
        rows = [(shown, f"{file.size:,}", _first_line(notes, file)) for shown, file in found]
        write_table(("NOTE", "BYTES", "FIRST LINE"), rows)
    else:
        write_line("There are no notes yet.")


def _delete(notes: NoteFolder, path: str, arguments: CommandArguments) -> None:
    if not arguments.permanently:
        raise CommandError("Notes have no trash: add --permanently, or use /memory, where u restores them.")
    notes.remove(path)
    if arguments.json:
        write_json({"path": arguments.path, "deleted": True})
    else:
        write_line(f"Permanently deleted {arguments.path}")


def _object(notes: NoteFolder, shown: str, file: NoteFile) -> JsonObject:
    return {
        "path": shown,
        "file": str(notes.place(file.path)),
        "bytes": file.size,
        "changed_at": utc_time(file.changed),
        "first_line": _first_line(notes, file),
    }


def _first_line(notes: NoteFolder, file: NoteFile) -> str:
    try:
        return first_line(notes.beginning(file.path, BEGINNING))
    except (OSError, NoteRefused):
        return ""
