"""The user's `keymap.toml`: action names and their keys, checked before anything is bound."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Final

from textual.keys import Keys

from phoenix_tui.config.load import line_of
from phoenix_tui.keys.keymap import BESIDE, KEYS, KEYS_BY_ID, UNBOUND, Scope, key_names
from phoenix_tui.text.labels import short_path
from tools.clean import clean_line
from tools.comparing import near_names
from tools.files.own_files import MOST_SETTINGS, read_text

MODIFIERS: Final = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
NAMED: Final = frozenset(key.value.rpartition("+")[2] for key in Keys if not key.value.startswith("<"))
TOGETHER: Final = {Scope.APP: "text", Scope.WORKSPACE: "text", Scope.COMPOSER: "text"}
"""Scopes whose keys apply at the same time; others apply alone, or together with those of `keymap.BESIDE`."""
CONTROLS: Final = re.compile(r"ctrl\+[a-z0-9@\[\]\\^_]")


class KeymapError(ValueError):
    """Raised for an invalid `keymap.toml` of the user; the message names file, line and the allowed values."""


def read_keymap(path: Path) -> dict[str, str]:
    """The user's keys by action id; empty where there is no file.

    Raises:
        KeymapError: not TOML, an unknown action, a value that is no key, or one key for two actions.
    """
    try:
        text = read_text(path, MOST_SETTINGS)
        table = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KeymapError(f"{short_path(path)} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise KeymapError(f"{short_path(path)} is not valid TOML: {error}.") from error
    keymap: dict[str, str] = {}
    for name, keys in table.items():
        where = f"{short_path(path)}:{line_of(text, name)}"
        if name not in KEYS_BY_ID:
            near = near_names(name, KEYS_BY_ID, 3, 0.4)
            help_ = (
                f"Similar: {', '.join(near)}; F1 lists all"
                if near
                else f"The actions are {', '.join(sorted(KEYS_BY_ID))}"
            )
            raise KeymapError(f'{where}: "{clean_line(name)}" is not an action. {help_}.')
        keymap[name] = _check_keys(keys, name, where)
    _refuse_doubles(keymap, path, text)
    return keymap


def _check_keys(keys: object, name: str, where: str) -> str:
    """Keys in the spelling that Textual binds."""
    if not isinstance(keys, str) or not keys.strip():
        raise KeymapError(f'{where}: "{name}" must be text such as "ctrl+j,f5", or "{UNBOUND}".')
    found = [_key(each.strip()) for each in keys.split(",")]
    if None in found:
        wrong = keys.split(",")[found.index(None)].strip()
        raise KeymapError(
            f'{where}: "{clean_line(wrong)}" is not a key. Keys are letters, digits, names such as f5, enter, pageup, '
            "question_mark, with ctrl+, alt+ or shift+ before them."
        )
    return ",".join(each for each in found if each is not None)


def _key(key: str) -> str | None:
    if key == UNBOUND:
        return key
    *modifiers, last = key.lower().split("+") if len(key) > 1 else [key]
    if not set(modifiers) <= MODIFIERS or len(set(modifiers)) != len(modifiers):
        return None
    if len(last) == 1 and not last.isalnum():
        last = unicodedata.name(last, "").lower().replace("-", "_").replace(" ", "_")
    known = last in NAMED or (len(last) == 1 and last.isalnum()) or _is_sign(last)
    return "+".join((*modifiers, last)) if known else None


def _is_sign(name: str) -> bool:
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return CONTROLS.fullmatch(f"ctrl+{name}") is not None or name == "underscore"
    return True


def _refuse_doubles(keymap: Mapping[str, str], path: Path, text: str) -> None:
    taken: dict[tuple[str, str], str] = {}
    for key in KEYS:
        keys = keymap.get(key.id, key.keys).split(",")
        scopes = (TOGETHER.get(key.scope, key.scope.name), *(beside.name for beside in BESIDE.get(key.scope, ())))
        for each, place in product(keys, scopes):
            other = taken.setdefault((place, each), key.id)
            if other != key.id and each != UNBOUND and {other, key.id} & set(keymap):
                mine = key.id if key.id in keymap else other
                where = f"{short_path(path)}:{line_of(text, mine)}"
                raise KeymapError(
                    f'{where}: {key_names(each)} is used for both "{other}" and "{key.id}";  '
                    f'give one of them another key, or "{UNBOUND}".'
                )
