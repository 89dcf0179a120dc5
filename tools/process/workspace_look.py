"""The helper process that looks at workspaces after commands: which traps and self-starting files they left.

Asked over pipes by `tools.process.workspace_watch`: a request and an answer are one JSON line each. It knows each
workspace as it was before the commands that run there now, with the contents of files that start by themselves.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tools.clean import reveal_name
from tools.files.links import follow_links, links_towards
from tools.files.own_files import read_regular
from tools.git.repository import HEAD, first_line, git_folder_at, is_head, read_git_pointer
from tools.process.folder_index import FolderIndex, MissingError, Stamp, UnfinishedError, names_in, stamp_at, wall_mark
from tools.process.git_control import (
    AT_WORK,
    FILLED,
    MOST_CONFIG,
    MOVING,
    PARTS,
    TODO,
    StuckError,
    adds_nothing,
    find_armed,
    find_armed_parts,
    find_inner,
    find_named,
    is_old_head,
    is_walled,
    is_within,
    leads_to_private,
    set_aside,
)
from tools.process.helper import MOST_ANSWER, limit_texts
from tools.process.starting_files import StartingFiles, write_beneath

MOST_TIPS: Final = 100_000
"""Commits that references name; beyond them none counts as the user's own."""
MOST_REFERENCES: Final = 16 * 1024 * 1024
"""Bytes of one file of references."""
_NAME: Final = re.compile(rb"^[ \t\r]*([0-9a-f]{64}|[0-9a-f]{40})(?= |[\t\r]*$)", re.MULTILINE)


class References:
    """The references of one repository, of which a file is read again only where it changed."""

    def __init__(self) -> None:
        self.is_cut = False
        """True where there were more than are looked at: which commits a command made is not known then."""
        self._files: dict[Stamp, frozenset[str]] = {}

    def read(self, folder: Path, common: Path, below: Iterable[str], since: int, until: float) -> set[str]:
        """Commits that references name in the git folder, the common one and the folders `below` that; with `since`,
        only of files older than that. Raises UnfinishedError where the monotonic time `until` is over.
        """
        tips, known, now = set[str](), self._files, dict[Stamp, frozenset[str]]()
        files = (f"{path}/{name}" for path in below for name in names_in(path))
        for path in (*files, f"{common}/packed-refs", *(f"{folder}/{name}" for name in (HEAD, "ORIG_HEAD"))):
            if time.monotonic() > until:
                raise UnfinishedError("it took too long to read the references of git")
            stamp = stamp_at(path)
            if stamp is None or len(tips) > MOST_TIPS:
                continue
            names = now.get(stamp, known.get(stamp))
            names = now[stamp] = self._read_names(path) if names is None else names
            tips |= names if not since or stamp[3] < since else set()
        self._files = now
        self.is_cut = self.is_cut or len(tips) > MOST_TIPS
        return tips

    def _read_names(self, path: str) -> frozenset[str]:
        said = read_regular(Path(path), MOST_REFERENCES + 1, follow=False) or b""
        self.is_cut = self.is_cut or len(said) > MOST_REFERENCES
        return frozenset(found[1].decode("ascii") for found in _NAME.finditer(said))


MEMORY: Final = 2 * 1024 * 1024 * 1024
IDLE: Final = 600.0
"""Seconds without a request after which the process ends, and forgets what it knows; unless a change is not settled. A
command that runs is looked at more often.
"""
MOST_WORKSPACES: Final = 16


class Workspace:
    """One working directory, the git folders around it, and what was in them before the commands of now."""

    def __init__(self, top: str, roots: list[str]) -> None:
        self.index = FolderIndex(top)
        self.roots = tuple(map(Path, roots))
        self.git: dict[str, FolderIndex] = {}
        self.traps: dict[Path, Stamp | None] = {}
        """Traps that were there before; those are the user's own."""
        self.settings: dict[Path, bytes] = {}
        """Settings of git folders as they were before."""
        self.chosen: dict[str, str] = {}
        """The git folder that git chose at each folder before."""
        self.files = StartingFiles(self.index)
        self.stuck: dict[str, str] = {}
        """Traps of commands that cannot be set aside, with a clause about each."""
        self.head: tuple[Path, bytes] | None = None
        """The git folder at the top and its HEAD, while it was valid."""
        self.tips: set[str] = set()
        """Commits that the user's references named."""
        self.made_tips: set[str] = set()
        """Commits that references named first while a command ran."""
        self.waiting = ""
        """A trap that git at work may need, and that stays until the last command ends."""
        self.unjudged = ""
        """Reason why not all could be judged, as a clause."""
        self.references = References()
        self.until = 0.0
        """Monotonic time at which the look of now is over."""

    def look(self, since: int, until: float) -> None:
        """Read what changed in all folders. Raises UnfinishedError."""
        self.until = until
        self.index.read(since, until)
        own = {str(folder) for folder in self._git_folders()}
        for path in own:
            self.git.setdefault(path, FolderIndex(path, is_git=True)).read(since, until)
        for path in self.git.keys() - own:
            del self.git[path]

    def accept(self, since: int) -> None:
        """Take what is there for the user's own, except for what came at `since` or later."""
        for folder, chosen in self._choose().items():
            if not self._is_shaped_later(folder, chosen, since):
                self.chosen[folder] = chosen
        self._accept_traps(since)
        self.files.accept(since)
        self._note_head()
        self.tips |= self._read_tips(since) - self.made_tips

    def _accept_traps(self, since: int) -> None:
        for path, folder in self._find_armed().items():
            is_known = path in self.traps or str(path) in self.stuck
            if not is_known and not self._is_new(path, folder, since):
                self.traps[path] = stamp_at(str(path))
            self._note_settings(path, since)
        for top in self.git:
            self._note_settings(Path(top) / PARTS[0], since)

    def judge(
        self, since: int, walled: Set[str], *, last: bool, is_over: bool
    ) -> tuple[list[str], list[dict[str, Any]]]:
        """Set aside traps that came at `since` or later, but none at paths `walled`, which no command could change, and
        those of git at work only in the `last` look; returns sentences, and the self-starting files that changed. Where
        a command `is_over`, their contents count whatever their stamps say: a mapping may leave the change time.
        """
        known, self.stuck, self.unjudged, self.waiting = self.stuck, {}, "", ""
        said = [sentence for sentence in (self._mend_head(),) if sentence]
        for _ in range(8):  # behind a pointer that is set aside, git finds the next one
            armed = self._find_armed().items()
            free = [(path, at) for path, at in armed if str(path) in known or not is_walled(path, walled)]
            new = [path for path, at in free if str(path) in known or self._is_new(path, at, since)]
            new += self._find_pointers(since)
            new += [link for link in map(Path, self.index.new_links(since)) if leads_to_private(link, self.roots)]
            new += [link for link in self._find_turned(since) if not is_walled(link, walled)]
            working = [path for path in new if not last and str(path).endswith(AT_WORK)]
            self.waiting = reveal_name(working[0].relative_to(working[0].parents[1])) if working else ""
            sentences = [sentence for path in new if path not in working if (sentence := self._set_aside(path))]
            said += sentences
            if not sentences:
                break
        said += [sentence for path, sentence in self.stuck.items() if path not in known]
        try:
            self.made_tips |= self._read_tips(0) - self.tips
        except UnfinishedError as error:
            self.unjudged = str(error)
        changed = self.files.judge(since, anew=is_over)
        self.unjudged = self.unjudged or self.files.unjudged
        return said, changed

    def settle(self) -> None:
        """Take what is there now for what was there before the next command, but for what is stuck."""
        for index in (self.index, *self.git.values()):
            index.settle()
        self.traps = {path: stamp_at(str(path)) for path in self._find_armed() if str(path) not in self.stuck}
        self.chosen = self._choose()

    def places(self) -> list[str]:
        """Folders below the top at which git finds a repository of their own."""
        found = (path for path in self.index.candidates() if path != self.index.top and "/.git/" not in f"{path}/")
        return [path for path in found if git_folder_at(Path(path))]

    # Git.

    def _git_folders(self) -> Iterator[Path]:
        """Git folders that a command can write, resolved."""
        for path in self.index.candidates():
            found = git_folder_at(Path(path))
            if found is not None and is_within(follow_links(found), self.roots):
                yield follow_links(found)
        yield from (root for root in self.roots if is_head(root / HEAD))

    def _choose(self) -> dict[str, str]:
        """The resolved git folder that git chooses at each folder."""
        found = ((path, git_folder_at(Path(path))) for path in self.index.candidates())
        return {path: str(follow_links(folder)) for path, folder in found if folder is not None}

    def _note_settings(self, path: Path, since: int) -> None:
        content = read_regular(path, MOST_CONFIG, follow=False) if path.name in {*PARTS, TODO} else None
        if content is not None and str(path) not in self.stuck and not self._is_later(path, since):
            self.settings[path] = content

    def _find_armed(self) -> dict[Path, str]:
        """Traps armed now, with the folder at which git finds them; empty for those inside a git folder."""
        found: dict[Path, str] = {}
        for path in (path for index in (self.index, *self.git.values()) for path in index.candidates()):
            with self._reading(path):
                found.update(dict.fromkeys(find_armed(Path(path), self.roots), path))
        for top, index in self.git.items():
            found.update((Path(link), "") for link in index.links() if not is_old_head(link))
            with self._reading(top):
                for inner in find_inner(Path(top), iter(index.folders)):
                    found.update(dict.fromkeys(find_armed_parts(inner, self.roots), ""))
        found.update((Path(path), "") for path in self.index.other_control())
        return found

    @contextmanager
    def _reading(self, path: str) -> Generator[None]:
        """Note a folder that its owner has closed: what is in it is not known, and the others are judged."""
        try:
            yield
        except PermissionError as error:
            self.unjudged = f"{reveal_name(path)} cannot be read ({error.strerror})"

    def _is_new(self, path: Path, folder: str, since: int) -> bool:
        """True for a trap that came at `since` or later, or works only since git chooses another folder there."""
        stamp = stamp_at(str(path))
        if stamp is None or self.traps.get(path) == stamp:
            return False
        if self._is_later(path, since):
            return not adds_nothing(path, self.settings.get(path), self.roots)
        chosen = git_folder_at(Path(folder)) if folder else None
        if chosen is None or self.chosen.get(folder) == str(follow_links(chosen)):
            return False
        return self._is_shaped_later(folder, str(follow_links(chosen)), since)

    def _find_pointers(self, since: int) -> list[Path]:
        """Files `.git` that came at `since` or later and name a git folder with traps of before."""
        found: list[Path] = []
        for folder, chosen in self._choose().items():
            pointer, real = Path(folder) / ".git", Path(chosen)
            is_file = bool(read_git_pointer(pointer)) and self.chosen.get(folder) != chosen
            if is_file and self._is_later(pointer, since) and any(find_armed_parts(real, self.roots)):
                found.append(pointer)
        return found

    def _find_turned(self, since: int) -> Iterator[Path]:
        """Links that came at `since` or later, and through which git finds what an older control file names."""
        for path in self.index.candidates():
            folder, chosen = Path(path), git_folder_at(Path(path))
            parts = [folder / ".git"] if read_git_pointer(folder / ".git") else []
            parts += [chosen / name for name in MOVING] if chosen is not None else []
            # The places that new ones name are judged by themselves.
            old = (part for part in parts if part in self.traps or not self._is_later(part, since))
            for named in dict.fromkeys(named for part in old for named in find_named(part, folder)):
                links = (link for link in links_towards(named) if is_within(link, self.roots))
                yield from (link for link in links if self._is_later(link, since))

    def _is_shaped_later(self, folder: str, chosen: str, since: int) -> bool:
        """True where what makes `chosen` the git folder at `folder` came at `since` or later."""
        parts = [f"{folder}/.git", *(f"{chosen}/{name}" for name in (HEAD, "objects", "refs", "commondir"))]
        if self.chosen.get(folder) == chosen:
            return False
        return any(self._is_later(Path(part), since) for part in parts)

    def _is_later(self, path: Path, since: int) -> bool:
        """True where an entry, or what is in it, changed at `since` or later, or a folder above it is fresh."""
        text = str(path)
        if path.name in FILLED:
            with suppress(OSError):
                stamps = [stamp_at(entry.path) for entry in os.scandir(path)]
                if any(stamp is not None and stamp[3] >= since for stamp in stamps):
                    return True
        return self.index.is_later(text, since) or any(
            text.startswith(f"{top}/") and index.is_fresh(text) for top, index in self.git.items()
        )

    def _set_aside(self, path: Path) -> str:
        """Set a trap aside; returns a sentence, empty where nothing changed."""
        try:
            sentence = set_aside(path, self.roots)
        except StuckError as error:
            self.stuck[str(path)] = str(error)
            return ""
        root = next(filter(path.is_relative_to, self.roots), None)
        if sentence and path.name in PARTS and path in self.settings and root is not None:
            with suppress(OSError):
                write_beneath(str(root), str(path.relative_to(root)), self.settings[path])
                return f"{sentence}; {path.name} was written again as it was"
        return sentence

    def _note_head(self) -> None:
        """Remember HEAD of the repository at the top, where a command could remove it."""
        found = git_folder_at(Path(self.index.top))
        if found is not None and is_within(follow_links(found), self.roots):
            content = read_regular(found / HEAD, 4096, follow=False)
            if content is not None:
                self.head = (follow_links(found), content)

    def _mend_head(self) -> str:
        """Write HEAD at the top again where a command removed or spoiled it: git would look for another repository."""
        if self.head is None:
            return ""
        folder, content = self.head
        if is_head(folder / HEAD) or not os.path.isdir(folder):
            return ""
        shown = reveal_name(f"{folder.name}/{HEAD}")
        root = next((root for root in self.roots if folder.is_relative_to(root)), None)
        if root is None:
            return ""
        try:
            write_beneath(str(root), str((folder / HEAD).relative_to(root)), content)
        except OSError as error:
            why = (
                f"{shown} could not be written again ({error.strerror}): git may take another folder for the repository"
            )
            self.stuck[str(folder / HEAD)] = why
            return ""
        return f"{shown} was written again as it was: without it git takes another folder for the repository"

    def _read_tips(self, since: int) -> set[str]:
        """Commits that references of the repository at the top name; with `since`, only of files older than that."""
        folder = git_folder_at(Path(self.index.top))
        if folder is None:
            return set()
        folder = follow_links(folder)
        common = follow_links(folder / first_line(folder / "commondir"))
        index = self.git.get(str(common))
        inside = iter(index.folders) if index is not None else iter(())
        below = [path for path in inside if f"{path}/".startswith(f"{common}/refs/")]
        return self.references.read(folder, common, below, since, self.until)


def main() -> None:
    """Answer requests until the input ends."""
    for kind, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))
    workspaces: dict[str, Workspace] = {}
    source = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - for as long as it lives
    rest = b""
    while True:
        while b"\n" not in rest:
            if not select.select([source], [], [], IDLE)[0]:
                if any(workspace.files.pending for workspace in workspaces.values()):
                    continue
                return
            piece = source.read(64 * 1024)
            if not piece:
                return
            rest += piece
        line, _, rest = rest.partition(b"\n")
        sys.stdout.buffer.write(json.dumps(respond(json.loads(line), workspaces)).encode() + b"\nend\n")
        sys.stdout.buffer.flush()


def respond(request: dict[str, Any], workspaces: dict[str, Workspace]) -> dict[str, Any]:
    """Answer one request about one of the `workspaces` that are known."""
    top = request["workspace"]
    workspace = workspaces.pop(top, None) or Workspace(top, request["roots"])
    workspaces[top] = workspace
    while len(workspaces) > MOST_WORKSPACES:  # those with changes that are not settled go last
        *others, _ = workspaces
        workspaces.pop(next((other for other in others if not workspaces[other].files.pending), others[0]))
    workspace.roots = tuple(map(Path, request["roots"])) or workspace.roots
    began = time.monotonic()
    answer: dict[str, Any] = {"unfinished": "", "said": [], "changed": []}
    try:
        _ACTS[request["act"]](workspace, request, answer)
    except UnfinishedError as error:
        answer["unfinished"] = str(error)
    except MemoryError:
        workspaces.clear()
        answer["unfinished"] = "it needed too much memory"
    except (OSError, ValueError, RuntimeError):
        answer["unfinished"] = "it met a name that it cannot judge"
    for name in answer.keys() & {"said", "places", "unkept", "stuck"}:
        answer[name] = limit_texts(answer[name], MOST_ANSWER // 16)
    answer["seconds"] = time.monotonic() - began
    answer["knows"] = top in workspaces
    answer["folders"] = len(workspace.index.folders)
    return answer


def _accept(workspace: Workspace, request: dict[str, Any], answer: dict[str, Any]) -> None:
    workspace.stuck |= request["stuck"]
    workspace.made_tips |= set(request["made"])
    workspace.look(request["since"], time.monotonic() + request["limit"])
    workspace.accept(request["since"])
    workspace.files.is_known = True
    answer["places"], answer["unkept"] = workspace.places(), workspace.files.unkept()


def _judge(workspace: Workspace, request: dict[str, Any], answer: dict[str, Any]) -> None:
    unfinished: UnfinishedError | None = None
    try:
        workspace.look(request["since"], time.monotonic() + request["limit"])
    except MissingError:
        raise
    except UnfinishedError as error:
        unfinished = error  # what was read is judged nevertheless
    workspace.files.awaited.update(request["awaited"])
    workspace.stuck |= request["stuck"]
    workspace.made_tips |= set(request["made"])
    walled = {path for path, mark in request["walled"] if mark == wall_mark(path)}
    answer["said"], answer["changed"] = workspace.judge(
        request["since"], walled, last=request["last"], is_over=request["over"]
    )
    answer["waiting"] = workspace.waiting
    answer["stuck"], answer["made"] = workspace.stuck, sorted(workspace.made_tips)[:MOST_TIPS]
    if unfinished is not None or workspace.unjudged:
        raise unfinished or UnfinishedError(workspace.unjudged)
    if request["last"]:
        workspace.settle()
        workspace.accept(time.time_ns() * 2)
        workspace.files.is_known = True
    answer["places"], answer["unkept"] = workspace.places(), workspace.files.unkept()


def _tips(workspace: Workspace, request: dict[str, Any], answer: dict[str, Any]) -> None:
    answer["tips"] = [] if workspace.references.is_cut else sorted(workspace.tips)


def _keep(workspace: Workspace, request: dict[str, Any], answer: dict[str, Any]) -> None:
    answer["said"] = workspace.files.keep(request["marks"])


def _take_back(workspace: Workspace, request: dict[str, Any], answer: dict[str, Any]) -> None:
    answer["said"] = workspace.files.take_back(request["marks"], request["aside"])


_ACTS: Final[dict[str, Callable[[Workspace, dict[str, Any], dict[str, Any]], None]]] = {
    "accept": _accept,
    "judge": _judge,
    "tips": _tips,
    "keep": _keep,
    "take-back": _take_back,
}


if __name__ == "__main__":
    main()
