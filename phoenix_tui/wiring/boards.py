"""Settings, and the trust in a folder's extension files, as the screens and the doctor need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.executor.requests import EngineError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.load import from_text, remove_value, set_value
from phoenix_tui.config.settings import KEYS, ConfigError, SettingValue, in_words
from phoenix_tui.config.sources.project_sources import ProjectSources
from phoenix_tui.config.sources.report import SourceState, report_of
from phoenix_tui.config.trust import TrustFile
from phoenix_tui.features.service_interfaces import Finding, Health
from phoenix_tui.text.trust_text import counts, join_words, short_name, warn_untrusted
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
