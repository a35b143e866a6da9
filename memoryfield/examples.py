"""Where the example fields are: beside the package in a source tree, inside it in an installed one."""

from __future__ import annotations

from pathlib import Path

from memoryfield.errors import FieldNotFound

EXAMPLES = ("harbor", "bread")


def example_field(name: str = "harbor") -> Path:
    """Return the directory of an example field.

    Args:
        name: ``harbor`` (a boat workshop, 180 pages) or ``bread`` (12 pages, for teaching).

    Raises:
        FieldNotFound: There is no example of that name.
    """
    package = Path(__file__).parent
    places = [package.parent / "data" / name, package / "data" / name]
    for place in places:
        if place.is_dir():
            return place
    raise FieldNotFound(f"no example field {name!r}; looked in {', '.join(str(place) for place in places)}")
