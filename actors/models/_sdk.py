"""The one place that loads optional SDKs: when a model is used, not before, for they take up to a second."""

from importlib import import_module
from types import ModuleType

from actors._errors import ModelUnusable


def load(module: str, *, extra: str, wanted_by: str) -> ModuleType:
    """The SDK's module. Call it in a thread: the first import holds whoever asks for it.

    Raises:
        ModelUnusable: It is not installed, or does not import.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelUnusable(
            f"{wanted_by} needs the package {module!r}, which does not import ({error}); pip install 'postroom[{extra}]'",
            model=wanted_by,
        ) from error
