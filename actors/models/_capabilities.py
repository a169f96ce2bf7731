"""What is known of models by name: one row a family, the first that fits counts.

Whoever serves a family, its chat template has the family's rules: a Mistral model behind an OpenAI-compatible server
takes no user turn behind results either.
"""

from fnmatch import fnmatch

from attrs import evolve

from ._api import Capabilities

_CHAT = Capabilities(images=True)
_MISTRAL = Capabilities(images=True, mail_after_results="bridge")
_THINKS_ALOUD = Capabilities(thinking=True, thinking_field="reasoning_content")
_CLAUDE = Capabilities(images=True, result_images=True, documents=True, thinking=True, output_tokens=16_000)
_GEMINI = Capabilities(images=True, documents=True, thinking=True)

KNOWN: tuple[tuple[str, Capabilities], ...] = (  # `provider:model`, as a pattern
    ("openai:*mistral*", _MISTRAL),
    ("openai:*mixtral*", _MISTRAL),
    ("openai:*ministral*", _MISTRAL),
    ("openai:*magistral*", _MISTRAL),
    ("openai:*devstral*", _MISTRAL),
    ("openai:*codestral*", _MISTRAL),
    ("openai:*deepseek*", _THINKS_ALOUD),
    ("openai:*kimi*", _THINKS_ALOUD),
    ("openai:*", _CHAT),
    ("openai-responses:*", Capabilities(images=True, result_images=True, documents=True, thinking=True)),
    ("anthropic:*", _CLAUDE),
    ("google:gemini-1*", _GEMINI),
    ("google:gemini-2*", _GEMINI),
    ("google:gemma*", _GEMINI),
    ("google:*", evolve(_GEMINI, result_images=True, signed_calls=True)),
    ("ollama:*mistral*", Capabilities(images=True, tool_choice=False, tool_choice_none=False, mail_after_results="bridge")),
    ("ollama:*", Capabilities(images=True, tool_choice=False, tool_choice_none=False)),
    ("local:*", Capabilities()),
    ("mistral:*", Capabilities(images=True, mail_after_results="bridge", short_ids=True, counts=False)),
)


def capabilities_of(name: str) -> Capabilities:
    """The row of `provider:model`."""
    return next((known for pattern, known in KNOWN if fnmatch(name.lower(), pattern)), Capabilities())
