"""The agents of a folder's files: which one a name means, and why others are not used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from engine.ports.profiles import Profile
from phoenix_tui.config.sources.agents import MOST_BYTES, SUFFIX, AgentError, AgentFile, agent_in
from phoenix_tui.config.sources.kinds import SourceFile, SourceKind
from phoenix_tui.config.sources.project_sources import read_source
from phoenix_tui.config.sources.source_trust import TrustedSources
from tools.clean import clean_line, reveal_name
from tools.wording import counted

FOLDER: Final = (".claude", "agents")
MOST_AGENTS: Final = 500
"""Files that are read in one folder, those of its project first."""
MOST_KEPT: Final = 2_000
"""Files that were read and are kept; beyond that all are read again."""
MOST_NAMED: Final = 3
"""Waiting files that a sentence names."""


class AgentTrouble(Struct, frozen=True):
    """A clause about one file: why it, or a part of it, is not used."""

    path: Path
    clause: str
    line: int = 0
    is_fault: bool = False
    """True where the file is wrong, and not just hidden or waiting."""


class FolderAgents(Struct, frozen=True):
    """The agents of one folder, the nearest first, and what is not used."""

    profiles: tuple[Profile, ...] = ()
    troubles: tuple[AgentTrouble, ...] = ()


class AgentReader(Struct, eq=False):
    """Reads a file once for each content."""

    _kept: dict[tuple[Path, str], AgentFile | AgentTrouble] = field(
        default_factory=dict[tuple[Path, str], "AgentFile | AgentTrouble"]
    )

    def read(self, sources: TrustedSources) -> FolderAgents:
        """The agents of these files, read where their content is the one that counts."""
        found, troubles = dict[str, Profile](), list[AgentTrouble]()
        files = [file for file in sources.of(SourceKind.AGENT) if not file.path.name.startswith(".")]
        for file in islice(files, MOST_AGENTS):
            made = self._made(file)
            if isinstance(made, AgentTrouble):
                troubles.append(made)
                continue
            troubles += (AgentTrouble(file.path, note, is_fault=True) for note in made.notes)
            first = found.setdefault(made.profile.name, made.profile)
            if first is not made.profile:
                shown = reveal_name(first.source)
                troubles.append(AgentTrouble(file.path, f"{shown} has the same name and comes first"))
        if len(files) > MOST_AGENTS:
            troubles.append(AgentTrouble(files[MOST_AGENTS].path, f"at most {MOST_AGENTS} agents of a folder are used"))
        return FolderAgents(tuple(found.values()), (*troubles, *_waiting(sources), *_left_out(sources)))

    def _made(self, file: SourceFile) -> AgentFile | AgentTrouble:
        key = file.path, file.digest
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = _read(file)
        return self._kept[key]


def _read(file: SourceFile) -> AgentFile | AgentTrouble:
    content = read_source(file, MOST_BYTES)
    if content is None:
        why = f"it is larger than {MOST_BYTES // 1024} KB, or changed while it was read"
        return AgentTrouble(file.path, why, is_fault=True)
    try:
        return agent_in(content, file.path)
    except AgentError as error:
        return AgentTrouble(file.path, error.clause, error.line, is_fault=True)


def _waiting(sources: TrustedSources) -> Iterator[AgentTrouble]:
    """One clause about the files that wait for the user's answer; their content is not looked at."""
    waiting = [file.path for file in sources.waiting if file.kind is SourceKind.AGENT]
    if waiting:
        names = ", ".join(reveal_name(path.name.removesuffix(SUFFIX)) for path in waiting[:MOST_NAMED])
        more = "" if len(waiting) <= MOST_NAMED else f" and {len(waiting) - MOST_NAMED:,} more"
        why = "changed since it was trusted" if sources.trusted else "is not trusted"
        agents = counted(len(waiting), "agent")
        yield AgentTrouble(waiting[0], f"the project {why}: {agents} left out ({names}{more}); /trust shows them")


def _left_out(sources: TrustedSources) -> Iterator[AgentTrouble]:
    """Files beyond the limits, and links out of the project."""
    for one in sources.left_out:
        if FOLDER in pairwise(one.path.parts):
            yield AgentTrouble(one.path, clean_line(one.reason))


def is_agent_file(profile: Profile) -> bool:
    """True for the profile of a file in a folder of agents."""
    parts = Path(profile.source).parts
    return FOLDER in pairwise(parts)
