"""Walks of a folder: patterns for paths, and files that git ignores."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from tools.contract import ToolInputError

if TYPE_CHECKING:
    from ignore import DirEntry


LONGEST: Final = 1_000
"""Characters of a glob."""
KEPT: Final = 1_024
"""Sets of places that a machine remembers, and characters behind each."""
_TOKEN: Final = re.compile(r"\*\*/|\*\*|\[!?\]?[^\]/]*+\]|.", re.DOTALL)
Test: TypeAlias = Callable[[str], bool]


class Glob:
    """One pattern, ready to be held against texts."""

    def __init__(self, pattern: str) -> None:
        self._edges: list[list[tuple[Test, int]]] = [[]]
        self._free: list[list[int]] = [[]]
        """Places reachable from each place without reading a character."""
        self._last = self._build(pattern)
        self._start = self._close((0,))
        self._sets: list[frozenset[int]] = []
        """Places that a text may have reached, by a number."""
        self._steps: list[dict[str, int]] = []
        """Transitions of each number by character."""
        self._numbers: dict[frozenset[int], int] = {}

    def matches(self, text: str) -> bool:
        """True when the pattern matches the whole text; linear in its length."""
        steps, at = self._steps, self._number(self._start)
        for character in text:
            known = steps[at].get(character)
            at = self._step(at, character) if known is None else known
        return self._last in self._sets[at]

    def _step(self, at: int, character: str) -> int:
        reached = (after for place in self._sets[at] for test, after in self._edges[place] if test(character))
        places = self._close(reached)
        if len(self._sets) >= KEPT or len(self._steps[at]) >= KEPT:
            self._sets.clear()
            self._steps.clear()
            self._numbers.clear()
            return self._number(places)
        after = self._steps[at][character] = self._number(places)
        return after

    def _number(self, places: frozenset[int]) -> int:
        number = self._numbers.get(places)
        if number is None:
            number = self._numbers[places] = len(self._sets)
            self._sets.append(places)
            self._steps.append({})
        return number

    def _close(self, places: Iterable[int]) -> frozenset[int]:
        found: set[int] = set()
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting += self._free[place]
        return frozenset(found)

    def _build(self, pattern: str) -> int:
        """Make the machine; returns its last place."""
        at = 0
        groups: list[tuple[int, list[int]]] = []
        for token in _TOKEN.findall(pattern):
            match token:
                case "*" | "**":
                    self._edges[at].append((_within if token == "*" else _anything, at))
                    at = self._free_to(at)
                case "**/":
                    before, loop = at, self._free_to(at)
                    self._edges[loop].append((_anything, loop))
                    at = self._after(loop, _one("/"))
                    self._free[before].append(at)
                case "{":
                    groups.append((at, []))
                    at = self._free_to(at)
                case "," if groups:
                    groups[-1][1].append(at)
                    at = self._free_to(groups[-1][0])
                case "}":
                    if not groups:
                        raise ValueError("a brace that was never opened")
                    _, ends = groups.pop()
                    end = self._free_to(at)
                    for one in ends:
                        self._free[one].append(end)
                    at = end
                case _:
                    at = self._after(at, _test(token))
        if groups:
            raise ValueError("a brace that is never closed")
        return at

    def _place(self) -> int:
        self._edges.append([])
        self._free.append([])
        return len(self._edges) - 1

    def _free_to(self, place: int) -> int:
        after = self._place()
        self._free[place].append(after)
        return after

    def _after(self, place: int, test: Test) -> int:
        after = self._place()
        self._edges[place].append((test, after))
        return after


def _anything(_: str) -> bool:
    return True


def _within(character: str) -> bool:
    return character != "/"


def _one(wanted: str) -> Test:
    return lambda character: character == wanted


def _test(token: str) -> Test:
    """Build the test that a token applies to one character."""
    if token == "?":
        return _within
    if len(token) == 1:
        return _one(token)
    body = token[1:-1]
    negated = body.startswith("!")
    singles, ranges = _set(body[1:] if negated else body)

    def test(character: str) -> bool:
        inside = character in singles or any(first <= character <= last for first, last in ranges)
        return inside is not negated and (not negated or character != "/")

    return test


def _set(body: str) -> tuple[frozenset[str], list[tuple[str, str]]]:
    """The single characters of a set, and its ranges."""
    if not body:
        raise ValueError("an empty set")
    singles: set[str] = set()
    ranges: list[tuple[str, str]] = []
    place = 0
    while place < len(body):
        if body[place + 1 : place + 2] == "-" and place + 2 < len(body):
            if body[place] > body[place + 2]:
                raise ValueError("a range that ends before it begins")
            ranges.append((body[place], body[place + 2]))
            place += 3
        else:
            singles.add(body[place])
            place += 1
    return frozenset(singles), ranges


@lru_cache(maxsize=64)
def compile_glob(glob: str) -> Glob:
    """The machine of a glob.

    Raises:
        ToolInputError: it is malformed or too long.
    """
    if len(glob) > LONGEST:
        raise ToolInputError(f"The glob has {len(glob):,} characters; at most {LONGEST:,} are taken.")
    try:
        return Glob(glob)
    except ValueError as error:
        raise ToolInputError(f"The glob {glob} is malformed; use *, ?, **, [ab] and {{a,b}}.") from error


ERRORS = 1_000
"""Complaints of the library about one folder, in addition to one for each name, after which it is not called again."""
RULES = frozenset({b".gitignore", b".ignore"})
_REPOSITORY = b".git"
_EXCLUDE = b"/.git/info/exclude"


def list_allowed(folder: bytes, there: int) -> frozenset[bytes] | None:
    """The names in `folder` that no ignore file excludes, its parents' and the user's own included.

    None where that is every one of the names that are `there`: they are counted first, since turning each into a path
    takes ten times as long. A folder that is not named in UTF-8 cannot be asked about: nothing is excluded there.
    """
    from ignore import Error, WalkBuilder  # noqa: PLC0415 - native, on first use (docs/decisions/libraries.md)
    from ignore import IOError as WalkError  # noqa: PLC0415 - as above

    if not there or not is_unicode(folder):
        return None
    builder = WalkBuilder(Path(os.fsdecode(folder))).hidden(False).require_git(False).follow_links(False).max_depth(1)
    found: list[DirEntry] = []
    entries = builder.build()
    for _ in range(2 * there + ERRORS):  # each entry, and errors of reading it
        try:
            found.append(next(entries))
        except StopIteration:
            break
        except (Error, WalkError):
            continue
    if len(found) == there + 1:  # the folder itself is among them
        return None
    return frozenset(os.fsencode(entry.path()).rpartition(b"/")[2] for entry in found)


def blocks_rules(folder: bytes, names: Container[bytes]) -> bool:
    """True when opening a rule file of a folder with these names could block forever."""
    if any(name in names and is_pipe(folder + b"/" + name) for name in RULES):
        return True
    return _REPOSITORY in names and is_pipe(folder + _EXCLUDE)


def blocks_rules_above(folder: bytes) -> bool:
    """True when opening a rule file above a folder, which also applies to it, could block forever."""
    above = [os.fsencode(parent) for parent in Path(os.fsdecode(folder)).parents]
    places = [*(parent + b"/" + name for parent in above for name in RULES), *(parent + _EXCLUDE for parent in above)]
    return any(is_pipe(place) for place in places)


def is_pipe(path: bytes) -> bool:
    """True when opening this path could block forever."""
    try:
        mode = Path(os.fsdecode(path)).stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def is_unicode(name: bytes) -> bool:
    """True when the library accepts this name."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


MOST_WALKED = 200_000
"""Files after which a walk stops."""


class WalkedFiles(Struct, frozen=True):
    """Files found by a walk, sorted; `complete` is False when it stopped early."""

    files: tuple[str, ...]
    """Absolute paths."""
    complete: bool = True


def walk(
    folder: Path,
    *,
    glob: str = "",
    ignored: bool = False,
    hidden: bool = True,
    most: int = MOST_WALKED,
    leave_out: Container[str] = frozenset[str](),
    without: Iterable[Path] = (),
) -> WalkedFiles:
    """List the regular files under `folder`, at most `most`; `.git` is left out and no link is followed.

    `ignored` includes what ignore files exclude, `hidden` what begins with a dot; no folder in `leave_out` is entered,
    and the paths in `without` are passed over.

    Raises:
        ToolInputError: the glob is malformed.
    """
    wanted = matcher(glob)
    found: list[str] = []
    base = len(os.path.join(folder, ""))  # noqa: PTH118 - ends in exactly one slash, also for the root
    passed_over = frozenset(map(os.fspath, without))
    for path in _files(os.fspath(folder), passed_over, ignored=ignored, hidden=hidden, leave_out=leave_out):
        if wanted(path[base:]):
            found.append(path)
            if len(found) >= most:
                return WalkedFiles(tuple(sorted(found)), complete=False)
    return WalkedFiles(tuple(sorted(found)))


def _files(
    root: str, passed_over: frozenset[str], *, ignored: bool, hidden: bool, leave_out: Container[str]
) -> Iterator[str]:
    """Paths of regular files; a folder that cannot be read is passed over."""
    waiting = [(root, ignored or blocks_rules_above(os.fsencode(root)))]
    while waiting:
        folder, asks_nobody = waiting.pop()
        listing = _listing(folder)
        asks_nobody = asks_nobody or blocks_rules(os.fsencode(folder), listing)
        for entry in _filter_ignored(folder, listing, asks_nobody=asks_nobody):
            if entry.name == ".git" or (not hidden and entry.name.startswith(".")) or entry.path in passed_over:
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in leave_out:
                    waiting.append((entry.path, asks_nobody))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path


def _filter_ignored(
    folder: str, listing: Mapping[bytes, os.DirEntry[str]], *, asks_nobody: bool
) -> Iterable[os.DirEntry[str]]:
    """Entries that no ignore file excludes; all of them with `asks_nobody`."""
    left = None if asks_nobody else list_allowed(os.fsencode(folder), len(listing))
    if left is None:
        return listing.values()
    return [entry for name, entry in listing.items() if name in left or not is_unicode(name)]


def _listing(folder: str) -> dict[bytes, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {os.fsencode(entry.name): entry for entry in entries}
    except OSError:
        return {}


def matcher(glob: str) -> Callable[[str], bool]:
    """A test for relative paths: a glob without a slash looks at names, one with a slash at whole paths.

    Raises:
        ToolInputError: the glob is malformed.
    """
    if not glob:
        return _accept_path
    pattern = compile_glob(glob.removeprefix("./").removeprefix("/"))
    if "/" in glob:
        return pattern.matches
    return lambda path: pattern.matches(path.rpartition("/")[2])


def _accept_path(_path: str) -> bool:
    return True
