"""Looks at workspaces around sandboxed commands, through a helper process (SECURITY S1, S2, S11).

`begin` and `end` surround a command; between the end of a command and its output nothing waits for a look of a large
folder. A look that cannot be finished is reported, and from then on programs outside the sandbox ask (`trouble`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import msgspec
from msgspec import Struct, field

from tools.clean import reveal_name
from tools.contract import SelfStarting
from tools.process.folder_index import wall_mark
from tools.process.helper import Helper, HelperFailed

LIMIT: Final = 20.0
"""Seconds for one look; a million folders take 10."""
SLACK_NS: Final = 20_000_000
"""Nanoseconds by which the file system's clock may be behind: its ticks take up to 10 ms."""
RECENT: Final = 2.0
"""Seconds after a look in which the next command begins without one: the user has hardly changed anything since."""
AT_ONCE: Final = 200
"""Files that one request restores: each takes a few milliseconds, and all must not exceed the limit."""
MOST_HELD: Final = 64
"""Folders that one command keeps open; what changes in others is judged."""
BOOT: Final = "import sys; sys.path.append(sys.argv[1]); from tools.process.workspace_look import main; main()"
ROOT: Final = str(Path(__file__).resolve().parents[2])
PLANTED: Final = "a command that still runs in {folder} left what git outside would run, and may do so again: {what}"
STUCK: Final = "a command in {folder} left what cannot be set aside: {what}; remove it yourself"
AT_WORK: Final = "git would run what {what} of {folder} names, which came while a command runs there"
TROUBLE: Final = "the look at what sandboxed commands left in {folder} could not be finished: {why}"


_helper: Final = Helper((sys.executable, "-I", "-c", BOOT, ROOT), timeout=LIMIT + 5, stays=True)
"""The one of this process: what it knows of a workspace holds for all."""


_watches: Final[WeakSet[WorkspaceWatch]] = WeakSet()


class Left(Struct, frozen=True):
    """Leftovers of commands."""

    said: tuple[str, ...] = ()
    """Sentences about what was set aside, or could not be looked at."""
    changed: tuple[SelfStarting, ...] = ()


class Watched(Struct, eq=False):
    """One command that runs in a workspace, or has just ended."""

    workspace: Path
    roots: tuple[Path, ...]
    since: int
    walled: frozenset[tuple[str, str]] = frozenset()
    """Paths that it cannot change, each with its mark: where a program outside puts another entry in its place, the
    kernel takes the wall away.
    """
    awaited: frozenset[str] = frozenset()
    """Missing paths that links of the home folder lead to: what comes there starts by itself."""
    said: list[str] = field(default_factory=list[str])
    changed: dict[str, SelfStarting] = field(default_factory=dict[str, SelfStarting])
    planted: str = ""
    """Sentence about what was set aside while it ran; a command that does it once may do so between two looks."""
    held: ExitStack = field(default_factory=ExitStack)
    """Walled folders, open."""

    def wall(self, paths: Sequence[str]) -> None:
        """Note the paths that the command cannot change."""
        folders = [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]
        for path in folders[:MOST_HELD]:
            with suppress(OSError):
                self.held.callback(os.close, os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC))
        left_out = {*folders[MOST_HELD:]}
        self.walled = frozenset((path, wall_mark(path)) for path in paths if path not in left_out)


class _State(Struct, eq=False):
    """One workspace."""

    running: list[Watched] = field(default_factory=list[Watched])
    roots: tuple[Path, ...] = ()
    """Folders that the newest command can write."""
    places: tuple[Path, ...] = ()
    unkept: tuple[Path, ...] = ()
    looked: float = 0.0
    """Monotonic time of the last look that was finished; 0 before the first."""
    trouble: str = ""
    """Reason why the last look is not finished, as a clause."""
    stuck: dict[str, str] = field(default_factory=dict[str, str])
    """Traps that could not be set aside, with a clause about each; kept here, since the helper may end."""
    waiting: str = ""
    """A trap that git at work may need, and that stays until the last command ends."""
    made: list[str] = field(default_factory=list[str])
    """Commits that commands made; kept here, since the helper may end."""
    seconds: float = 0.0
    """Duration of the last look."""
    unlooked: int = 0
    """Time since which commands ran whose leftovers no finished look has judged; 0 for none."""
    walled: frozenset[tuple[str, str]] = frozenset()
    """Paths that none of those commands could change."""
    late: list[Watched] = field(default_factory=list[Watched])
    """Leftovers that were found after their command had ended."""
    helper: int = 0
    """Process that made it; another one knows nothing of what was there before. 0 where it failed."""


class WorkspaceWatch:
    """All workspaces of this Phoenix. Called from threads."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self.helper = _helper
        self._lock = threading.Lock()
        self._states: dict[Path, _State] = {}
        _watches.add(self)

    def begin(self, workspace: Path, roots: tuple[Path, ...]) -> Watched:
        """Note that a command is about to run; the first time in a workspace this waits for a look at all of it."""
        watched = Watched(workspace, roots, _now(workspace) - SLACK_NS)
        with self._lock:
            state = self._states.setdefault(workspace, _State())
            state.running.append(watched)
            state.roots = roots
        if not state.helper or state.helper != self.helper.pid:
            self._accept(state, watched, is_first=len(state.running) == 1)
            watched.since = _now(workspace) - SLACK_NS
        elif time.monotonic() - state.looked > max(RECENT, 10 * state.seconds):
            threading.Thread(target=self._accept, args=(state, watched), daemon=True).start()
        return watched

    def places(self, workspace: Path) -> tuple[Path, ...]:
        """Folders below a workspace at which git finds a repository of its own, as they were looked at last."""
        state = self._states.get(workspace)
        return state.places if state is not None else ()

    def unkept(self, workspace: Path) -> tuple[Path, ...]:
        """Self-starting files of a workspace that are too large to be restored, as they were looked at last."""
        state = self._states.get(workspace)
        return state.unkept if state is not None else ()

    def look(self, watched: Watched) -> float:
        """Set aside what has come while the command runs; its end reports that. Returns the seconds it took."""
        self._judge(watched)
        return self._states[watched.workspace].seconds

    def end(self, watched: Watched) -> Left:
        """Note that a command is over: set traps aside, and find the self-starting files that changed."""
        with self._lock:
            state = self._states[watched.workspace]
            if watched not in state.running:
                return Left()
        self._judge(watched, is_over=True, last=len(state.running) == 1)
        with self._lock:
            state.running.remove(watched)
            watched.held.close()
            for late in state.late:
                watched.said += late.said
                watched.changed = late.changed | watched.changed
            state.late = []
            for other in state.running:  # the first that ends answers for a change that any may have made
                other.changed = {path: one for path, one in other.changed.items() if path not in watched.changed}
        return Left(tuple(dict.fromkeys(watched.said)), tuple(watched.changed.values()))

    def put_off(self, workspace: Path, changed: Sequence[SelfStarting]) -> None:
        """Have the end of the next command report the changes of a program that has no one to ask."""
        late = Watched(workspace, (), 0, changed={one.path: one for one in changed})
        with self._lock:
            self._states[workspace].late.append(late)

    def drop(self, watched: Watched) -> None:
        """Forget a command that never ran."""
        with self._lock:
            state = self._states.get(watched.workspace)
            if state is not None and watched in state.running:
                state.running.remove(watched)
        watched.held.close()

    def trouble(self, folder: Path) -> str:
        """Reason why a program outside the sandbox should not start in `folder` now, as a clause; empty for none.

        Looks at the workspaces around and below it first, where sandboxed commands run.
        """
        folder = folder.resolve()
        found = [
            (path, state)
            for path, state in list(self._states.items())
            if path.is_relative_to(folder) or folder.is_relative_to(path)
        ]
        for path, state in found:
            with self._lock:
                running = list(state.running)
            if running:
                self._judge(running[0])
            elif state.trouble or state.stuck:
                self._retry(path, state)
        return next(filter(None, (self._reason(path, state) for path, state in found)), "")

    def _reason(self, workspace: Path, state: _State) -> str:
        """Reason against a program outside in a workspace, by what the last look found; a clause, empty for none."""
        with self._lock:
            planted = next((one.planted for one in state.running if one.planted), "")
        folder = reveal_name(workspace)
        if state.stuck:
            return STUCK.format(folder=folder, what=next(iter(state.stuck.values())))
        if state.waiting:
            return AT_WORK.format(folder=folder, what=state.waiting)
        return state.trouble or (PLANTED.format(folder=folder, what=planted) if planted else "")

    def tips(self, workspace: Path) -> tuple[str, ...]:
        """Commits that the user's own references named, before commands of this Phoenix ran; none where there are too
        many references.
        """
        return tuple(self._ask("tips", workspace.resolve(), ()).get("tips", ()))

    def keep(self, workspace: Path, changes: Sequence[SelfStarting]) -> tuple[str, ...]:
        """Take changes of self-starting files for the user's own.

        Returns a clause for each file that another command has changed since.
        """
        return tuple(self._ask("keep", workspace.resolve(), (), marks=_marks_of(changes))["said"])

    def take_back(self, workspace: Path, changes: Sequence[SelfStarting], aside: Path) -> tuple[str, ...]:
        """Restore self-starting files; the present contents go below `aside`.

        Returns a sentence for each file that could not be restored.
        """
        said: list[str] = []
        for start in range(0, len(changes), AT_ONCE):
            marks = _marks_of(changes[start : start + AT_ONCE])
            answer = self._ask("take-back", workspace.resolve(), (), marks=marks, aside=str(aside))
            said += answer["said"] or filter(None, (answer["unfinished"],))
        return tuple(said)

    def _accept(self, state: _State, watched: Watched, *, is_first: bool = False) -> None:
        since = time.time_ns() * 2 if is_first and not state.unlooked else _since(state, watched)
        answer = self._ask("accept", watched.workspace, watched.roots, since=since, stuck=state.stuck, made=state.made)
        self._note(state, watched, answer)

    def _judge(self, watched: Watched, *, is_over: bool = False, last: bool = False) -> None:
        state = self._states[watched.workspace]
        with self._lock:
            unlooked = (state.walled,) if state.unlooked else ()
            walled = watched.walled.intersection(*(one.walled for one in state.running), *unlooked)
            awaited = watched.awaited.union(*(one.awaited for one in state.running))
        since = _since(state, watched)
        answer = self._ask(
            "judge",
            watched.workspace,
            watched.roots,
            since=since,
            walled=sorted(walled),
            awaited=sorted(awaited),
            over=is_over,
            last=last,
            stuck=state.stuck,
            made=state.made,
        )
        self._note(state, watched, answer, judged=since, walled=walled)
        if answer["said"] and not last:
            with self._lock:
                for one in state.running:
                    one.planted = one.planted or answer["said"][0]
        if state.trouble:
            watched.said.append(state.trouble)

    def _retry(self, workspace: Path, state: _State) -> None:
        """Look once more, where the last look left something open and no command runs."""
        since = state.unlooked or time.time_ns() * 2
        watched = Watched(workspace, state.roots, since)
        open_still = {"since": since, "walled": [], "awaited": [], "stuck": state.stuck, "made": state.made}
        answer = self._ask("judge", workspace, state.roots, over=True, last=True, **open_still)
        self._note(state, watched, answer, judged=since, walled=state.walled if state.unlooked else frozenset())
        with self._lock:
            state.late += [watched] if watched.said or watched.changed else []

    def _note(
        self,
        state: _State,
        watched: Watched,
        answer: dict[str, Any],
        *,
        judged: int = 0,
        walled: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        watched.said += answer["said"]
        changed = {one.path: one for one in msgspec.convert(answer["changed"], list[SelfStarting])}
        with self._lock:
            for one in {watched, *state.running}:  # any of them may have made the change
                one.changed.update(changed)
        with self._lock:
            state.looked, state.seconds = time.monotonic(), answer.get("seconds", 0.0)
            state.helper = self.helper.pid if answer.get("knows") else 0
            state.waiting = answer.get("waiting", state.waiting)
            state.stuck, state.made = answer.get("stuck", state.stuck), answer.get("made", state.made)
            if answer["unfinished"]:
                state.unlooked = min(filter(None, (state.unlooked, judged)), default=0)
                state.walled = walled if judged else state.walled
                state.trouble = TROUBLE.format(folder=reveal_name(watched.workspace), why=answer["unfinished"])
                return
            state.unlooked = 0 if judged else state.unlooked
            state.trouble = state.trouble if state.unlooked else ""
            state.places = tuple(map(Path, answer.get("places", ())))
            state.unkept = tuple(map(Path, answer.get("unkept", ())))

    def _ask(self, act: str, workspace: Path, roots: tuple[Path, ...], **fields: object) -> dict[str, Any]:
        request = {"act": act, "workspace": str(workspace), "roots": list(map(str, roots)), "limit": self._limit}
        try:
            lines = self.helper.ask(json.dumps({**request, **fields}).encode() + b"\n", b"end")
            return msgspec.convert(json.loads(lines[0]), dict[str, Any])  # names may be no UTF-8
        except (HelperFailed, IndexError, ValueError) as error:
            return {"unfinished": f"its helper process failed ({error})", "said": [], "changed": []}


def trouble_at(*folders: Path) -> str:
    """Reason why git outside the sandbox should not be used in `folders` now, as a clause; empty for none.

    For programs of the user that no `WorkspaceWatch` starts. Blocks while it looks.
    """
    asked = (watch.trouble(folder) for watch in list(_watches) for folder in dict.fromkeys(folders))
    return next(filter(None, asked), "")


def _marks_of(changes: Sequence[SelfStarting]) -> dict[str, str]:
    return {change.path: change.mark for change in changes}


def _now(workspace: Path) -> int:
    """The time by the clock of this machine or of the workspace's file system, whichever is behind; leaves no trace."""
    now = time.time_ns()
    with suppress(OSError):
        folder = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return min(now, _change_time(folder))
        finally:
            os.close(folder)
    return now


def _change_time(folder: int) -> int:
    """The change time that its file system gives to a file without a name, or else to the folder itself."""
    with suppress(AttributeError, OSError):  # network file systems have no such files
        unnamed = os.open(f"/proc/self/fd/{folder}", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            return os.fstat(unnamed).st_ctime_ns
        finally:
            os.close(unnamed)
    status = os.fstat(folder)
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))
    return os.fstat(folder).st_ctime_ns


def _since(state: _State, watched: Watched) -> int:
    since = min(one.since for one in (*state.running, watched))
    return min(since, state.unlooked or since)
