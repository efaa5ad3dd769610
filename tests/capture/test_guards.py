"""A guard holds for calls of the captured kind, fails for any other, and says why in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from minicompile.capture import Guard, ParameterReader, ParametersChanged, capture, make_guard


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def guard_of(f: Any, *args: Any, **kwargs: Any) -> Guard:
    return make_guard(capture(f, args, kwargs))


def double(x: Tensor) -> Tensor:
    return x * 2


X = torch.ones(2, 8)
OTHERS = {
    "x: dtype torch.float64, was torch.float32": X.double(),
    "x: shape (4, 8), was (2, 8)": torch.ones(4, 8),
    "x: strides (1, 2), were (8, 1)": torch.ones(8, 2).t(),
    "x: device meta, was cpu": X.to("meta"),
    "x: <class 'int'>, was a tensor": 3,
    "x: layout torch.sparse_coo, was torch.strided": X.to_sparse(),
    "x: it is a lazily negated view": torch._neg_view(X),
}


@pytest.mark.parametrize("words", OTHERS)
def test_tensors(words: str) -> None:
    guard = guard_of(double, X)
    assert guard.check([torch.zeros(2, 8)]) and guard.explain([X]) == ""
    assert not guard.check([OTHERS[words]])
    assert guard.explain([OTHERS[words]]) == words


def test_layout() -> None:
    guard = guard_of(double, torch.ones(8, 2).t())
    assert guard.check([torch.zeros(8, 2).t()]) and not guard.check([X])
    assert guard_of(double, torch.ones(1, 8)[:, ::2]).check([torch.ones(1, 8)[:, ::2]])


def test_contiguous_is_enough() -> None:
    guard = guard_of(double, torch.ones(1, 8))
    assert guard.check([torch.ones(4, 8)[:1]]) and guard.check([torch.ones(8, 1).t()])


def test_conjugates() -> None:
    c = torch.ones(2, dtype=torch.complex64)
    assert "conjugated" in guard_of(double, c).explain([c.conj()])


def options(x: Tensor, a: Any, *, mode: str = "m", flag: bool = True) -> Tensor:
    return x


@pytest.mark.parametrize(
    ("value", "same", "others"),
    [
        (3, [3], [4, 3.0, True, "3", None]),
        (0.0, [0.0], [-0.0, 0]),
        (float("nan"), [float("nan")], [1.0]),
        (2.5, [2.5], [2.25]),
        (True, [True], [False, 1]),
        (None, [None], [0]),
        ("a{b}", ["a{b}"], ["c", None]),
        (torch.float32, [torch.float32], [torch.float64]),
        (slice(0, 2), [slice(0, 2)], [slice(0, 3)]),
    ],
)
def test_values(value: Any, same: list[Any], others: list[Any]) -> None:
    guard = guard_of(options, X, value)
    for v in same:
        assert guard.check([X, v]), v
    for v in others:
        assert not guard.check([X, v]), v
        assert guard.explain([X, v]).startswith("a: ")


def test_training_flags_that_were_read() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.ReLU()).eval()
    guard = guard_of(model, X)
    assert "training is False" in guard.text and guard.text.count("training") == 1
    model[0].train()
    assert guard.check([X])
    model.train()
    assert guard.explain([X]) == "1: training is True, was False"


def test_modules_that_were_replaced() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8)))
    guard = guard_of(model, X)
    model[1][0] = nn.Linear(8, 8)
    assert not guard.check([X]) and guard.explain([X]) == "a module inside 1 was replaced"


def test_tied_weights() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    model[1].weight = model[0].weight
    guard = guard_of(model, X)
    assert guard.check([X])
    model[1].weight = nn.Parameter(torch.zeros(8, 8))
    assert "no longer one tensor" in guard.explain([X])


def test_gradients() -> None:
    with torch.enable_grad():
        guard = guard_of(double, X)
        assert guard.check([X])
        assert guard.explain([torch.ones(2, 8, requires_grad=True)]) == "gradients are needed"
        assert guard_of(nn.Linear(8, 8), X).explain([X]) == "gradients are needed"
        assert guard_of(nn.Linear(8, 8).requires_grad_(False), X).check([X])
    assert guard.check([torch.ones(2, 8, requires_grad=True)])


def test_autocast_and_default_dtype() -> None:
    plain, made = guard_of(double, X), guard_of(lambda x: x + torch.ones(8), X)
    with torch.autocast("cpu"):
        assert "autocast is on" in plain.explain([X])
        under = guard_of(nn.Linear(8, 8), X)
        assert under.check([X])
    assert "autocast is off" in under.explain([X])
    torch.set_default_dtype(torch.float64)
    try:
        assert plain.check([X]) and "default dtype" in made.explain([X])
    finally:
        torch.set_default_dtype(torch.float32)


def accumulate(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return x * y


def test_memory_shared_with_what_is_written() -> None:
    guard, x = guard_of(accumulate, X.clone(), X.clone()), X.clone()
    assert guard.check([x, X])
    assert "shares memory" in guard.explain([x, x]) and not guard.check([x, x.view(2, 8)])
    assert guard_of(lambda x, y: x + y, X, X).check([x, x])


def test_as_strided_counts_from_the_storage() -> None:
    guard = guard_of(lambda x: x.as_strided((2,), (1,), 1), torch.ones(4))
    assert "inside its storage" in guard.explain([torch.ones(5)[1:]])


def test_names_cannot_clash() -> None:
    def f(Tensor: Any, is_grad_enabled: Any, plain: Any) -> Any:
        return Tensor + is_grad_enabled + plain

    guard = guard_of(f, X, X, 1)
    assert guard.check([X, X, 1]) and not guard.check([X, X, 2])


def test_it_is_short() -> None:
    assert guard_of(double, X).text == (
        "def guard(leaves):\n"
        "    x, = leaves\n"
        "    return (\n"
        "        type(x) in plain\n"
        "        and x.dtype is float32\n"
        "        and x.shape == (2, 8)\n"
        "        and x.layout is strided_layout\n"
        "        and x.is_contiguous()\n"
        "        and x.is_cpu\n"
        "        and not x.is_neg()\n"
        "        and not (is_grad_enabled() and (x.requires_grad))\n"
        "        and not is_any_autocast_enabled()\n"
        "    )\n"
    )


# ------------------------------------------------------------------------------- parameters


def test_parameters_are_read_anew() -> None:
    model = nn.Linear(8, 2)
    reader = ParameterReader(capture(model, (X,)))
    before = reader.pointers()
    assert before == (model.weight.data_ptr(), model.bias.data_ptr())
    assert (
        reader.pointers() is before
        and len([*reader]) == len(reader) == 2
        and reader[1] is model.bias
    )
    assert reader.tensors()[0] is model.weight
    model.weight = nn.Parameter(torch.zeros(2, 8))
    model.bias.data = torch.ones(2)
    assert reader.tensors()[0] is model.weight
    assert reader.pointers() == (model.weight.data_ptr(), model.bias.data_ptr()) != before
    assert "d0['weight'],  # weight" in reader.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.half(), "weight: dtype torch.float16, was torch.float32"),
        (lambda m: m.to("meta"), "weight: device meta, was cpu"),
        (lambda m: setattr(m.weight, "data", torch.ones(3, 8)), "weight: shape (3, 8), was (2, 8)"),
        (
            lambda m: setattr(m.weight, "data", torch.ones(8, 2).t()),
            "weight: strides (1, 2), were (8, 1)",
        ),
        (lambda m: m._parameters.pop("bias"), "bias: it is gone"),
        (lambda m: setattr(m, "bias", None), "bias: it is gone"),
    ],
)
def test_parameters_that_changed_in_kind(change: Any, words: str) -> None:
    model = nn.Linear(8, 2)
    reader = ParameterReader(capture(model, (X,)))
    assert reader.problem() == ""
    change(model)
    assert reader.problem() == words
    with pytest.raises(ParametersChanged):
        reader.pointers()


def test_no_parameters_and_constants() -> None:
    assert ParameterReader(capture(double, (X,))).pointers() == ()
    c = torch.ones(8)
    assert ParameterReader(capture(lambda x: x + c, (X,))).tensors() == [c]


# ------------------------------------------------------------------------------- what is read


SCALE = 2.0


class Scaled(nn.Module):
    """Reads a number, a tuple, a tensor and a global."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8, bias=False)
        self.factor, self.axes, self.cache, self.unread = 3, (0, 1), torch.ones(8), 1

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).sum(self.axes) * self.factor * SCALE + self.cache


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: setattr(m, "factor", 4), "factor: 4, was 3"),
        (lambda m: setattr(m, "factor", 3.0), "factor: 3.0, was 3"),
        (lambda m: delattr(m, "factor"), "factor: None, was 3"),
        (lambda m: setattr(m, "axes", (1,)), "axes: (1,), was (0, 1)"),
        (lambda m: setattr(m.inner, "bias", nn.Parameter(torch.ones(8))), "inner.bias: Param"),
        (lambda m: m.inner.register_forward_hook(lambda *a: None), "a hook was added"),
        (lambda m: m.register_forward_pre_hook(lambda *a: None), "a hook was added"),
        (lambda m: m.__class__.forward.__globals__.update(SCALE=5.0), "the global SCALE: 5.0"),
    ],
)
def test_what_modules_read(change: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    model = Scaled()
    guard = guard_of(model, X)
    model.unread, model.axes = 2, tuple([0, 1])
    assert guard.check([X])
    change(model)
    assert not guard.check([X])
    assert guard.explain([X]).startswith(words)


def test_a_tensor_in_an_attribute_is_read_anew() -> None:
    model = Scaled()
    captured = capture(model, (X,))
    model.cache = torch.zeros(8)
    assert make_guard(captured).check([X])
    assert any(t is model.cache for t in ParameterReader(captured))


def test_hooks_that_change() -> None:
    model = nn.Linear(8, 8)
    handle = model.register_forward_hook(lambda m, x, out: out + 1)
    guard = guard_of(model, X)
    assert guard.check([X])
    handle.remove()
    assert not guard.check([X])


def test_closures_and_objects() -> None:
    class Owner:
        k = 1

        def method(self, x: Tensor) -> Tensor:
            return x * self.k * factor

    factor = 2.0
    owner = Owner()
    owner.k = 3
    guard = guard_of(owner.method, X)
    assert guard.check([X])
    factor = 3.0
    assert guard.explain([X]) == "factor in the closure: 3.0, was 2.0"
    factor, owner.k = 2.0, 4
    assert guard.explain([X]) == "the attribute k: 4, was 3"
