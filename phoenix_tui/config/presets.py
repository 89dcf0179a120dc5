"""Well-known services that speak OpenAI's protocol: their addresses and the variables that hold their keys.

Addresses and variables are those of the services' own documentation and of models.dev.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Preset(Struct, frozen=True):
    """One service."""

    name: str
    """The part of a model reference before the slash."""
    base_url: str
    """`${VARIABLE}` is replaced."""
    variables: tuple[str, ...]
    """Variables of its key: the first that is set counts."""
    default_model: str = ""
    """Model for its bare name; empty where its server is asked."""
    replay_reasoning: bool = False
    """True when it requires the reasoning of earlier answers."""


PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), "openrouter/auto"),
        Preset("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), "mistral-large-latest"),
        Preset(
            "deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), "deepseek-chat", replay_reasoning=True
        ),
        Preset("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
        Preset("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
        Preset("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
        Preset("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
        Preset("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
        Preset("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), replay_reasoning=True),
        Preset("zai", "https://api.z.ai/api/paas/v4", ("ZHIPU_API_KEY",)),
        Preset("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN",)),
        Preset("nvidia", "https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
        Preset("vercel", "https://ai-gateway.vercel.sh/v1", ("AI_GATEWAY_API_KEY",)),
        Preset("azure", "${AZURE_OPENAI_ENDPOINT}/openai/v1", ("AZURE_OPENAI_API_KEY",)),
        Preset(
            "bedrock",
            "https://bedrock-runtime.${AWS_REGION}.amazonaws.com/openai/v1",
            ("AWS_BEARER_TOKEN_BEDROCK",),
        ),
    )
}
"""Presets by name."""
KEY_VARIABLES: Final = frozenset(variable for preset in PRESETS.values() for variable in preset.variables)
