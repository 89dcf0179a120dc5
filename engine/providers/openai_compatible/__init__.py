"""`/chat/completions` of OpenAI and of everything that imitates it: local servers, gateways."""

from engine.providers.openai_compatible.client import OpenAiCompatibleProvider
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings

__all__ = ["OpenAiCompatibleProvider", "OpenAiCompatibleSettings"]
