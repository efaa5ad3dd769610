"""What `compile` returns: entries, guards, fallbacks, and looking at it."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import minicompile as mc
from minicompile.compiled import Compiled
from minicompile.errors import CompileError


def quiet(f: Any, *args: Any) -> Any:
    """f(*args) without gradients, and with every warning an error."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        return f(*args)


def test_a_function_and_a_second_shape() -> None:
    f = mc.compile(lambda x: torch.relu(x) * 2)
    for n in (3, 5, 3):
        x = torch.randn(n)
        torch.testing.assert_close(quiet(f, x), torch.relu(x) * 2)
    assert len(f.entries) == 2


def test_as_decorator_with_and_without_options() -> None:
    @mc.compile
    def f(x: torch.Tensor) -> torch.Tensor:
        """Doc."""
        return x + 1

    @mc.compile(disable=("cse",), fullgraph=True)
    def g(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    x = torch.randn(3)
    assert torch.equal(quiet(f, x), x + 1) and torch.equal(quiet(g, x), x + 1)
    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert "cse" in f.stages and "cse" not in g.stages


def test_weights_are_read_at_call_time() -> None:
    model = nn.Linear(4, 3)
    f, x = mc.compile(model), torch.randn(2, 4)
    quiet(f, x)
    with torch.no_grad():
        model.weight.mul_(2)
    torch.testing.assert_close(quiet(f, x), quiet(model, x))
    model.weight = nn.Parameter(torch.randn(3, 4))
    torch.testing.assert_close(quiet(f, x), quiet(model, x))
    assert len(f.entries) == 1


def test_a_model_that_changes_its_kind_is_compiled_anew() -> None:
    model = nn.Linear(4, 3)
    f, x = mc.compile(model), torch.randn(2, 4)
    quiet(f, x)
    model.weight = nn.Parameter(torch.randn(5, 4))
    model.bias = nn.Parameter(torch.randn(5))
    torch.testing.assert_close(quiet(f, x), quiet(model, x))
    assert len(f.entries) == 1


def test_gradients_run_eagerly_with_a_warning() -> None:
    model = nn.Linear(4, 3)
    f, x = mc.compile(model), torch.randn(2, 4)
    quiet(f, x)
    with pytest.warns(UserWarning, match="gradients are needed"):
        f(x).sum().backward()
    assert model.weight.grad is not None


def test_python_values_and_pytrees() -> None:
    def model(d: dict[str, Any], n: int, flag: bool = False) -> tuple[Any, ...]:
        x, y = d["pair"]
        return {"sum": x + y * n}, [x], n if flag else None

    f = mc.compile(model)
    x, y = torch.randn(3), torch.randn(3)
    out = quiet(f, {"pair": (x, y)}, 2)
    torch.testing.assert_close(out[0]["sum"], x + y * 2)
    assert out[1][0] is x and out[2] is None
    assert quiet(lambda: f({"pair": (x, y)}, 3, flag=True))[2] == 3
    assert len(f.entries) == 2


def test_data_dependent_control_flow() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    x = torch.ones(3)
    with pytest.raises(CompileError, match=r"MC011.*") as e:
        mc.compile(model, fullgraph=True)(x)
    assert "test_compiled.py" in str(e.value)
    f = mc.compile(model)
    with pytest.warns(UserWarning, match="run eagerly"):
        assert torch.equal(f(x), x + 1)
    assert torch.equal(f(-x), -x - 1)


def test_the_models_own_errors_stay_its_own() -> None:
    f = mc.compile(nn.Linear(4, 3))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        f(torch.randn(2, 5))


def test_an_index_out_of_range_is_an_error_with_its_line() -> None:
    f = mc.compile(nn.Embedding(10, 4))
    quiet(f, torch.tensor([1, 2]))
    with pytest.raises(IndexError, match="10"), torch.no_grad():
        f(torch.tensor([1, 12]))
    assert quiet(f, torch.tensor([3, 4])).shape == (2, 4)


@pytest.mark.parametrize(
    ("keywords", "word"),
    [
        ({"backend": "cpo"}, "backend 'cpo'"),
        ({"mode": "fast"}, "mode 'fast'"),
        ({"disable": ("cze",)}, "pass 'cze'"),
        ({"disable": "lower"}, "'lower'"),
        ({"options": {"colour": 1}}, "option 'colour'"),
    ],
)
def test_bad_names_list_the_valid_ones(keywords: dict[str, Any], word: str) -> None:
    with pytest.raises(CompileError, match=r"MC001") as e:
        mc.compile(lambda x: x, **keywords)
    assert word in str(e.value)


def test_not_callable() -> None:
    with pytest.raises(CompileError, match="MC002"):
        mc.compile(3)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="nothing has been compiled yet"):
        assert mc.compile(lambda x: x).stages


def test_a_foreign_backend_is_passed_on() -> None:
    f = mc.compile(lambda x: x + 1, backend="eager")
    assert not isinstance(f, Compiled)
    assert torch.equal(f(torch.zeros(2)), torch.ones(2))


def test_the_interpreter_backend() -> None:
    x = torch.randn(3, 4)
    f = mc.compile(lambda x: torch.softmax(x, -1), backend="interpreter")
    torch.testing.assert_close(quiet(f, x), torch.softmax(x, -1))


def test_stages_print_run_and_compare() -> None:
    x = torch.randn(3, 4)
    f = mc.compile(lambda x: torch.softmax(x, -1) * 1).prepare(x)
    names = list(f.stages)
    assert names[0] == "capture" and names[-2:] == ["codegen", "build"]
    for stage in f.stages.values():
        assert stage.text and stage.dot and stage.stats
        if stage.call is not None:
            torch.testing.assert_close(stage.run(x), torch.softmax(x, -1))
    assert "def " in f.guards
    with pytest.raises(CompileError, match="stage 'cze'"):
        f.stages["cze"]


def test_explain_and_check() -> None:
    x = torch.randn(3, 4)
    assert "fuse" in str(mc.explain(torch.tanh, x))
    result = mc.compile(torch.tanh).check(x)
    assert result.ok and result.rows[-1].stage == "run" and "float64" in str(result)


def test_calls_from_several_threads() -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8))
    f = mc.compile(model)
    inputs = [torch.randn(4, 16) for _ in range(8)]
    results: dict[int, torch.Tensor] = {}

    def work(n: int) -> None:
        with torch.no_grad():
            for _ in range(20):
                results[n] = f(inputs[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, x in enumerate(inputs):
        torch.testing.assert_close(results[n], quiet(model, x))
    assert len(f.entries) == 1


def test_attributes_of_the_module() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    f = mc.compile(model)
    assert list(f.state_dict()) == list(model.state_dict())
    f.eval()
    assert not model.training and not f.training
    with pytest.raises(AttributeError):
        f.no_such_attribute  # noqa: B018


def test_train_and_eval_are_two_entries() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    f, x = mc.compile(model), torch.randn(8, 4)
    mean = model[1].running_mean.clone()
    quiet(f, x)
    assert not torch.equal(model[1].running_mean, mean)  # training: the statistics move
    model.eval()
    torch.testing.assert_close(quiet(f, x), quiet(model, x))
    assert len(f.entries) == 2


class Decorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    @mc.compile
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x).relu()


def test_a_decorated_method() -> None:
    a, b, x = Decorated(), Decorated(), torch.randn(3, 4)
    for model in (a, b):
        torch.testing.assert_close(quiet(model, x), quiet(lambda v, m=model: m.fc(v).relu(), x))


def test_torch_compile_finds_the_backend() -> None:
    x = torch.randn(3, 4)
    f = torch.compile(lambda x: torch.softmax(x, -1) + 1, backend="minicompile", fullgraph=True)
    torch.testing.assert_close(quiet(f, x), torch.softmax(x, -1) + 1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_have_their_own_weights(copied: Any) -> None:
    model, x = nn.Linear(3, 4), torch.randn(2, 3)
    f = mc.compile(model)
    want = quiet(f, x)
    g = copied(f)
    torch.testing.assert_close(quiet(g, x), want)
    with torch.no_grad():
        g.weight.zero_()
    torch.testing.assert_close(quiet(f, x), want)
    assert not torch.equal(quiet(g, x), want)


@pytest.mark.parametrize(
    "keywords",
    [
        {"options": 3},
        {"options": {"cache_dir": 3}},
        {"options": {"pipeline": "cse"}},
        {"disable": 3},
        {"mode": None},
        {"fullgraph": "yes"},
        {"dynamic": "yes"},
    ],
    ids=str,
)
def test_values_of_the_wrong_kind(keywords: dict[str, Any]) -> None:
    with pytest.raises(CompileError, match="MC002"):
        mc.compile(torch.sin, **keywords)


def test_attributes_are_set_on_the_module() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = 2.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    model = Scaled()
    f = mc.compile(model)
    assert torch.equal(quiet(f, torch.ones(2)), torch.full((2,), 2.0))
    f.scale = 3.0
    assert model.scale == 3.0
    assert torch.equal(quiet(f, torch.ones(2)), torch.full((2,), 3.0))
    assert len(f.entries) == 2


def test_a_compiled_function_inside_another() -> None:
    inner = mc.compile(lambda x: x + 1)
    outer = mc.compile(lambda x: inner(x) * 2, fullgraph=True)
    assert torch.equal(quiet(outer, torch.ones(3)), torch.full((3,), 4.0))
    assert not inner.entries
