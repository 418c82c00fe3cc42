"""Measure a shipped model folder: exact match, parse rate and kept lines, through plain ONNX
Runtime, greedily.

Runs the quantised graph token by token, as a user's machine would (no drafting). `eval_known` are
held-out packages with template families that were trained on; `eval_new` the same with held-out
families.
"""

from __future__ import annotations

import argparse
import ast
import json
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from midstream.engine.codec import EditCodec, EditRequest


class GreedyModel:
    """A bare greedy loop over a model folder in GenAI layout."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        """Open the folder."""
        facts = json.loads((folder / "genai_config.json").read_text())["model"]
        decoder = facts["decoder"]
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(
            str(folder / "model.onnx"), options, ["CPUExecutionProvider"]
        )
        self.codec = EditCodec.load(folder)
        self.context = int(facts["context_length"])
        self.layers = int(decoder["num_hidden_layers"])
        self.cache_shape = (1, int(decoder["num_key_value_heads"]), 0, int(decoder["head_size"]))

    def tokens(
        self, prompt: list[int], stops: frozenset[int], guess: list[int], most: int = 768
    ) -> list[int]:
        """Return the greedy continuation of a prompt, its stop token included.

        `guess` is checked in the first pass (a draft, in other words): it saves time where it is
        right and changes nothing where it is wrong.
        """
        names = [
            f"past_key_values.{n}.{part}" for n in range(self.layers) for part in ("key", "value")
        ]
        past = dict.fromkeys(names, np.zeros(self.cache_shape, np.float32))
        out: list[int] = []
        feed, total = prompt + guess, 0
        most = min(most, self.context - len(prompt) - len(guess))
        while len(out) < most:
            total += len(feed)
            inputs = {
                "input_ids": np.array([feed], np.int64),
                "attention_mask": np.ones((1, total), np.int64),
            }
            logits, *present = map(np.asarray, self.session.run(None, inputs | past))
            choices = logits[0].argmax(-1).tolist()
            if not out:
                rows = choices[len(prompt) - 1 :]
                right = 0
                while right < len(guess) and rows[right] == guess[right]:
                    right += 1
                out = rows[: right + 1] if right < len(guess) else list(guess)
                total = len(prompt) + right
                present = [part[:, :, :total] for part in present]
            else:
                out.append(choices[-1])
            if stops & set(out):
                break
            past = dict(zip(names, present, strict=True))
            feed = [out[-1]]
        return out

    def edit(self, request: EditRequest, target: str) -> str:
        """Return the rewritten region (after the kept lines); `target` is only the first guess."""
        encoded = self.codec.encode(request)
        _, guess = self.codec.encode_target(request, target)
        tokens = self.tokens(encoded.prompt_ids, encoded.stop_ids, guess)
        return "".join(map(encoded.decoder.feed, tokens)) + encoded.decoder.finish()


def parses(text: str) -> bool:
    """Whether a region is valid Python once dedented."""
    try:
        ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError):
        return False
    return True


def kept_part(target: str) -> str:
    """Return the first half of the lines of an answer."""
    lines = target.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 2])


def measure(
    model: GreedyModel, examples: list[dict[str, Any]], *, continued: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return (report, examples with the model's answers).

    With `continued` the first half of each right answer counts as already written, as after a stop.
    """
    tasks: dict[str, dict[str, int]] = {}
    answered: list[dict[str, Any]] = []
    kept = lines = 0
    for example in examples:
        kept_text = kept_part(example["target"]) if continued else ""
        request = EditRequest(example["instruction"], example["region"], kept=kept_text)
        answer = kept_text + model.edit(request, example["target"])
        row = tasks.setdefault(example["task"], {"n": 0, "exact": 0, "parses": 0})
        row["n"] += 1
        row["exact"] += answer == example["target"]
        row["parses"] += parses(answer)
        same = set(example["region"].split("\n")) & set(example["target"].split("\n"))
        lines += len(same)
        kept += len(same & set(answer.split("\n")))
        answered.append(example | {"answer": answer, "right": answer == example["target"]})
    count = sum(row["n"] for row in tasks.values())
    report = {
        "n": count,
        "exact_match": round(100 * sum(r["exact"] for r in tasks.values()) / count, 1),
        "parses": round(100 * sum(r["parses"] for r in tasks.values()) / count, 1),
        "untouched_lines_kept": round(100 * kept / lines, 2),
        "tasks": {
            task: {
                "exact_match": round(100 * row["exact"] / row["n"]),
                "parses": round(100 * row["parses"] / row["n"]),
                "n": row["n"],
            }
            for task, row in sorted(
                tasks.items(), key=lambda item: -item[1]["exact"] / item[1]["n"]
            )
        },
    }
    return report, answered


def nothing_to_do(model: GreedyModel, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask for a rename of a name that is not there; return how often nothing changed."""
    request = "rename `no_such_name` to `another_name`"
    same = 0
    for example in examples:
        region = example["region"]
        same += model.edit(EditRequest(request, region), region) == region
    return {"n": len(examples), "unchanged": round(100 * same / len(examples), 1)}


def main() -> None:
    """Measure a model folder on the evaluation sets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, default=Path("models/brook-4m"))
    parser.add_argument("--data", type=Path, default=Path("models/training/data"))
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("models/training/configs/nano.toml"),
        help="the training configuration: tasks that it skips are not measured",
    )
    parser.add_argument("--per-task", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    parser.add_argument("--answers", type=Path, help="write every answer to this file")
    parser.add_argument(
        "--save", action="store_true", help="save the report as evaluation.json in the model folder"
    )
    arguments = parser.parse_args()
    skip = set(tomllib.loads(arguments.config.read_text())["train"]["skip_tasks"])
    model = GreedyModel(arguments.model, arguments.threads)
    report: dict[str, Any] = {"sets": {}}
    answers: list[dict[str, Any]] = []
    for name in ("eval_known", "eval_new"):
        used: dict[str, int] = {}
        examples: list[dict[str, Any]] = []
        for line in (arguments.data / f"{name}.jsonl").read_text().splitlines():
            example = json.loads(line)
            if example["task"] in skip:
                continue
            used[example["task"]] = used.get(example["task"], 0) + 1
            if used[example["task"]] <= arguments.per_task:
                examples.append(example)
        report["sets"][name], found = measure(model, examples)
        if name == "eval_known":
            some = examples[:: max(1, len(examples) // 300)]
            report["continued"], _ = measure(model, some, continued=True)
            del report["continued"]["tasks"]
            report["nothing_to_do"] = nothing_to_do(model, some[:100])
        answers += [row | {"set": name} for row in found]
    if arguments.answers:
        arguments.answers.write_text("".join(json.dumps(row) + "\n" for row in answers))
    if arguments.save:
        (arguments.model / "evaluation.json").write_text(json.dumps(report, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(report, indent=1))
        return
    for name, part in report["sets"].items():
        print(
            f"{name}: exact {part['exact_match']} %, parses {part['parses']} %, "
            f"lines kept {part['untouched_lines_kept']} %"
        )
        for task, row in part["tasks"].items():
            print(f"  {task:22} {row['exact_match']:3} %  parses {row['parses']:3} %  n={row['n']}")


if __name__ == "__main__":
    main()
