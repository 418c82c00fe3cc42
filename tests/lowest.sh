#!/usr/bin/env bash
# The contracts with others, on the lowest version of each dependency that pyproject.toml allows: what
# the screen uses of Textual, the guard of ruff, the client of websockets and httpx, the server of
# starlette and uvicorn.  The newest versions are those that a fresh environment gets anyway.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/uv"
"$work/uv/bin/pip" install -q uv
"$work/uv/bin/uv" venv -q --python "$(command -v python3)" "$work/lowest"
python=$work/lowest/bin/python
"$work/uv/bin/uv" pip install -q --python "$python" --resolution lowest-direct -e '.[test]'
"$work/uv/bin/uv" pip list -q --python "$python" 2>/dev/null |
    grep -E '^(textual|ruff|websockets|httpx|starlette|uvicorn|onnxruntime|numpy) '
PYTHONPATH=app "$python" -m pytest -q -n auto -p no:cacheprovider \
    tests/tui/test_tui_contract.py tests/guard/test_stream.py \
    tests/responses/test_responses_http.py tests/serving/test_serving_socket.py
