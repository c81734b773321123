#!/usr/bin/env bash
# Regenerates lance_format/proto/*_pb2.py(i) from the .proto files beside them.
# The compiler's version fixes the oldest protobuf runtime that the package accepts (see pyproject.toml).
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet "grpcio-tools==1.74.0" "setuptools<81"
"$environment/bin/python" -m grpc_tools.protoc --proto_path=. --python_out=. --pyi_out=. lance_format/proto/*.proto
