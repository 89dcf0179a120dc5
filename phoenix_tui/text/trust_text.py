"""Sentences about the files that extend Phoenix in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phoenix_tui.config.sources.extension_files import SourceGroup, SourceKind
from phoenix_tui.config.sources.report import GROUP_ORDER, SourceEntry, SourceReport, SourceState
from tools.clean import reveal_name
from tools.redaction import without_keys
from tools.wording import pluralize

LONGEST_NAME: Final = 60
"""Characters of a path in a sentence."""
REACH: Final = "Hooks reach the network in auto mode only, servers in every mode; the sandbox holds for both."
"""Reach of what a trusted project starts, for the question about it."""
_PRIVATE_KEY: Final = "PRIVATE KEY-----"
NAMED: Final = 3
"""Files that a sentence names."""
MOST_LISTED: Final = 30
"""Files of a group that the question before the screen lists, beside all that start programs."""
_WORDS: Final = (
    (SourceKind.HOOKS, "hook", "settings file"),
    (SourceKind.SERVERS, "server", "server file"),
    (SourceKind.SKILL, "skill", "skill"),
    (SourceKind.AGENT, "agent", "agent"),
    (SourceKind.INSTRUCTIONS, "instruction file", "instruction file"),
    (SourceKind.COMMAND, "command", "command"),
)
"""Kinds in the order of a sentence: the word for one thing, and for a file that starts nothing."""
_VERBS: Final = {SourceState.CHANGED: "changed", SourceState.NEW: "is new", SourceState.GONE: "is gone"}


def command_line(command: str) -> str:
    """A command as one harmless line, without credentials of known shapes; the file itself shows them.

    No sign that a shell gives a meaning is in such a credential. The shape of a private key would take everything
    behind its first line, commands too, so a line with one stays whole.
    """
    return reveal_name(command if _PRIVATE_KEY in command else without_keys(command))


def short_name(name: str, longest: int = LONGEST_NAME) -> str:
    """A path as one harmless line; the end of one that is too long, as it tells more than the beginning."""
    shown = reveal_name(name)
    return shown if len(shown) <= longest else f"…{shown[1 - longest :]}"


def counts(entries: Sequence[SourceEntry]) -> tuple[str, ...]:
    """Counts by kind, such as `2 hooks` and `1 server`; programs count with what starts them."""
    found: list[str] = []
    for kind, thing, empty in _WORDS:
        files = [entry for entry in entries if entry.kind is kind]
        commands = sum(len(entry.commands) for entry in files)
        units = len({entry.unit for entry in files})
        if commands:
            found.append(pluralize(commands, thing))
        elif units:
            found.append(pluralize(units, empty))
    if not found and entries:
        found.append(pluralize(len(entries), "file"))
    return tuple(found)


def join_words(words: Sequence[str]) -> str:
    """Join words as `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def group_lines(report: SourceReport) -> tuple[str, ...]:
    """Files that wait, by their power, with the commands of those that run programs to the letter."""
    lines: list[str] = []
    for group in GROUP_ORDER:
        entries = [entry for entry in report.waiting() if entry.group is group]
        if entries:
            lines.append(f"  {group.value} ({join_words(counts(entries))}):")
        if group is SourceGroup.RUNS and any(entry.commands for entry in entries):
            lines.append(f"    {REACH}")
        named = [entry for place, entry in enumerate(entries) if entry.commands or place < MOST_LISTED]
        for entry in named:
            lines.append(f"    {reveal_name(entry.name)}")
            lines += [f"      {reveal_name(command)}" for command in entry.commands]
        if len(entries) > len(named):
            lines.append(f"    and {pluralize(len(entries) - len(named), 'more file')}")
    return tuple(lines)


def notice(report: SourceReport, way: str = "/trust") -> str:
    """Say what is not used and where to read of it; empty where nothing waits, or the user has refused it."""
    waiting = report.waiting()
    if not waiting or report.refused:
        return ""
    if report.trusted:
        return f"{_because(report)}, so {_off(waiting)}; {way} shows the difference."
    found = counts(waiting)
    is_are, them = ("is", "it") if _is_one(found) else ("are", "them")
    return f"This folder brings {join_words(found)} that {is_are} not used yet; {way} shows {them}."


def warn_untrusted(report: SourceReport) -> str:
    """Say on stderr of a run without a screen what is left out; empty without anything."""
    waiting = report.waiting()
    if not waiting:
        return ""
    why = f"{_because(report)}: " if report.trusted else f"{reveal_name(report.folder)} is not trusted: "
    return f"{why}{join_words(counts(waiting))} left out; --trust accepts the files as they are now."


def _because(report: SourceReport) -> str:
    differing = [entry for entry in report.entries if entry.state in _VERBS]
    named = [f"{short_name(entry.name)} {_VERBS[entry.state]}" for entry in differing[:NAMED]]
    more = len(differing) - NAMED
    named += [f"{more:,} more changed"] if more > 0 else []
    return f"Since you trusted this folder {join_words(named)}"


def _off(waiting: Sequence[SourceEntry]) -> str:
    parts: list[str] = []
    if any(entry.group is SourceGroup.RUNS for entry in waiting):
        parts.append("what runs programs")
    if any(entry.kind is SourceKind.INSTRUCTIONS for entry in waiting):
        parts.append("what instructs the model")
    alone = {SourceKind.SKILL, SourceKind.AGENT, SourceKind.COMMAND}
    parts += counts([entry for entry in waiting if entry.kind in alone])
    return f"{join_words(parts)} {'is' if _is_one(parts) else 'are'} off"


def _is_one(parts: Sequence[str]) -> bool:
    return len(parts) == 1 and all(part.startswith(("1 ", "what ")) for part in parts)
