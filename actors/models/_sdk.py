"""The SDK of a provider: loaded when a model of it is used, or told as that model's trouble."""

from types import ModuleType

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
