"""The manifests keep to Kubernetes' own schemas, in which every field is known."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import kubernetes_validate
import pytest
from fixtures.deployed import read_manifests

VERSIONS = ["1.30", kubernetes_validate.latest_version()]
"""Of Kubernetes: clusters that are some years old, and new ones."""
MANIFESTS = [
    pytest.param(manifest, id=f"{file}-{kind}")
    for file in ("watch", "page")
    for kind, manifest in read_manifests(file).by_kind.items()
]


@pytest.mark.parametrize("manifest", MANIFESTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_manifest_keeps_to_the_schema(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_field_that_is_misspelt_is_found() -> None:
    deployment = deepcopy(read_manifests("page").by_kind["Deployment"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    security = container["securityContext"]
    security["readOnlyRootFileSystem"] = security.pop("readOnlyRootFilesystem")
    with pytest.raises(kubernetes_validate.ValidationError, match="readOnlyRootFileSystem"):
        kubernetes_validate.validate(deployment, VERSIONS[0], strict=True)
