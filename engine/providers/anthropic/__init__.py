"""Anthropic's Messages API: wire shapes, and two transports for them."""

from engine.providers.anthropic.anthropic_settings import AnthropicSettings
from engine.providers.anthropic.client import AnthropicProvider

__all__ = ["AnthropicProvider", "AnthropicSettings"]
