"""Removes credentials and image bytes from text that is kept for debugging: by value and by shape."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final

BLOT: Final = "[redacted]"
SHORTEST: Final = 6
"""Characters of the shortest key that is removed by value: a shorter one would blot ordinary words."""
MARGIN: Final = 8_192
"""Characters dropped where a text is cut, since half a key is recognized by nothing."""
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.DOTALL
)
_KEY: Final = re.compile(
    r"\b(?:(?:sk|gsk|xai|pplx|hf|nvapi|fw|r8|tgp|csk)[-_][\w-]{8,}"  # model services
    r"|(?:ghp|gho|ghs|ghu|ghr|github_pat|glpat|npm|pypi|xox[abprs]|shpat)[-_][\w-]{8,}"  # code hosts and the like
    r"|A(?:KIA|SIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|ya29\.[\w.-]{10,}"  # clouds
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"  # JSON web tokens
)
_HEADER: Final = re.compile(
    r"""(?ix) \b(?: (?:proxy-)?authorization | x-api-key | api[-_ ]?key | x-goog-api-key | set-cookie | cookie
    | access[-_]token | refresh[-_]token | client[-_]secret | password | passwd )
    (?: \\?["'] )? \s* [:=] \s* (?: \\?["'] )? (?: (?:bearer|basic|token) \s+ )? ([^\s"'\\,;&]{4,})"""
)
_BEARER: Final = re.compile(r"(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{8,})")
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^\s/@\"']{1,200}:[^\s/@\"']{1,200}(?=@)")
_IMAGE: Final = re.compile(r"data:image/[\w.+-]{1,40};base64,([A-Za-z0-9+/=]+)")
_BYTES: Final = re.compile(r"[A-Za-z0-9+/]{512,}={0,2}")


def without_keys(text: str) -> str:
    """`text` without keys of known shapes; everything else, such as settings and encoded bytes, stays."""
    text = _KEY.sub(BLOT, _PRIVATE_KEY.sub(BLOT, text))
    return _BEARER.sub(_blot, text)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without these values, without anything that looks like a credential, and without encoded bytes."""
    for secret in sorted({form for one in secrets if len(one) >= SHORTEST for form in _forms(one)}, key=len)[::-1]:
        text = text.replace(secret, BLOT)
    text = _IMAGE.sub(lambda found: f"[image, {len(found[1]) * 3 // 4:,} bytes]", text)
    text = _BYTES.sub(lambda found: f"[{len(found[0]) * 3 // 4:,} bytes]", text)
    return _IN_ADDRESS.sub(BLOT, _HEADER.sub(_blot, without_keys(text)))


def _blot(found: re.Match[str]) -> str:
    return found[0].replace(found[1], BLOT)


def redact_start(text: str, most: int, secrets: Iterable[str] = ()) -> str:
    """The beginning of a redacted text, about `most` characters, without half a key at its end."""
    if len(text) <= most:
        return redact(text, secrets)
    return f"{redact(text[: most + MARGIN], secrets)[:-MARGIN]}[{len(text):,} characters in all]"


def redact_end(text: str, secrets: Iterable[str] = ()) -> str:
    """The end of a text that was cut at its first character, from its first whole line on."""
    first, found, rest = text.partition("\n")
    return redact(rest if found else first[MARGIN:], secrets)


def _forms(secret: str) -> set[str]:
    """A value as it is, as JSON and in Base64, as headers have it."""
    encoded = json.dumps(secret)[1:-1]
    return {secret, encoded, json.dumps(secret, ensure_ascii=False)[1:-1], base64.b64encode(secret.encode()).decode()}
