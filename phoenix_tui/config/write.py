"""Changes single settings in config.toml and keeps everything else in it, comments included."""

from __future__ import annotations

from pathlib import Path

from phoenix_tui.config.load import check, user_layer
from phoenix_tui.config.settings import KEYS, ConfigError, SettingValue
from tools.files.own_files import MOST_SETTINGS, read_text, write_file


def set_value(path: Path, name: str, value: object) -> None:
    """Write `name = value` into the file `path`, which is made if need be.

    Raises:
        ConfigError: the key or value is not allowed, or the file is broken already.
        OSError: it cannot be written.
    """
    if name not in KEYS:
        raise ConfigError(f"Unknown key '{name}'. Valid keys are {', '.join(KEYS)}.")
    checked = check(KEYS[name], value, str(path))
    _rewrite(path, name, checked)


def remove_value(path: Path, name: str) -> None:
    """Take `name` out of the file `path`; nothing happens where it is not in it.

    Raises:
        ConfigError: the file is broken.
        OSError: it cannot be written.
    """
    if path.exists():
        _rewrite(path, name, None)


def _rewrite(path: Path, name: str, value: SettingValue | None) -> None:
    user_layer(path)  # a file with an error stays as the user left it
    import tomlkit  # noqa: PLC0415 - 40 ms, needed only to change a file

    document = tomlkit.parse(read_text(path, MOST_SETTINGS) if path.exists() else "")
    if value is None:
        document.pop(name, None)  # pyright: ignore[reportUnknownMemberType] - tomlkit's stub
    else:
        document[name] = value
    write_file(path, tomlkit.dumps(document))  # pyright: ignore[reportUnknownMemberType] - tomlkit's stub
