"""A second device that any machine has: it goes by the name of `meta`, and holds numbers.

Within `Elsewhere()` tensors made on or sent to `meta` are computed by the CPU, and may no more meet tensors of the CPU in
one operation than those of a GPU may: only `.to` takes them from one to the other.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

HERE, THERE = torch.device("cpu"), torch.device("meta")


class Sent(torch.Tensor):
    """A tensor of the second device; `held` has its numbers."""

    def __new__(cls, held):
        made = cls._make_wrapper_subclass(cls, held.shape, strides=held.stride(), dtype=held.dtype, device=THERE)
        made.held = held
        return made

    def tolist(self):
        return self.held.tolist()

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} outside of Elsewhere()")


class Elsewhere(TorchDispatchMode):
    """
    Attributes:
        sent: shapes of what went from one device to the other, with the device that it went to.
    """

    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        given = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        devices = {one.device for one in given if one.ndim}  # a single number may be anywhere
        asked = kwargs.get("device")
        if func is torch.ops.aten._to_copy.default and asked is not None:
            if asked != given[0].device:
                self.sent.append((asked.type, *given[0].shape))
        elif len(devices) > 1:
            raise RuntimeError(f"{func}: tensors on two devices")
        where = asked or next(iter(devices or {one.device for one in given}), HERE)
        if asked is not None:
            kwargs["device"] = HERE
        if func.overloadpacket is torch.ops.aten.copy_ and given[0].device != given[1].device:
            raise RuntimeError("copy_: tensors on two devices")
        args, kwargs = tree_map(lambda one: one.held if isinstance(one, Sent) else one, (args, kwargs))
        result = func(*args, **kwargs)
        if func._schema.name.endswith("_") and isinstance(result, torch.Tensor):
            return given[0]
        return tree_map(lambda one: Sent(one) if isinstance(one, torch.Tensor) and where == THERE else one, result)
