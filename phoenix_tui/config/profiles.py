"""Agent profiles: `profiles/NAME.md`, front matter for settings and a body for the system prompt."""

from __future__ import annotations

from pathlib import Path

from phoenix_tui.config.load import Layer, check
from phoenix_tui.config.settings import KEYS, ConfigError, Value

GENERAL = "general"
"""The built-in profile: it changes nothing."""
FENCE = "---"
DESCRIPTIVE = ("name", "description")
SETTINGS = ("model", "permission_mode", "sandbox")


def profile_layer(folder: Path, name: str) -> Layer:
    """What the profile `name` sets; its body is added to the system prompt.

    Raises:
        ConfigError: there is no such profile, or its front matter is wrong; file, line and allowed keys are named.
    """
    if not name or name == GENERAL:
        return Layer()
    path = folder / f"{name}.md"
    if name not in profile_names(folder):
        raise ConfigError(f"There is no profile '{name}' in {folder}. There are: {', '.join(profile_names(folder))}.")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return _parse(text, path)


def profile_names(folder: Path) -> tuple[str, ...]:
    """Every profile that can be chosen, the built-in one first."""
    return (GENERAL, *sorted(path.stem for path in folder.glob("*.md") if path.stem != GENERAL))


def beneath(user: Layer, profile: Layer) -> Layer:
    """The user's settings with the chosen profile on top of them."""
    return Layer(user.values | profile.values, user.sources | profile.sources, user.providers)


def _parse(text: str, path: Path) -> Layer:
    lines = text.splitlines()
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    body = 0
    if lines and lines[0].strip() == FENCE:
        body = _end_of_front_matter(lines, path) + 1
        for number, line in enumerate(lines[1 : body - 1], 2):
            key, value = _entry(line, f"{path}:{number}")
            if key in SETTINGS:
                values[key] = check(KEYS[key], value, f"{path}:{number}")
                sources[key] = f"{path}:{number}"
    prompt = "\n".join(lines[body:]).strip()
    if prompt:
        values["append_system_prompt"], sources["append_system_prompt"] = prompt, str(path)
    return Layer(values, sources)


def _end_of_front_matter(lines: list[str], path: Path) -> int:
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == FENCE:
            return number
    raise ConfigError(f"{path}:1: the front matter that begins here has no closing '{FENCE}'.")


def _entry(line: str, where: str) -> tuple[str, str]:
    key, colon, value = (part.strip() for part in line.partition(":"))
    if not line.strip() or line.lstrip().startswith("#"):
        return "", ""
    if not colon or key not in (*DESCRIPTIVE, *SETTINGS):
        raise ConfigError(f"{where}: '{line.strip()}' is no setting. Known are {', '.join((*DESCRIPTIVE, *SETTINGS))}.")
    return key, value.strip("\"'")
