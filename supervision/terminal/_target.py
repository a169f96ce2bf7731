"""`module:Agent` on the command line becomes a class, or an error of one screen that says what to write instead."""

import importlib
import inspect
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from actors import ActorsError, Agent, ConfigError

EXAMPLE = "supervision.examples.investigator:Investigator"


def find_agent(target: str) -> type[Agent]:
    """The agent class that `target` names. Modules of the working directory come first.

    Raises:
        ConfigError: No such module, no such class in it, or no agent; or the module's own code raised.
    """
    name, colon, attribute = target.partition(":")
    if name.endswith(".py") and "/" not in name:
        raise ConfigError(f"{target!r} names a file; write the module: {name.removesuffix('.py')}:{attribute or 'Agent'}")
    if not colon or not attribute.isidentifier() or not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"{target!r} names no agent; write module:Agent, such as {EXAMPLE}")
    module = imported(name)
    found = getattr(module, attribute, None)
    if not (inspect.isclass(found) and issubclass(found, Agent)):
        raise ConfigError(_no_agent(module, attribute, found))
    return found


def imported(name: str) -> ModuleType:
    """The module of this name, from the working directory first. `ConfigError` if there is none, or its code raised."""
    if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
        write = name.removesuffix(".py").partition(":")[0].replace("/", ".")
        raise ConfigError(f"{name!r} names no module; write it as Python imports it from here, such as {write}")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:  # a console script starts with its own folder there
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise ConfigError(f"importing {name} needs the module {missing.name!r}, which is not installed here") from None
        raise ConfigError(
            f"there is no module {missing.name!r}, looked for in {Path.cwd()} and in the installed packages; "
            "run from the folder that holds it, or install it"
        ) from None
    except Exception as error:  # noqa: BLE001  # foreign code at its import may raise anything; its author reads one screen
        if isinstance(error, ActorsError):  # it says what to do; where we noticed is no news
            raise ConfigError(f"importing {name}: {error}") from None
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""
        if isinstance(error, SyntaxError):
            place = f" ({error.filename}, line {error.lineno})"
        raise ConfigError(f"importing {name} raised {type(error).__name__}: {getattr(error, 'msg', error)}{place}") from None


def _no_agent(module: ModuleType, attribute: str, found: object) -> str:
    agents = [
        name
        for name, thing in vars(module).items()
        if inspect.isclass(thing) and issubclass(thing, Agent) and thing.__module__ == module.__name__
    ]
    what = f"{attribute} in {module.__name__} is no Agent" if found is not None else f"{module.__name__} has no {attribute!r}"
    if not agents:
        return f"{what}, and the module defines no agent: write `class {attribute}(Agent)` in it"
    near = get_close_matches(attribute, agents, 1, 0.0) if len(agents) == 1 else get_close_matches(attribute, agents, 3)
    return f"{what}; it defines {', '.join(agents)}" + (f": did you mean {module.__name__}:{near[0]}?" if near else "")
