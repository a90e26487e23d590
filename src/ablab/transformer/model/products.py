"""Matrix products in single precision, by the faster library of this processor.

PyTorch computes them on a CPU by MKL, which gives AMD's processors kernels of AVX2. On an EPYC of Zen 5, these leave
half of the processor idle, and oneDNN's, which PyTorch has for bfloat16, use all of it. Elsewhere, for small products,
on other devices and in other precisions, everything here is `F.linear`, `mm` and `addmm_`, bit for bit.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

LEAST = 1 << 24
"""Fewest multiplications of a product for which oneDNN pays: by MKL, so many take 0.3 ms on a core."""

STEPS = 16
"""Numbers of rows between one power of 2 and the next for which there are kernels.

oneDNN compiles a kernel for every shape, in 0.3 ms and more, and keeps it in half a megabyte. The number of tokens
differs from batch to batch, so rows of zeros fill it up, by 2 % on average.
"""


class Linear(nn.Linear):
    """x W^T + b, as `nn.Linear`."""

    def forward(self, x: Float[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*batch d_in"], weight: Float[Tensor, "d_out d_in"], bias: Float[Tensor, "d_out"] | None = None
) -> Float[Tensor, "*batch d_out"]:
    """Return x W^T + b, as `F.linear`."""
    if x.dim() < 2 or not _by_onednn(x, weight, x.numel() * weight.size(0)):
        return F.linear(x, weight, bias)
    rows = x.flatten(0, -2)
    found: Tensor = _Linear.apply(_filled(rows), weight, bias)
    return found[: len(rows)].unflatten(0, x.shape[:-1])


def product(
    left: Float[Tensor, "rows inner"], right: Float[Tensor, "inner columns"], out: Tensor | None = None
) -> Float[Tensor, "rows columns"]:
    """Return left @ right.

    `out`: memory that the result may take where no gradient is needed, as allocating it costs as much as a pass over
    it; oneDNN takes its own.
    """
    if not _by_onednn(left, right, left.numel() * right.size(1)):
        return torch.mm(left, right, out=out)
    found: Tensor = _Linear.apply(_filled(left), right.T, None)
    return found[: len(left)]


def add_product(
    total: Float[Tensor, "rows columns"], left: Float[Tensor, "inner rows"], right: Float[Tensor, "inner columns"]
) -> None:
    """Add left^T right to `total`, in place; `total` keeps its precision, which may be a higher one."""
    if total.dtype != right.dtype:
        total += left.T @ right
    elif _by_onednn(left, right, left.numel() * right.size(1)):
        total += _turned(_filled(left), _filled(right))
    else:
        total.addmm_(left.T, right)


class _Linear(torch.autograd.Function):
    """`linear` by oneDNN: PyTorch knows no gradient of its product. This one has derivatives of every order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        of_x, of_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if of_weight else None, weight if of_x else None)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        return (
            None if weight is None else _Linear.apply(grad, weight.T, None),
            None if x is None else _turned(grad, x).contiguous(),
            grad.sum(dim=0) if ctx.needs_input_grad[2] else None,
        )


def _turned(left: Tensor, right: Tensor) -> Tensor:
    """Return left^T right. oneDNN copies what it gets transposed on its left: here the smaller of the two."""
    found: Tensor
    if left.size(1) <= right.size(1):
        found = _Linear.apply(left.T, right.T, None)
    else:
        found = _Linear.apply(right.T, left.T, None).T
    return found


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # With gaps in memory, a weight is multiplied a thousand times more slowly, and a bias is read as if it had none.
    if not (weight.is_contiguous() or weight.T.is_contiguous()):
        weight = weight.contiguous()
    found: Tensor = torch.ops.mkldnn._linear_pointwise(
        x, weight, None if bias is None else bias.contiguous(), "none", [], ""
    )
    return found


def _filled(x: Float[Tensor, "rows width"]) -> Float[Tensor, "more width"]:
    """Return x with rows of zeros up to the next number of rows that has kernels."""
    step = max(1, (1 << (len(x) - 1).bit_length()) // (2 * STEPS))
    missing = -len(x) % step
    return F.pad(x, (0, 0, 0, missing)) if missing else x


def _by_onednn(left: Tensor, right: Tensor, multiplications: int) -> bool:
    return (
        multiplications >= LEAST
        and not torch.compiler.is_compiling()  # compiled layers keep PyTorch's own products
        and left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and mkl_is_slow()
    )


@cache
def mkl_is_slow() -> bool:
    """Return whether this is a processor of AMD's Zen 5 or a later one, the first with AVX-512 and AVX-VNNI.

    One with AMX is left to MKL: nobody has measured any.
    """
    if not (torch.backends.mkl.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    has = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    new = has.get("avx512_f") and has.get("avx_vnni") and not has.get("amx_tile")
    return bool(new) and "AMD" in str(has.get("cpu_name"))
