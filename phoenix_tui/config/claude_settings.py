"""Settings of Claude Code, from `--settings` and `.claude/settings.json`: modes, models and permission rules.

Rules that deny or ask only narrow, so they count at once; those that allow count once the user trusts the folder with
this file as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from engine.extensions.hooks.definitions import LocatedError, decode_located
from engine.permissions.denials import ASK, DENY, parse_denial, why_denies_nothing
from engine.permissions.place import project_of
from engine.permissions.rules import (
    FILE_CLASSES,
    KeptRule,
    Rule,
    RuleBook,
    class_named,
    native_rules,
    parse_rule,
    why_no_name,
    why_nothing_matches,
)
from engine.ports.profiles import KNOWN_TOOLS
from phoenix_tui.config.paths import FileStamp, stamp
from phoenix_tui.config.rules import RuleLayer, folder_rules
from phoenix_tui.config.settings import MODE_FREEDOM
from phoenix_tui.config.sources.extension_files import digest_of
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.trust import places_of
from tools.aliases import WITHOUT
from tools.clean import clean_line, reveal_name
from tools.contract import ToolClass
from tools.files.own_files import read_regular

MOST_BYTES: Final = 256 * 1024
MOST_RULES: Final = 2_000
RULES: Final = ("allow", "ask", "deny")
INSTEAD: Final = {
    "model": "/model chooses it",
    "effortLevel": "/effort chooses it",
    "outputStyle": "/profile has such texts",
    "statusLine": "[status_line] of config.toml is yours",
    "sandbox": "/sandbox chooses it",
    "theme": "/config chooses it",
    "enableAllProjectMcpServers": "/trust and /mcp decide",
    "enabledMcpjsonServers": "/trust and /mcp decide",
    "disabledMcpjsonServers": "/mcp switches servers off",
}
"""Settings without an effect here, and the place where Phoenix has their like."""
_SERVER: Final = re.compile(r"mcp__(?:(?!__).)+")
_WITHOUT_PATTERN: Final = re.compile(r"[^()]*")
_CLASSES: Final = {
    **dict.fromkeys(KNOWN_TOOLS, ToolClass.READ),
    **dict.fromkeys(("write_file", "patch"), ToolClass.EDIT),
    **dict.fromkeys(("spawn_agents", "spawn_task"), ToolClass.SPAWN),
    **dict.fromkeys(("web_fetch", "web_search"), ToolClass.NET),
    "bash": ToolClass.RUN,
}
_LISTED: Final = 8
"""Keys and rules that one sentence names."""


class ClaudeSettings(Struct, frozen=True):
    """Content of one file."""

    values: Mapping[str, object] = {}
    permissions: Mapping[str, object] = {}
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Clauses about values that have not the form they must have."""
    is_unreadable: bool = False
    """True where nothing of it is known."""

    def list_unused(self, used: frozenset[str]) -> list[str]:
        """Keys without an effect, those of permissions as `permissions.KEY`."""
        own = {f"permissions.{key}" for key in self.permissions} | (self.values.keys() - {"permissions"})
        return sorted(own - used)


def parse_settings(content: bytes) -> ClaudeSettings:
    """Read a settings file."""
    try:
        document = decode_located(content)
    except LocatedError as error:
        return ClaudeSettings(faults=(f"line {error.line}: {error.why}",), is_unreadable=True)
    if not isinstance(document, dict):
        return ClaudeSettings(faults=("it must be one JSON object",), is_unreadable=True)
    values = cast("dict[str, object]", document)
    found = values.get("permissions", {})
    faults = [] if isinstance(found, dict) else ["permissions must be an object"]
    permissions = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    rules = {name: tuple(_texts(permissions, name, faults)) for name in RULES}
    return ClaudeSettings(values, permissions, rules["allow"], rules["ask"], rules["deny"], tuple(faults))


def _texts(table: Mapping[str, object], name: str, faults: list[str]) -> Iterator[str]:
    value = table.get(name, [])
    if not isinstance(value, list):
        faults.append(f"permissions.{name} must be a list of rules")
        return
    entries = cast("list[object]", value)
    if len(entries) > MOST_RULES:
        faults.append(f"permissions.{name} has more than {MOST_RULES:,} rules; the others are left out")
    for entry in entries[:MOST_RULES]:
        if isinstance(entry, str) and entry.strip():
            yield entry.strip()
        else:
            faults.append(f"permissions.{name} has an entry that is no rule")


def whole_rule(text: str) -> str:
    """A rule with a pattern: a tool alone means all its calls, a server alone all its tools."""
    name = text.strip()
    if not _WITHOUT_PATTERN.fullmatch(name):
        return name.removesuffix("()") + "(*)" if name.endswith("()") else name
    return f"{name}__*(*)" if _SERVER.fullmatch(name) else f"{name}(*)"


def place_rules(text: str, kind: str, folder: Path) -> tuple[list[str], str]:
    """Native rules that an entry of a file in `folder` means, and the reason where it means none.

    `kind` is empty for a rule that allows, else `DENY` or `ASK`. Patterns of paths become absolute.
    """
    if text.partition("(")[0].strip() in WITHOUT:
        return [], ""  # a tool that is not there can do nothing
    kept: list[str] = []
    for native in native_rules(f"{kind}{whole_rule(text)}"):
        rule = parse_denial(native) if kind else parse_rule(native)
        if rule is None:
            return [], "it is neither a tool nor tool(pattern)"
        tool_class = _CLASSES.get(rule.tool) or class_named(rule.tool)
        if (why := why_no_name(rule.tool)) or tool_class is None:
            return [], why.rstrip(".") or "there is no such tool"
        rule = _place_rule(rule, tool_class, folder)
        why = why_denies_nothing(rule, tool_class) if kind else why_nothing_matches(rule, tool_class)
        if why:
            return [], why.rstrip(".")
        kept.append(f"{kind}{rule}")
    return kept, ""


def _place_rule(rule: Rule, tool_class: ToolClass, folder: Path) -> Rule:
    """The rule with an absolute pattern, where it is one of paths."""
    pattern = rule.pattern
    if tool_class not in FILE_CLASSES or pattern.strip() == "*":
        return rule
    if not pattern.startswith(("/", "~/")):
        pattern = f"{escape(str(folder)).rstrip('/')}/{pattern.removeprefix('./')}"
    climbs = ".." in pattern.split("/")
    return Rule(rule.tool, os.path.normpath(pattern) if climbs else pattern)


def faults_of(settings: ClaudeSettings, used: frozenset[str], folder: Path, *, given: bool = False) -> list[str]:
    """Clauses about everything of a file that has no effect: values, rules and keys.

    `given`: on the command line, where a rule may allow every call of a tool.
    """
    wrong = [
        f"the rule “{text[:60]}” of permissions.{name}: {why}"
        for name, kind in (("allow", ""), ("ask", ASK), ("deny", DENY))
        for text in getattr(settings, name)
        if (why := place_rules(text, kind, folder)[1]) and not (given and whole_rule(text).endswith("(*)"))
    ]
    unused = [f"{name} ({INSTEAD[name]})" if name in INSTEAD else name for name in settings.list_unused(used)]
    keys = ", ".join(unused[:_LISTED]) + (f" and {len(unused) - _LISTED} more" if len(unused) > _LISTED else "")
    without = [f"without effect here: {keys}"] if unused else []
    return [*settings.faults, *wrong[:_LISTED], *without]


NOBODY: Final = "dontAsk"
"""Mode in which a question is a no, and rules count."""
FOREIGN_MODES: Final = {
    "default": "ask",
    "acceptEdits": "accept-edits",
    "bypassPermissions": "auto",
    "plan": "plan",
    NOBODY: "ask",
    "auto": "ask",
    "ask": "ask",
    "accept-edits": "accept-edits",
    "deny": "deny",
}
"""Permission modes of hosts. Their `auto` asks a model about each call; here it asks the host."""
FOREIGN_EFFORTS: Final = {"xhigh": "max", "minimal": "low"}
"""Efforts of hosts that have another name here."""
LINES: Final = {
    "sonnet": "anthropic/claude-sonnet-5-5",
    "opus": "anthropic/claude-opus-5-5",
    "haiku": "anthropic/claude-haiku-5-5",
    "fable": "anthropic/claude-fable-5",
}
"""Newest model of each line of Claude, by the line's name."""


def translate_model(reference: str) -> str:
    """A reference as Phoenix writes it: lines of Claude by their newest model, bare Claude models with a provider."""
    if reference in LINES:
        return LINES[reference]
    return f"anthropic/{reference}" if reference.startswith("claude-") and "/" not in reference else reference


NAMES: Final = ("settings.json", "settings.local.json")
FOLDER: Final = ".claude"
FOLDERS: Final = "additionalDirectories"
MODE: Final = "defaultMode"
USED: Final = frozenset({
    "hooks",
    "disableAllHooks",
    "$schema",
    *(f"permissions.{name}" for name in (*RULES, FOLDERS, MODE)),
})
"""Keys of a file that count; those of `--settings` are in `given_settings.py`."""
MOST_KEPT: Final = 200
MOST_FOLDERS: Final = 50
"""Further folders of one file."""


class _Read(Struct, frozen=True):
    """A file as of one version of it, and its rules."""

    version: FileStamp
    digest: str
    settings: ClaudeSettings
    narrow: tuple[KeptRule, ...]
    allow: tuple[KeptRule, ...]


class ClaudeRules(RuleLayer):
    """The rules of the user, and those of settings files around a folder. Files are read where they have changed."""

    def __init__(self, book: RuleBook, sources: ProjectSources, *, counts_users: bool = True) -> None:
        super().__init__(book)
        self._sources = sources
        self._counts_users = counts_users
        self._kept: dict[Path, _Read] = {}

    def rules(self, folder: Path | None = None) -> Sequence[KeptRule]:
        """All that can be read."""
        return (*(self._of(folder) if folder is not None else ()), *super().rules(folder))

    def unreadable(self, folder: Path | None = None) -> str:
        """The file if rules that deny may stand in it and cannot be read, else an empty text."""
        files = self._files(folder) if folder is not None else ()
        hidden = (str(path) for path in files if (found := self._read(path)) and found.settings.is_unreadable)
        return next(hidden, "") or super().unreadable(folder)

    def _of(self, folder: Path) -> Iterator[KeptRule]:
        trusted = {file.path: file.digest for file in self._sources.current(folder).files}
        for path in self._files(folder):
            if (found := self._read(path)) is not None:
                yield from found.narrow
                if trusted.get(path) == found.digest:
                    yield from found.allow

    def _files(self, folder: Path) -> Iterator[Path]:
        counts = self._sources.counts
        places = places_of(folder.resolve())
        if (main := project_of(folder)) not in places:
            places.insert(0, main)  # of a worktree: rules of its repository that narrow; trust is the worktree's own
        for place in places:
            for name in NAMES:
                path = place / FOLDER / name
                if counts is None or counts(path):
                    yield path
        if self._counts_users:
            yield self._sources.home / FOLDER / NAMES[0]

    def _read(self, path: Path) -> _Read | None:
        version, known = stamp(path), self._kept.get(path)
        if version is None:
            return None
        if known is None or known.version != version:
            known = _read(path, version)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[path] = known
        return known


def _read(path: Path, version: FileStamp) -> _Read:
    content = read_regular(path, MOST_BYTES + 1)
    if content is None or len(content) > MOST_BYTES:
        return _Read(version, "", ClaudeSettings(is_unreadable=True), (), ())
    settings, base = parse_settings(content), path.parent.parent
    narrow = [*_keep_rules(settings.deny, DENY, base, path), *_keep_rules(settings.ask, ASK, base, path)]
    folders = (rule for name in _folders(settings) for rule in _folder_rules(name, base)[0])
    allow = tuple(_keep_rules((*settings.allow, *folders), "", base, path))
    return _Read(version, digest_of(content), settings, tuple(narrow), allow)


def _folders(settings: ClaudeSettings) -> Iterator[str]:
    value = settings.permissions.get(FOLDERS)
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return (one for one in entries[:MOST_FOLDERS] if isinstance(one, str) and one.strip())


def _folder_rules(name: str, base: Path) -> tuple[list[str], str]:
    """Rules that let files of a further folder be read, and the reason where there are none."""
    try:
        return folder_rules(name, base), ""
    except ValueError as error:
        return [], str(error)


def default_mode(folder: Path, counts: Callable[[Path], bool] | None) -> tuple[str, str]:
    """The narrowest permission mode of the settings files around a folder, and its file; both empty for none."""
    found: list[tuple[str, str]] = []
    for path in (place / FOLDER / name for place in places_of(folder) for name in NAMES):
        content = read_regular(path, MOST_BYTES + 1) if counts is None or counts(path) else None
        if content is not None and len(content) <= MOST_BYTES:
            mode = parse_settings(content).permissions.get(MODE)
            if isinstance(mode, str) and mode in FOREIGN_MODES:
                found.append((FOREIGN_MODES[mode], reveal_name(path)))
    return min(found, key=lambda one: MODE_FREEDOM[one[0]], default=("", ""))


def _keep_rules(texts: Sequence[str], kind: str, base: Path, path: Path) -> Iterator[KeptRule]:
    """The rules of a list; one that allows has no source, since it is none of the command line."""
    name = reveal_name(path)
    for text in texts:
        for rule in place_rules(text, kind, base)[0]:
            yield KeptRule(rule, source=name if kind else "", file=name, entry=f"{kind}{whole_rule(text)}")


def settings_rules(paths: Sequence[Path], allowing: Collection[Path]) -> Iterator[str]:
    """Sentences about the rules of settings files; those that allow count in the files `allowing` alone."""
    for path in dict.fromkeys(paths):
        content = read_regular(path, MOST_BYTES + 1)
        if content is None or len(content) > MOST_BYTES:
            continue
        found = parse_settings(content)
        if found.deny or found.ask or found.allow:
            waits = " (not in force before you trust it)" if found.allow and path not in allowing else ""
            numbers = f"{len(found.deny)} deny, {len(found.ask)} ask, {len(found.allow)} allow{waits}"
            yield f"{reveal_name(path)}: {numbers}; /permissions rules lists those in force"


def settings_faults(paths: Sequence[Path]) -> list[str]:
    """Sentences about what has no effect in settings files, each beginning with the file."""
    found: list[str] = []
    for path in dict.fromkeys(paths):
        content = read_regular(path, MOST_BYTES + 1)
        if content is not None and len(content) <= MOST_BYTES:
            settings, base = parse_settings(content), path.parent.parent
            clauses = faults_of(settings, USED, base)
            clauses += [why for name in _folders(settings) if (why := _folder_rules(name, base)[1])]
            if MODE in settings.permissions and settings.permissions[MODE] not in FOREIGN_MODES:
                clauses.append(f"permissions.{MODE} must be one of {', '.join(FOREIGN_MODES)}")
            found += [f"{reveal_name(path)}: {clean_line(clause)}." for clause in clauses]
    return found
