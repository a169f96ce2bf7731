"""The SDK of a provider: loaded when a model of it is used, or told as that model's trouble."""

from types import ModuleType
from typing import Any

from actors._errors import ConfigError, ModelUnusable
from actors._extras import load as load_package


def load(module: str, *, extra: str, wanted_by: str) -> ModuleType:
    """The SDK's module. Call it in a thread: the first import holds whoever asks for it.

    Raises:
        ModelUnusable: It is not installed, or does not import.
    """
    try:
        return load_package(module, extra=extra, wanted_by=wanted_by)
    except ConfigError as error:
        raise ModelUnusable(str(error), model=wanted_by) from error.__cause__


def text_in(source: Any, name: str) -> str:
    """A text that what an SDK has read may hold beside what it always holds; `""` if it does not.

    Asking a pydantic model for what it does not have costs more than all else that is done with a chunk, so the place where it
    would be is looked at instead.
    """
    facts = getattr(source, "__dict__", None)
    value = getattr(source, name, None) if facts is None else facts.get(name)
    if value is None and (more := getattr(source, "__pydantic_extra__", None)):
        value = more.get(name)
    return value if isinstance(value, str) else ""


def errors_of(base: type[Exception], client: Any, extra: str, model: str) -> tuple[type[Exception], ...]:
    """What an SDK raises when there will be no answer.

    Many versions let the errors of their HTTP library (httpx, later httpx2) and of JSON through once a stream has begun.
    """
    http = load(type(client.base_url).__module__.partition(".")[0], extra=extra, wanted_by=model)
    return base, http.TransportError, ValueError
