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


def transformers_js(exported: Path, target: Path) -> None:
    """Optimum's export below onnx/, whole, in 8 bits and in 4, the texts in the root.

    The quantisers and their settings are those of `scripts/quantize.py` in transformers.js. The
    graph in 4 bits has its weights in a file of their own, as newer repositories have them.
    """
    graphs = target / "onnx"
    graphs.mkdir(parents=True)
    for name in (*TEXTS, "special_tokens_map.json", "chat_template.jinja"):
        if (exported / name).exists():
            shutil.copy(exported / name, target / name)
    shutil.copy(exported / "model.onnx", graphs / "model.onnx")
    quantize_to_8_bits(graphs / "model.onnx", graphs / "model_quantized.onnx")
    quantize_to_4_bits(graphs / "model.onnx", graphs / "model_q4.onnx")


def quantize_to_8_bits(source: Path, target: Path) -> None:
    import onnx
    from onnxruntime.quantization import QuantizationMode, QuantType
    from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer
    from onnxruntime.quantization.registry import IntegerOpsRegistry

    quantizer = ONNXQuantizer(
        onnx.load(source),
        per_channel=None,
        reduce_range=None,
        mode=QuantizationMode.IntegerOps,
        static=False,
        weight_qType=QuantType.QInt8,
        activation_qType=QuantType.QUInt8,
        tensors_range=None,
        nodes_to_quantize=[],
        nodes_to_exclude=[],
        op_types_to_quantize=set(IntegerOpsRegistry),
        extra_options={"EnableSubgraph": True, "MatMulConstBOnly": True},
    )
    quantizer.quantize_model()
    onnx.save(quantizer.model.model, target)


def quantize_to_4_bits(source: Path, target: Path) -> None:
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True)
    quantizer.process()
    onnx.save(
        quantizer.model.model,
        target,
        save_as_external_data=True,
        location=f"{target.name}_data",
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
            "transformers-js": lambda to: transformers_js(layouts / "optimum", to),
        },
    }
    for name, build in steps[tools].items():
        if not (layouts / name).exists():
            build(layouts / f"{name}.partial")
            (layouts / f"{name}.partial").rename(layouts / name)
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
