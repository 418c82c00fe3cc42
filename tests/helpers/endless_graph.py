"""Model folders whose graph computes without end."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def make_endless(folder: Path, above: int) -> None:
    """Have the graph of a folder never end where it is given more than ``above`` tokens at once."""
    path = str(folder / "model.onnx")
    model = onnx.load(path)
    graph = model.graph
    scalar = partial(helper.make_tensor_value_info, shape=[])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["goes"], ["goes_on"]),
            helper.make_node("Identity", ["sum"], ["new_sum"]),
        ],
        "body",
        [
            scalar("round", TensorProto.INT64),
            scalar("goes", TensorProto.BOOL),
            scalar("sum", TensorProto.FLOAT),
        ],
        [scalar("goes_on", TensorProto.BOOL), scalar("new_sum", TensorProto.FLOAT)],
    )
    constants = {
        "above": np.array(above, np.int64),
        "no_rounds": np.array(0, np.int64),
        "many_rounds": np.array(2**62, np.int64),
        "always": np.array(True),
        "nothing": np.array(0, np.float32),
    }
    graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in constants.items())
    graph.node.extend(
        [
            helper.make_node("Size", ["input_ids"], ["given"]),
            helper.make_node("Greater", ["given", "above"], ["is_long"]),
            helper.make_node("Where", ["is_long", "many_rounds", "no_rounds"], ["rounds"]),
            helper.make_node("Loop", ["rounds", "always", "nothing"], ["looped"], body=body),
        ]
    )
    # What is kept of every token waits for the loop, so that no run goes without it.
    outputs = {output.name for output in graph.output}
    for node in list(graph.node):
        for place, name in enumerate(node.output):
            if name in outputs:
                node.output[place] = f"{name}.before"
                graph.node.append(helper.make_node("Add", [f"{name}.before", "looped"], [name]))
    onnx.save(model, path)
