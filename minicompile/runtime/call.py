"""The Python side of a call, generated: allocate outputs, one native call, return.

    def forward(inputs, params):
        (x,) = inputs
        table = addresses(params)
        t4 = empty((8, 10), (10, 1), float32)
        threads = count_threads()
        memory = take(threads)
        code = mlp(x.data_ptr(), t4.data_ptr(), table.address, memory.address, threads)
        give(memory)
        if code:
            fail(code)
        return [t4]

A program without calls of PyTorch (ExternCall) needs exactly this.  Others alternate between native
segments and `call_node`, and at the end copy back what the model writes into its inputs.
"""

from __future__ import annotations

from minicompile.codegen.host import kernel_runs
from minicompile.codegen.source import Source
from minicompile.ir.graph import Output
from minicompile.ir.loop import Buffer, ExternCall, KernelCall, Program
from minicompile.ir.types import contiguous_strides

TORCH = ("input", "output", "tensor")  # places of buffers that are torch tensors


class CallPrinter:
    """Prints the function `forward(inputs, params)` of a program. Names of buffers are kept."""

    def __init__(self, program: Program, source: Source, arena: bool) -> None:
        self.program, self.source, self.arena = program, source, arena
        self.graph = program.graph
        self.buffers = {b.name: b for b in program.buffers}
        self.lines: list[str] = []
        self.params = {v.name: n for n, v in enumerate(self.graph.params)}
        self.table = any(
            b.place == "param" for call in self._kernel_calls() for b in self._of(call)
        )
        self.parallel = any(k.extent is not None for k in source.kernels)
        self.tensors: set[str] = set()  # names that hold a tensor already

    def print(self) -> str:
        self._head()
        segments, runs = iter(self.source.segments), iter(kernel_runs(self.program))
        pending = False
        for n, call in enumerate(self.program.calls):
            if isinstance(call, ExternCall):
                self._extern(n, call)
                pending = False
            elif not pending:
                segment, run = next(segments), next(runs)
                self._segment(segment.name, segment.buffers, run)
                pending = True
        self._end()
        return "def forward(inputs, params):\n" + "\n".join("    " + x for x in self.lines) + "\n"

    def _kernel_calls(self) -> list[KernelCall]:
        return [c for c in self.program.calls if isinstance(c, KernelCall)]

    def _of(self, call: KernelCall) -> list[Buffer]:
        """The buffers of a call, an alias as what it is an alias of."""
        return [self.buffers[self._root(name)] for name in call.buffers]

    def _root(self, name: str) -> str:
        buffer = self.buffers.get(name)
        return self._root(buffer.base) if buffer is not None and buffer.place == "alias" else name

    # ------------------------------------------------------------------ pieces

    def _head(self) -> None:
        names = [v.name for v in self.graph.inputs]
        if names:
            self.lines.append(f"({', '.join(names)},) = inputs")
        self.tensors |= set(names)
        if self.table:
            self.lines.append("table = addresses(params)")
        if self.parallel:
            self.lines.append("threads = count_threads()")
        if self.arena:
            self.lines.append(f"memory = take({'threads' if self.parallel else '1'})")

    def _segment(self, name: str, tensors: tuple[str, ...], run: list[KernelCall]) -> None:
        for t in tensors:
            self._allocate(t)
        args = [f"{t}.data_ptr()" for t in tensors]
        args += ["table.address" if self.table else "0", "memory.address" if self.arena else "0"]
        args.append("threads" if self.parallel else "1")
        call = f"{name}({', '.join(args)})"
        if not self.source.checks:
            self.lines.append(call)
            return
        self.lines += [f"code = {call}", "if code:", "    give(memory)", "    fail(code)"]

    def _allocate(self, name: str) -> None:
        if name not in self.tensors:
            type = self.buffers[name].type
            size = f"{type.dims}, {type.dense_strides}, {type.dtype.torch_name}"
            self.lines.append(f"{name} = empty({size})")
            self.tensors.add(name)

    def _extern(self, n: int, call: ExternCall) -> None:
        """``call_node`` on the operands; a result that kernels read must lie as they expect it."""
        operands = tuple(dict.fromkeys(v.name for v in call.node.operands))
        for name in operands:
            self._tensor(name)
        env = ", ".join(f'"{v}": {v}' for v in operands)
        outs = [v.name for v in call.node.outs]
        self.lines.append(
            f"({', '.join(outs)},) = call_node(node_{n}, {{{env}}})  # {call.node.op}"
        )
        self.tensors |= set(outs)
        read = {b.name for c in self._kernel_calls() for b in self._of(c)}
        for name in outs:
            if name in read:
                strides = self.buffers[name].type.dense_strides
                self.lines.append(f"{name} = lie({name}, {strides})")

    def _tensor(self, name: str) -> None:
        """Make sure that the buffer is a tensor of this name."""
        if name in self.tensors:
            return
        self.tensors.add(name)
        if name in self.params:
            self.lines.append(f"{name} = tensors(params)[{self.params[name]}]")
            return
        buffer = self.buffers[name]
        shape = f"{buffer.type.dtype.torch_name}, {buffer.type.dims}, {buffer.type.dense_strides}"
        if buffer.place == "alias":
            self._tensor(buffer.base)
            self.lines.append(f"{name} = alias({buffer.base}, {shape})")
        elif buffer.place == "arena":
            self.lines.append(f"{name} = part(memory, {buffer.offset or 0}, {shape})")
        else:
            self._allocate(name)

    def _end(self) -> None:
        for _, v in self.graph.writes:
            self._tensor(v.name)
        for out in self.graph.outputs:
            self._tensor(out.value.name)
        if self.graph.writes:
            names = [name for name, _ in self.graph.writes]
            for name in names:
                self._tensor(name)
            pairs = ", ".join(f"({name}, {v.name})" for name, v in self.graph.writes)
            self.lines.append(f"write_back([{pairs}])")
        if self.arena:
            self.lines.append("give(memory)")
        self.lines.append(f"return [{', '.join(self._output(o) for o in self.graph.outputs)}]")

    def _output(self, out: Output) -> str:
        name = out.value.name
        if out.view is not None:
            shape, strides, offset = out.view
            return f"{name}.as_strided({shape}, {strides}, {name}.storage_offset() + {offset})"
        buffer = self.buffers.get(name)
        if buffer is None or buffer.place in ("input", "param"):
            return name
        wanted = out.strides or contiguous_strides(buffer.type.dims)
        if buffer.place == "output" and wanted == buffer.type.dense_strides:
            return name
        return f"lie({name}, {wanted})"
