"""Weights that a graph uses in two shapes, read from their file in both.

Builders that tie the embedding to the vocabulary projection keep one matrix and reshape it for the
embedding. ONNX Runtime computes that once, which puts a copy of the largest matrix into memory (68
MB of a 317 MB folder). Named twice, the embedding is read from the mapped file instead, of which
only the rows of tokens that occur come into memory.

This module imports ``onnx``, like ``packed_attention``.
"""

from __future__ import annotations

from math import prod

import onnx
from onnx import TensorProto, numpy_helper


def name_twice(model: onnx.ModelProto) -> None:
    """Replace every ``Reshape`` of weights in a file by these weights in the other shape."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    shapes = dict(stored)
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            shapes[node.output[0]] = node.attribute[0].t
    kept: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type == "Reshape" and (weights := stored.get(node.input[0])) is not None:
            shape = shapes.get(node.input[1])
            if shape is not None and (named := _named(node.output[0], weights, shape)) is not None:
                model.graph.initializer.append(named)
                continue
        kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)


def _named(name: str, weights: TensorProto, shape: TensorProto) -> TensorProto | None:
    """The same bytes of the same file in another shape; None if that is not written out."""
    if weights.data_location != TensorProto.EXTERNAL or shape.data_location:
        return None
    dims = [int(size) for size in numpy_helper.to_array(shape)]
    if min(dims, default=0) < 1 or prod(dims) != prod(weights.dims):
        return None
    named = TensorProto()
    named.CopyFrom(weights)
    named.name = name
    named.dims[:] = dims
    return named
