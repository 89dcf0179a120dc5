"""Skills and command files: texts that a user or a model calls by name. Found elsewhere; here they are values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from engine.records import ConversationRecord
from engine.run_options import Effort
from tools.contract import ProcessRunner


class InvocableKind(StrEnum):
    """Kind of file."""

    COMMAND = "command"
    """A Markdown file that the user calls as `/name`."""
    SKILL = "skill"
    """A folder with a SKILL.md, which a model may load too."""


class InvocableOrigin(StrEnum):
    """Owner of a file; also the prefix that names it whatever shadows it: `/project:fix`."""

    PROJECT = "project"
    USER = "user"


class Invocable(Struct, frozen=True):
    """One skill or command file, with exactly the content that may be used."""

    name: str
    description: str
    body: str
    """Text below the front matter."""
    kind: InvocableKind
    origin: InvocableOrigin
    path: Path
    """The file."""
    digest: str
    """SHA-256 of all its files together."""
    aliases: tuple[str, ...] = ()
    """Further names that reach it."""
    argument_hint: str = ""
    argument_names: tuple[str, ...] = ()
    """Names of its arguments, in order: `$name` in the body is the one in this place."""
    files: tuple[str, ...] = ()
    """Bundled files of a skill, relative to its folder, sorted."""
    allowed_tools: tuple[str, ...] = ()
    """Rules as the file has them, unchecked."""
    model: str = ""
    effort: Effort = Effort.DEFAULT
    for_models: bool = True
    """False: only the user may call it."""
    for_users: bool = True
    """False: it is no `/name`."""
    forks: bool = False
    """True for a skill that a sub-agent works on."""
    agent: str = ""
    """Profile of that sub-agent."""
    notes: tuple[str, ...] = ()
    """Remarks about the file, as sentences."""

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent

    @property
    def label(self) -> str:
        """Kind, name and origin: `skill pdf (project)`."""
        return f"{self.kind.value} {self.name} ({self.origin.value})"


class InvocableProblem(Struct, frozen=True):
    """A file that cannot be used; the reason is a sentence, the line counts from 1, 0 for the whole file."""

    path: Path
    kind: InvocableKind
    origin: InvocableOrigin
    line: int
    reason: str


class ShadowedInvocable(Struct, frozen=True):
    """One that another of the same name hides, and the reason as a clause."""

    invocable: Invocable
    reason: str


class WaitingInvocable(Struct, frozen=True):
    """A name of the project that may not be used yet; its file was not read."""

    name: str
    kind: InvocableKind
    path: Path | None = None
    """File of one in a subfolder, which has a question of its own."""


class Catalogue(Struct, frozen=True):
    """The skills and commands of one folder, as they may be used now; equal files give equal catalogues."""

    skills: tuple[Invocable, ...] = ()
    """Sorted by name, each name once."""
    commands: tuple[Invocable, ...] = ()
    """Sorted by name, each name once."""
    by_call: Mapping[str, Invocable] = field(default_factory=dict[str, Invocable])
    """Skills and commands by what is typed behind the slash, those with a prefix included."""
    shadowed: tuple[ShadowedInvocable, ...] = ()
    problems: tuple[InvocableProblem, ...] = ()
    waiting: tuple[WaitingInvocable, ...] = ()
    """Skills and commands of the project that wait for the user's trust, by name."""
    switched_off: tuple[Invocable, ...] = ()
    """Skills that the user switched off; they are in no other field."""
    used: Mapping[str, float] = field(default_factory=dict[str, float])
    """Unix time of the last use of a skill, by name, when the catalogue was made."""

    def skill(self, name: str) -> Invocable | None:
        """The skill that a model means by a name or an alias."""
        for skill in self.skills:
            if skill.name == name:
                return skill
        return next((skill for skill in self.skills if name in skill.aliases), None)

    def called(self, name: str) -> Invocable | None:
        """The skill or command of `/name`."""
        return self.by_call.get(name)


EMPTY: Final = Catalogue()


def chosen_skills(skills: Sequence[Invocable], names: Collection[str] | None) -> tuple[Invocable, ...]:
    """The skills of these names, each whole or behind a plugin's prefix: `pdf` means `papers:pdf` too. None: all."""
    if names is None:
        return tuple(skills)
    return tuple(one for one in skills if one.name in names or one.name.rpartition(":")[2] in names)


class Invocables(Protocol):
    """The catalogues of the folders that are worked in."""

    @property
    def runner(self) -> ProcessRunner:
        """Runner of the shell lines of bodies."""
        ...

    @property
    def attended(self) -> bool:
        """False where no person can answer a question."""
        ...

    def catalogue(self, folder: Path) -> Catalogue:
        """The newest catalogue of a folder, from memory."""
        ...

    async def refresh(self, record: ConversationRecord) -> Catalogue:
        """Look at the files again, in a thread and within a bound; the last catalogue where that takes longer."""
        ...

    def note_use(self, skill: Invocable) -> None:
        """Remember that a skill was used."""
        ...
