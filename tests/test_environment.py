"""The files that describe the installation agree with each other."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT: dict[str, Any] = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))


def bounds(lines: list[str]) -> dict[str, SpecifierSet]:
    """Return package name -> bounds of requirement lines."""
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, lines)}


def conda_part() -> dict[str, SpecifierSet]:
    return bounds([entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)])


def pip_part() -> list[str]:
    (part,) = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    return list(part)


def pins() -> dict[str, SpecifierSet]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return bounds([line for line in lines if line and not line.startswith("#")])


def all_requirements() -> list[str]:
    extras = PROJECT["optional-dependencies"]
    return PROJECT["dependencies"] + [line for extra in extras.values() for line in extra]


def test_environment_yml_names_the_packages_of_pyproject_with_the_same_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    expected = bounds(PROJECT["dependencies"] + extras["offline"] + extras["fast"])
    from_conda = conda_part()
    assert from_conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    assert from_conda.pop("pip") == SpecifierSet()
    from_pip = bounds([line for line in pip_part() if not line.startswith("-e")])
    assert not from_conda.keys() & from_pip.keys(), "named twice"
    assert from_conda | from_pip == expected


def test_environment_yml_installs_the_checkout() -> None:
    assert [line for line in pip_part() if line.startswith("-e")] == ["-e ."]


def test_every_required_package_is_pinned() -> None:
    assert bounds(all_requirements()).keys() <= pins().keys()


@pytest.mark.parametrize("line", all_requirements())
def test_pins_keep_the_bounds(line: str) -> None:
    requirement = Requirement(line)
    (pin,) = pins()[canonicalize_name(requirement.name)]
    assert pin.operator == "=="
    assert requirement.specifier.contains(Version(pin.version)), f"constraints.txt pins {pin.version}"


def test_makefile_installs_the_pinned_torch_first() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = re.search(r"^TORCH \?= torch==(\S+)$", makefile, re.MULTILINE)
    assert found, "the Makefile says which torch it installs first"
    assert pins()["torch"] == SpecifierSet(f"=={found.group(1)}")


@pytest.mark.parametrize("package", ["memoryfield", "memoryfield_widgets"])
def test_one_version_everywhere(package: str) -> None:
    assert importlib.import_module(package).__version__ == PROJECT["version"]


def test_changelog_begins_with_this_version() -> None:
    heading = re.search(r"^## \[?([0-9][^\] ]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading and heading.group(1) == PROJECT["version"]


# What the development container specification says of the properties that are used here.
_COMMAND = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "object"}]}
_DEV_CONTAINER = {
    "type": "object",
    "required": ["image"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "postCreateCommand": _COMMAND,
        "forwardPorts": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 65535}},
        "portsAttributes": {"type": "object", "additionalProperties": {"type": "object"}},
        "customizations": {
            "type": "object",
            "properties": {
                "vscode": {
                    "type": "object",
                    "properties": {
                        "extensions": {"type": "array", "items": {"type": "string", "pattern": r"^[\w-]+\.[\w-]+$"}},
                        "settings": {"type": "object"},
                    },
                }
            },
        },
    },
}


def test_the_dev_container_is_one_that_can_be_made() -> None:
    import jsonschema

    described = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    jsonschema.validate(described, _DEV_CONTAINER)
    image, version = described["image"].split(":")
    assert image == "python" and SpecifierSet(PROJECT["requires-python"]).contains(version)
    # the target that it makes is one of the Makefile's, and the interpreter that it names is the one that comes of it
    assert described["postCreateCommand"] == "make .venv/.installed"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "VENV ?= .venv\n" in makefile and "STAMP := $(VENV)/.installed\n" in makefile
    settings = described["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


def test_binder_installs_what_the_notebooks_need() -> None:
    """Binder looks into ``.binder`` alone: the interpreter from ``runtime.txt``, then ``postBuild`` in the checkout."""
    folder = ROOT / ".binder"
    assert sorted(path.name for path in folder.iterdir()) == ["postBuild", "runtime.txt"]
    version = re.fullmatch(r"python-(3\.\d+)\n", (folder / "runtime.txt").read_text(encoding="utf-8"))
    assert version and SpecifierSet(PROJECT["requires-python"]).contains(version[1])
    script = folder / "postBuild"
    assert script.read_text(encoding="utf-8").startswith("#!/bin/bash\n") and os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)
    (install,) = re.findall(r"^pip install (.*)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = re.search(r"'\.\[([\w,]+)\]'", install)
    assert wanted and {"offline", "fast"} <= set(wanted[1].split(",")) <= PROJECT["optional-dependencies"].keys()
    assert "--constraint constraints.txt" in install and (ROOT / "constraints.txt").is_file()


def test_every_extra_is_explained() -> None:
    text = (ROOT / "docs" / "howto" / "install.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", "\n".join(line for line in text.splitlines() if line.startswith("| `"))))
    assert named >= PROJECT["optional-dependencies"].keys() - {"dev"}
