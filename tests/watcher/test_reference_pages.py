"""The reference says what the code has: commands, options, settings, metrics, with a meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from prometheus_client import CollectorRegistry, Counter
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from reference_pages import FOLDER, make_pages
from reference_pages.commands import describe_command, iterate_commands
from reference_pages.fields import iterate_hints, list_fields
from reference_pages.markdown import MissingDescriptionError
from reference_pages.metrics import list_metrics

from spanner_schema.model.options import WatchFile, WatchOptions
from watcher.settings.destinations import DESTINATIONS
from watcher.settings.spark import SourceOptions
from watcher.settings.watcher import SECTIONS, WatchConfig, list_options

REMEDY = "run make docs"


def list_first_cells(page: str) -> list[str]:
    """The code in the first cells of the tables of a page."""
    text = (FOLDER / page).read_text()
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_the_pages_are_those_of_the_code() -> None:
    for name, text in make_pages().items():
        assert (FOLDER / name).read_text() == text, f"{name}: {REMEDY}"


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (FOLDER / "commands.md").read_text()
    for name, command in iterate_commands():
        _, _, section = text.partition(f"## `{name}`\n")
        section = section.partition("\n## ")[0]
        assert section, name
        for param in command.params:
            shown = param.param_type_name == "option" and not param.hidden
            for option in param.opts if shown else ():
                assert re.search(rf"`[^`]*{option}\b[^`]*`", section), f"{name} {option}"


def test_every_setting_is_in_the_reference() -> None:
    shown = set(list_first_cells("configuration.md"))
    sections = re.findall(r"^## `\[(.*)\]`$", (FOLDER / "configuration.md").read_text(), re.M)
    shown |= {part for each in sections for part in each.split(".")}
    for path in [*SECTIONS, "directed_read", "endpoint", "table.NAME"]:
        assert path in sections
        assert set(list_options(path.split("."))) - DESTINATIONS.keys() <= shown, path
    named = {section.split(".")[0] for section in sections}
    assert set(WatchConfig.model_fields) <= shown | named


def test_every_option_of_the_spark_source_is_in_the_reference() -> None:
    documented = list_first_cells("spark-options.md")
    assert sorted(documented) == sorted(to_camel(name) for name in SourceOptions.model_fields)


def test_every_setting_of_ddl_is_in_the_reference() -> None:
    documented = list_first_cells("ddl-configuration.md")
    assert documented == [*WatchFile.model_fields, *WatchOptions.model_fields]


class Explained(BaseModel):
    shown: int = 1
    """A number."""
    hidden: int = 2


@dataclass(frozen=True)
class Plain:
    silent: int = 1


@pytest.mark.parametrize("owner", [Explained, Plain])
def test_a_setting_without_a_description_is_refused(owner: type) -> None:
    last = [name for name, _, _ in iterate_hints(owner)][-1]
    with pytest.raises(MissingDescriptionError, match=rf"{owner.__name__}\.{last} has no desc"):
        list(list_fields(owner))


def test_an_option_without_a_description_is_refused() -> None:
    app = typer.Typer()

    @app.command()
    def silent(quick: Annotated[bool, typer.Option("--quick")] = False) -> None:
        """Does nothing."""

    with pytest.raises(MissingDescriptionError, match="silent --quick has no description"):
        list(describe_command("silent", typer.main.get_command(app)))


def test_a_metric_without_a_description_is_refused() -> None:
    registry = CollectorRegistry()
    Counter("rows", "", registry=registry)
    with pytest.raises(MissingDescriptionError, match="rows_total has no description"):
        list(list_metrics(registry))
