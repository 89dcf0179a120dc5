"""`phoenix config`: show, path and edit."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping

from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_json, write_line, write_table
from phoenix_tui.config.credentials import load_credentials
from phoenix_tui.config.load import Layer, environment_layer, merge, user_layer
from phoenix_tui.config.paths import Paths
from phoenix_tui.config.settings import KEYS, ConfigError, Settings
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
