"""A wafer beside GPUs: the same model and context, each with its own formula and band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from midstream.wafer import gpu as gpus
from midstream.wafer.errors import WaferUsageError
from midstream.wafer.machines import Gpu, hardware
from midstream.wafer.operators import Workload
from midstream.wafer.options import Options
from midstream.wafer.quantity import Band
from midstream.wafer.report import simulate, unit_of

DEFAULT_MACHINES = ("wse3", "b200x8", "h200x8", "h100x8", "a100x8")


@dataclass(frozen=True, slots=True)
class Contender:
    """One machine in a comparison; all values simulated.

    Attributes:
        machine: Name as given.
        label: Full name with count.
        rate: Tokens per second of one sequence.
        first_token: Seconds until the first token of a prompt as long as the context.
        joules_per_token: Nameplate energy per token.
        watts: Nameplate power.
    """

    machine: str
    label: str
    rate: Band
    first_token: Band
    joules_per_token: float
    watts: float
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "machine": self.machine,
            "label": self.label,
            "tokens_per_s": self.rate.as_dict(),
            "first_token_s": self.first_token.as_dict(),
            "joules_per_token": self.joules_per_token,
            "nameplate_w": self.watts,
            "notes": list(self.notes),
            "simulated": True,
        }


def compare(
    workload: Workload, options: Options, machines: Sequence[str] = DEFAULT_MACHINES
) -> list[Contender]:
    """Simulate one model on several machines.

    Raises:
        WaferUsageError: A machine is unknown.
        DoesNotFitError: The model does not fit on the wafers asked for.
    """
    if not machines:
        raise WaferUsageError("Name at least one machine to compare, for example wse3,h200x8.")
    return [_contender(workload, options, name) for name in machines]


def _contender(workload: Workload, options: Options, name: str) -> Contender:
    machine = hardware(name)
    if isinstance(machine, Gpu):
        return _gpu(workload, options, machine, name)
    report = simulate(workload, replace(options, hardware=machine.name))
    plan = report.plan
    return Contender(
        name,
        f"{plan.wafers} x {machine.label}",
        report.rate,
        report.first_token,
        report.joules_per_token,
        plan.hw.number("power_kw") * 1e3 * plan.wafers,
        (*report.notes, f"{report.occupancy:.1%} of stages busy"),
    )


def _gpu(workload: Workload, options: Options, machine: Gpu, name: str) -> Contender:
    if workload.product:
        return _gpu_product(workload, machine, name)
    shape = workload.shape
    bits = options.weight_bits or shape.native_bits
    token = gpus.decode(
        shape,
        machine,
        context=options.context,
        batch=options.batch,
        weight_bits=bits,
        kv_bits=options.kv_bits,
    )
    prompt = gpus.prefill(shape, machine, prompt=options.prompt or options.context)
    notes = [] if token.fits_memory else [f"does not fit in {machine.count_gpus} GPUs' memory"]
    return Contender(
        name,
        f"{machine.count_gpus} x {machine.label}",
        token.rate.scaled(1.0 / options.batch),
        prompt.rate.inverted(float(options.prompt or options.context), "s"),
        gpus.energy_joules(machine, token.seconds) / options.batch,
        machine.count_gpus * machine.number("tdp_w"),
        tuple(notes),
    )


def _gpu_product(workload: Workload, machine: Gpu, name: str) -> Contender:
    product = workload.kinds[0][0]
    seconds = gpus.gemv_us(product.k, product.n, machine) * 1e-6
    rate = Band.around(1.0 / seconds, gpus.BAND_OTHER_GPU, unit_of(workload), "assumed")
    return Contender(
        name,
        f"{machine.count_gpus} x {machine.label}",
        rate,
        rate.inverted(1.0, "s"),
        gpus.energy_joules(machine, seconds),
        machine.count_gpus * machine.number("tdp_w"),
        (),
    )
