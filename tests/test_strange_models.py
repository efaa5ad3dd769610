"""What people may hand to `compile`: odd results, odd inputs, random numbers, state, unsupported tensors."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_leaves

import minicompile as mc
from minicompile.errors import CompileError
from tests.layouts import laid_out

PARAMETER = nn.Parameter(torch.randn(3, 4), requires_grad=False)


def same_as_eager(model: Callable[..., Any], *inputs: Any, calls: int = 2) -> None:
    """Call the compiled model and a copy of the model: same results, structure, inputs afterwards, state."""
    twin = copy.deepcopy(model) if isinstance(model, nn.Module) else model
    f = mc.compile(model, fullgraph=True)
    for call in range(calls):
        mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error")
            torch.manual_seed(call)
            got = f(*mine)
            torch.manual_seed(call)
            want = twin(*theirs)
        compare(got, want)
        compare(mine, theirs)
        assert places(got, mine) == places(want, theirs)
        if isinstance(model, nn.Module):
            compare(dict(model.state_dict()), dict(twin.state_dict()))
    assert len(f.entries) == 1


def compare(got: Any, want: Any) -> None:
    (a, in_a), (b, in_b) = tree_flatten(got), tree_flatten(want)
    assert in_a == in_b
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        if not isinstance(y, torch.Tensor):
            assert x == y
            continue
        assert y.numel() == 0 or x.stride() == y.stride()
        tolerance = {"rtol": 0.02, "atol": 0.02} if y.dtype.itemsize == 2 else {}
        torch.testing.assert_close(x, y, equal_nan=True, **tolerance)


def places(results: Any, inputs: Any) -> list[list[int]]:
    """For each tensor among the results, the numbers of the inputs that it shares memory with."""
    memory = [x.untyped_storage().data_ptr() for x in tensors(inputs)]
    return [
        [n for n, m in enumerate(memory) if m == x.untyped_storage().data_ptr()]
        for x in tensors(results)
        if x.numel()
    ]


def tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


RESULTS: dict[str, Callable[..., Any]] = {
    "nothing": lambda x: None,
    "nothing, in place": lambda x: [x.add_(1), None][1],
    "number": lambda x: x.shape[0] + 2,
    "text": lambda x: "text",
    "empty list": lambda x: [],
    "list of lists": lambda x: [[x + 1, [x * 2]], (), {"a": x - 1, "b": None, "c": 3.5}],
    "same tensor twice": lambda x: [x + 1] * 2,
    "equal tensors": lambda x: (x + 1, x + 1),
    "input": lambda x: x,
    "input twice": lambda x: (x, x),
    "view of input": lambda x: x[1:],
    "views and values": lambda x: (x.t(), x.t() + 1, x.view(-1)[::2]),
    "changed input": lambda x: x.mul_(2),
    "view of changed input": lambda x: (x.mul_(2)[0], x.sum()),
    "old and new": lambda x: (x.clone(), x.mul_(2), x.clone()),
    "parameter": lambda x: PARAMETER,
    "view of parameter": lambda x: PARAMETER.t(),
    "copy of parameter": lambda x: PARAMETER * 1,
    "constant": lambda x: torch.ones(2, 3),
    "constant list": lambda x: torch.tensor([1.0, 2.0, 3.0]),
    "expanded": lambda x: x.sum(0).expand(5, 4),
    "scalar": lambda x: x.sum(),
    "empty": lambda x: x[:0] * 2,
    "empty and sum": lambda x: ((x[:0] * 2).sum(0), x[:, :0].amax(0), x[3:].mean()),
    "transposed": lambda x: torch.exp(x.t()),
    "channels last": lambda x: x.view(1, 3, 2, 2).contiguous(memory_format=torch.channels_last) + 1,
    "named tuple": lambda x: torch.max(x, 1),
    "dtypes": lambda x: (x.double(), x.half(), x.bfloat16(), x.long(), x > 0, x.to(torch.uint8)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    same_as_eager(RESULTS[name], torch.arange(12.0).view(3, 4))


def test_no_inputs() -> None:
    same_as_eager(lambda: torch.arange(6.0).view(2, 3) + 1)
    same_as_eager(lambda: None)


def test_results_of_two_calls_share_nothing() -> None:
    f, x = mc.compile(lambda x: (x + 1, x + 1, torch.zeros(3))), torch.ones(3)
    a, b = f(x), f(x)
    a[0].zero_()
    assert torch.equal(a[1], x + 1) and torch.equal(b[0], x + 1)
    a[2].add_(1)
    assert torch.equal(f(x)[2], torch.zeros(3))


INPUTS: dict[str, torch.Tensor] = {
    "scalar": torch.tensor(2.0),
    "empty": torch.empty(0, 4),
    "empty last": torch.empty(3, 0),
    "one element": torch.ones(1, 1, 1),
    "rank 8": torch.randn(2, 1, 2, 1, 2, 1, 2, 3),
    "large": torch.randn(70000, 17),
    **{layout: laid_out(torch.randn(6, 5, 4), layout) for layout in ("transposed", "gaps", "offset")},
    "expanded": torch.randn(1, 4).expand(5, 4),
    "float64": torch.randn(3, 4, dtype=torch.float64),
    "bfloat16": torch.randn(3, 4).bfloat16(),
    "float16": torch.randn(3, 4).half(),
    "int64": torch.arange(12).view(3, 4),
    "int8": torch.arange(-6, 6, dtype=torch.int8).view(3, 4),
    "uint8": torch.arange(12, dtype=torch.uint8).view(3, 4),
    "bool": torch.arange(12).view(3, 4) % 3 == 0,
    "complex": torch.randn(3, 4, dtype=torch.complex64),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name: str) -> None:
    """Pointwise, a broadcast, a row's sum, and a new shape."""

    def model(x: torch.Tensor) -> Any:
        y = x * 3 + 1
        return y, y.sum(-1), y.reshape(-1)[::2], (y - y[..., :1]) * 2, torch.cat([x, y], 0 if x.dim() else None)  # type: ignore[arg-type] # fmt: skip

    def scalar(x: torch.Tensor) -> Any:
        return x * 3 + 1, x.sum(), x.reshape(-1) + 1, x.exp()

    same_as_eager(model if INPUTS[name].dim() else scalar, INPUTS[name])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_models_of_other_dtypes(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(),
                          nn.Linear(64, 5), nn.LayerNorm(5), nn.Softmax(-1))  # fmt: skip
    model = model.to(dtype).eval().requires_grad_(False)
    same_as_eager(model, torch.randn(2, 3, 6, 6, dtype=dtype))


def test_inputs_that_share_memory() -> None:
    """Changing one changes the other: right, or left to eager."""
    x = torch.arange(6.0)

    def model(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        return b * 2

    for first, second in ((x, x), (x, x[1:]), (x[:4], x[2:])):
        a, b = copy.deepcopy((first, second))  # (deepcopy keeps what they share)
        want = model(*copy.deepcopy((first, second)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.testing.assert_close(mc.compile(model)(a, b), want)


# ---------------------------------------------------------------------------------- state, randomness


def test_dropout_in_training_draws_what_eager_draws() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Dropout(0.2)).train()
    same_as_eager(model.requires_grad_(False), torch.randn(6, 4), calls=3)


def test_random_numbers_go_on() -> None:
    f = mc.compile(lambda x: x + torch.rand(3), fullgraph=True)
    assert not torch.equal(f(torch.zeros(3)), f(torch.zeros(3)))
    same_as_eager(lambda x: (torch.rand(3) + x, torch.randn_like(x), torch.randint(9, (4,))), torch.ones(3))  # fmt: skip


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False),
                                  nn.BatchNorm1d(4, track_running_stats=False)])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batch_norm_in_training(norm: nn.Module, dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(4, 4), copy.deepcopy(norm)).train().requires_grad_(False)
    same_as_eager(model.to(dtype), torch.randn(8, 4, dtype=dtype), calls=3)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.mean.lerp_(x.mean(0), 0.1)
        self.mean[0] = self.count
        return x - self.mean


def test_buffers_change() -> None:
    same_as_eager(Counter(), torch.randn(3, 4), calls=4)


# ---------------------------------------------------------------------------------- not supported

SPARSE = torch.eye(3).to_sparse()
OTHERS = {
    "meta": torch.ones(3, 3, device="meta"),
    "sparse": SPARSE,
    "quantized": torch.empty(3, 3, dtype=torch.float8_e4m3fn),
    "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_unsupported_tensors_are_named(name: str) -> None:
    """With fullgraph=True an error that names what it cannot do; else a warning, and eager's result."""
    x = OTHERS[name]

    def model(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with pytest.raises(CompileError, match=r"MC013") as e:
        mc.compile(model, fullgraph=True)(x)
    assert len(str(e.value).splitlines()) > 1, "no remedy"
    with pytest.warns(UserWarning, match="run eagerly"):
        got = mc.compile(model)(x)
    assert type(got) is type(x) and (got.device, got.layout) == (x.device, x.layout)


def test_complex_models_run() -> None:
    same_as_eager(lambda x: torch.fft.ifft(torch.fft.fft(x) * 2).real + x.abs(), torch.randn(8))
    same_as_eager(lambda x: torch.view_as_real(torch.polar(x.abs(), x) * 1j), torch.randn(8))
