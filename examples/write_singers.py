"""Writes three singers, as an application would: it knows nothing of watching.

python examples/write_singers.py spanner://projects/P/instances/I/databases/D
"""

import sys

from google.cloud import spanner

_, project, _, instance, _, name = sys.argv[1].removeprefix("spanner://").split("/")
client = spanner.Client(project, disable_builtin_metrics=True)
database = client.instance(instance).database(name)
with database.batch() as batch:
    batch.insert_or_update(
        "Singers",
        ("SingerId", "FirstName", "LastName"),
        [(1, "Marc", "Richards"), (2, "Catalina", "Smith"), (3, "Alice", "Trentor")],
    )
