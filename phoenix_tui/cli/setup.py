"""Facts known before the engine exists: folders, settings, keys, the working directory and its trust."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.cli.arguments import RunArguments
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.config.credentials import Credentials, load_credentials
from phoenix_tui.config.load import (
    Agents,
    Layer,
    add_instructions,
    choose_profile,
    environment_layer,
    flag_layer,
    merge,
    open_profiles,
    parse_layer,
    user_layer,
    with_profile,
)
from phoenix_tui.config.paths import Paths, find_paths
from phoenix_tui.config.settings import ConfigError, Settings, SettingValue, narrows
from phoenix_tui.config.trust import (
    FileSources,
    Project,
    Trust,
    TrustFile,
    TrustStatus,
    file_sources,
    find_project,
    places_of,
)
from tools.call_values import SandboxMode
from tools.clean import clean_line, reveal_name

if TYPE_CHECKING:
    from engine.ports.profiles import Profile
    from phoenix_tui.config.sources.extension_files import Plugin
    from phoenix_tui.config.sources.project_sources import ProjectSources


LONGEST_NAMED: Final = 200
"""Characters of a path in an error."""


class SettingsNow(Protocol):
    """Reads the files again and merges them as at the start."""

    def __call__(self, profile: str | None = None, cwd: Path | None = None) -> Settings:
        """The settings in force, or as they would be with another profile, of another folder. Raises ConfigError."""
        ...


class Setup(Struct, frozen=True):
    """Common inputs of every way to run Phoenix."""

    paths: Paths
    settings: Settings
    credentials: Credentials
    project: Project
    trust: TrustStatus
    settings_now: SettingsNow
    ephemeral: bool = False
    no_hooks: bool = False
    """True where the command line switches hooks off."""
    gives_trust: bool = False
    """True where the command line trusts the folder's files as they are now."""
    sources: ProjectSources | None = None
    """Files that extend Phoenix, where the question before the screen was about them too."""
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()
    """Values of `--allowedTools` and `--disallowedTools`, checked."""
    mcp_config: tuple[str, ...] = ()
    strict_mcp_config: bool = False
    plugins: tuple[Plugin, ...] = ()
    """Folders whose files count in this run beside the user's."""
    hooks: bytes = b""
    """Hooks of this run's own settings, as a document; empty: none."""
    files: FileSources | None = None
    """Files that count in this run; None: the user's, and those of trusted folders."""

    @property
    def users_folder(self) -> Path:
        """Folder of the user's files that extend or instruct; an empty one where they do not count in this run."""
        return self.paths.config if self.files is None or self.files.users else self.files.folder

    @property
    def cwd(self) -> Path:
        """The working directory, real path."""
        return self.project.folder

    def notices(self) -> tuple[str, ...]:
        """Notices for the user before the run."""
        said = list(self.settings.notices)
        outside = [reveal_name(path) for path in self.project.left_out]
        if outside:
            verb = "leads" if len(outside) == 1 else "lead"
            said.append(f"{', '.join(outside)} {verb} out of the folder, or cannot be read: left out.")
        said += [
            f"{reveal_name(file.name)} imports @{reveal_name(name)}, which is not there: nothing is read for it."
            for file, name in (self.project.missing if self.trust.trust is Trust.GIVEN else ())
        ]
        if self.trust.trust in {Trust.UNKNOWN, Trust.CHANGED, Trust.REFUSED}:
            names = sorted({reveal_name(file.path.name) for file in self.project.files})
            said.append(
                f"{reveal_name(self.cwd)} is not trusted: {', '.join(names)} left out; "
                "--trust accepts the files as they are now."
            )
        said.append(wide_folder(self.cwd, sandbox_in(self.settings, self.cwd)))
        import shlex  # noqa: PLC0415 - not for the first frame

        said += [
            f"Any user can replace Phoenix's folders, because {clean_line(str(folder))} is writable for all users; "
            f"run: chmod o-w {clean_line(shlex.quote(str(folder)))}"
            for folder in self.paths.open_parents()
        ]
        return tuple(filter(None, said))


def wide_folder(cwd: Path, sandbox: str) -> str:
    """Say that a working directory holds far more than a project; empty where it does not."""
    home = Path.home().resolve()
    if not home.is_relative_to(cwd):
        return ""
    name = "your home folder" if cwd == home else str(cwd)
    if sandbox == SandboxMode.READ_ONLY:
        reach = "read everything below it and change nothing, and edits are refused until /sandbox workspace"
    else:
        reach = "write everything below it"
    return f"Phoenix was started in {name}: commands may {reach}; start in a project folder instead."


def sandbox_in(settings: Settings, cwd: Path) -> str:
    """The sandbox of a new conversation in a folder: read-only where it holds the home folder, unless it was chosen.

    Most files that start by themselves lie there, under names that no list has (SECURITY S6).
    """
    is_default = settings.sources["sandbox"] == "default"
    if is_default and Path.home().resolve().is_relative_to(cwd.resolve()):
        return SandboxMode.READ_ONLY
    return settings.text("sandbox")


def prepare(arguments: RunArguments, environment: Mapping[str, str], setting_sources: str | None = None) -> Setup:
    """Read the inputs of a run; the working directory's own files count only when it is trusted.

    `setting_sources`: whose files count, as checked by `file_sources`; None: what the user has answered.

    Raises:
        CommandError: the folder is unusable or a setting is wrong.
    """
    folder = check_folder(arguments.folder())
    try:
        paths = _make_folders(find_paths(environment))
        files = (
            file_sources(setting_sources, _make_passing_folder(paths.state)) if setting_sources is not None else None
        )
        project = find_project(folder)
        if files is not None:
            paths = replace(paths, trust_of_run=files.folder / "trust.json")
            project = project if files.projects else Project(project.folder)
        trust = _trust(paths, project, give=arguments.trust or files is not None)
        asked = (environment_layer(environment), flag_layer(_list_flags(arguments)))
        narrowing = _project_layer(project) if trust.trust is Trust.GIVEN else Layer()
        _narrow_mode(narrowing, project.folder, files)
        agents = partial(_agents, paths, files, arguments.trust)
        settings_now = partial(_merge_settings, paths, project.folder, narrowing, asked, agents)
        settings = settings_now()
        credentials = load_credentials(paths.credentials_file, environment)
    except ConfigError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(_cannot_write(error)) from error
    if trust.trust is Trust.REFUSED or (arguments.headless and trust.trust is not Trust.GIVEN):
        project = project.without_contents()  # they are neither shown nor sent to a model
    return Setup(
        paths,
        settings,
        credentials,
        project,
        trust,
        settings_now,
        arguments.ephemeral,
        allowed_tools=arguments.allowed_tools,
        denied_tools=arguments.disallowed_tools,
        mcp_config=arguments.mcp_config,
        strict_mcp_config=arguments.strict_mcp_config,
        gives_trust=arguments.trust,
        no_hooks=arguments.no_hooks,
        files=files,
    )


def _merge_settings(
    paths: Paths,
    own: Path,
    narrowing: Layer,
    asked: tuple[Layer, Layer],
    agents: Agents,
    profile: str | None = None,
    cwd: Path | None = None,
) -> Settings:
    user = user_layer(paths.config_file)
    name = merge(user, Layer(), *asked).text("profile") if profile is None else profile
    profiles = open_profiles(paths.profiles, TrustFile(paths.trust_file)) if name else None
    chosen = choose_profile(profiles, name, cwd or own, agents) if profiles is not None else None
    return add_instructions(merge(*with_profile(user, narrowing, chosen), *asked), chosen)


def _agents(paths: Paths, files: FileSources | None, gives_trust: bool, folder: Path) -> Sequence[Profile]:
    """Agents in `.claude/agents` that count in a folder; looked for where no profile has a name that was asked for."""
    from phoenix_tui.config.sources.agents import AgentSources  # noqa: PLC0415 - few starts name one

    trust = TrustFile(paths.trust_file)
    if files is None:
        return AgentSources(paths.config, Path.home(), trust, gives_trust).of(folder)
    users, home = (paths.config, Path.home()) if files.users else (files.folder, files.folder)
    return AgentSources(users, home, trust, files.trusts, files.counts).of(folder)


def _merge_for_command(
    paths: Paths, environment: Layer, profile: str | None = None, cwd: Path | None = None
) -> Settings:
    """A sub-command begins no conversation, so no profile counts."""
    return merge(user_layer(paths.config_file), Layer(), environment, Layer())


def prepare_command(environment: Mapping[str, str]) -> Setup:
    """Prepare the setup of a sub-command; the current folder's own files play no part.

    Raises:
        CommandError: a setting is wrong.
    """
    try:
        paths = find_paths(environment)
        paths.make()
        settings_now = partial(_merge_for_command, paths, environment_layer(environment))
        settings = settings_now()
        credentials = load_credentials(paths.credentials_file, environment)
    except ConfigError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(_cannot_write(error)) from error
    return Setup(paths, settings, credentials, Project(Path.cwd()), TrustStatus(Trust.NOT_NEEDED), settings_now)


def check_folder(folder: Path) -> Path:
    """`folder` as a real path (SPEC SDK-25).

    Raises:
        CommandError: it does not exist, is no folder or cannot be read; the sentence names it.
    """
    try:
        return _resolve_folder(folder)
    except OSError as error:
        name, why = reveal_name(folder)[:LONGEST_NAMED], error.strerror or "it cannot be reached"
        raise CommandError(f"The folder {name} cannot be used: {why}; choose another one with --cwd.") from error


def _resolve_folder(folder: Path) -> Path:
    """The real path. Raises CommandError, OSError."""
    if not folder.exists():
        raise CommandError(f"The folder {folder} does not exist; create it or choose another one with --cwd.")
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder; choose another one with --cwd.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise CommandError(
            f"The folder {folder} cannot be read; change its permissions or choose another one with --cwd."
        )
    return folder.resolve()


def _list_flags(arguments: RunArguments) -> dict[str, SettingValue | None]:
    return {
        "model": arguments.model,
        "effort": arguments.effort,
        "profile": arguments.profile,
        "permission_mode": arguments.permission_mode,
        "sandbox": arguments.sandbox,
        "sandbox_network": arguments.sandbox_network,
        "max_turns": arguments.max_turns,
        "max_budget_usd": arguments.max_budget_usd,
        "timeout": arguments.timeout,
        "append_system_prompt": arguments.append_system_prompt,
        "screen_reader": arguments.screen_reader or None,
        "debug": arguments.debug or None,
    }


def _trust(paths: Paths, project: Project, *, give: bool) -> TrustStatus:
    trust_file = TrustFile(paths.trust_file)
    if give and project.files:
        trust_file.answer(project, trusted=True)
    return trust_file.status(project)


def _project_layer(project: Project) -> Layer:
    """The project's settings; the folder's own file comes after the repository's."""
    values: dict[str, SettingValue] = {}
    sources: dict[str, str] = {}
    for file in project.settings_files():
        layer = parse_layer(file.text, file.path, project=True)
        values |= layer.values
        sources |= layer.sources
    return Layer(values, sources)


def _narrow_mode(layer: Layer, folder: Path, files: FileSources | None) -> None:
    """Add the permission mode of settings files of another program; it only narrows, so it needs no trust."""
    names = (".claude/settings.json", ".claude/settings.local.json")
    if not any(os.path.lexists(place / name) for place in places_of(folder) for name in names):
        return
    from phoenix_tui.config.claude_settings import MODE, default_mode  # noqa: PLC0415 - most folders have no such file

    mode, path = default_mode(folder, files.counts if files is not None else None)
    name = "permission_mode"
    if mode and (name not in layer.values or narrows(name, mode, layer.values[name])):
        layer.values[name], layer.sources[name] = mode, f"{path}: permissions.{MODE}"


def _make_folders(paths: Paths) -> Paths:
    """Create the folders; if none can be written, the files of a session go into a temporary folder.

    The store then keeps its conversations in memory, and says so.
    """
    try:
        paths.make()
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
    return paths if os.access(paths.state, os.W_OK) else replace(paths, state=_make_passing_folder())


def _make_passing_folder(within: Path | None = None) -> Path:
    import atexit  # noqa: PLC0415 - rare
    import shutil  # noqa: PLC0415 - as above
    import tempfile  # noqa: PLC0415 - as above

    folder = Path(tempfile.mkdtemp(prefix="phoenix-", dir=within))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _cannot_write(error: OSError) -> str:
    return f"{error.filename or 'The Phoenix folder'}: {error.strerror}; choose a writable folder with PHOENIX_HOME."
