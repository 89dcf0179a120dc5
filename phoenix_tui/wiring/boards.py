"""Settings, and the trust in a folder's extension files, as the screens and the doctor need them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine.executor.requests import EngineError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.load import from_text, remove_value, set_value
from phoenix_tui.config.settings import KEYS, ConfigError, SettingValue, in_words
from phoenix_tui.config.sources.project_sources import ProjectSources, TrustedSources
from phoenix_tui.config.sources.report import SourceEntry, SourceReport, SourceState, report_of, text_of
from phoenix_tui.config.trust import Project, Trust, TrustFile, find_project
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.text.trust_text import counts, join_words, short_name, warn_untrusted
from tools.clean import reveal_name
from tools.wording import pluralize

if TYPE_CHECKING:
    from phoenix_tui.features.service_interfaces import Setting


class DefaultModel(Struct, frozen=True):
    """The model of new conversations, in the user's settings."""

    config_file: Path

    def set(self, reference: str) -> None:
        """Make this model the default. Raises ConfigError, OSError."""
        set_value(self.config_file, "model", reference)


class SettingsBoard(Struct, frozen=True):
    """The settings in force, read from their files each time, and kept in the user's."""

    setup: Setup

    def all(self) -> Sequence[Setting]:
        """Every setting. Raises EngineError."""
        from phoenix_tui.features.service_interfaces import Setting  # noqa: PLC0415 - the first frame needs none of it

        try:
            settings = self.setup.settings_now()
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error
        return [
            Setting(
                name,
                as_text(settings.values[name]),
                settings.sources[name],
                key.allowed,
                key.meaning,
                ("true", "false") if key.kind is bool else key.choices,
                key.live,
                in_words(name, settings.values[name]),
            )
            for name, key in KEYS.items()
        ]

    def save(self, name: str, value: str) -> None:
        """Keep one key in the user's file. Raises EngineError."""
        key = KEYS.get(name)
        try:
            set_value(self.setup.paths.config_file, name, value if key is None else from_text(key, value))
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error

    def reset(self, name: str) -> None:
        """Take one key out of the user's file. Raises EngineError."""
        try:
            remove_value(self.setup.paths.config_file, name)
        except (ConfigError, OSError) as error:
            raise EngineError(str(error)) from error


def as_text(value: SettingValue) -> str:
    """A value as it would be typed; nothing for no limit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


MOST_FAULTS: Final = 20
"""Files that the doctor names."""
MOST_NOTICES: Final = 3
"""Sentences about settings files at the start."""
MOST_KEPT: Final = 20
"""Reports in memory; there is one per folder in view."""


def project_sources(setup: Setup, *, may_give: bool = True) -> ProjectSources:
    """The sources of this start: those of the question before the screen, where it was asked.

    `may_give`: `--trust` counts.
    """
    if setup.sources is not None:
        return setup.sources
    files, trust = setup.files, TrustFile(setup.paths.trust_file)
    trusts = setup.gives_trust and may_give if files is None else files.trusts
    return ProjectSources(
        setup.users_folder,
        Path.home() if files is None or files.users else setup.users_folder,
        trust,
        claude_hooks=setup.settings.flag("claude_hooks"),
        trusts=setup.cwd if trusts else None,
        keeps_answers=not setup.ephemeral and files is None,
        plugins=setup.plugins,
        counts=None if files is None else files.counts,
    )


class TrustBoard(Struct, eq=False):
    """Looks in a thread, and keeps the report while nothing has changed."""

    sources: ProjectSources
    _kept: dict[Path, tuple[TrustedSources, SourceReport]] = field(
        default_factory=dict[Path, tuple[TrustedSources, SourceReport]]
    )

    async def look(self, folder: Path) -> SourceReport:
        """Look at a folder as it is now, in a thread; the same report while nothing has changed."""
        return await asyncio.to_thread(self._look, folder)

    async def text(self, report: SourceReport, entry: SourceEntry) -> str:
        """Text of one file, or its difference from what was accepted."""
        return await asyncio.to_thread(text_of, self.sources, report, entry)

    async def answer(self, report: SourceReport, *, trusted: bool) -> SourceReport:
        """Keep the user's answer about exactly the files of this report, and look again."""
        return await asyncio.to_thread(self._answer, report, trusted)

    async def same_as(self, source: Path, folder: Path) -> Project | None:
        """Instructions and settings of `folder` that are byte for byte those of the trusted folder `source`, or None;
        None too where `folder` has an answer of its own.
        """
        return await asyncio.to_thread(_same_as, self.sources.trust, source, folder)

    async def accept(self, project: Project) -> None:
        """Trust exactly these instructions and settings, in their folder."""
        try:
            await asyncio.to_thread(self.sources.trust.answer, project, trusted=True)
        except OSError as error:
            raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error

    def _answer(self, report: SourceReport, trusted: bool) -> SourceReport:
        try:
            self.sources.answer(report.folder, trusted=trusted, shown=report.shown)
        except OSError as error:
            raise EngineError(f"The answer cannot be kept: {error.strerror or error}.") from error
        return self._look(report.folder)

    def _look(self, folder: Path) -> SourceReport:
        try:
            real = folder.resolve()
            found = self.sources.look(real)
        except OSError as error:
            raise EngineError(f"{reveal_name(folder)} cannot be looked at: {error.strerror or error}.") from error
        kept = self._kept.get(real)
        if kept is None or kept[0] is not found:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[real] = kept = (found, report_of(found, real))
        return kept[1]


def _same_as(trust: TrustFile, source: Path, folder: Path) -> Project | None:
    try:
        ours, theirs = find_project(source), find_project(folder)
    except OSError:
        return None
    known = trust.status(ours).trust is Trust.GIVEN and trust.status(theirs).trust is Trust.UNKNOWN
    return theirs if known and _digests(ours) == _digests(theirs) else None


def _digests(project: Project) -> dict[str, str]:
    """Digests of the files of a project, by their paths from its folder."""
    return {os.path.relpath(file.path, project.folder): file.digest for file in project.files}


def settings_notices(sources: ProjectSources, cwd: Path) -> list[str]:
    """Sentences about what has no effect in the settings files of another program in a folder; reads the disk."""
    from phoenix_tui.config.claude_settings import settings_faults  # noqa: PLC0415 - behind the first frame
    from phoenix_tui.config.sources.catalogues import settings_files, shorten_faults  # noqa: PLC0415 - as above

    try:
        paths = settings_files(sources.look(cwd))
    except OSError:
        return []
    return shorten_faults(settings_faults(paths), MOST_NOTICES, "`phoenix doctor`")


def source_findings(sources: ProjectSources, cwd: Path) -> Iterator[Finding]:
    """Findings about the files that extend Phoenix in a folder, and whether they are used."""
    from phoenix_tui.config.claude_settings import FOLDER, NAMES, settings_rules  # noqa: PLC0415 - for the doctor alone
    from phoenix_tui.config.sources.catalogues import file_faults, shorten_faults  # noqa: PLC0415 - as above

    try:
        found = sources.look(cwd)
        report, faults = report_of(found, cwd.resolve()), file_faults(found, cwd)
    except OSError as error:
        yield Finding("extensions", Health.NOTE, f"The folder cannot be looked at: {error.strerror or error}.")
        return
    used = [entry for entry in report.entries if entry.state is SourceState.USED]
    if used:
        yield Finding("extensions", Health.OK, f"{join_words(counts(used))}, trusted")
    if report.refused:
        yield Finding("extensions", Health.OK, f"{join_words(counts(report.waiting()))}, left out by your answer")
    elif words := warn_untrusted(report):
        yield Finding("extensions", Health.NOTE, words)
    files = [file.path for file in (*found.files, *found.waiting) if file.path.name in NAMES and file.plugin is None]
    users = sources.home / FOLDER / NAMES[0]
    for words in settings_rules([*files, users], {file.path for file in found.files}):
        yield Finding("rules", Health.OK, words)
    out = [entry for entry in report.entries if entry.state is SourceState.LEFT_OUT]
    for entry in out[:3]:
        yield Finding("extensions", Health.NOTE, f"{short_name(entry.name)} is not used: {entry.why}.")
    if len(out) > 3:
        yield Finding("extensions", Health.NOTE, f"{pluralize(len(out) - 3, 'more file')} not used.")
    for fault in shorten_faults(faults, MOST_FAULTS, "the sheet of each kind"):
        yield Finding("extensions", Health.NOTE, fault)
    if not report.entries:
        yield Finding("extensions", Health.OK, "none in this folder")
