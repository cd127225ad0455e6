"""Figures of a deployment in pipeline stages, under the names of a sweep's columns."""

from __future__ import annotations

from functools import cached_property

from paramcalc.deploy import columns
from paramcalc.deploy.columns import Placed
from paramcalc.deploy.fit import Deployment, Load, Stage
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.roofline import Step
from paramcalc.deploy.serving import Service, Workload, machine
from paramcalc.numbers import Num


class Staged(Placed):
    """``Placed`` for what it does not hold, by the calculators of ``fit`` and ``serve``: pipeline
    stages, of which the fullest counts, and GPUs whose rates nobody published.

    Where rates are needed and not there, or the model does not write, ``InputError`` is raised.
    """

    def __init__(self, deployment: Deployment, gpu: Accelerator, load: Load) -> None:
        self.deployment = deployment
        self.gpu = gpu
        self.load = load
        self.layout = deployment.layout
        self.gpus = self.layout.gpus
        self.all_batch = load.batch
        self.engine = deployment.engine

    @cached_property
    def stage(self) -> Stage:
        """What one GPU of the fullest stage holds before any request."""
        return self.deployment.busiest(self.load)[1]

    @cached_property
    def cache(self) -> Num:
        """Bytes of cache on one of those GPUs, in pages."""
        return self.deployment.cache_paged(self.stage, self.load)

    @property
    def largest_batch(self) -> Num:
        """Sequences that fit on all GPUs; 0 where none does."""
        return self.deployment.largest_batch(self.load.context, self.gpu.visible_bytes)

    @cached_property
    def service(self) -> Service:
        """The same requests, served."""
        d = self.deployment
        speed = machine(
            self.gpu, d.format, columns.FLOPS_PERCENT, columns.BANDWIDTH_PERCENT, columns.HOP
        )
        return Service(d, self.gpu, speed, Workload(self.load.context, 1, self.load.batch))

    @cached_property
    def step(self) -> Step:
        """One decode step, waiting for the other stages in it."""
        return _lasting(self.service.slowest, self.service.step_time)

    @cached_property
    def first(self) -> Step:
        """Prefill of one prompt, through all stages."""
        return _lasting(self.service.passes[0], self.service.first_token)


def _lasting(step: Step, time: int) -> Step:
    """A step that takes so long in all."""
    return step._replace(exchange=time - (step.time - step.exchange))
