"""Options of a run that a host drives, from its flags, its settings and the first line of its stdin."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.control.frames import PIECE, HostLine, LineFault, parse_line, split_lines
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import INPUT_FORMAT
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.config.choices import EFFORTS as KNOWN
from phoenix_tui.config.claude_settings import (
    FOREIGN_EFFORTS,
    FOREIGN_MODES,
    NOBODY,
    RULES,
    ClaudeSettings,
    faults_of,
    parse_settings,
)
from phoenix_tui.config.rules import split_list
from phoenix_tui.config.settings import Settings
from phoenix_tui.config.trust import check_sources
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue

STDIO: Final = "stdio"
SERVED: Final = "mcp__"
"""`--permission-prompt-tool` for a host that is asked itself, and the begin of the name of an MCP tool."""
NO_PROMPT_TOOL: Final = "--permission-prompt-tool needs stdio, or the tool of an MCP server as mcp__SERVER__TOOL."
BUDGETS: Final = ((0, "off"), (4_096, "low"), (12_288, "medium"), (24_576, "high"))
"""Most tokens of reasoning and the effort for them; beyond the last it is max (docs/decisions/effort.md)."""
_IGNORED: Final = {
    "betas": "--betas has no effect here.",
    "task_budget": "--task-budget has no effect here.",
    "thinking_display": "--thinking-display has no effect here.",
    "verbose": "",
    "allow_dangerously_skip_permissions": "",
}
"""Flags that are accepted without an effect, and the line on stderr about each."""
_OWN: Final = (
    "tools", "allowed_tools", "disallowed_tools", "prompt_tool", "setting_sources",
    "settings_given", "add_dirs", "replay", "fallback_model", "not_stored", "thinking", "system_prompt_file",
    "input_format", "thinking_tokens", "plugin_dirs", "plugin_dirs_no_mcp", "resume_session_at", "resume_drops_turn",
    "awaits_initialize", "initialize_fields", "mirrors",
)  # fmt: skip


class HostOptions(Struct, frozen=True):
    """Choices of a host for its connection: of its flags, then of its settings and its handshake."""

    run: RunArguments
    tools: str | None = None
    """Tools to begin with; None and `default`: all, empty: none."""
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    """Rules of settings that ask."""
    prompt_tool: str = ""
    """`stdio`: questions go to the host; a tool of an MCP server: to it; empty: every question is a no."""
    in_host: tuple[str, ...] = ()
    """Names of the MCP servers inside the host."""
    setting_sources: str | None = None
    settings: str = ""
    """JSON, or the path of a file with it."""
    hooks: bytes = b""
    """Hooks of these settings, as a document."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """Variables of the environment that they set."""
    replay: bool = False
    add_dirs: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()
    plugin_dirs_no_mcp: tuple[str, ...] = ()
    """Plugins without their MCP servers."""
    fallback_model: str = ""
    """Model for a turn whose own one is overloaded; empty: none."""
    unasked: bool = False
    """Mode `dontAsk`: a question is a no even where the host could be asked."""
    mirrors: bool = False
    """True where the host keeps sessions in a store of its own."""
    awaits_initialize: bool = False
    """True where fields of the handshake count like flags."""
    launch: JsonObject = field(default_factory=dict[str, JsonValue])
    """Fields of the handshake that have counted."""
    ahead: bytes = b""
    """Bytes of stdin that were read for them."""
    appended: tuple[str, ...] = ()
    """Texts of the handshake for the end of the system prompt."""
    notices: tuple[str, ...] = ()
    """Lines for stderr about flags without an effect."""

    def append_prompts(self, settings: Settings) -> Settings:
        """Return the settings with the texts of the handshake behind their own addition to the system prompt."""
        whole = {APPENDED: "\n\n".join(text for text in (settings.text(APPENDED), *self.appended) if text)}
        return replace(settings, values=settings.values | whole)


def read_flags(argv: Sequence[str]) -> HostOptions:
    """The flags of a host; unknown ones are named and left out.

    Raises:
        CommandError: a known flag is wrong.
    """
    parsed, unknown = _make_parser().parse_known_args(list(argv))
    given: dict[str, Any] = dict(vars(parsed))
    notices = [line for name, line in _IGNORED.items() if given.pop(name + "_", None) and line]
    own = {name: given.pop(name) for name in _OWN}
    in_host, given["mcp_config"] = split_servers(given["mcp_config"])
    notices += [f"{one} is unknown here and has no effect." for one in unknown if one.startswith("-")]
    if own["setting_sources"] is not None:
        try:
            check_sources(own["setting_sources"])
        except ValueError as error:
            raise CommandError(str(error)) from error
    mode, notice = _choose_mode(given["permission_mode"])
    notices += [notice] if notice else []
    unasked = given["permission_mode"] == NOBODY
    given |= {"allowed_tools": [], "disallowed_tools": []}  # checked less strictly: hosts name tools of other programs
    given |= {"permission_mode": mode, "prompt": None, "headless": True, "output_format": "stream-json"}
    given["ephemeral"] = given["ephemeral"] or own["not_stored"]
    given["effort"] = _settle_effort(given["effort"], own["thinking"], own["thinking_tokens"])
    notices += _settle_prompts(given, own["system_prompt_file"])
    return HostOptions(
        run=_resume_after(run_arguments(argparse.Namespace(**given)), own),
        tools=own["tools"],
        allowed=_split_rules(own["allowed_tools"]),
        disallowed=_split_rules(own["disallowed_tools"]),
        prompt_tool=_check_prompt_tool(own["prompt_tool"] or ""),
        in_host=tuple(in_host),
        setting_sources=own["setting_sources"],
        settings=own["settings_given"] or "",
        replay=own["replay"],
        add_dirs=tuple(own["add_dirs"]),
        plugin_dirs=tuple(own["plugin_dirs"]),
        plugin_dirs_no_mcp=tuple(own["plugin_dirs_no_mcp"]),
        awaits_initialize=own["awaits_initialize"],
        mirrors=own["mirrors"],
        fallback_model=own["fallback_model"] or "",
        unasked=unasked,
        notices=tuple(notices),
    )


def _resume_after(run: RunArguments, own: dict[str, Any]) -> RunArguments:
    """The flags with the message that a resumed conversation goes on after."""
    at, drops = own["resume_session_at"], own["resume_drops_turn"]
    if at and not run.resumes:
        raise CommandError("--resume-session-at needs --resume with the conversation.")
    if drops and not at:
        raise CommandError("--resume-drops-turn needs --resume-session-at.")
    return replace(run, resume_at=at or None, drops_one_turn=bool(drops))


def _check_prompt_tool(name: str) -> str:
    if name not in {"", STDIO} and not name.startswith(SERVED):
        raise CommandError(NO_PROMPT_TOOL)
    return name


def _split_rules(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for text in texts for one in split_list(text))


def _make_parser() -> argparse.ArgumentParser:
    parser = run_parser()
    for action in list(parser._actions):
        if action.dest in {"permission_mode", "effort"}:
            action.choices = None
        if action.dest == "prompt":
            parser._remove_action(action)
    add = parser.add_argument
    add(INPUT_FORMAT, choices=("stream-json",), metavar="FORMAT")
    add("--tools")
    add("--permission-prompt-tool", dest="prompt_tool")
    add("--setting-sources", dest="setting_sources")
    add("--settings", dest="settings_given")
    add("--add-dir", action="append", default=[], dest="add_dirs")
    add("--plugin-dir", action="append", default=[], dest="plugin_dirs")
    add("--plugin-dir-no-mcp", action="append", default=[], dest="plugin_dirs_no_mcp")
    add("--session-mirror", action="store_true", dest="mirrors")
    add("--await-initialize", action="store_true", dest="awaits_initialize")
    add("--initialize-fields", dest="initialize_fields")  # the handshake itself says which there are
    add("--replay-user-messages", action="store_true", dest="replay")
    add("--resume-session-at", dest="resume_session_at")
    add("--resume-drops-turn", dest="resume_drops_turn")
    add("--fallback-model", dest="fallback_model")
    add("--no-session-persistence", action="store_true", dest="not_stored")
    add("--thinking")
    add("--max-thinking-tokens", dest="thinking_tokens")
    add("--system-prompt-file", dest="system_prompt_file")
    for name in _IGNORED:
        alone = name in {"verbose", "allow_dangerously_skip_permissions"}
        kind: dict[str, Any] = {"action": "store_true"} if alone else {}
        add(f"--{name.replace('_', '-')}", dest=f"{name}_", **kind)
    return parser


def _choose_mode(given: str | None) -> tuple[str | None, str]:
    """The mode of Phoenix for one of the host, and a line for stderr."""
    if given is None:
        return None, ""
    if given not in FOREIGN_MODES:
        raise CommandError(f"There is no permission mode {given}; use {', '.join(list(FOREIGN_MODES)[:6])}.")
    notice = "--permission-mode auto asks here for each call; bypassPermissions allows them." if given == "auto" else ""
    return FOREIGN_MODES[given], notice


def _settle_effort(given: str | None, thinking: str | None, tokens: str | None) -> str | None:
    effort = FOREIGN_EFFORTS.get(given, given) if given is not None else None
    if effort is not None and effort not in KNOWN:
        raise CommandError(f"There is no effort {given}; use {', '.join(KNOWN)}.")
    if tokens is not None and not (tokens.isascii() and tokens.isdecimal() and len(tokens) < 12):
        raise CommandError("--max-thinking-tokens needs a number of tokens.")
    if effort is None and thinking == "disabled":
        return "off"
    return choose_effort(int(tokens)) if effort is None and tokens is not None else effort


def choose_effort(tokens: int) -> str:
    """The effort whose budget this number of tokens is."""
    return next((effort for most, effort in BUDGETS if tokens <= most), "max")


def _settle_prompts(given: dict[str, Any], file: str | None) -> list[str]:
    """Settle the flags about the system prompt; a resumed conversation keeps its own."""
    if file is not None:
        try:
            given["system_prompt"] = Path(file).read_text("utf-8", "replace")
        except OSError as error:
            raise CommandError(f"The system prompt {file} cannot be read: {error.strerror}.") from error
    if not (given["continue_last"] or given["resume"] is not None):
        return []
    told = given["system_prompt"] or given["append_system_prompt"]
    given["system_prompt"] = given["append_system_prompt"] = None
    return ["A resumed conversation keeps its system prompt; the one given has no effect."] if told else []


def split_servers(configs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The servers of `--mcp-config`: names of those inside the host, and the values with all others.

    Raises:
        CommandError: a value is neither JSON nor a file with it.
    """
    own, values = list[str](), list[str]()
    for text in configs:
        others: JsonObject = {}
        for name, config in _read_servers(text).items():
            if isinstance(config, dict) and config.get("type") == "sdk":
                own.append(name)
            else:
                others[name] = config
        if others:
            values.append(json.dumps({"mcpServers": others}))
    return own, values


def _read_servers(text: str) -> JsonObject:
    is_json = text.lstrip().startswith("{")
    try:
        value = cast("JsonValue", json.loads(text if is_json else Path(text).read_text("utf-8-sig")))
    except (OSError, ValueError, RecursionError) as error:
        place = "--mcp-config" if is_json else f"--mcp-config {text[:200]}"
        raise CommandError(f"{place} cannot be read: {error}.") from error
    servers = value.get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise CommandError("--mcp-config needs an object mcpServers.")
    return servers


READ: Final = frozenset(
    {"model", "sandbox", "hooks", "disableAllHooks", "env", "$schema", "permissions.defaultMode"}
    | {"permissions.additionalDirectories", *(f"permissions.{name}" for name in RULES)}
)
"""Settings with an effect."""
HOOKS: Final = "hooks"
OWN: Final = "PHOENIX_"
"""Begin of the names of Phoenix's own variables, which such settings do not set."""
MOST_VARIABLES: Final = 1_000
LONGEST: Final = 65_536
"""Characters of the value of a variable."""
_NOT_IN_VALUES: Final = re.compile(r"[\x00\ud800-\udfff]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def add_settings(options: HostOptions) -> HostOptions:
    """The flags with the settings that they name; a flag wins.

    Raises:
        CommandError: they are neither JSON nor a file with it.
    """
    if not options.settings:
        return options
    content = _read_settings(options.settings)
    found = parse_settings(content)
    if found.is_unreadable:
        raise CommandError(f"--settings needs JSON, or a file with it: {found.faults[0]}.")
    sandbox, model = found.values.get("sandbox"), found.values.get("model")
    run, mode = options.run, found.permissions.get("defaultMode")
    if isinstance(mode, str) and mode in FOREIGN_MODES and run.permission_mode is None:
        run = replace(run, permission_mode=FOREIGN_MODES[mode])
    if isinstance(model, str) and model and run.model is None:
        run = replace(run, model=model)
    enabled = cast("JsonObject", sandbox).get("enabled") if isinstance(sandbox, dict) else None
    if enabled is True and run.sandbox is None:
        run = replace(run, sandbox="workspace")
    variables, wrong = _choose_variables(cast("JsonValue", found.values.get("env")))
    unread = [f"--settings: {clean_line(clause)}." for clause in faults_of(found, READ, Path.cwd(), given=True)]
    folders = found.permissions.get("additionalDirectories")
    named = cast("list[object]", folders) if isinstance(folders, list) else []
    return replace(
        options,
        run=run,
        allowed=(*options.allowed, *found.allow),
        asked=found.ask,
        disallowed=(*options.disallowed, *found.deny),
        add_dirs=(*options.add_dirs, *(one for one in named if isinstance(one, str) and one.strip())),
        hooks=content if HOOKS in found.values else b"",
        variables=variables,
        notices=(*options.notices, *unread, *_name_malformed(found), *wrong),
    )


def _name_malformed(found: ClaudeSettings) -> Iterator[str]:
    """Sentences about values that have not the form they must have, each of which costs its key alone."""
    places = (
        ("model", found.values, str, "a text"),
        ("sandbox", found.values, dict, "an object"),
        ("defaultMode", found.permissions, str, f"one of {', '.join(FOREIGN_MODES)}"),
        ("additionalDirectories", found.permissions, list, "a list of folders"),
    )
    for name, table, kind, wanted in places:
        value = table.get(name)
        if value is not None and (
            not isinstance(value, kind) or (name == "defaultMode" and value not in FOREIGN_MODES)
        ):
            yield f"The setting {name} of --settings must be {wanted}; it is left out."


def _read_settings(given: str) -> bytes:
    """The text of the settings."""
    if given.lstrip().startswith("{"):
        return given.encode("utf-8", "replace")
    try:
        return Path(given).read_bytes()
    except (OSError, ValueError) as error:
        raise CommandError(f"--settings needs JSON, or a file with it: {error}.") from error


def _choose_variables(value: JsonValue) -> tuple[dict[str, str], list[str]]:
    """Variables of the environment, and lines for stderr about those that are left out."""
    if value is None:
        return {}, []
    if not isinstance(value, dict) or len(value) > MOST_VARIABLES:
        return {}, [
            f"The setting env of --settings must be an object of at most {MOST_VARIABLES:,} texts; it is left out."
        ]
    usable = {name: text for name, text in value.items() if _is_usable(name, text)}
    left = ", ".join(clean_line(name)[:60] for name in list(value)[:10] if name not in usable)
    notices = [f"Variables of --settings that are no text, or Phoenix's own, are left out: {left}."] if left else []
    return {name: str(text) for name, text in usable.items()}, notices


def _is_usable(name: str, text: JsonValue) -> bool:
    fits = isinstance(text, str) and len(text) <= LONGEST and not _NOT_IN_VALUES.search(text)
    return fits and _NAME.fullmatch(name) is not None and not name.startswith(OWN)


MOST_RULES: Final = 5_000
"""Denied tools of one list: half of the rules that a host may have, beyond which further ones would be dropped."""
ANSWERS: Final = {
    "settings": "settings_applied",
    "disallowedTools": "disallowed_tools_applied",
    "mcpServers": "mcp_servers_applied",
    "plugins": "plugins_applied",
}
"""Fields that count at the launch, and those of the answer that confirm them."""
MOST_PLUGINS: Final = 200
"""Plugins of one list, those left out included."""
WITHOUT_SERVERS: Final = "skipMcpDiscovery"


class FirstLine(Struct, frozen=True):
    """The first line of the host."""

    request: JsonObject
    """The `initialize`; empty for another line."""
    ahead: bytes
    """All that was read: the connection begins with it."""


def read_first_line(read: Callable[[], bytes] | None = None) -> FirstLine:
    """Wait for the first line on stdin that is not blank, or its end."""
    pieces: list[bytes] = []

    def read_piece() -> bytes:
        pieces.append(piece := (read or _read_stdin)())
        return piece

    lines = (one if isinstance(one, LineFault) else parse_line(one) for one in split_lines(read_piece))
    line = next((one for one in lines if one is not None), None)
    return FirstLine(_handshake_in(line), b"".join(pieces))


def add_launch_fields(options: HostOptions, first: FirstLine) -> HostOptions:
    """The flags with the fields of the handshake. One that is not of its shape is left out, and not confirm_fields."""
    options = replace(options, ahead=first.ahead)
    for name in ANSWERS:
        value = first.request.get(name)
        if value is not None and (more := _TAKES[name](options, value)) is not None:
            options = replace(more, launch=options.launch | {name: value})
    return options


def confirm_fields(request: JsonObject, launch: JsonObject) -> JsonObject:
    """The fields of the answer to a handshake: what it names was in force at the launch, or was not."""
    answer: JsonObject = {
        field: name in launch and request[name] == launch[name]
        for name, field in ANSWERS.items()
        if request.get(name) is not None
    }
    return answer if not request.get("hooks") else answer | {"hooks_applied": True}


def _add_launch_settings(options: HostOptions, value: JsonValue) -> HostOptions | None:
    if not isinstance(value, dict) or options.settings:
        return None
    return replace(options, settings=json.dumps(value))


def _add_denied(options: HostOptions, value: JsonValue) -> HostOptions | None:
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
    denied = tuple(one for text in texts for one in split_list(text))
    if not isinstance(value, list) or len(texts) < len(value) or len(denied) > MOST_RULES:
        return None
    return replace(options, disallowed=(*options.disallowed, *denied))


def _add_servers(options: HostOptions, value: JsonValue) -> HostOptions | None:
    try:
        inside, values = split_servers([json.dumps({"mcpServers": value})])
    except CommandError:
        return None
    run = replace(options.run, mcp_config=(*options.run.mcp_config, *values))
    return replace(options, run=run, in_host=(*options.in_host, *inside))


def _add_plugins(options: HostOptions, value: JsonValue) -> HostOptions | None:
    with_servers, without = list[str](), list[str]()
    if not isinstance(value, list) or len(value) > MOST_PLUGINS:
        return None
    for one in value:
        path = one.get("path") if isinstance(one, dict) and one.get("type") == "local" else None
        if not isinstance(one, dict) or not isinstance(path, str):
            return None
        (without if one.get(WITHOUT_SERVERS) is True else with_servers).append(path)
    return replace(
        options,
        plugin_dirs=(*options.plugin_dirs, *with_servers),
        plugin_dirs_no_mcp=(*options.plugin_dirs_no_mcp, *without),
    )


_TAKES: Final[dict[str, Callable[[HostOptions, JsonValue], HostOptions | None]]] = {
    "settings": _add_launch_settings,
    "disallowedTools": _add_denied,
    "mcpServers": _add_servers,
    "plugins": _add_plugins,
}


def _read_stdin() -> bytes:
    try:
        return os.read(0, PIECE)
    except OSError:
        return b""


LONGEST_TITLE: Final = 200
APPENDED: Final = "append_system_prompt"
PLANS: Final = "In plan mode, work out the plan like this:\n{instructions}"


def add_handshake(options: HostOptions, line: HostLine) -> HostOptions:
    """Add prompts and title of an `initialize`, which win over the command line; any other line adds nothing."""
    request = _handshake_in(line)
    given, run = request.get("systemPrompt"), options.run
    prompt = given if isinstance(given, str) else run.system_prompt
    if isinstance(given, list):
        prompt = "\n\n".join(one for one in given if isinstance(one, str) and one)
    title, appended, plan = (request.get(name) for name in ("title", "appendSystemPrompt", "planModeInstructions"))
    name = title[:LONGEST_TITLE] if isinstance(title, str) and title else run.name
    texts = [appended] if isinstance(appended, str) else []
    texts += [PLANS.format(instructions=plan)] if isinstance(plan, str) and plan else []
    return replace(options, run=replace(run, system_prompt=prompt, name=name), appended=tuple(texts))


def _handshake_in(line: HostLine | None) -> JsonObject:
    """The request of an `initialize`; empty for any other line."""
    request = line.get("request") if isinstance(line, dict) else None
    return request if isinstance(request, dict) and request.get("subtype") == "initialize" else {}
