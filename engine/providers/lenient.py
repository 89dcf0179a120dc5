"""Reads what a server sends in other types than its API says: a field that does not fit never costs the answer."""

from __future__ import annotations

import types
import typing
from typing import Final, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T", bound=Struct)
LARGEST: Final = 1e15
"""Bound beyond which a float is no count; infinity is none, either."""
_MISSING: Final = object()
"""Marker for a value that cannot be converted."""


def fitted(value: object, wanted: type[T]) -> T:
    """The object `value` as a `wanted`, as far as its fields can be made to fit; the others have their defaults.

    A number fits text, text that is a number fits a number, a list loses the entries that do not fit.

    Raises:
        msgspec.ValidationError: it is no object, or lacks a field without default.
    """
    found = _fit(value, wanted)
    return found if isinstance(found, wanted) else msgspec.convert(value, wanted)


def _fit(value: object, wanted: object) -> object:
    if wanted is Raw:
        return Raw(msgspec.json.encode(value))
    origin = typing.get_origin(wanted)
    if origin in {typing.Union, types.UnionType}:
        choices = typing.get_args(wanted)
        if value is None and type(None) in choices:
            return None
        return next((found for each in choices if (found := _fit(value, each)) is not _MISSING), _MISSING)
    if origin is list:
        (inner,) = typing.get_args(wanted)
        if not isinstance(value, list):
            return _MISSING
        fits = (_fit(each, inner) for each in cast("list[object]", value))
        return [each for each in fits if each is not _MISSING]
    if isinstance(wanted, type):
        return _fit_struct(value, wanted) if issubclass(wanted, Struct) else _fit_plain(value, cast("object", wanted))
    return _MISSING


def _fit_struct(value: object, wanted: type[Struct]) -> object:
    if not isinstance(value, dict):
        return _MISSING
    given = cast("dict[str, object]", value)
    fields = [one for one in msgspec.structs.fields(wanted) if one.encode_name in given]
    fits = {one.name: _fit(given[one.encode_name], one.type) for one in fields}
    kept = {name: fit for name, fit in fits.items() if fit is not _MISSING}
    try:
        return wanted(**kept)
    except TypeError:  # without a default there is no replacement
        return _MISSING


def _fit_plain(value: object, wanted: object) -> object:
    if wanted is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if wanted is int and isinstance(value, float):
        return round(value) if abs(value) < LARGEST else _MISSING
    if wanted is int and isinstance(value, str):
        try:
            return _fit_plain(float(value), int)
        except ValueError:
            return _MISSING
    return value if isinstance(wanted, type) and type(value) is wanted else _MISSING
