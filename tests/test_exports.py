"""The public face: its list is complete and in order, and every name on it is there."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import memoryfield
from memoryfield import errors


def test_the_list_is_sorted_and_without_repeats() -> None:
    assert list(memoryfield.__all__) == sorted(set(memoryfield.__all__))


@pytest.mark.parametrize("name", getattr(memoryfield, "__all__", []))
def test_every_name_on_the_list_resolves(name: str) -> None:
    assert getattr(memoryfield, name) is not None
    assert getattr(memoryfield, name) is getattr(memoryfield, name)


def test_nothing_public_is_missing_from_the_list() -> None:
    for name in memoryfield.__all__:
        getattr(memoryfield, name)  # lazy names settle in the module here
    present = {
        name
        for name, value in vars(memoryfield).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert present - {"annotations", "Any", "TYPE_CHECKING"} <= set(memoryfield.__all__)


def test_dir_shows_the_list_before_anything_is_loaded() -> None:
    code = "import memoryfield as mf; print(sorted(set(mf.__all__) - set(dir(mf))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


def exceptions() -> dict[str, type]:
    """Return the classes that errors.py declares."""
    classes = {name: value for name, value in vars(errors).items() if inspect.isclass(value)}
    return {name: value for name, value in classes.items() if value.__module__ == errors.__name__}


def test_the_exceptions_are_reached_from_the_face() -> None:
    assert memoryfield.errors is errors
    assert memoryfield.MemoryfieldError is errors.MemoryfieldError


def test_every_exception_has_the_one_base() -> None:
    assert [name for name, value in exceptions().items() if not issubclass(value, errors.MemoryfieldError)] == []


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        memoryfield.no_such_thing  # noqa: B018
