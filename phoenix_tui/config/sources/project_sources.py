"""Files that extend Phoenix in a folder, as they are now, and the user's answer about them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from phoenix_tui.config.paths import FileStamp, stamp
from phoenix_tui.config.sources.extension_files import (
    Digests,
    Fingerprint,
    LeftOutFile,
    Plugin,
    SourceFile,
    SourceGroup,
    SourceKind,
    Sources,
    digest_of,
)
from phoenix_tui.config.sources.finding import (
    SKILL_FILE,
    ProgramSearch,
    find_plugins_sources,
    find_sources,
    find_users_sources,
    with_programs,
)
from phoenix_tui.config.trust import TEXT_LIMIT, SourcesAnswer, TrustFile, places_of
from tools.clean import reveal_name
from tools.files.content import diff_lines, is_binary
from tools.files.own_files import read_regular

MODELS_TEXTS: Final = frozenset({SourceKind.SKILL, SourceKind.COMMAND, SourceKind.AGENT, SourceKind.INSTRUCTIONS})
"""Kinds whose texts a model is sent."""
DENIED: Final = "a rule denies reading it"


class SourceChange(Struct, frozen=True):
    """A file that is new, different or gone since the user's last answer."""

    path: Path
    group: SourceGroup
    is_gone: bool = False
    is_new: bool = False


class TrustedSources(Struct, frozen=True):
    """The files of a folder that may be used, and what waits for an answer."""

    files: tuple[SourceFile, ...] = ()
    """The user's own, and those of the project whose digests are accepted."""
    waiting: tuple[SourceFile, ...] = ()
    """Files of the project that are not used."""
    changes: tuple[SourceChange, ...] = ()
    """Reason why they wait, where the folder was trusted before."""
    refused: bool = False
    """True where the user answered to work without these very files: nothing is asked again."""
    trusted: bool = False
    """True where the user's last answer was yes, about these files or others."""
    left_out: tuple[LeftOutFile, ...] = ()
    """Files that no answer brings into use."""

    def of(self, kind: SourceKind) -> tuple[SourceFile, ...]:
        """Files of a kind that may be used, the nearest first, the user's last."""
        return tuple(file for file in self.files if file.kind is kind)


def sort_sources(project: Sources, users: Sources, accepted: Mapping[str, str], *, trusted: bool) -> TrustedSources:
    """Tell files that may be used from those that wait.

    `accepted` are digests by path at the user's last answer, which `trusted` tells. A changed skill, command or agent
    is off alone; a changed hook, server, program or instruction switches its group off.
    """
    found = {str(file.path): file for file in project.files}
    changed = [file for file in project.files if accepted.get(str(file.path)) != file.digest]
    if not trusted:
        refused = bool(accepted) and not changed
        return TrustedSources(users.files, project.files, refused=refused, left_out=project.left_out)
    gone = [SourceChange(Path(name), _group_of(name), is_gone=True) for name in accepted if name not in found]
    groups = {file.group for file in changed if not _is_alone(file)}
    groups |= {change.group for change in gone if change.group is SourceGroup.RUNS}  # it may have switched hooks off
    units = {file.unit for file in changed}
    waiting = tuple(file for file in project.files if file.group in groups or file.unit in units)
    waits = {file.path for file in waiting}
    used = tuple(file for file in project.files if file.path not in waits)
    differing = (SourceChange(file.path, file.group, is_new=str(file.path) not in accepted) for file in changed)
    changes = (*differing, *gone)
    return TrustedSources((*used, *users.files), waiting, changes, trusted=True, left_out=project.left_out)


def without(sources: TrustedSources, closed: Collection[Path]) -> TrustedSources:
    """The files without those that rules deny to read; a skill goes with its SKILL.md, or loses a bundled file."""
    if not closed:
        return sources
    units = {file.unit for file in sources.files if file.path in closed and file.path.name == SKILL_FILE}
    kept = tuple(file for file in sources.files if file.path not in closed and file.unit not in units)
    left = (LeftOutFile(path, DENIED) for path in sorted(closed))
    return replace(sources, files=kept, left_out=(*sources.left_out, *left))


def _is_alone(file: SourceFile) -> bool:
    return file.kind in {SourceKind.SKILL, SourceKind.AGENT, SourceKind.COMMAND}


def _group_of(name: str) -> SourceGroup:
    """Group of a file that is gone, by its name."""
    if "/commands/" in name:
        return SourceGroup.ADDS
    instructs = ("/skills/", "/agents/", "/rules/", "CLAUDE.local.md")
    return SourceGroup.INSTRUCTS if any(part in name for part in instructs) else SourceGroup.RUNS


class SharedLook(Struct, eq=False):
    """Results that hold until the event loop has its next turn.

    The end is scheduled before a look begins. So whatever runs ahead of it was ready before the look, and what it had
    written was seen; whatever becomes ready during a look or later looks anew. A thread never gets a result: whoever
    starts a program of a project looks in a thread, right before.
    """

    _now: dict[Path, TrustedSources] = field(default_factory=dict[Path, TrustedSources])
    _thread: int = 0
    """The thread of the loop while a turn lasts; 0 outside."""

    def of(self, folder: Path) -> TrustedSources | None:
        """The result of a folder, by the path under which it was asked for; None where it has to be looked for."""
        if not self._thread or threading.get_ident() != self._thread:
            return None
        return self._now.get(folder)

    def begin(self) -> None:
        """Begin a look; without a loop its result is not shared."""
        if self._thread:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._thread = threading.get_ident()
        loop.call_soon(self.forget)

    def keep(self, folder: Path, found: TrustedSources) -> None:
        """Keep the result of a look until the next turn."""
        if threading.get_ident() == self._thread:
            self._now[folder] = found

    def forget(self) -> None:
        """Look anew from here on."""
        self._thread = 0
        self._now.clear()


MOST_TEXT: Final = 4 * 1024 * 1024
"""Bytes of texts that are kept for one folder, to show a change."""
QUICK: Final = 0.005
"""Seconds of a look that may be made on the event loop."""
MOST_FOLDERS: Final = 50
"""Folders whose last search is kept, each up to 1 MB."""
NOTHING: Final = TrustedSources()
_Identity: TypeAlias = tuple[int, int]
"""Device and inode of a folder: another one in its place has no answer."""


class ProjectSources(Struct, eq=False):
    """Sources of every folder that is worked in; may be asked from several threads."""

    config: Path
    """The user's config folder."""
    home: Path
    trust: TrustFile
    claude_hooks: bool = False
    """True where the hooks of the user's settings for another program count."""
    trusts: Path | None = None
    """Folder that the command line trusts with its files as they are at the first look; a real path."""
    keeps_answers: bool = True
    """False: an answer holds until the program ends, and is not written."""
    plugins: tuple[Plugin, ...] = ()
    """Folders that count for this run beside the user's own."""
    counts: Callable[[Path], bool] | None = None
    """True for files of a project that count in this run; None: all."""
    closes: Callable[[Path], Callable[[Path], bool]] | None = None
    """Test for the files of a folder: those that rules deny to read are not for a model. None: no rules yet."""
    _digests: Digests = field(default_factory=Digests)
    _looks: dict[Path, TrustedSources] = field(default_factory=dict[Path, TrustedSources])
    _found: dict[Path, _Found] = field(default_factory=dict[Path, "_Found"])
    _answers: dict[Path, _Answer] = field(default_factory=dict[Path, "_Answer"])
    _own_answers: dict[Path, tuple[_Identity, SourcesAnswer]] = field(
        default_factory=dict[Path, tuple[_Identity, SourcesAnswer]]
    )
    """Answers that are not written."""
    _shared: SharedLook = field(default_factory=SharedLook)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    """Held for a look or an answer, which come from several threads."""

    def current(self, folder: Path) -> TrustedSources:
        """Result of the last look at a folder; nothing before the first."""
        return self._shared.of(folder) or self._looks.get(folder.resolve(), NOTHING)

    def look(self, folder: Path) -> TrustedSources:
        """Find the files of a folder as they are now; 1 ms for 200 files while nothing has changed, else about 10.

        Raises:
            OSError: the folder is gone, or the answer of the command line cannot be written.
        """
        shared = self._shared.of(folder)
        if shared is not None:
            return shared
        with self._lock:
            return self._look(folder.resolve())

    def is_quick(self, folder: Path) -> bool:
        """True where the next look finds nothing changed, in under 5 ms: then it belongs on the event loop.

        A thread waits 5 ms for the interpreter while the screen is drawn, which stood between Enter and a request. One
        look is for all who ask in the same turn of the event loop.
        """
        if self._shared.of(folder) is not None:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._is_same(folder)
        except OSError:
            return False
        finally:
            self._lock.release()

    def _is_same(self, folder: Path) -> bool:
        """True where a look finds nothing changed, in time; its result is then shared."""
        self._shared.begin()
        real, began = folder.resolve(), time.monotonic()
        kept = self._found.get(real)
        if kept is None or kept.sorted is NOTHING or real == self.trusts or self._answer(real) is not kept.answer:
            return False
        holds = kept.root == places_of(real)[0] and kept.fingerprint.holds()
        if not holds or time.monotonic() - began >= QUICK:
            return False
        self._shared.keep(folder, self._select_readable(real, kept))
        return True

    def _look(self, real: Path) -> TrustedSources:
        found = self._search(real)
        if real == self.trusts:
            self.trusts = None
            return self.answer(real, trusted=True, shown=found.project.files)
        answer = self._answer(real)
        if found.answer is not answer or found.sorted is NOTHING:
            accepted = answer.digests if answer is not None else {}
            trusted = answer is not None and answer.trusted
            found.sorted = sort_sources(found.project, found.users, accepted, trusted=trusted)
            found.answer = answer
        return self._select_readable(real, found)

    def _select_readable(self, real: Path, found: _Found) -> TrustedSources:
        """The sorted files without texts that rules deny to read; the same value while nothing has changed."""
        texts = [file for file in found.sorted.files if file.kind in MODELS_TEXTS and not file.is_users]
        is_closed = self.closes(real) if self.closes is not None and texts else None
        closed = frozenset(file.path for file in texts if is_closed is not None and is_closed(file.path))
        if (found.closed, found.opened_of) != (closed, found.sorted):
            found.closed, found.opened_of = closed, found.sorted
            found.opened = without(found.sorted, closed)
        self._looks[real] = found.opened
        return found.opened

    def is_trusted(self, folder: Path) -> bool:
        """True where the user's answer about a folder is yes: about what extends Phoenix there, else about its
        instructions and settings. Then the user's own hooks and servers start in it; belongs in a thread.

        Raises:
            OSError: the folder is gone, or the answer of the command line cannot be written.
        """
        self.look(folder)
        real = folder.resolve()
        with self._lock:
            answer = self._answer(real)
            return answer.trusted if answer is not None else self.trust.may_be_trusted(real)

    def project(self, folder: Path) -> Sources:
        """Files of the project alone, trusted or not, and the programs that its hooks and servers name."""
        return self._search(folder.resolve()).project

    def users(self, folder: Path) -> Sources:
        """Files of the user and of plugins, which need no answer."""
        return self._search(folder.resolve()).users

    def _search(self, real: Path) -> _Found:
        """The files of a folder; those found last while nothing that the search depends on has changed."""
        root = places_of(real)[0]
        kept = self._found.get(real)
        if kept is not None and kept.root == root and kept.fingerprint.holds():
            return kept
        seen = Fingerprint()
        users = find_users_sources(self.config, self.home, self._digests, seen, claude_hooks=self.claude_hooks)
        if self.plugins:
            more = find_plugins_sources(self.plugins, self._digests, seen)
            users = Sources((*users.files, *more.files), (*users.left_out, *more.left_out))
        files = find_sources(real, self._digests, seen)
        if self.counts is not None:
            files = replace(files, files=tuple(file for file in files.files if self.counts(file.path)))
        search = ProgramSearch(real, root, seen)
        search.take(files.files)
        project = with_programs(files, search, self._digests)
        if len(self._found) >= MOST_FOLDERS:
            self._found.clear()
        self._found[real] = found = _Found(root, seen, project, users)
        return found

    def answer(self, folder: Path, *, trusted: bool, shown: Sequence[SourceFile] | None = None) -> TrustedSources:
        """Keep the user's answer about the files of a folder: those that were shown, else as they are now.

        Raises:
            OSError: it cannot be written.
        """
        real = folder.resolve()
        with self._lock:
            return self._keep(real, shown if shown is not None else self.project(real).files, trusted=trusted)

    def _keep(self, real: Path, files: Sequence[SourceFile], *, trusted: bool) -> TrustedSources:
        digests = {str(file.path): file.digest for file in files}
        texts = _texts(files) if trusted else {}
        answer = SourcesAnswer(trusted, digests, texts)
        if self.keeps_answers:
            self.trust.answer_sources(real, answer)
        else:
            self._own_answers[real] = _identity(real), answer
        self._answers.pop(real, None)
        self._shared.forget()
        return self.look(real)

    def changes(self, folder: Path) -> str:
        """Files that wait, as a unified diff from what the user accepted last; whole where nothing was."""
        real = folder.resolve()
        answer = self._answer(real)
        before = answer.texts if answer is not None else {}
        found = self._looks.get(real, NOTHING)
        after = _texts(found.waiting)
        gone = {str(change.path) for change in found.changes if change.is_gone}
        lines: list[str] = []
        for name in sorted({*after, *(gone & before.keys())}):
            old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
            shown = reveal_name(name)
            lines += diff_lines(old, new, f"{shown} (accepted)", f"{shown} (now)")
        return "\n".join(lines)

    def read_accepted(self, folder: Path, path: Path) -> str | None:
        """Text of a file when the user accepted it; None where it was not kept."""
        answer = self._answer(folder.resolve())
        return answer.texts.get(str(path)) if answer is not None else None

    def _answer(self, real: Path) -> SourcesAnswer | None:
        identity = _identity(real)
        if (own := self._own_answers.get(real)) is not None and own[0] == identity:
            return own[1]
        now, kept = stamp(self.trust.path), self._answers.get(real)
        if kept is None or (kept.file, kept.identity) != (now, identity):
            self._answers[real] = kept = _Answer(now, identity, self.trust.sources_answer(real))
        return kept.answer


class _Found(Struct, eq=False):
    """Result of a search, and what it was sorted into by the answer of that time."""

    root: Path
    fingerprint: Fingerprint
    project: Sources
    users: Sources
    answer: SourcesAnswer | None = None
    sorted: TrustedSources = NOTHING
    closed: frozenset[Path] = frozenset()
    opened: TrustedSources = NOTHING
    """The sorted files without the closed ones."""
    opened_of: TrustedSources | None = None


class _Answer(Struct, frozen=True):
    """Answer about a folder as the trust file had it at one time."""

    file: FileStamp
    identity: _Identity
    answer: SourcesAnswer | None


def _identity(folder: Path) -> _Identity:
    status = folder.stat()
    return status.st_dev, status.st_ino


def read_source(file: SourceFile, most: int) -> bytes | None:
    """The content whose digest was found; None where it is larger than `most` bytes, gone or another one by now."""
    content = read_regular(file.path, most + 1)
    if content is None or len(content) > most or digest_of(content) != file.digest:
        return None
    return content


def _texts(files: Iterable[SourceFile]) -> dict[str, str]:
    """Texts of the files up to a limit, for a later diff."""
    texts, left = dict[str, str](), MOST_TEXT
    for file in files:
        content = read_source(file, TEXT_LIMIT)
        if content is not None and len(content) <= left and not is_binary(content):
            left -= len(content)
            texts[str(file.path)] = content.decode("utf-8", "replace")
    return texts
