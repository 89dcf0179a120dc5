"""The values that flags and settings share; imports nothing."""

from __future__ import annotations

BUSY_ENTER = ("refuse", "queue", "steer")
"""Actions of Enter on a message while the agent works."""
IMAGES = ("auto", "kitty", "sixel", "blocks", "off")
PERMISSION_MODES = ("ask", "accept-edits", "auto", "plan", "deny")
SANDBOXES = ("off", "workspace", "read-only")
"""Sandboxes from the most to the least that a command may write."""
EFFORTS = ("default", "off", "low", "medium", "high", "max")
DIAGNOSTICS = ("failures", "replies", "requests")
INPUT_GUARD = ("off", "log", "warn", "block")
OUTPUT_FORMATS = ("text", "json", "stream-json")
TRACKING = ("auto", "on", "off")
SHELLS = ("bash", "zsh", "fish")
NOTIFICATIONS = ("auto", "bell", "off")
