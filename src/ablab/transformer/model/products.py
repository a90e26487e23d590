"""Matrix products in single precision, by the faster library of this processor.

PyTorch computes them on a CPU by MKL, which gives AMD's processors kernels of AVX2. From Zen 5 on, these leave half of
the processor idle, and oneDNN's, which PyTorch has for bfloat16, use all of it. Elsewhere, for small products, on other
devices and in other precisions, everything here is what PyTorch's own function of the name returns, bit for bit.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

LEAST = 1 << 24
"""Fewest multiplications of a product for which oneDNN pays.

It compiles a kernel for every new shape, in 0.3 ms, and the number of tokens differs from batch to batch: a product of
this size saves half of that each time.
"""


class Linear(nn.Linear):
    """x W^T + b, as `nn.Linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, "d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """Return x W^T + b, as `F.linear`."""
    if not _by_onednn(x, weight, x.numel() * weight.size(0)):
        return F.linear(x, weight, bias)
    found: Tensor = _Linear.apply(x.flatten(0, -2), weight, bias)
    return found.unflatten(0, x.shape[:-1])


def product(
    left: Float[Tensor, "rows inner"], right: Float[Tensor, "inner columns"], out: Tensor | None = None
) -> Float[Tensor, "rows columns"]:
    """Return left @ right, which has a gradient on some processors only.

    `out`: memory that the result may take, as allocating it costs as much as a pass over it; oneDNN takes its own.
    """
    if not _by_onednn(left, right, left.numel() * right.size(1)):
        return torch.mm(left, right, out=out)
    return _onednn(left, right.T)


def add_product(
    total: Float[Tensor, "rows columns"], left: Float[Tensor, "rows inner"], right: Float[Tensor, "inner columns"]
) -> None:
    """Add left @ right to `total`, in place; `total` keeps its precision, which may be a higher one."""
    if total.dtype != right.dtype:
        total += left @ right
    elif _by_onednn(left, right, left.numel() * right.size(1)):
        total += product(left, right)
    else:
        total.addmm_(left, right)


class _Linear(torch.autograd.Function):
    """`linear` by oneDNN: PyTorch knows no gradient of its product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(grad, weight) if of_x else None,
            product(grad.T, x) if of_weight else None,
            grad.sum(dim=0) if of_bias else None,
        )


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


def _by_onednn(left: Tensor, right: Tensor, multiplications: int) -> bool:
    return (
        not torch.compiler.is_compiling()  # the compiler chooses by itself
        and multiplications >= LEAST
        and left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and mkl_is_slow()
    )


@cache
def mkl_is_slow() -> bool:
    """Return whether this is a processor of AMD with AVX-512 of full width: Zen 5, the first with AVX-VNNI, or later.

    One with AMX is left to MKL: nobody has measured any.
    """
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    new = has.get("avx512_f") and has.get("avx_vnni") and not has.get("amx_tile")
    return bool(new) and "AMD" in str(has.get("cpu_name")) and hasattr(torch.ops.mkldnn, "_linear_pointwise")
