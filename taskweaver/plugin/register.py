"""Registering plugins: the decorators authors write, and the collector that runs their files.

A decorator only records its object while `collect` runs the file; in any other import of
the file it does nothing, so plugins can be imported and tested like ordinary modules.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, overload

from taskweaver.plugin.base import Plugin
from taskweaver.plugin.context import PluginContext
from taskweaver.plugin.errors import PluginError

Definition = type[Plugin] | Callable[..., Any]
PluginFactory = Callable[[str, PluginContext, Mapping[str, Any]], Plugin]
PluginTestFunction = Callable[[Plugin], None]
MODULE_PREFIX = "taskweaver_plugin_"
"""Before a plugin's name, the name of the module its file runs in."""

P = TypeVar("P", bound=Callable[..., Any])


class PluginTest(NamedTuple):
    """A test that comes with a plugin. `run` raises when the test fails."""

    name: str
    description: str
    run: PluginTestFunction


@dataclass(slots=True)
class RegisteredPlugin:
    """A plugin's implementation, as defined by the file.

    Attributes:
        factory: Makes the plugin: ``factory(name, ctx, config)``.
        tests: The tests in its file, in order.
    """

    factory: PluginFactory
    tests: list[PluginTest]


@dataclass(slots=True)
class _Collected:
    definitions: list[Definition] = field(default_factory=list)
    tests: list[PluginTest] = field(default_factory=list)


_collecting: ContextVar[_Collected | None] = ContextVar("_collecting", default=None)


@overload
def register_plugin(definition: P) -> P: ...


@overload
def register_plugin(
    *,
    configurations: Mapping[str, Any] | None = None,
    examples: str = "",
    enabled: bool = True,
) -> Callable[[P], P]: ...


def register_plugin(
    definition: P | None = None,
    *,
    configurations: Mapping[str, Any] | None = None,  # noqa: ARG001 - read off the source
    examples: str = "",  # noqa: ARG001
    enabled: bool = True,  # noqa: ARG001
) -> P | Callable[[P], P]:
    """Make a class or a function the plugin of the file. A file has exactly one plugin.

    The keywords are for plugins without a YAML file. They are read from the source, so they must
    be literals.

    Args:
        definition: A subclass of `Plugin`, or a function that is called as it is.
        configurations: The values a class reads from ``self.config``.
        examples: Code that calls it, for the model.
        enabled: False switches it off.
    """

    def note(registered: P) -> P:
        collected = _collecting.get()
        if collected is not None:
            collected.definitions.append(registered)
        return registered

    return note if definition is None else note(definition)


def test_plugin(
    name: str | None = None,  # noqa: PT028 - not a test itself
    description: str | None = None,  # noqa: PT028 - not a test itself
) -> Callable[[PluginTestFunction], PluginTestFunction]:
    """Make a function a test of the plugin in the file, which gets the plugin, and raises to fail.

    Args:
        name: Its name; None takes the function's name.
        description: A line about it; None takes the first of its docstring.
    """

    def decorate(function: PluginTestFunction) -> PluginTestFunction:
        collected = _collecting.get()
        if collected is not None:
            about = (inspect.getdoc(function) or "").partition("\n")[0]
            label = name or str(getattr(function, "__name__", "test"))
            collected.tests.append(PluginTest(label, description or about, function))
        return function

    return decorate


test_plugin.__test__ = False  # type: ignore[attr-defined]  # its name makes pytest take it for one


def collect(source: str, name: str, file_name: str = "") -> RegisteredPlugin:
    """Run the source of a plugin in a fresh module and return the registered plugin.

    Raises:
        PluginError: If the source raises, or registers no plugin, or more than one.
    """
    file_name = file_name or f"<plugin {name}>"
    collected = _Collected()
    token = _collecting.set(collected)
    try:
        _run(source, name, file_name)
    except (Exception, SystemExit) as error:
        problem = f"{file_name} does not load: {type(error).__name__}: {error}"
        raise PluginError(name, problem) from error
    finally:
        _collecting.reset(token)
    if len(collected.definitions) != 1:
        found = len(collected.definitions)
        raise PluginError(name, f"{file_name} registers {found} plugins and must register one.")
    return RegisteredPlugin(_factory(collected.definitions[0], name), collected.tests)


def _run(source: str, name: str, file_name: str) -> None:
    """Execute the source as a module that dataclasses, pickle and tracebacks can find."""
    module = ModuleType(f"{MODULE_PREFIX}{name}")
    module.__file__ = file_name
    code = compile(source, file_name, "exec", dont_inherit=True)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    # Size and time None: linecache then never drops the lines for not finding the file.
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    try:
        exec(code, module.__dict__)
    except BaseException:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
        raise


def _factory(definition: Definition, name: str) -> PluginFactory:
    if not isinstance(definition, type):
        return functools.partial(_FunctionPlugin, definition)
    if not issubclass(definition, Plugin):
        raise PluginError(name, f"{definition.__name__} must be a subclass of Plugin.")
    if inspect.isabstract(definition):
        raise PluginError(name, f"{definition.__name__} must define __call__.")
    return definition


class _FunctionPlugin(Plugin):
    """A plugin that is a function, logs failed calls and looks like the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        ctx: PluginContext,
        config: Mapping[str, Any],
    ) -> None:
        super().__init__(name, ctx, config)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]  # update_wrapper
        except Exception as error:
            self.log("error", f"{type(error).__name__}: {error}")
            raise
