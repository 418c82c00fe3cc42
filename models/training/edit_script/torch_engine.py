"""The same step as `native.Engine` in PyTorch, for a GPU (or to check the kernels on a CPU).

All groups of a step are one sequence; `flex_attention` gets a block mask that lets an edit see its
region and itself, so that nothing is spent on padding or on other groups. Weights, gradients and
optimiser state are float32, products bf16 on a GPU. Takes over the optimiser's state of the native
engine and gives it back, so that a run can move between machines.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from native import Step
from network import Block, Decoder, attend, rotary
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention


def _layer(
    layer: Block, x: Tensor, cosine: Tensor, sine: Tensor, mask: BlockMask | Tensor
) -> Tensor:
    query, key, value = layer.heads(x, cosine, sine)
    if isinstance(mask, Tensor):  # flex_attention has no backward pass on a CPU
        return layer.finish(x, attend(query, key, value, mask))
    attended = flex_attention(query, key, value, block_mask=mask, enable_gqa=True)
    assert isinstance(attended, Tensor)
    return layer.finish(x, attended)


def _loss_of_head(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(F.linear(hidden, weight).float(), labels)


class TorchEngine:
    """Weights, gradients and optimiser state of one model on a device."""

    def __init__(
        self, masters: dict[str, Tensor], device: str, compiled: bool = True, rows: int = 0
    ) -> None:
        """Take weights.

        Args:
            masters: float32, by the names of `network.Decoder`.
            device: as PyTorch names it.
            compiled: whether layers are compiled.
            rows: steps are padded to so many, so that compiled code fits all of them.
        """
        layers = 1 + max(int(n.split(".")[1]) for n in masters if n.startswith("layers."))
        self.device = torch.device(device)
        self._rows = rows
        self.model = Decoder(len(masters["embedding.weight"]), layers).to(self.device)
        self.model.load_state_dict(masters)
        self._named = dict(self.model.named_parameters())
        matrices = [p for p in self._named.values() if p.dim() > 1]
        vectors = [p for p in self._named.values() if p.dim() == 1]
        self.optimiser = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}],
            betas=(0.9, 0.95),
            fused=self.device.type == "cuda",
        )
        self._layer = torch.compile(_layer, dynamic=False) if compiled else _layer
        self._mask = torch.compile(create_block_mask) if compiled else create_block_mask

    @property
    def masters(self) -> dict[str, Tensor]:
        """The weights, on the CPU."""
        return {name: p.detach().cpu() for name, p in self._named.items()}

    @property
    def gradients(self) -> dict[str, Tensor]:
        """The gradients of the last `loss`."""
        return {name: p.grad for name, p in self._named.items() if p.grad is not None}

    def loss(self, step: Step) -> Tensor:
        """Return the mean loss and leave its gradient.

        The value stays on the device: asking for it waits for the step.
        """
        rows = max(self._rows, step.rows)
        used = step.rows

        def padded(values: Tensor) -> Tensor:
            out = torch.zeros(rows, dtype=torch.long)
            out[:used] = values[:used]
            return out.to(self.device, non_blocking=True)

        owners = torch.full((rows,), len(step.starts), dtype=torch.long)
        places = torch.arange(rows)
        for number in range(len(step.starts) - 1):
            here = slice(int(step.starts[number]), int(step.starts[number + 1]))
            owners[here] = number
            places[here] -= here.start
        owner, place = owners.to(self.device), places.to(self.device)
        region, own = padded(step.regions), padded(step.own)

        def visible(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            same = (owner[query] == owner[key]) & (key <= query)
            return same & ((place[key] < region[query]) | (place[key] >= own[query]))

        mask: BlockMask | Tensor
        if self.device.type == "cuda":
            mask = self._mask(visible, None, None, rows, rows, device=self.device)
        else:
            at = torch.arange(rows)
            allowed = visible(at, at, at[:, None], at[None])
            mask = torch.zeros(1, 1, rows, rows).masked_fill_(
                ~(allowed | torch.eye(rows, dtype=torch.bool)), float("-inf")
            )
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            x = self.model.embedding(padded(step.tokens))[None]
            cosine, sine = rotary(padded(step.positions)[None], torch.float32)
            cosine, sine = cosine.to(self.device), sine.to(self.device)
            for layer in self.model.layers:
                x = self._layer(layer, x, cosine, sine, mask)
            chosen = self.model.norm(x)[0, step.chosen.to(self.device)]
            loss = _loss_of_head(
                chosen, self.model.embedding.weight, step.labels.long().to(self.device)
            )
        loss.backward()
        return loss.detach()

    def update(self, rate: float, most: float = 1.0) -> Tensor:
        """One AdamW step with the gradient's norm held to `most`; returns the norm it had."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        norm = torch.nn.utils.clip_grad_norm_(self._named.values(), most)
        self.optimiser.step()
        return norm

    def state(self) -> dict[str, Any]:
        """Return the optimiser's state in the form of the native engine."""
        states = {name: self.optimiser.state.get(p, {}) for name, p in self._named.items()}
        if not all(states.values()):
            zeros = {name: torch.zeros_like(p, device="cpu") for name, p in self._named.items()}
            return {"first": zeros, "second": zeros, "steps": 0}
        return {
            "first": {name: s["exp_avg"].cpu() for name, s in states.items()},
            "second": {name: s["exp_avg_sq"].cpu() for name, s in states.items()},
            "steps": int(next(iter(states.values()))["step"]),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take an optimiser's state over."""
        for name, p in self._named.items():
            self.optimiser.state[p] = {
                "step": torch.tensor(
                    float(state["steps"]),
                    device=self.device if self.device.type == "cuda" else "cpu",
                ),
                "exp_avg": state["first"][name].to(self.device),
                "exp_avg_sq": state["second"][name].to(self.device),
            }
