"""Agents of other programs as profiles: read from objects and files, with the one that a name means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports.profiles import KNOWN_TOOLS, Profile
from engine.records import PermissionMode
from engine.run_options import Effort
from phoenix_tui.config.claude_settings import FOREIGN_EFFORTS, FOREIGN_MODES, translate_model
from phoenix_tui.config.front_matter import FrontMatter, FrontMatterError, FrontMatterValue, read_front_matter
from phoenix_tui.config.sources.extension_files import SourceFile, SourceKind
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources, read_source, sort_sources
from phoenix_tui.config.trust import TrustFile
from tools.aliases import native_names
from tools.clean import clean, clean_line, reveal_name
from tools.contract import JsonObject, JsonValue
from tools.files.content import is_binary
from tools.wording import pluralize

SUFFIX: Final = ".md"
MOST_BYTES: Final = 256 * 1024
"""Bytes of one file."""
LONGEST_NAME: Final = 100
"""Characters of a name that a host gives."""
LONGEST_FILE_NAME: Final = 64
INHERIT: Final = "inherit"
"""Model of an agent that has its parent's."""
BY_HOST: Final = "the host"
NO_TOOL: Final = "none"
"""Entry of a list of tools that would be empty, since an empty one allows all."""
ALL_TOOLS: Final = "*"
MOST_NAMED: Final = 5
"""Unknown tools that a note names."""
_NAME: Final = re.compile(r"\w[\w.-]*")
SKILLS: Final = "skills"
MOST_SKILLS: Final = 50
"""Skills that an agent brings along."""
_TOOL_LISTS: Final = frozenset({"tools", "disallowedTools"})
_LISTS: Final = _TOOL_LISTS | {SKILLS}
_NUMBERS: Final = frozenset({"maxTurns"})
_KNOWN: Final = _LISTS | _NUMBERS | {"name", "description", "effort", "permissionMode", "model"}


class AgentError(ValueError):
    """An agent cannot be used: a clause without full stop, and the line in its file, 0 for the whole."""

    def __init__(self, clause: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {clause}" if line else clause)
        self.clause = clause
        self.line = line


class AgentFile(Struct, frozen=True):
    """The profile of one file, and clauses about what in the file has no effect."""

    profile: Profile
    notes: tuple[str, ...] = ()


def agent_profile(name: str, about: JsonValue) -> Profile:
    """The profile of an agent as hosts describe it. Raises AgentError."""
    if not isinstance(about, dict) or not name.strip() or len(name) > LONGEST_NAME:
        raise AgentError(f"The agent {name[:60]!r} must have a name and be an object")
    effort, mode = about.get("effort"), about.get("permissionMode")
    turns, model = about.get("maxTurns"), about.get("model")
    wanted = FOREIGN_EFFORTS.get(effort, effort) if isinstance(effort, str) else ""
    return Profile(
        name=name,
        description=_text(about.get("description")),
        prompt=_text(about.get("prompt")),
        model=translate_model(model) if isinstance(model, str) and model not in {"", INHERIT} else "",
        tools=_tools(about.get("tools"), about.get("disallowedTools")),
        permission_mode=PermissionMode(FOREIGN_MODES[mode])
        if isinstance(mode, str) and mode in FOREIGN_MODES
        else None,
        max_turns=turns if isinstance(turns, int) and turns > 0 else 0,
        effort=wanted if wanted in set(Effort) else "",
        skills=_skills(about.get(SKILLS)),
        source=BY_HOST,
    )


def agent_in(content: bytes, path: Path, prefix: str = "") -> AgentFile:
    """The agent of a file's content; `prefix` stands before its name. Raises AgentError."""
    if len(content) > MOST_BYTES:
        raise AgentError(f"it is larger than {MOST_BYTES // 1024} KB")
    if is_binary(content):
        raise AgentError("it is no text")
    try:
        found = read_front_matter(content.decode())
    except UnicodeDecodeError as error:
        raise AgentError("it is not UTF-8 text") from error
    except FrontMatterError as error:
        raise AgentError(error.sentence.rstrip("."), error.line) from error
    for key in sorted(_TOOL_LISTS & found.left_out.keys()):
        fault = found.left_out[key]  # without its limits an agent would have every tool
        raise AgentError(fault.sentence.rstrip("."), fault.line)
    name = found.values.get("name") or path.name.removesuffix(SUFFIX)
    if not isinstance(name, str) or len(name) > LONGEST_FILE_NAME or _NAME.fullmatch(name) is None:
        raise AgentError(
            f"its name must be one word of at most {LONGEST_FILE_NAME} letters, digits, '-', '_' and '.'",
            found.lines.get("name", 0),
        )
    about = _about(found.values, found.body)
    profile = agent_profile(f"{prefix}{name}", about)
    return AgentFile(replace(profile, source=str(path), project=True), (*_notes(about), *_faults(found)))


def _about(values: Mapping[str, FrontMatterValue], body: str) -> JsonObject:
    """The fields as a host writes them, harmless to show."""
    about: JsonObject = {}
    for key, value in values.items():
        if key in _LISTS:
            names = value.split(",") if isinstance(value, str) else value
            about[key] = [name.strip() for name in names if name.strip()]
        elif key in _NUMBERS:
            about[key] = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0
        elif isinstance(value, str):
            about[key] = clean_line(value)
    about["prompt"] = clean(body).strip()
    return about


def _faults(found: FrontMatter) -> Iterator[str]:
    """Clauses about known fields whose values cannot be read."""
    for key, fault in found.left_out.items():
        if not key or key in _KNOWN:
            yield f"{key or 'some lines'} left out: {fault.sentence.rstrip('.')}"


def _notes(about: JsonObject) -> Iterator[str]:
    """Clauses about fields that mean nothing here."""
    unknown = [name for key in sorted(_TOOL_LISTS) for name in _natives(about.get(key)) if not _is_known(name)]
    if unknown:
        names = ", ".join(dict.fromkeys(clean_line(name)[:40] for name in unknown[:MOST_NAMED]))
        yield f"there are no such tools here: {names}{' and more' if len(unknown) > MOST_NAMED else ''}"
    mode = about.get("permissionMode")
    if mode and mode not in FOREIGN_MODES:
        yield f"there is no permission mode {_text(mode)[:40]}"


def _is_known(name: str) -> bool:
    return name in KNOWN_TOOLS or name == ALL_TOOLS or name.startswith("mcp__")


def _tools(allowed: JsonValue, denied: JsonValue) -> tuple[str, ...]:
    """Native tools of an agent; none in the list: all of them."""
    left_out, wanted = set(_natives(denied)), _natives(allowed)
    if not wanted or ALL_TOOLS in wanted:
        wanted = KNOWN_TOOLS if left_out else ()
    kept = tuple(dict.fromkeys(name for name in wanted if name not in left_out))
    return kept or ((NO_TOOL,) if wanted else ())


def _skills(names: JsonValue) -> tuple[str, ...]:
    given = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return tuple(dict.fromkeys(clean_line(one).strip() for one in given))[:MOST_SKILLS]


def _natives(names: JsonValue) -> tuple[str, ...]:
    given = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    return tuple(native for one in given for native in native_names(one.partition("(")[0]))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


FOLDER: Final = (".claude", "agents")
MOST_AGENTS: Final = 500
"""Files that are read in one folder, those of its project first."""
MOST_KEPT: Final = 2_000
"""Files that were read and are kept; beyond that all are read again."""
MOST_WAITING_NAMED: Final = 3
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
            key = file.path, file.digest
            if key not in self._kept:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = _read(file)
            made = self._kept[key]
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
        left_out = (  # beyond the limits, or links out of the project
            AgentTrouble(one.path, clean_line(one.reason))
            for one in sources.left_out
            if FOLDER in pairwise(one.path.parts)
        )
        return FolderAgents(tuple(found.values()), (*troubles, *_waiting(sources), *left_out))


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
        names = ", ".join(reveal_name(path.name.removesuffix(SUFFIX)) for path in waiting[:MOST_WAITING_NAMED])
        more = "" if len(waiting) <= MOST_WAITING_NAMED else f" and {len(waiting) - MOST_WAITING_NAMED:,} more"
        why = "changed since it was trusted" if sources.trusted else "is not trusted"
        agents = pluralize(len(waiting), "agent")
        yield AgentTrouble(waiting[0], f"the project {why}: {agents} left out ({names}{more}); /trust shows them")


def is_agent_file(profile: Profile) -> bool:
    """True for the profile of a file in a folder of agents."""
    parts = Path(profile.source).parts
    return FOLDER in pairwise(parts)


class AgentSources(Struct, frozen=True):
    """Agents of the user and of a folder that is trusted; no answer is written here."""

    users: Path
    """Folder of the user's files."""
    home: Path
    trust: TrustFile
    trusts: bool = False
    """True where the command line trusts the folder's files as they are."""
    counts: Callable[[Path], bool] | None = None

    def of(self, folder: Path) -> Sequence[Profile]:
        """Agents of a folder as the files are now; none where it cannot be looked at."""
        sources = ProjectSources(self.users, self.home, self.trust, keeps_answers=False, counts=self.counts)
        try:
            return AgentReader().read(self._look(sources, folder)).profiles
        except OSError:
            return ()

    def _look(self, sources: ProjectSources, folder: Path) -> TrustedSources:
        found = sources.look(folder)
        if not self.trusts:
            return found
        project = sources.project(folder)
        digests = {str(file.path): file.digest for file in project.files}
        return sort_sources(project, sources.users(folder), digests, trusted=True)
