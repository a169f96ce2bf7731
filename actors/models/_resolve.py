"""From `provider:name` to a model. A provider is one row."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from actors._errors import ConfigError

from ._api import Model
from .anthropic import AnthropicMessages
from .google import Gemini
from .local import LocalModel
from .ollama import OllamaChat
from .openai import OpenAIChat, mistral
from .openai_responses import OpenAIResponses

PROVIDERS: Mapping[str, Callable[[str], Model]] = {
    "openai": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "anthropic": AnthropicMessages,
    "google": Gemini,
    "mistral": mistral,
    "ollama": OllamaChat,
    "local": LocalModel,
}
_NOT_BY_NAME = {
    "scripted": "a script has no name: pass the object, model = ScriptedModel([say(...)])",
}


def resolve_model(name: str) -> Model:
    """The model that `provider:name` names. Nothing is loaded and no key is read before it is asked something.

    Raises:
        ConfigError: No such provider, or no name behind it. The text lists what exists.
    """
    exist = ", ".join(f"{provider}:<model>" for provider in PROVIDERS)
    if not isinstance(name, str):
        raise ConfigError(f"a model is named by a text such as {exist}; got {name!r}")
    provider, colon, model = name.partition(":")
    if provider in _NOT_BY_NAME:
        raise ConfigError(f"{name!r} cannot be resolved: {_NOT_BY_NAME[provider]}")
    if provider in PROVIDERS and model.strip():
        return PROVIDERS[provider](model.strip())
    if provider in PROVIDERS:
        raise ConfigError(f"{name!r} names a provider and no model of it; write {provider}:<model>")
    near = get_close_matches(provider.lower(), [*PROVIDERS, *_NOT_BY_NAME], cutoff=0.5)
    if colon:
        hint = f"; did you mean {near[0]}:{model}?" if near else ""
        raise ConfigError(f"{name!r} names no provider that exists{hint} (there is: {exist})")
    hint = f"did you mean {near[0]}:<model>?" if near else f"did you mean {next(iter(PROVIDERS))}:{name}?"
    raise ConfigError(f"{name!r} names no provider; {hint} (there is: {exist})")
