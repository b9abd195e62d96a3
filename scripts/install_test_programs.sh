#!/usr/bin/env bash
# Installs what tests run and pip does not bring: a browser, Prometheus, PostgreSQL, Redis, systemd-analyze, a JDK, Maven, Go,
# axe-core, which judges the page's accessibility, kustomize, kubeconform, and servers of object stores. What is there stays. For Debian and Ubuntu.
set -euo pipefail
cd "$(dirname "$0")/.."

AXE=axe-core-4.14.1
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)

packages=()
has() { command -v "$1" >/dev/null 2>&1; }
need() { has "$1" || packages+=("$2"); }
has chromium-browser || need chromium chromium
need chromedriver chromium-driver
need prometheus prometheus
need promtool prometheus
need javac default-jdk-headless
need mvn maven
need go golang-go
need npm npm
need redis-server redis-server
need systemd-analyze systemd
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)

if [ "${#packages[@]}" -gt 0 ]; then
  options=(-o Acquire::Retries=1 -o Acquire::http::Timeout=20)
  "${as_root[@]}" timeout 120 apt-get "${options[@]}" update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    timeout 600 apt-get "${options[@]}" install -q -y --no-install-recommends "${packages[@]}"
fi

mkdir -p .cache
[ -f ".cache/$AXE.tgz" ] || timeout 120 npm pack "${AXE/core-/core@}" --silent --pack-destination .cache
# moto serves S3; botocore needs an older python-dateutil than the tested versions, so it stands alone.
if ! has moto_server && [ ! -x .cache/moto/bin/moto_server ]; then
  "${PYTHON:-python3}" -m venv .cache/moto
  timeout 300 .cache/moto/bin/pip install --quiet 'moto[server]>=5,<6'
fi
# DuckDB's extensions are packages of another version than the tested one.
if [ ! -x .cache/duckdb/bin/python ]; then
  "${PYTHON:-python3}" -m venv .cache/duckdb
  timeout 300 .cache/duckdb/bin/pip install --quiet duckdb==1.5.5 duckdb-extension-{avro,delta,iceberg}==1.5.5
fi
azurite=.cache/azurite/node_modules/azurite/dist/src/blob/main.js
[ -f "$azurite" ] || timeout 300 npm install --prefix .cache/azurite --silent --no-audit --no-fund azurite@3.35.0
kinds=.cache/kubernetes
has kubeconform || [ -x "$kinds/kubeconform" ] ||
  GOBIN="$PWD/$kinds" timeout 600 go install github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
has kustomize || [ -x "$kinds/kustomize" ] ||
  GOBIN="$PWD/$kinds" timeout 900 go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
if ! has fake-gcs-server && [ ! -x .cache/fake-gcs-server/fake-gcs-server ]; then
  GOBIN="$PWD/.cache/fake-gcs-server" timeout 600 go install github.com/fsouza/fake-gcs-server@v1.56.1
fi
