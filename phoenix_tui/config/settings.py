"""Settings: every key, its type and its allowed values; the tables `[status_line]` and `[web]` of
the user's config.toml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from msgspec import Struct, field

from phoenix_tui.config.choices import (
    BUSY_ENTER,
    DIAGNOSTICS,
    EFFORTS,
    IMAGES,
    INPUT_GUARD,
    NOTIFICATIONS,
    PERMISSION_MODES,
    SANDBOXES,
    TRACKING,
)
from phoenix_tui.config.presets import PRESETS, Preset


class TableError(ValueError):
    """Raised for an invalid table; `key` is the wrong one, empty for the table itself."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


AUTO: Final = "auto"
LEAST_MEGABYTES: Final = 256
"""Phoenix itself takes 60 to 80."""
SIZE_FORMS: Final = f"auto, 0 for no limit, or at least {LEAST_MEGABYTES} (MB), such as 2048 or 4 GB"
_SIZE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(MB|GB|M|G|)", re.IGNORECASE | re.ASCII)


def megabytes(text: str) -> int | None:
    """`4 GB` or `2048` in MB, 0 for no limit; None for an invalid or too small size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    number = int(float(found[1]) * (1024 if found[2][:1] in {"G", "g"} else 1))
    return number if number >= LEAST_MEGABYTES or float(found[1]) == 0 else None


STATUS_LINE_BOUNDS: Final = {"timeout_ms": (50, 10_000), "min_interval_ms": (100, 3_600_000), "padding": (0, 20)}
"""Least and most of each number."""
LONGEST_COMMAND: Final = 4096


class StatusLineSettings(Struct, frozen=True):
    """The program, and its limits."""

    command: str
    """Command line for `/bin/sh -c`."""
    timeout_ms: int = 1000
    min_interval_ms: int = 300
    """Least time between the starts of two runs."""
    padding: int = 0
    """Blank cells at the left."""


def status_line_of(table: object) -> StatusLineSettings:
    """The settings of a table.

    Raises:
        TableError: a key or a value is not allowed.
    """
    if not isinstance(table, dict):
        raise TableError("", "'status_line' must be a table [status_line].")
    found = dict(cast("dict[str, object]", table))
    command = found.pop("command", None)
    if not isinstance(command, str) or not command.strip() or len(command) > LONGEST_COMMAND or "\0" in command:
        raise TableError("command", "[status_line] needs 'command', a command line for /bin/sh.")
    numbers = {key: _number(key, value) for key, value in found.items()}
    return StatusLineSettings(command, **numbers)


def _number(key: str, value: object) -> int:
    if key not in STATUS_LINE_BOUNDS:
        raise TableError(
            key, f"unknown key '{key}' in [status_line]. Valid keys are command, {', '.join(STATUS_LINE_BOUNDS)}."
        )
    least, most = STATUS_LINE_BOUNDS[key]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise TableError(key, f"'{key}' must be a whole number from {least} to {most}, not {value!r}.")
    return value


SEARCH_SERVICES: Final[Mapping[str, str]] = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "searxng": "",
    "tavily": "https://api.tavily.com/search",
}
"""Address of each service (their API documentation, November 2026); empty for one that the user runs."""
SEARCH_KEY_VARIABLES: Final[Mapping[str, str]] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
LONGEST_VALUE: Final = 1_000
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_KEYS: Final = ("search", "url", "key_env")


class WebSettings(Struct, frozen=True):
    """The service, its address, and the variable of its key."""

    search: str
    url: str
    key_env: str = ""


def web_settings_of(table: object) -> WebSettings:
    """The settings of a table.

    Raises:
        TableError: a key or a value is not allowed.
    """
    if not isinstance(table, dict):
        raise TableError("", "'web' must be a table [web].")
    found = cast("dict[str, object]", table)
    for key, value in found.items():
        if key not in _KEYS:
            raise TableError(key, f"unknown key '{key[:100]}' in [web]. Valid keys are {', '.join(_KEYS)}.")
        if not isinstance(value, str) or len(value) > LONGEST_VALUE or not value.isprintable():
            raise TableError(key, f"'{key}' in [web] must be text on one line.")
    texts = cast("dict[str, str]", found)
    service = texts.get("search", "")
    if service not in SEARCH_SERVICES:
        raise TableError("search", f"[web] needs 'search', one of {', '.join(SEARCH_SERVICES)}.")
    url = texts.get("url", "") or SEARCH_SERVICES[service]
    _check_url(service, url)
    if service == "searxng" and not urlsplit(url).path.strip("/"):
        url = f"{url.rstrip('/')}/search"
    variable = texts.get("key_env", "") or SEARCH_KEY_VARIABLES.get(service, "")
    if variable and service not in SEARCH_KEY_VARIABLES:
        raise TableError("key_env", f"{service} takes no key; leave 'key_env' out.")
    return WebSettings(service, url, variable)


def _check_url(service: str, url: str) -> None:
    """Raise where the address is none, or a key would cross the network in plain text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or port == 0 or parts.fragment or " " in url:
        raise TableError("url", f"'url' in [web] must be the http:// or https:// address of {service}.")
    if parts.username is not None or parts.password is not None:
        raise TableError("url", "'url' in [web] cannot hold a user name or a password.")
    if parts.scheme == "http" and service in SEARCH_KEY_VARIABLES and host not in _LOOPBACK:
        raise TableError("url", f"the key of {service} is not sent without encryption; use an https:// address.")


SettingValue: TypeAlias = str | int | float | bool

SANDBOX_FREEDOM: dict[SettingValue, int] = {name: -rank for rank, name in enumerate(SANDBOXES)}
MODE_FREEDOM: dict[SettingValue, int] = {"auto": 4, "accept-edits": 3, "ask": 2, "plan": 1, "deny": 1}
"""Freedom of each mode as a rank; a project can only lower it (CONTRACT 4)."""
DEFAULT_MODE = "ask"
"""Meaning of an unset permission mode where a project or a profile narrows it."""
FREEDOM: dict[str, dict[SettingValue, int]] = {
    "permission_mode": MODE_FREEDOM | {"": MODE_FREEDOM[DEFAULT_MODE]},
    "sandbox": SANDBOX_FREEDOM,
    "sandbox_network": {False: 0, True: 1},
}
"""Settings that a project or a profile can only narrow: how much each value lets happen."""
CAPS: Final = frozenset({"budget_day_usd", "budget_project_usd"})
"""Numbers that a project can only lower; 0 is no cap."""


def narrows(name: str, wanted: SettingValue, current: SettingValue) -> bool:
    """True where `wanted` lets less happen than `current`."""
    if name in CAPS:
        return bool(wanted) and (not current or float(wanted) < float(current))
    return FREEDOM[name][wanted] < FREEDOM[name][current]


LARGEST: Final = 1e15
"""Bound of numbers without one of their own: infinity is none, and no clock or counter takes it."""


class ConfigError(Exception):
    """A setting is wrong; the message names file, line, key and the allowed values."""


class SettingKey(Struct, frozen=True):
    """One setting: `kind` is its type in TOML."""

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: SettingValue
    choices: tuple[str, ...] = ()
    projects: bool = False
    """True when a project's file may set it, narrowing."""
    meaning: str = ""
    live: bool = False
    """True when a change applies at once; else from the next start."""
    least: float = 0
    most: float = 0
    """The highest number that is allowed; 0: any."""
    why: str = ""
    """Reason why no other number is allowed."""
    falls_back: bool = False
    """True when an unknown value becomes the default and is reported, instead of ending the program."""
    is_size: bool = False
    """True for a size of memory; a whole number counts as text."""
    is_hosts: bool = False
    """True for a list of hosts; a list in TOML counts as text with commas, an empty one as `NO_HOSTS`."""

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.is_size:
            return SIZE_FORMS
        if self.is_hosts:
            return HOSTS_ALLOWED
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.most:
            reason = f" ({self.why})" if self.why else ""
            return f"a {'whole ' if self.kind is int else ''}number from {self.least:g} to {self.most:g}{reason}"
        words = {str: "text", int: "a whole number, 0 for no limit", float: "a number, 0 for no limit"}
        return words.get(self.kind, "true or false")

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"PHOENIX_{self.name.upper()}"

    def in_bounds(self, number: float) -> bool:
        """True when a number is neither too low nor too high."""
        return self.least <= number <= (self.most or LARGEST)


NO_HOSTS: Final = "none"
"""Value of `network` for an empty list: no host but those of rules and answers."""
HOSTS_ALLOWED: Final = 'a list of hosts, such as ["pypi.org", "*.example.com", "example.com:8443"], ["*"] for any'
NO_DEEPER = "sub-agents cannot start sub-agents"
UNLESS = "unless its task or profile sets it"
KEYS = {
    key.name: key
    for key in (
        SettingKey("model", str, "", meaning="model of new conversations"),
        SettingKey("profile", str, "", meaning="agent profile of new conversations"),
        SettingKey("effort", str, "default", EFFORTS, meaning="how much models reason in new conversations"),
        SettingKey(
            "permission_mode", str, "", PERMISSION_MODES, projects=True, meaning="permission mode of new conversations"
        ),
        SettingKey("sandbox", str, "workspace", SANDBOXES, projects=True, meaning="sandbox of new conversations"),
        SettingKey(
            "sandbox_network",
            bool,
            True,
            projects=True,
            meaning="let allowed commands use the network inside the sandbox",
        ),
        SettingKey(
            "network", str, "", meaning="hosts that sandboxed commands may reach without a question", is_hosts=True
        ),
        SettingKey("max_turns", int, 0, meaning="model replies per run"),
        SettingKey("max_budget_usd", float, 0.0, meaning="dollars per run"),
        SettingKey(
            "budget_day_usd", float, 0.0, projects=True, meaning="dollars per day, of all conversations together"
        ),
        SettingKey("budget_project_usd", float, 0.0, projects=True, meaning="dollars that a project may cost in all"),
        SettingKey("timeout", float, 0.0, meaning="seconds per run"),
        SettingKey("append_system_prompt", str, "", meaning="text to append to the system prompt"),
        SettingKey("theme", str, "", meaning="colour theme; empty: by the terminal's background", live=True),
        SettingKey("images", str, "auto", IMAGES, meaning="how images are shown in conversations"),
        SettingKey(
            "notifications",
            str,
            "auto",
            NOTIFICATIONS,
            meaning="notifications while the terminal is not in focus",
            live=True,
        ),
        SettingKey(
            "terminal_title", bool, True, meaning="show state and conversation in the terminal's title", live=True
        ),
        SettingKey("auto_title", bool, True, meaning="let the model title a conversation after its first answer"),
        SettingKey(
            "input_guard",
            str,
            "warn",
            INPUT_GUARD,
            meaning="action for messages and tool results that look like injections",
            falls_back=True,
        ),
        SettingKey("sanitize_replies", bool, True, meaning="remove stray call and thinking tags from answers"),
        SettingKey("turn_summaries", bool, True, meaning="let the model summarize each turn for the list of turns"),
        SettingKey("language_servers", bool, True, meaning="let installed language servers check edited files"),
        SettingKey("claude_hooks", bool, False, meaning="use the hooks and allow rules of ~/.claude/settings.json too"),
        SettingKey("trace_verbose", bool, False, meaning="keep whole inputs of model and tool calls in traces"),
        SettingKey("otel", bool, False, meaning="export traces to the collector of OTEL_EXPORTER_OTLP_ENDPOINT"),
        SettingKey("otel_endpoint", str, "", meaning="address of an OpenTelemetry collector to export traces to"),
        SettingKey("otel_content", bool, False, meaning="export the beginnings of prompts and outputs too"),
        SettingKey("history_turns", int, 0, meaning="newest turns sent to the model; 0: all"),
        SettingKey(
            "compact_percent", int, 75, meaning="summarize older messages when the window is this full; 0: never"
        ),
        SettingKey(
            "compact_after_runs", bool, True, meaning="summarize older messages in the background after a long run"
        ),
        SettingKey(
            "compact_messages", int, 50, meaning="messages above which that is done; 0: only by compact_percent"
        ),
        SettingKey(
            "summary_model",
            str,
            "",
            meaning="model that summarizes; empty: a cheap_model you name, else the conversation's",
        ),
        SettingKey("summary_tokens", int, 0, meaning="longest summary in tokens; 0: by what it replaces", most=32_000),
        SettingKey("summary_timeout", float, 120.0, meaning="seconds for a summary", least=1, most=3_600),
        SettingKey("prune_percent", int, 30, meaning="shorten old tool results from this fill level; 0: never"),
        SettingKey("clear_percent", int, 50, meaning="clear the oldest tool results from this fill level; 0: never"),
        SettingKey("memory", bool, True, meaning="let agents search notes and older messages"),
        SettingKey("memory_flush", bool, True, meaning="let a remote model write notes before older messages go"),
        SettingKey("max_agents", int, 4, meaning="sub-agents that run at the same time; others wait", least=1, most=32),
        SettingKey("agent_depth", int, 1, meaning="0: no sub-agents at all", most=1, why=NO_DEEPER),
        SettingKey("agent_turns", int, 20, meaning=f"model replies per sub-agent, {UNLESS}", least=1, most=250),
        SettingKey("agent_timeout", float, 300.0, meaning=f"seconds per sub-agent, {UNLESS}", least=1, most=86_400),
        SettingKey("agent_budget_usd", float, 0.0, meaning="dollars per sub-agent; also counted in max_budget_usd"),
        SettingKey("route", bool, False, meaning="let a supervisor choose who answers in new conversations"),
        SettingKey(
            "route_wait", float, 5.0, meaning="seconds to overrule the supervisor; 0: agents start at once", most=600
        ),
        SettingKey(
            "cheap_model",
            str,
            "auto",
            meaning="model for titles, summaries, tasks, routing; auto: your provider's small one; off: none",
        ),
        SettingKey(
            "task_tracking",
            str,
            "auto",
            TRACKING,
            meaning="let a model keep the task board, which costs tokens; auto: by a cheap_model",
        ),
        SettingKey(
            "task_tracking_tokens",
            int,
            500_000,
            meaning="tokens for the task board per conversation and day; 0: no limit",
        ),
        SettingKey("task_criteria", str, "", meaning="your words about when a task is done or has failed"),
        SettingKey("retention_days", int, 0, meaning="days until archive and trash are deleted permanently; 0: never"),
        SettingKey("event_retention_days", int, 30, meaning="days until events of runs are removed; 0: never"),
        SettingKey(
            "memory_limit",
            str,
            AUTO,
            meaning="memory limit of Phoenix, without its commands",
            is_size=True,
        ),
        SettingKey(
            "checkpoint_file_mb", int, 10, meaning="larger files are not restored by /rewind", least=1, most=500
        ),
        SettingKey(
            "checkpoint_total_mb",
            int,
            1024,
            meaning="space for file checkpoints; the oldest are deleted first",
            most=1_000_000,
        ),
        SettingKey("mouse", bool, True, meaning="use the mouse; off: the terminal selects and copies", live=True),
        SettingKey(
            "suggestions", bool, False, meaning="let the model suggest your next message; Tab accepts", live=True
        ),
        SettingKey("vim", bool, False, meaning="vim keys in the composer", live=True),
        SettingKey(
            "focus_view", bool, False, meaning="show prompts, answers and diffs; tools share one line", live=True
        ),
        SettingKey("copy_on_select", bool, False, meaning="copy what is selected with the mouse at once", live=True),
        SettingKey("busy_enter", str, "refuse", BUSY_ENTER, meaning="what Enter does while the agent works", live=True),
        SettingKey("update_check", bool, False, meaning="ask a package index once a day for a newer Phoenix"),
        SettingKey("update_index", str, "", meaning="address of that index, up to /simple; empty: that of pip or uv"),
        SettingKey("screen_reader", bool, False, meaning="use plain lines instead of a full screen"),
        SettingKey(
            "diagnostics",
            str,
            "replies",
            DIAGNOSTICS,
            meaning="model calls kept for /debug; a level has those before it",
        ),
        SettingKey("debug", bool, False, meaning="write a detailed log"),
    )
}

EMPTY = dict.fromkeys(("max_turns", "max_budget_usd", "timeout", "agent_budget_usd", *CAPS), "no limit") | {
    "model": "the first one available",
    "profile": "general",
    "permission_mode": "ask",
    "network": "no list",
    "append_system_prompt": "nothing",
    "theme": "light or dark, like the terminal",
    "compact_percent": "never",
    "compact_messages": "only by fill level",
    "summary_model": "the conversation's",
    "summary_tokens": "by what it replaces",
    "prune_percent": "never",
    "clear_percent": "never",
    "history_turns": "all",
    "agent_depth": "no sub-agents",
    "route_wait": "at once",
    "cheap_model": "none",
    "otel_endpoint": "no export",
    "task_criteria": "as the model judges",
    "task_tracking_tokens": "no limit",
    "update_index": "that of pip or uv",
    "retention_days": "never",
    "event_retention_days": "never",
    "checkpoint_total_mb": "no checkpoints of files",
}
"""Meaning of an empty text, or of 0."""
UNITS = dict.fromkeys(("max_turns", "agent_turns"), "replies") | {
    "max_budget_usd": "dollars",
    "agent_budget_usd": "dollars",
    "budget_day_usd": "dollars a day",
    "budget_project_usd": "dollars",
    "timeout": "seconds",
    "agent_timeout": "seconds",
    "route_wait": "seconds",
    "compact_percent": "% full",
    "prune_percent": "% full",
    "clear_percent": "% full",
    "compact_messages": "messages",
    "summary_tokens": "tokens",
    "summary_timeout": "seconds",
    "history_turns": "turns",
    "max_agents": "at once",
    "agent_depth": "level",
    "retention_days": "days",
    "event_retention_days": "days",
    "checkpoint_file_mb": "MB",
    "checkpoint_total_mb": "MB",
}
"""Unit of a number."""


def in_words(name: str, value: SettingValue) -> str:
    """Describe a value for a reader."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if KEYS[name].is_size:
        text = str(value)
        number = megabytes(text)
        if text == AUTO:
            return "a quarter of the machine's"
        return text if number is None else f"{number:,} MB" if number else "no limit"
    if not value:
        return EMPTY.get(name, "none")
    return f"{value:g} {UNITS.get(name, '')}".rstrip() if isinstance(value, float | int) else value


PROVIDER_KINDS = ("openai", "anthropic")
BUILT_IN_KINDS = dict.fromkeys(("openai", "ollama", "lmstudio", "llamacpp", "vllm"), "openai") | {
    "anthropic": "anthropic"
}
"""The protocol of each provider that is there without being added; its table needs no address."""
PROVIDER_KEYS = {
    key.name: key
    for key in (
        SettingKey("preset", str, "", tuple(PRESETS)),
        SettingKey("base_url", str, ""),
        SettingKey("kind", str, "openai", PROVIDER_KINDS),
        SettingKey("api_key_env", str, ""),
        SettingKey("idle_timeout", float, 0.0),
        SettingKey("transport", str, "http", ("http", "sdk")),
        SettingKey("backend", str, "direct", ("direct", "bedrock", "vertex")),
        SettingKey("profile", str, ""),
        SettingKey("thinking_budget", int, 0),
        SettingKey("tool_protocol", str, "native", ("native", "json")),
        SettingKey("max_tokens", int, 0),
        SettingKey("context_window", int, 0),
        SettingKey("tokens_per_minute", int, 0),
        SettingKey("requests_per_minute", int, 0),
    )
}
"""Keys allowed in `[providers.NAME]`."""
ONLY_OF_KIND = dict.fromkeys(("transport", "backend", "profile", "thinking_budget"), "anthropic") | {
    "tool_protocol": "openai",
    "preset": "openai",
    "query": "openai",
    "extra_body": "openai",
}


class ProviderSettings(Struct, frozen=True):
    """A provider the user added or changed: `[providers.NAME]`."""

    name: str
    base_url: str = ""
    """Empty: the default address of the provider."""
    kind: Literal["openai", "anthropic"] = "openai"
    """The protocol it speaks."""
    api_key_env: str = ""
    """Environment variable of its key; else credentials.toml is read."""
    idle_timeout: float = 0.0
    """Seconds without a byte after which a stream counts as dead; 0 for the default."""
    transport: Literal["http", "sdk"] = "http"
    backend: Literal["direct", "bedrock", "vertex"] = "direct"
    profile: str = ""
    """Name of a profile of the official SDK, which then finds the credentials."""
    thinking_budget: int = 0
    """Tokens of reasoning for models that take a budget."""
    tool_protocol: Literal["native", "json"] = "native"
    max_tokens: int = 0
    """Largest number of tokens of one reply; 0 for the known limit of the model."""
    context_window: int = 0
    """Tokens of the window of its models; 0 for the value of the server or the catalogue."""
    tokens_per_minute: int = 0
    """Rate limit of each of its models; 0 for the value in the headers of its answers."""
    requests_per_minute: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Sent with each request; `${VARIABLE}` is replaced, as in `query`."""
    query: dict[str, str] = field(default_factory=dict[str, str])
    """Put behind the address of each request."""
    extra_body: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields for the body of each request, replacing Phoenix's own of the same name."""
    models: tuple[str, ...] = ()
    """Patterns of the models that lists show; empty: all of them."""
    preset: str = ""
    """The service whose key, and address where it names none, it has."""

    @property
    def service(self) -> Preset | None:
        """The well-known service it is: the one it names, or the one of its own name where it has no address."""
        return PRESETS.get(self.preset or ("" if self.base_url else self.name))


class Settings(Struct, frozen=True):
    """All settings in force, with where each came from."""

    values: dict[str, SettingValue]
    sources: dict[str, str]
    """Key to source: default, a file with its line, a variable or a flag."""
    providers: tuple[ProviderSettings, ...] = ()
    status_line: StatusLineSettings | None = None
    web: WebSettings | None = None
    notices: tuple[str, ...] = ()
    """Notices for the user, such as a project's setting that was too wide."""

    def text(self, key: str) -> str:
        """A text setting."""
        return str(self.values[key])

    def number(self, key: str) -> float:
        """A number, 0 for none."""
        value = self.values[key]
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def network(self) -> tuple[str, ...] | None:
        """Hosts of the setting `network`; None where it is not set."""
        from engine.permissions.hosts import hosts_in  # noqa: PLC0415 - not before the first frame

        text = self.text("network")
        return (() if text == NO_HOSTS else hosts_in(text)) if text else None

    def flag(self, key: str) -> bool:
        """A yes or no."""
        return self.values[key] is True
