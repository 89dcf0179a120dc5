"""Proof that a file belongs to the history of known commits: every object in between has the name of its content.

Git compares names with contents only as it stores or fetches objects, so that a command could give an old name to
other content. Nothing is believed here that was not hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tools.git.reading import GitReader

MOST_COMMITS: Final = 20_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of commits or trees that are read."""
_MODE_OF_FOLDERS: Final = b"40000"


class History:
    """Commits that are reachable from known ones."""

    def __init__(self, reader: GitReader) -> None:
        self._reader = reader
        self.trees: dict[str, str] = {}
        """The tree of each commit."""
        self._known: dict[str, bytes] = {}

    async def read(self, commits: Sequence[str]) -> None:
        """Read the commits behind `commits`; beyond `MOST_COMMITS` they count as unknown."""
        given = as_lines(commits)  # as arguments they may be too long
        listed = await self._reader.ask(
            "rev-list", f"--max-count={MOST_COMMITS}", "--ignore-missing", "--stdin", most=MOST_BYTES, stdin=given
        )
        names = listed.captured.head.decode("ascii").split() if listed is not None else []
        objects = await self._read(names, b"commit")
        waiting = list(commits)
        while waiting:
            name = waiting.pop()
            if name in objects and name not in self.trees:
                heads = [line.split(b" ") for line in objects[name].partition(b"\n\n")[0].split(b"\n")]
                self.trees[name] = heads[0][1].decode("ascii")
                waiting += [head[1].decode("ascii") for head in heads[1:] if head[0] == b"parent"]

    async def contents(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Names of the contents of pairs of a commit and a path; those that cannot be proved are missing."""
        at = {(commit, path): self.trees[commit] for commit, path in wanted if commit in self.trees}
        found: dict[tuple[str, str], str] = {}
        depth = 0
        while at:
            self._known |= await self._read(sorted(set(at.values()) - self._known.keys()), b"tree")
            following: dict[tuple[str, str], str] = {}
            for pair, tree in at.items():
                parts = pair[1].encode("utf-8", "surrogateescape").split(b"/")
                mode, name = _entries(self._known.get(tree, b""), len(tree) // 2).get(parts[depth], (b"", ""))
                if depth == len(parts) - 1 and name:
                    found[pair] = name
                elif mode == _MODE_OF_FOLDERS:
                    following[pair] = name
            at, depth = following, depth + 1
        return found

    async def _read(self, names: Sequence[str], kind: bytes) -> dict[str, bytes]:
        """Objects whose content has their name."""
        if not names:
            return {}
        answer = await self._reader.ask("cat-file", "--batch", most=MOST_BYTES, stdin=as_lines(names))
        return _checked(answer.captured.head, kind) if answer is not None else {}


def as_lines(names: Sequence[str]) -> bytes:
    """Names of objects as git reads them."""
    return "".join(f"{name}\n" for name in names).encode("ascii")


def _checked(output: bytes, kind: bytes) -> dict[str, bytes]:
    """Objects of `git cat-file --batch` that are of this kind and have the name of their content."""
    found: dict[str, bytes] = {}
    place = 0
    while (end := output.find(b"\n", place)) >= 0:
        words = output[place:end].split(b" ")
        place = end + 1
        if len(words) != 3 or not words[2].isdigit():
            continue
        content = output[place : place + int(words[2])]
        place += int(words[2]) + 1
        name, hashed = words[0].decode("ascii", "replace"), hashlib.sha256 if len(words[0]) == 64 else hashlib.sha1
        if words[1] == kind and hashed(b"%s %d\0" % (kind, len(content)) + content).hexdigest() == name:
            found[name] = content
    return found


def _entries(tree: bytes, size: int) -> Mapping[bytes, tuple[bytes, str]]:
    """Mode and name of each object in a tree, by its path; `size` is that of a hash in bytes."""
    found: dict[bytes, tuple[bytes, str]] = {}
    place = 0
    while (end := tree.find(b"\0", place)) >= 0:
        mode, _, path = tree[place:end].partition(b" ")
        place = end + 1 + size
        found[path] = mode, tree[end + 1 : place].hex()
    return found
