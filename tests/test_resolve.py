"""From a text to a model, or to an error that says what to write."""

import subprocess
import sys

import pytest

from actors._errors import ConfigError
from actors.models import resolve_model

WRONG = {
    "gpt-5.2": "did you mean openai:gpt-5.2?",
    "openai": "names a provider and no model of it; write openai:<model>",
    "openai:": "names a provider and no model of it; write openai:<model>",
    "opnai:gpt-5.2": "did you mean openai:gpt-5.2?",
    "OpenAI:gpt-5.2": "did you mean openai:gpt-5.2?",
    "zzz:x": "names no provider that exists",
    "": "names no provider",
    ":x": "names no provider",
    "scripted": "pass the object, model = ScriptedModel",
    "scripted:x": "pass the object, model = ScriptedModel",
}


@pytest.mark.parametrize("name", ["openai:gpt-5.2", "openai:ft:gpt-4o:acme::abc", "openai:org/model"])
def test_a_name_is_the_provider_and_all_behind_the_first_colon(name: str) -> None:
    """Models of small servers have slashes and colons in their names."""
    assert resolve_model(name).name == name


@pytest.mark.parametrize(("name", "told"), WRONG.items(), ids=lambda value: value or "empty")
def test_a_wrong_name_says_what_to_write(name: str, told: str) -> None:
    """Nobody should have to look up what exists."""
    with pytest.raises(ConfigError) as caught:
        resolve_model(name)
    assert told in str(caught.value)
    assert "scripted" in name or "openai:<model>" in str(caught.value)


def test_what_is_no_text_is_refused_in_words() -> None:
    """An agent without a model, most often."""
    with pytest.raises(ConfigError, match="got None"):
        resolve_model(None)  # type: ignore[arg-type]


def test_resolving_loads_no_sdk() -> None:
    """An SDK takes up to a second; `--help` and tests do not wait for one they never use."""
    code = "import sys; from actors.models import resolve_model; resolve_model('openai:x'); sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
