"""Anthropic's Messages API: wire shapes, and two transports for them."""

from engine.providers.anthropic.client import AnthropicProvider
from engine.providers.anthropic.settings import AnthropicSettings

__all__ = ["AnthropicProvider", "AnthropicSettings"]
