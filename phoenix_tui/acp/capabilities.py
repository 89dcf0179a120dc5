"""Capabilities of the agent, as it says at the start of a connection."""

from __future__ import annotations

from typing import Final

from acp.schema import (
    AgentCapabilities,
    AuthEnvVar,
    EnvVarAuthMethod,
    Implementation,
    InitializeResponse,
    McpCapabilities,
    PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
)

from phoenix_tui.cli.names import VERSION

PROTOCOL: Final = 1
"""The version that is spoken; a client that asks for another one decides whether that is enough."""
KEYS: Final = {
    "anthropic": ("ANTHROPIC_API_KEY", "Anthropic"),
    "openai": ("OPENAI_API_KEY", "OpenAI"),
}
"""Environment variable and name of each authentication method."""


def is_method(method_id: str) -> bool:
    """True for a known authentication method."""
    return method_id in KEYS


def answer_to_initialize() -> InitializeResponse:
    """The answer to `initialize`."""
    return InitializeResponse(
        protocol_version=PROTOCOL,
        agent_info=Implementation(name="phoenix", title="Phoenix", version=VERSION),
        auth_methods=[_method(name, *facts) for name, facts in KEYS.items()],
        agent_capabilities=AgentCapabilities(
            load_session=True,
            prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
            mcp_capabilities=McpCapabilities(http=True, sse=True),
            session_capabilities=SessionCapabilities(
                list=SessionListCapabilities(),
                additional_directories=SessionAdditionalDirectoriesCapabilities(),
                resume=SessionResumeCapabilities(),
                close=SessionCloseCapabilities(),
                delete=SessionDeleteCapabilities(),
                fork=SessionForkCapabilities(),
            ),
        ),
    )


def _method(name: str, variable: str, title: str) -> EnvVarAuthMethod:
    return EnvVarAuthMethod(
        type="env_var",
        id=name,
        name=f"{title} API key",
        description=f"Set {variable}, or enter the key once in Phoenix itself.",
        vars=[AuthEnvVar(name=variable, label=f"{title} API key", secret=True)],
    )
