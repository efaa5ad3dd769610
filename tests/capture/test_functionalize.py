"""Pure graphs mean what the captured ones meant: views, writes through them, outputs that alias."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import minicompile as mc
from minicompile.capture import Functionalize, capture
from minicompile.errors import CompileError
from tests.capture.harness import ops, same_as_eager


def x6() -> Tensor:
    return torch.arange(6.0).reshape(2, 3)


def add_(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


def setitem(x: Tensor, y: Tensor) -> Tensor:
    x[1:] = y
    return x.sum()


def views(x: Tensor) -> Any:
    return x, x.t(), x.view(-1)


def out_keyword(x: Tensor, y: Tensor) -> Tensor:
    o = torch.empty_like(x)
    torch.add(x, y, out=o)
    return o


def shift(x: Tensor) -> Tensor:
    x[1:].copy_(x[:-1])
    return x * 1


def view_mutated(x: Tensor) -> Any:
    v = x.view(-1)
    v[0].add_(1)
    return x.t(), v


def chain_of_views(x: Tensor) -> Tensor:
    x.t().select(0, 1).mul_(3)
    x.unsqueeze(0)[0, 0] = 7.0
    return x + 0


def chunks(x: Tensor) -> Any:
    a, b = x.chunk(2)
    a.add_(1)
    b[:, 0].zero_()
    return x * 2, a, b, x.unbind(1)[1]


def stale_view(x: Tensor) -> Tensor:
    e = x.expand(2, 2, 3)
    x.mul_(2)
    return e + 0


def written_twice(x: Tensor) -> Any:
    y = x.clone()
    z = y[0]
    y += 1
    z *= 2
    return y, z


def detached(x: Tensor) -> Tensor:
    y = x * 1
    v = y.detach()
    v.add_(1)
    return y


def diagonal(x: Tensor) -> Tensor:
    y = x @ x.t()
    y.diagonal().fill_(0)
    return y


def permuted(x: Tensor) -> Tensor:
    y = x.reshape(1, 2, 3).permute(2, 0, 1)
    y[0].add_(1)
    return x


def literal(x: Tensor) -> Any:
    t = torch.tensor([1.0, 2.0, 3.0])
    t += x[0]
    return t, torch.tensor(3.0), torch.tensor([4, 5])


def rounded(x: Tensor) -> Tensor:
    h = x.half()
    h.add_(x)
    h.lt_(x * 2)
    return h


def transposed_in_place(x: Tensor) -> Tensor:
    y = x + 1
    y.t_()
    y.unsqueeze_(0)
    return y * 2


def strided(x: Tensor) -> Any:
    y = (x + 1).t()
    inside = torch.as_strided(y.contiguous(), (2, 2), (1, 2), 1)
    return inside, x.t().as_strided((2,), (2,)), (x + 1).t().as_strided((3,), (1,), 2)


def foreach(x: Tensor) -> Any:
    y, z = x + 1, x + 2
    torch._foreach_add_([y, z], 1.0)
    return y, z


def random(x: Tensor) -> Any:
    y = torch.empty_like(x).uniform_()
    z = torch.empty(3, 2).t().normal_()
    return y + torch.randn(2, 3), F.dropout(x, 0.5), z, F.dropout(x.t(), 0.5)


def odd_strides(x: Tensor) -> Any:
    return (x + 1)[0].expand(4, 3), (x + 1)[:, ::2], x.expand(5, 2, 3), (x + 1).t()


def several_results(x: Tensor) -> Any:
    return torch.max(x, 0), torch.sort(x), x.split([1, 2], 1)


def index_put(x: Tensor) -> Tensor:
    x[torch.tensor([0, 1]), torch.tensor([2, 0])] = torch.tensor([9.0, 8.0])
    x.masked_fill_(x > 8.5, -1)
    return x.sum()


def complex_views(x: Tensor) -> Any:
    c = torch.view_as_complex(torch.stack((x, x), -1))
    torch.view_as_real(c)[..., 0].add_(1)
    return c, c.real * 1


CASES = [
    *(
        add_,
        views,
        shift,
        view_mutated,
        chain_of_views,
        chunks,
        stale_view,
        written_twice,
        detached,
    ),
    *(diagonal, permuted, literal, rounded, transposed_in_place, strided, foreach, random),
    *(odd_strides, several_results, index_put, complex_views),
]


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_one_argument(f: Any) -> None:
    same_as_eager(f, x6())


def test_two_arguments() -> None:
    same_as_eager(setitem, x6(), torch.ones(1, 3))
    _, graph = same_as_eager(out_keyword, x6(), x6())
    assert "aten.add.Tensor" in ops(graph)


def test_layout_of_inputs() -> None:
    same_as_eager(views_of_transposed, torch.arange(6.0).reshape(3, 2).t())
    same_as_eager(add_, torch.arange(12.0).reshape(2, 6)[:, ::2])


def views_of_transposed(x: Tensor) -> Any:
    x[0].mul_(2)
    return x, x[1:], x.t().contiguous()


def test_writes_are_listed_and_named() -> None:
    _, graph = same_as_eager(setitem, x6(), torch.ones(1, 3))
    assert [(name, v.name) for name, v in graph.writes] == [("x", "x_v1")]
    (put,) = [n for n in graph.nodes if n.outs[0].name == "x_v1"]
    assert put.op == "aten.slice_scatter" and put.why == "write through a view" and put.origins


def test_outputs_that_are_arguments() -> None:
    captured, graph = same_as_eager(views, x6())
    assert [o.value.name for o in graph.outputs] == ["x", "x", "x"]
    assert [o.view for o in graph.outputs] == [
        ((2, 3), (3, 1), 0),
        ((3, 2), (1, 3), 0),
        ((6,), (1,), 0),
    ]
    assert captured.results[0].argument and not captured.results[1].argument


def test_detach_disappears() -> None:
    _, graph = same_as_eager(lambda x: (x + 1).detach() * 2, x6())
    assert ops(graph) == ["aten.add.Tensor", "aten.mul.Tensor"]


def test_a_literal_is_new_every_time() -> None:
    _, graph = same_as_eager(lambda x: torch.tensor([1.0, 2.0]), x6())
    assert graph.nodes[-1].op == "aten.clone" and graph.nodes[-1].why


def batch_norm(x: Tensor, w: Tensor, b: Tensor, m: Tensor, v: Tensor) -> Tensor:
    return F.batch_norm(x, m, v, w, b, True, 0.1, 1e-5)


def test_batch_norm_statistics_are_written() -> None:
    arguments = (torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3))
    captured, graph = same_as_eager(batch_norm, torch.randn(4, 3), *arguments)
    assert captured.mutated == ("m", "v") and [name for name, _ in graph.writes] == ["m", "v"]


MODELS = {
    "mlp": (nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 4)), (3, 8)),
    "conv": (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2)),
        (2, 3, 16, 16),
    ),
    "encoder": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (2, 5, 16)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_in_training(name: str) -> None:
    model, shape = MODELS[name]
    same_as_eager(model.train(), torch.randn(shape))


def test_channels_last() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d(1)).eval()
    x = torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last)
    captured, _ = same_as_eager(model, x)
    assert captured.graph.inputs[0].type.strides == (768, 1, 48, 3)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_recurrent(cell: Any) -> None:
    torch.manual_seed(0)
    captured, _ = same_as_eager(cell(8, 16, 2), torch.randn(5, 2, 8), exact=False)
    assert not any("mkldnn" in op or "lstm" in op for op in ops(captured.graph))
    assert all(s.module is not None for s in captured.slots)


def resized(x: Tensor) -> Tensor:
    y = x + 1
    y.resize_(3)
    return y


def transposed_seen(x: Tensor) -> Tensor:
    y = x + 1
    z = y[0]
    y.t_()
    return y + z.sum()


@pytest.mark.parametrize("f", [resized, transposed_seen])
def test_refusals_name_the_line(f: Any) -> None:
    with pytest.raises(CompileError, match="MC012") as error:
        Functionalize().run(capture(f, (x6(),)).graph)
    assert error.value.where.endswith(f"in {f.__name__}()") and "test_functionalize.py" in str(
        error
    )
    assert error.value.context.startswith("y.")


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.real,
        lambda x: x.conj()[1:],
        lambda x: torch.view_as_real(x),
        lambda x: x.view(torch.float64),
    ],
)
def test_views_that_read_memory_in_another_way_are_refused(view: Any) -> None:
    x = torch.randn(3, dtype=torch.complex64)
    with pytest.raises(CompileError, match=r"MC012.*in another way"):
        mc.compile(view, fullgraph=True)(x)
    with pytest.warns(UserWarning, match="run eagerly"):
        assert torch.equal(mc.compile(view)(x), view(x))
