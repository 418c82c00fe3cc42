"""Write SmolLM2 in the layouts of published ONNX models, with the tools that people publish with.

Called with which tools to use, genai or optimum (they need different versions of transformers), and
the folder in which `convert_smollm2.py` wrote `model`. The layouts are folders below `layouts`; one
that is there already is not built again.
"""

import shutil
import subprocess
import sys
from pathlib import Path

TEXTS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def genai(source: Path, target: Path, precision: str) -> None:
    """ONNX Runtime GenAI's model builder."""
    builder = ["-m", "onnxruntime_genai.models.builder", "-i", str(source), "-o", str(target)]
    cache = target.parent / "cache"
    subprocess.run(
        [sys.executable, *builder, "-p", precision, "-e", "cpu", "-c", str(cache)], check=True
    )


def optimum(source: Path, target: Path) -> None:
    """Optimum's exporter, as `optimum-cli export onnx` runs it."""
    from optimum.exporters.onnx import main_export

    main_export(str(source), target, task="text-generation-with-past", do_validation=False)


def transformers_js(exported: Path, target: Path, graph: str) -> None:
    """Optimum's export with its matrices in 4 bits and external data, below onnx/."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    (target / "onnx").mkdir(parents=True)
    for name in (*TEXTS, "special_tokens_map.json", "chat_template.jinja"):
        if (exported / name).exists():
            shutil.copy(exported / name, target / name)
    quantizer = MatMulNBitsQuantizer(onnx.load(exported / "model.onnx"), block_size=32)
    quantizer.process()
    onnx.save(
        quantizer.model.model,
        target / "onnx" / graph,
        save_as_external_data=True,
        location=f"{graph}_data",
    )


def main(tools: str, folder: Path) -> None:
    source, layouts = folder / "model", folder / "layouts"
    layouts.mkdir(exist_ok=True)
    steps = {
        "genai": {
            "genai-int4": lambda to: genai(source, to, "int4"),
            "genai-fp32": lambda to: genai(source, to, "fp32"),
        },
        "optimum": {
            "optimum": lambda to: optimum(source, to),
            "transformers-js": lambda to: transformers_js(layouts / "optimum", to, "model_q4.onnx"),
        },
    }
    for name, build in steps[tools].items():
        if not (layouts / name).exists():
            build(layouts / f"{name}.partial")
            (layouts / f"{name}.partial").rename(layouts / name)
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
