"""The base for kustomize has every manifest, and kustomize can put them together."""

from __future__ import annotations

from typing import Any

import yaml
from fixtures.deployed import DEPLOY

FOLDER = DEPLOY / "kubernetes"
FILE = "kustomization.yaml"


def read_base() -> dict[str, Any]:
    base: dict[str, Any] = yaml.safe_load((FOLDER / FILE).read_text())
    return base


def test_the_base_has_every_manifest() -> None:
    base = read_base()
    assert base.keys() == {"apiVersion", "kind", "resources"}
    assert base["kind"] == "Kustomization"
    assert sorted([*base["resources"], FILE]) == sorted(p.name for p in FOLDER.iterdir())


def test_no_two_resources_have_one_name() -> None:
    """Kustomize refuses an identifier that is there twice."""
    documents = [
        each
        for name in read_base()["resources"]
        for each in yaml.safe_load_all((FOLDER / name).read_text())
    ]
    names = [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in documents]
    assert len(names) == len(set(names))
    assert len(names) > len(read_base()["resources"])
