"""Points in time as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def local_time(seconds: float) -> str:
    """Seconds since the epoch as local date and time, to the minute."""
    return datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def utc_time(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
