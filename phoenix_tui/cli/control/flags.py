"""Flags of a run that a host drives: those of `phoenix -p`, and those that agent SDKs pass.

Imports nothing but argparse and the parser of `phoenix`, as that one does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments, run_arguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.names import INPUT_FORMAT
from phoenix_tui.cli.parser import run_parser
from phoenix_tui.config.choices import EFFORTS as KNOWN
from phoenix_tui.config.claude_words import FOREIGN_EFFORTS, FOREIGN_MODES, NOBODY
from phoenix_tui.config.file_sources import check_sources
from phoenix_tui.config.flag_rules import listed
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


class ControlFlags(Struct, frozen=True):
    """The command line of a run that a host drives."""

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
    notices: tuple[str, ...] = field(default_factory=tuple)
    """Lines for stderr about flags without an effect."""


def control_flags(argv: Sequence[str]) -> ControlFlags:
    """The flags of a host; unknown ones are named and left out.

    Raises:
        CommandError: a known flag is wrong.
    """
    parsed, unknown = _parser().parse_known_args(list(argv))
    given: dict[str, Any] = dict(vars(parsed))
    notices = [line for name, line in _IGNORED.items() if given.pop(name + "_", None) and line]
    own = {name: given.pop(name) for name in _OWN}
    in_host, given["mcp_config"] = servers_of(given["mcp_config"])
    notices += [f"{one} is unknown here and has no effect." for one in unknown if one.startswith("-")]
    if own["setting_sources"] is not None:
        try:
            check_sources(own["setting_sources"])
        except ValueError as error:
            raise CommandError(str(error)) from error
    mode, notice = _mode(given["permission_mode"])
    notices += [notice] if notice else []
    unasked = given["permission_mode"] == NOBODY
    given |= {"allowed_tools": [], "disallowed_tools": []}  # checked less strictly: hosts name tools of other programs
    given |= {"permission_mode": mode, "prompt": None, "headless": True, "output_format": "stream-json"}
    given["ephemeral"] = given["ephemeral"] or own["not_stored"]
    given["effort"] = _effort(given["effort"], own["thinking"], own["thinking_tokens"])
    notices += _prompts(given, own["system_prompt_file"])
    return ControlFlags(
        run=_resumed(run_arguments(argparse.Namespace(**given)), own),
        tools=own["tools"],
        allowed=_rules(own["allowed_tools"]),
        disallowed=_rules(own["disallowed_tools"]),
        prompt_tool=_prompt_tool(own["prompt_tool"] or ""),
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


def _resumed(run: RunArguments, own: dict[str, Any]) -> RunArguments:
    """The flags with the message that a resumed conversation goes on after."""
    at, drops = own["resume_session_at"], own["resume_drops_turn"]
    if at and not run.resumes:
        raise CommandError("--resume-session-at needs --resume with the conversation.")
    if drops and not at:
        raise CommandError("--resume-drops-turn needs --resume-session-at.")
    return replace(run, resume_at=at or None, drops_one_turn=bool(drops))


def _prompt_tool(name: str) -> str:
    if name not in {"", STDIO} and not name.startswith(SERVED):
        raise CommandError(NO_PROMPT_TOOL)
    return name


def _rules(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for text in texts for one in listed(text))


def _parser() -> argparse.ArgumentParser:
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


def _mode(given: str | None) -> tuple[str | None, str]:
    """The mode of Phoenix for one of the host, and a line for stderr."""
    if given is None:
        return None, ""
    if given not in FOREIGN_MODES:
        raise CommandError(f"There is no permission mode {given}; use {', '.join(list(FOREIGN_MODES)[:6])}.")
    notice = "--permission-mode auto asks here for each call; bypassPermissions allows them." if given == "auto" else ""
    return FOREIGN_MODES[given], notice


def _effort(given: str | None, thinking: str | None, tokens: str | None) -> str | None:
    effort = FOREIGN_EFFORTS.get(given, given) if given is not None else None
    if effort is not None and effort not in KNOWN:
        raise CommandError(f"There is no effort {given}; use {', '.join(KNOWN)}.")
    if tokens is not None and not (tokens.isascii() and tokens.isdecimal() and len(tokens) < 12):
        raise CommandError("--max-thinking-tokens needs a number of tokens.")
    if effort is None and thinking == "disabled":
        return "off"
    return effort_of(int(tokens)) if effort is None and tokens is not None else effort


def effort_of(tokens: int) -> str:
    """The effort whose budget this number of tokens is."""
    return next((effort for most, effort in BUDGETS if tokens <= most), "max")


def _prompts(given: dict[str, Any], file: str | None) -> list[str]:
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


def servers_of(configs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The servers of `--mcp-config`: names of those inside the host, and the values with all others.

    Raises:
        CommandError: a value is neither JSON nor a file with it.
    """
    own, values = list[str](), list[str]()
    for text in configs:
        others: JsonObject = {}
        for name, config in _servers(text).items():
            if isinstance(config, dict) and config.get("type") == "sdk":
                own.append(name)
            else:
                others[name] = config
        if others:
            values.append(json.dumps({"mcpServers": others}))
    return own, values


def _servers(text: str) -> JsonObject:
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
