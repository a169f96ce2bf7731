"""Every provider that there is: its model, its fake server, and the settings that lead to it."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from fake_anthropic import ANTHROPIC
from fake_chat import CHAT
from fake_gemini import GEMINI
from fake_mistral import MISTRAL
from fake_ollama import OLLAMA
from fake_responses import RESPONSES
from fake_server import Wire

from actors.models import Model, resolve_model


@frozen
class Provider:
    """One provider, as the tests know it.

    `url` is the variable with its address, `key` the one with its key, None where there is none to be missed.
    """

    name: str
    wire: Wire
    url: str
    key: str | None
    sdk: str
    retries: bool = True
    options: Mapping[str, Any] = {}  # that have it think

    def model(self) -> Model:
        """A model of it, as a user gets it."""
        return resolve_model(self.name)

    def options_for(self, scene: str) -> dict[str, Any]:
        """What a session needs to be told in a scene of this name."""
        return {"model_options": self.options} if scene == "thinking" else {}

    def __str__(self) -> str:
        return self.name.partition(":")[0]


THINKING: Mapping[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
PROVIDERS = (
    Provider("openai:gpt-5.2", CHAT, "OPENAI_BASE_URL", "OPENAI_API_KEY", "openai"),
    Provider("openai-responses:gpt-5.2", RESPONSES, "OPENAI_BASE_URL", "OPENAI_API_KEY", "openai"),
    Provider(
        "anthropic:claude-sonnet-4-6", ANTHROPIC, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "anthropic", options=THINKING
    ),
    Provider("google:gemini-3-pro", GEMINI, "GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY", "google.genai"),
    Provider("mistral:magistral-medium", MISTRAL, "MISTRAL_BASE_URL", "MISTRAL_API_KEY", "openai"),
    Provider("ollama:qwen3", OLLAMA, "OLLAMA_HOST", None, "ollama", retries=False),
)
