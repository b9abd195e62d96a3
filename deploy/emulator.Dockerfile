# The embedded Spanner in a container, for tests and development:
# docker build -f deploy/emulator.Dockerfile -t spanner-watcher-emulator:1.0.0 .
# docker run --rm -p 9010:9010 spanner-watcher-emulator:1.0.0
# It keeps the databases in memory; to keep them, mount a folder of user 10001 and add --data-dir FOLDER.
FROM python:3.12-slim AS build

WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY scripts/sbom.py scripts/
COPY watcher watcher
COPY spanner_schema spanner_schema
COPY ddl ddl
COPY emulator emulator
COPY benchmarks benchmarks
COPY conformance conformance
RUN python -m venv /opt/spanner-watcher \
 && /opt/spanner-watcher/bin/pip install --no-cache-dir ".[emulator]"

FROM python:3.12-slim

COPY --from=build /opt/spanner-watcher /opt/spanner-watcher
ENV PATH=/opt/spanner-watcher/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /
EXPOSE 9010
HEALTHCHECK --interval=2s --timeout=5s --start-period=30s CMD ["python", "-c", "import grpc; grpc.channel_ready_future(grpc.insecure_channel('127.0.0.1:9010')).result(4)"]
ENTRYPOINT ["spanner-watcher", "emulator", "--host", "0.0.0.0", "--port", "9010"]
