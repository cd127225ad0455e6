"""Training activations: every tensor that the forward pass keeps for the backward pass.

``count.kept`` lists them for a model, ``megatron.megatron_bytes`` is the published estimate.
"""

from paramcalc.deploy.activations.count import Activations, Layer, kept
from paramcalc.deploy.activations.megatron import megatron_bytes
from paramcalc.deploy.activations.tensors import Kept

__all__ = ["Activations", "Kept", "Layer", "kept", "megatron_bytes"]
