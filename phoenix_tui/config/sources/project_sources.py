"""The files that extend Phoenix in a folder, as they are now, and the user's answer about them.

`look` reads the disk and belongs in a thread; `current` answers from memory. What wants the content of a file gets it
through `read_source`, which returns the very bytes whose digest was accepted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from phoenix_tui.config.live_files import FileStamp, stamp
from phoenix_tui.config.project import places_of
from phoenix_tui.config.sources.digests import Digests, digest_of
from phoenix_tui.config.sources.finding import find_sources, find_users_sources, with_programs
from phoenix_tui.config.sources.kinds import SourceFile, Sources
from phoenix_tui.config.sources.programs import named_programs
from phoenix_tui.config.sources.source_trust import TrustedSources, sort_sources
from phoenix_tui.config.trust import TEXT_LIMIT, SourcesAnswer, TrustFile
from tools.clean import reveal_name
from tools.files.content import is_binary
from tools.files.own_files import read_regular

MOST_TEXT: Final = 4 * 1024 * 1024
"""Bytes of texts that are kept for one folder, to show a change."""
NOTHING: Final = TrustedSources()


class ProjectSources(Struct, eq=False):
    """Sources of every folder that is worked in; may be asked from several threads."""

    config: Path
    """The user's config folder."""
    home: Path
    trust: TrustFile
    claude_hooks: bool = False
    """True where the hooks of the user's settings for another program count."""
    _digests: Digests = field(default_factory=Digests)
    _looks: dict[Path, TrustedSources] = field(default_factory=dict[Path, TrustedSources])
    _answers: dict[Path, tuple[FileStamp, SourcesAnswer | None]] = field(
        default_factory=dict[Path, tuple[FileStamp, SourcesAnswer | None]]
    )

    def current(self, folder: Path) -> TrustedSources:
        """Result of the last look at a folder; nothing before the first."""
        return self._looks.get(folder.resolve(), NOTHING)

    def look(self, folder: Path) -> TrustedSources:
        """Find the files of a folder as they are now, about 5 ms for 200 files that are known."""
        real = folder.resolve()
        users = find_users_sources(self.config, self.home, self._digests, claude_hooks=self.claude_hooks)
        answer = self._answer(real)
        accepted = answer.digests if answer is not None else {}
        trusted = answer is not None and answer.trusted
        self._looks[real] = found = sort_sources(self.project(real), users, accepted, trusted=trusted)
        return found

    def project(self, folder: Path) -> Sources:
        """Files of the project alone, trusted or not, and the programs that its hooks and servers name."""
        real = folder.resolve()
        root = places_of(real)[0]
        found = find_sources(real, self._digests)
        return with_programs(found, named_programs(found.files, real, root), root, self._digests)

    def answer(self, folder: Path, *, trusted: bool) -> TrustedSources:
        """Keep the user's answer about the files of a folder as they are now.

        Raises:
            OSError: it cannot be written.
        """
        real = folder.resolve()
        files = self.project(real).files
        digests = {str(file.path): file.digest for file in files}
        texts = _texts(files) if trusted else {}
        self.trust.answer_sources(real, SourcesAnswer(trusted, digests, texts))
        self._answers.pop(real, None)
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
            lines += difflib.unified_diff(old, new, f"{shown} (accepted)", f"{shown} (now)", lineterm="")
        return "\n".join(lines)

    def _answer(self, real: Path) -> SourcesAnswer | None:
        now, kept = stamp(self.trust.path), self._answers.get(real)
        if kept is None or kept[0] != now:
            self._answers[real] = kept = (now, self.trust.sources_answer(real))
        return kept[1]


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
