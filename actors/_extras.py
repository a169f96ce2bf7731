"""The one place that loads optional packages: when they are used, not before, for some take up to a second."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ._errors import ConfigError


def load(module: str, *, extra: str, wanted_by: str) -> ModuleType:
    """The package's module. Call it in a thread: the first import holds whoever asks for it.

    Raises:
        ConfigError: It is not installed, or does not import. The text names the extra to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise _lacking(module, f"does not import ({error})", extra, wanted_by) from error


def require(module: str, *, extra: str, wanted_by: str) -> None:
    """Check early that `load` will find a package, without loading it.

    Raises:
        ConfigError: It is not installed. The text names the extra to install.
    """
    if find_spec(module) is None:
        raise _lacking(module, "is not installed", extra, wanted_by)


def _lacking(module: str, found: str, extra: str, wanted_by: str) -> ConfigError:
    return ConfigError(f"{wanted_by} needs the package {module!r}, which {found}; pip install 'postroom[{extra}]'")
