"""What onnxruntime-genai writes greedily: FOLDER and COUNT as arguments, token ids on stdin."""

import json
import sys

import onnxruntime_genai as genai


def main(folder: str, count: int) -> None:
    model = genai.Model(folder)
    for ids in json.load(sys.stdin):
        params = genai.GeneratorParams(model)
        params.set_search_options(do_sample=False, max_length=len(ids) + count)
        generator = genai.Generator(model, params)
        generator.append_tokens(ids)
        written = []
        while not generator.is_done():
            generator.generate_next_token()
            written.append(int(generator.get_next_tokens()[0]))
        print(json.dumps(written), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
