"""Faults of the files that extend Phoenix, as sentences: skills, commands, agents and rules that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from phoenix_tui.config.claude_settings import NAMES, settings_faults
from phoenix_tui.config.instructions import rule_faults
from phoenix_tui.config.project import places_of
from phoenix_tui.config.sources.agents import AgentReader
from phoenix_tui.config.sources.catalogues import CatalogueReader
from phoenix_tui.config.sources.kinds import SourceKind
from phoenix_tui.config.sources.project_sources import TrustedSources
from tools.clean import clean_line, reveal_name
from tools.wording import pluralize


def source_faults(found: TrustedSources, folder: Path) -> list[str]:
    """Every fault; each begins with the file, and its line where it has one."""
    return [*_agents(found), *file_faults(found, folder)]


def file_faults(found: TrustedSources, folder: Path) -> list[str]:
    """Faults of skills, commands and rules."""
    problems = CatalogueReader(frozenset()).read(found, frozenset(), {}).problems
    told = [_sentence(one.path, one.line, one.reason) for one in problems]
    told += settings_faults(settings_files(found))
    return [*told, *rule_faults(found.of(SourceKind.INSTRUCTIONS), places_of(folder.resolve()))]


def settings_files(found: TrustedSources) -> list[Path]:
    """The settings files of another program that are used."""
    return [file.path for file in found.of(SourceKind.HOOKS) if file.path.name in NAMES and file.plugin is None]


def _agents(found: TrustedSources) -> Iterator[str]:
    if not found.of(SourceKind.AGENT):
        return
    for one in AgentReader().read(found).troubles:
        if one.is_fault:
            yield _sentence(one.path, one.line, one.clause)


def _sentence(path: Path, line: int, reason: str) -> str:
    place = f"{reveal_name(path)}:{line}" if line else reveal_name(path)
    return f"{place}: {clean_line(reason).rstrip('.')}."


def shorten_faults(faults: list[str], most: int, where: str) -> list[str]:
    """The first faults, and a sentence that counts the others and says `where` they are named."""
    more = len(faults) - most
    others = "them" if more > 1 else "it"
    rest = f"{pluralize(more, 'more fault')} of files that extend Phoenix; {where} names {others}."
    return [*faults[:most], *([rest] if more > 0 else [])]
