"""Build hook: puts a software bill of materials into the wheel (PEP 770, CycloneDX 1.7).

It lists what the wheel needs, with the versions that pyproject.toml allows: nothing is bundled, so
each dependency is an external component with a range of versions.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.utils import get_reproducible_timestamp
from hatchling.metadata.core import ProjectMetadata
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

NOT_AT_RUN_TIME = frozenset({"dev"})
"""Extras for those who work on the project."""
EXTRA_PROPERTY = "cdx:python:package:required-extra"
"""CycloneDX's registered name for the extra that asks for a component."""
RANGE_OPERATORS = frozenset({">=", "<=", ">", "<", "!="})


class BomHook(BuildHookInterface[Any]):
    """Writes the bill of materials before the wheel is built, and removes it afterwards."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As ``BuildHookInterface.initialize``; an editable wheel gets no bill of materials."""
        if version != "standard":
            return
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / f"{self.metadata.core.name}.cdx.json"
        path.write_text(json.dumps(make_bom(self.metadata), indent=2) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """As ``BuildHookInterface.finalize``."""
        del build_data, artifact_path
        if version == "standard":
            self._folder.cleanup()


def make_bom(metadata: ProjectMetadata[Any]) -> dict[str, Any]:
    """The document. Equal metadata and SOURCE_DATE_EPOCH give equal bytes."""
    core = metadata.core
    root = {
        "type": "library",
        "bom-ref": make_purl(core.name, metadata.version),
        "name": core.name,
        "version": metadata.version,
        "description": core.description,
        "licenses": [{"expression": core.license_expression}],
        "purl": make_purl(core.name, metadata.version),
    }
    components = list_components(core.name, core.dependencies, core.optional_dependencies)
    references = [component["bom-ref"] for component in components]
    built_at = datetime.fromtimestamp(get_reproducible_timestamp(), UTC)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "metadata": {
            "timestamp": built_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "component": root,
        },
        "components": components,
        "dependencies": [
            {"ref": root["bom-ref"], "dependsOn": references},
            *({"ref": reference} for reference in references),
        ],
    }
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom))}"} | bom


def list_components(
    product: str, required: Iterable[str], optional: Mapping[str, Iterable[str]]
) -> list[dict[str, Any]]:
    """What the product needs, then what its extras add, each once."""
    components: dict[str, dict[str, Any]] = {}
    for text in required:
        component = make_component(Requirement(text), "required")
        components[component["bom-ref"]] = component
    for extra in sorted(optional.keys() - NOT_AT_RUN_TIME):
        for text in optional[extra]:
            requirement = Requirement(text)
            if canonicalize_name(requirement.name) == product:
                continue  # one extra asks for another
            component = make_component(requirement, "optional")
            component = components.setdefault(component["bom-ref"], component)
            if component["scope"] == "optional":
                properties = component.setdefault("properties", [])
                properties.append({"name": EXTRA_PROPERTY, "value": extra})
    return list(components.values())


def make_component(requirement: Requirement, scope: str) -> dict[str, Any]:
    """A dependency, which the environment provides in a version of its range."""
    purl = make_purl(requirement.name)
    return {
        "type": "library",
        "bom-ref": purl,
        "name": canonicalize_name(requirement.name),
        "versionRange": make_range(requirement.specifier),
        "isExternal": True,
        "scope": scope,
        "purl": purl,
    }


def make_purl(name: str, version: str | None = None) -> str:
    """The package URL of a distribution of PyPI."""
    return f"pkg:pypi/{canonicalize_name(name)}" + (f"@{version}" if version else "")


def make_range(specifiers: SpecifierSet) -> str:
    """A range of versions as a ``vers`` URI: its constraints in the order of their versions.

    Raises ValueError for an operator that ``vers`` has not.
    """
    if not specifiers:
        return "vers:pypi/*"
    for each in specifiers:
        if each.operator not in RANGE_OPERATORS:
            raise ValueError(
                f"'{each}' cannot be written as a range of versions in the bill of materials: use"
                f" {', '.join(sorted(RANGE_OPERATORS))} in pyproject.toml"
            )
    ordered = sorted(specifiers, key=lambda each: Version(each.version))
    return "vers:pypi/" + "|".join(f"{each.operator}{each.version}" for each in ordered)
