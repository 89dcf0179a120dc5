"""Well-known services that speak OpenAI's protocol: their addresses and the variables that hold their keys.

Addresses and variables are those of the services' own documentation and of models.dev.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

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
    quirks: Mapping[str, str | int | bool] = MappingProxyType({})
    """Fields of `Dialect` in which it differs; docs/decisions/providers.md has the sources."""


_Quirks: TypeAlias = "Mapping[str, str | int | bool]"
_OPENROUTER: Final[_Quirks] = {
    "reasoning_param": "reasoning",
    "reasoning_replay": "reasoning_details",
    "usage_cost": True,
    "cache_marks": True,
}
_AZURE: Final = {"auth_header": "api-key"}
_GEMINI: Final = {"reasoning_replay": "extra_content", "schema_profile": "gemini"}
_MISTRAL: Final = {"tool_id_length": 9}
_THINKING: Final = {"reasoning_param": "thinking", "reasoning_replay": "reasoning_content"}
PRESETS: Final = {
    preset.name: preset
    for preset in (
        Preset("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), "openrouter/auto", _OPENROUTER),
        Preset(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            "gemini-flash-latest",
            _GEMINI,
        ),
        Preset("mistral", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), "mistral-large-latest", _MISTRAL),
        Preset("deepseek", "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), "deepseek-chat", _THINKING),
        Preset("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
        Preset("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
        Preset("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
        Preset("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
        Preset("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
        Preset("moonshot", "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",), quirks=_THINKING),
        Preset("zai", "https://api.z.ai/api/paas/v4", ("ZHIPU_API_KEY",), quirks={"reasoning_param": "thinking"}),
        Preset("huggingface", "https://router.huggingface.co/v1", ("HF_TOKEN",)),
        Preset("nvidia", "https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
        Preset("vercel", "https://ai-gateway.vercel.sh/v1", ("AI_GATEWAY_API_KEY",)),
        Preset("azure", "${AZURE_OPENAI_ENDPOINT}/openai/v1", ("AZURE_OPENAI_API_KEY",), quirks=_AZURE),
        Preset(
            "bedrock",
            "https://bedrock-runtime.${AWS_REGION}.amazonaws.com/openai/v1",
            ("AWS_BEARER_TOKEN_BEDROCK",),
        ),
        Preset(
            "vertex",
            "https://${CLOUD_ML_REGION}-aiplatform.googleapis.com/v1/projects/${ANTHROPIC_VERTEX_PROJECT_ID}"
            "/locations/${CLOUD_ML_REGION}/endpoints/openapi",
            ("CLOUDSDK_AUTH_ACCESS_TOKEN",),
            quirks=_GEMINI,
        ),
    )
}
"""Presets by name. A new one also stands in the table of `docs/decisions/providers.md` and in README; its requests are
checked by a rule in `tests/support/loopback_dialects.py`.
"""
KEY_VARIABLES: Final = frozenset(variable for preset in PRESETS.values() for variable in preset.variables)
