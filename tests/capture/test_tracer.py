"""What is captured: names, pytrees, parameters, constants, results; and that nothing stays behind."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from minicompile.capture import capture
from minicompile.capture.names import Namer, graph_name, identifier
from minicompile.ir.graph import TorchConst
from minicompile.ir.torch_call import op_name, torch_op
from minicompile.ir.types import f32, i64
from tests.capture.harness import ops, same_as_eager


class Tied(nn.Module):
    """Two layers with one weight, a buffer, and an unused parameter."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.fc2.weight = self.fc1.weight
        self.unused = nn.Parameter(torch.zeros(2))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.relu(self.fc1(x))) * self.scale


def inputs(captured: Any) -> list[str]:
    return [v.name for v in captured.graph.inputs]


def params(captured: Any) -> list[str]:
    return [v.name for v in captured.graph.params]


def test_parameters_by_name() -> None:
    model = Tied()
    captured, _ = same_as_eager(model, torch.randn(2, 4))
    assert captured.graph.name == "tied"
    assert inputs(captured) == ["x"]
    assert params(captured) == ["scale", "fc1_weight", "fc1_bias"]
    assert [s.path for s in captured.slots] == ["scale", "fc1.weight", "fc1.bias"]
    assert captured.slots[1].read() is model.fc1.weight
    assert [(a.path, b.path) for a, b in captured.tied] == [("fc1.weight", "fc2.weight")]
    assert ops(captured.graph) == ["aten.linear", "aten.relu", "aten.linear", "aten.mul.Tensor"]
    assert [n.out.name for n in captured.graph.nodes] == ["t0", "t1", "t2", "t3"]


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LSTM(4, 4)).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    call = nn.Module.__call__
    capture(model, (torch.randn(3, 4),))
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(isinstance(t, FakeTensor) for t in model.state_dict().values())
    assert not any(isinstance(t, FakeTensor) for t in model[2]._flat_weights)
    assert nn.Module.__call__ is call and "__getattribute__" not in vars(nn.Module)


def test_random_state_is_untouched() -> None:
    state = torch.get_rng_state()
    capture(lambda x: F.dropout(x) + torch.rand(3), (torch.ones(3),))
    assert torch.equal(torch.get_rng_state(), state)


def pytrees(x: Tensor, pair: Any, *rest: Any, table: Any, n: int = 3) -> Any:
    a, (b, c) = pair
    return {"sum": x + a + b + c * n, "rest": [r * 2 for r in rest], "n": n, "none": None}, table[
        "k"
    ]


def test_pytrees_in_and_out() -> None:
    t = [torch.full((2,), float(i)) for i in range(6)]
    captured, _ = same_as_eager(
        pytrees, t[0], (t[1], [t[2], 2.5]), t[3], t[4], table={"k": t[5]}, n=7
    )
    assert inputs(captured) == ["x", "pair_0", "pair_1_0", "rest_0", "rest_1", "table_k"]
    assert [(leaf.name, leaf.value) for leaf in captured.leaves if leaf.input is None] == [
        ("pair_1_1", 2.5),
        ("n", 7),
    ]


def test_one_tensor_returned_twice() -> None:
    captured, _ = same_as_eager(lambda x: [y := x + 1, y, x], torch.ones(2))
    assert len(captured.graph.outputs) == 2
    x = torch.ones(2)
    out = captured.rebuild([x + 1, x], [x])
    assert out[0] is out[1] and out[2] is x


def test_functions_methods_lambdas_callables() -> None:
    class Scale:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 2

        def method(self, y: Tensor) -> Tensor:
            return y * 3

    model = Tied()
    for f, name in (
        (lambda x: x + 1, "fn"),
        (Scale(), "scale"),
        (Scale().method, "method"),
        (torch.relu, "relu"),
        (model.forward, "tied"),
    ):
        captured, _ = same_as_eager(f, torch.randn(2, 4))
        assert captured.graph.name == name
    assert params(captured) == ["scale", "fc1_weight", "fc1_bias"]


def test_closures() -> None:
    model, weight = Tied(), torch.randn(4)
    captured, _ = same_as_eager(lambda x: model(x) + weight + weight, torch.randn(2, 4))
    assert params(captured) == ["model_scale", "model_fc1_weight", "model_fc1_bias", "const0"]
    assert captured.slots[-1].read() is weight


def test_parameters_that_no_module_call_shows() -> None:
    class Encoder:
        def __init__(self) -> None:
            self.net = Tied()

        def encode(self, x: Tensor) -> Tensor:
            return x * self.net.scale

    model = Tied()
    for f, name in (
        (Encoder().encode, "net_scale"),
        (lambda x: x * model.scale, "model_scale"),
        (functools.partial(model.forward), "scale"),
        (lambda x: Holder.hidden(x), "tied_scale"),
    ):
        captured, _ = same_as_eager(f, torch.randn(2, 4))
        assert params(captured)[0] == name and captured.slots[0].module is not None


class Holder:
    hidden = Tied()


def test_a_closed_over_tensor_that_is_written_to() -> None:
    total = torch.zeros(2)

    def count(x: Tensor) -> Tensor:
        total.add_(x)
        return total * 1

    captured = capture(count, (torch.ones(2),))
    assert total.tolist() == [0, 0] and captured.mutated == ("const0",)


def test_a_module_made_inside() -> None:
    torch.manual_seed(0)
    captured, _ = same_as_eager(lambda x: nn.Linear(4, 2, bias=False)(x), torch.randn(3, 4))
    assert params(captured) == []


def test_composites_stay_whole() -> None:
    q = torch.randn(1, 2, 4, 8)

    def attend(q: Tensor, w: Tensor) -> Tensor:
        return F.linear(
            F.scaled_dot_product_attention(q, q, q, is_causal=True, scale=0.5), weight=w
        )

    captured, _ = same_as_eager(attend, q, torch.randn(3, 8))
    attention, linear = captured.graph.nodes
    assert attention.op == "aten.scaled_dot_product_attention"
    assert attention.args[3:] == (None, 0.0, True) and attention.attrs == (("scale", 0.5),)
    assert linear.op == "aten.linear" and len(linear.args) == 2


def test_attention_module_keeps_its_pieces() -> None:
    model = nn.MultiheadAttention(16, 2, batch_first=True).train()
    captured = capture(model, (torch.randn(2, 5, 16),) * 3, {"need_weights": False})
    assert ops(captured.graph).count("aten.linear") >= 2
    assert "aten.scaled_dot_product_attention" in ops(captured.graph)


def test_autocast_is_seen() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        captured = capture(nn.Linear(4, 4), (torch.randn(2, 4),))
    assert "aten._to_copy" in ops(captured.graph) and captured.autocast


def test_arguments_of_other_kinds() -> None:
    def f(x: Tensor) -> Tensor:
        return x.to(torch.int64) + torch.zeros(3, dtype=torch.int64, device="cpu")

    _, graph = same_as_eager(f, torch.ones(3))
    cast, zeros, _ = graph.nodes
    assert cast.attrs == (("dtype", i64),)
    assert zeros.attr("device") == TorchConst("torch.device('cpu')")
    like, _ = same_as_eager(lambda x: torch.ones_like(x), torch.ones(3, dtype=torch.int32))
    assert like.graph.nodes[0].op == "aten.ones_like"


def test_types_of_inputs_and_outputs() -> None:
    x = torch.randn(3, 2).t()
    captured = capture(lambda x: (x + 1, x.contiguous()), (x,))
    assert captured.graph.inputs[0].type.strides == (1, 2)
    assert captured.graph.inputs[0].type.dtype is f32
    assert [o.strides for o in captured.graph.outputs] == [(1, 2), None]


def test_inference_mode_and_gradients() -> None:
    with torch.inference_mode():
        captured = capture(nn.Linear(4, 4), (torch.randn(2, 4),))
    assert ops(captured.graph) == ["aten.linear"]
    with_grad = capture(nn.Linear(4, 4), (torch.randn(2, 4, requires_grad=True),))
    assert with_grad.requires_grad == ("input", "weight", "bias")
    assert with_grad.needs_grad([torch.randn(2, 4)])
    with torch.no_grad():
        assert not with_grad.needs_grad([torch.randn(2, 4)])


def test_gradients_inside_the_model() -> None:
    def force(x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad(F.linear(y, y).square().sum(), y)[0]

    same_as_eager(force, torch.randn(3, 3))


def test_other_threads_run_the_same_model_class() -> None:
    model, x, stop, wrong = nn.Linear(4, 4), torch.randn(2, 4), threading.Event(), []
    expected = model(x)
    other = nn.Linear(4, 4)

    def work() -> None:
        while not stop.is_set():
            if not torch.equal(model(x), expected):
                wrong.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(20):
        capture(other, (x,))
    stop.set()
    thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("layers.0.weight", "layers_0_weight"),
        ("0.weight", "m0_weight"),
        ("class", "class_"),
        ("", "x"),
    ],
)
def test_identifiers(text: str, name: str) -> None:
    assert identifier(text) == name


def test_names_are_unique_and_free_of_ops() -> None:
    namer = Namer()
    assert [namer.unique(n) for n in ("x", "x", "exp", "f32", "t0")] == [
        *("x", "x_2", "exp_2", "f32_2", "t0")
    ]
    assert [namer.value(), namer.value()] == ["t1", "t2"]


def test_graph_names() -> None:
    assert graph_name(nn.TransformerEncoderLayer(4, 1)) == "transformer_encoder_layer"
    assert graph_name(nn.BatchNorm2d(2)) == "batch_norm2d"
    assert graph_name(lambda x: x) == "fn"


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.mm", "torch_ops.prims.exp.default"])
def test_op_names(name: str) -> None:
    assert op_name(torch_op(name)) == name
