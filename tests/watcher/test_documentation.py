"""What the documentation shows is right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from watcher.watch_config import watch_config

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_configuration_in_the_documentation_is_valid() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "watch.md").read_text(), re.DOTALL)
    config = watch_config(tomllib.loads(text))
    assert config.consumer == "my-job"
    assert config.clearing is not None
    assert config.table["Events"].shard == "time"
