"""What cannot be captured is refused with the user's line; errors of the model stay eager's own."""

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from minicompile.capture import capture
from minicompile.errors import CompileError

X = torch.randn(2, 3)


def branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return -x


def item(x: Tensor) -> Tensor:
    return x * x.sum().item()


def tolist(x: Tensor) -> Tensor:
    return x * len(x[0].tolist())


def nonzero(x: Tensor) -> Tensor:
    y = x + 1
    return y.nonzero()


def mask(x: Tensor) -> Tensor:
    return x[x > 0]


def to_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() + 1)


def prints(x: Tensor) -> Tensor:
    print(x.mean())
    return x


def formats(x: Tensor) -> Tensor:
    assert f"{x}"
    return x


def equal(x: Tensor) -> Tensor:
    return x if torch.equal(x, x + 1) else -x


@pytest.mark.parametrize(
    "f",
    [branch, item, tolist, nonzero, mask, to_numpy, prints, formats, equal],
    ids=lambda f: f.__name__,
)
def test_values_that_steer_python(f: Any) -> None:
    with pytest.raises(CompileError, match="MC011") as error:
        capture(f, (X,))
    first, line = inspect.getsourcelines(f)[1], error.value.where
    offset = 2 if f is nonzero else 1
    assert line == f"test_refuse.py:{first + offset} in {f.__name__}()"
    assert error.value.context in inspect.getsource(f) and "torch.where" in error.value.remedy


def test_errors_of_the_model_itself() -> None:
    def mismatch(x: Tensor) -> Tensor:
        return x @ x

    def mistake(x: Tensor) -> Tensor:
        return x.no_such_thing

    with pytest.raises(RuntimeError) as shapes:
        capture(mismatch, (X,))
    assert not isinstance(shapes.value, CompileError)
    assert shapes.value.__notes__ == [
        f"  at test_refuse.py:{inspect.getsourcelines(mismatch)[1] + 1} in mismatch(): return x @ x"
    ]
    with pytest.raises(AttributeError):
        capture(mistake, (X,))
    with pytest.raises(TypeError):
        capture(mismatch, ())


def test_shape_errors_are_not_logged(caplog: Any) -> None:
    with pytest.raises(RuntimeError):
        capture(lambda x: x @ x, (X,))
    assert not caplog.records


class Stateful(nn.Module):
    """Forward changes the module in one way or another."""

    cache: Tensor

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.calls, self.last = how, 0, torch.zeros(3)
        self.register_buffer("cache", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "count":
            self.calls += 1
        if self.how == "buffer":
            self.cache = self.cache + x
        if self.how == "attribute":
            self.last = self.last + x
        if self.how == "new":
            self.seen = x
        if self.how == "scratch":
            self.last = x * 2
            return self.last + 1
        return x + 1


@pytest.mark.parametrize("how", ["count", "buffer", "attribute", "new"])
def test_side_effects_on_modules(how: str) -> None:
    model = Stateful(how)
    before, buffer, last = set(vars(model)), model.cache, model.last
    with pytest.raises(CompileError, match="MC012: the model sets its attribute"):
        capture(model, (torch.ones(3),))
    assert set(vars(model)) == before and model.calls == 0
    assert model.cache is buffer and model.last is last


def test_scratch_attributes_are_fine() -> None:
    model = Stateful("scratch")
    last = model.last
    assert len(capture(model, (torch.ones(3),)).graph.nodes) == 2
    assert model.last is last
    old_style = torch.nn.utils.weight_norm(nn.Linear(3, 3))
    capture(old_style, (X,))


def seeds(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return x + torch.rand(3)


def draws(x: Tensor) -> Tensor:
    return x * random.random()


@pytest.mark.parametrize("f", [seeds, draws])
def test_generators_outside_the_graph(f: Any) -> None:
    states = torch.get_rng_state(), random.getstate()
    with pytest.raises(CompileError, match="MC012"):
        capture(f, (X,))
    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]


def data(x: Tensor) -> Tensor:
    x.data = torch.zeros(3)
    return x + 1


def transpose_(x: Tensor) -> Tensor:
    return x.t_() + 1


@pytest.mark.parametrize("f", [data, transpose_])
def test_memory_of_arguments(f: Any) -> None:
    with pytest.raises(
        CompileError, match="MC012: the model replaces the memory or the shape of x"
    ):
        capture(f, (X.clone(),))


def test_written_memory_that_another_argument_shows() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        return x.add_(1) + y

    x = torch.ones(3)
    with pytest.raises(CompileError, match=r"MC012: the model writes to x, whose memory y shares"):
        capture(f, (x, x))
    with pytest.raises(CompileError, match="as_strided"):
        capture(lambda x: x.as_strided((1,), (1,), 0), (torch.ones(3)[1:],))


class Wrapped(torch.Tensor):
    """A tensor subclass."""


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (X.to("meta"), "device meta"),
        (X.to_sparse(), "torch.sparse_coo"),
        (torch.quantize_per_tensor(X, 1.0, 0, torch.qint8), "quantized"),
        (X.to(torch.float8_e5m2), "float8_e5m2"),
        (X.as_subclass(Wrapped), "Wrapped"),
        (X.to(torch.complex64).conj(), "resolve_conj"),
    ],
)
def test_kinds_of_tensors(x: Tensor, words: str) -> None:
    with pytest.raises(CompileError, match="MC013") as error:
        capture(lambda x: x, (x,))
    assert words in str(error.value) and error.value.remedy


def test_kinds_of_tensors_inside() -> None:
    with pytest.raises(CompileError, match=r"MC013.*float8") as error:
        capture(lambda x: x.to(torch.float8_e5m2).float(), (X,))
    assert "test_refuse.py" in error.value.where
    with pytest.raises(CompileError, match=r"MC013.*meta"):
        capture(lambda x: torch.empty(3, device="meta"), (X,))
    with pytest.raises(CompileError, match=r"MC013.*Generator"):
        capture(lambda x: torch.rand(3, generator=torch.Generator()), (X,))


class Box:
    """Holds a tensor where pytrees do not look."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def test_objects_that_may_hide_tensors() -> None:
    with pytest.raises(CompileError, match=r"MC002.*box is a Box"):
        capture(lambda box: box.tensor + 1, (Box(X),))
    with pytest.raises(CompileError, match=r"MC010.*returns a Box"):
        capture(lambda x: Box(x + 1), (X,))
    with pytest.raises(CompileError, match=r"MC002.*not callable"):
        capture(3, (X,))


def test_lazy_modules() -> None:
    with pytest.raises(CompileError, match=r"MC010.*no shape yet"):
        capture(nn.LazyLinear(3), (X,))


def test_scripted_modules() -> None:
    with pytest.raises(CompileError, match=r"MC010.*TorchScript"):
        capture(nn.Sequential(torch.jit.script(nn.Linear(3, 3))), (X,))


def test_changed_lists_and_dictionaries_are_refused() -> None:
    def grows(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
        log.append(x)
        return x

    def replaces(d: dict[str, torch.Tensor]) -> torch.Tensor:
        d["x"] = d["x"] + 1
        return d["x"]

    for model, arguments in ((grows, (X, [])), (replaces, ({"x": X},))):
        with pytest.raises(CompileError, match=r"MC012.*list or dictionary"):
            capture(model, arguments)


def test_gradients_inside_are_refused() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return x + 1

    with pytest.raises(CompileError, match=r"MC012.*requires a gradient"):
        capture(f, (X.clone().requires_grad_(),))


def test_seeding_that_is_put_back_afterwards() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return torch.nn.functional.dropout(x, 0.5)

    before = torch.get_rng_state()
    with pytest.raises(CompileError, match=r"MC012.*seeds torch's random generator"):
        capture(model, (torch.ones(8),), {})
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.manual_seed.__module__ == "torch.random"
