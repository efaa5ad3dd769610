"""Host functions -> machine code, without Numba: their language is a few words, and a model may need hundreds of lines.

    statement := NAME = value | KERNEL(value, ...) | parallel(threads, INT, KERNEL, argument, ...)
               | return value
    value     := INT | NAME | value + value | address(value, INT) | error_cell(value) | failed(value)
    argument  := value | each(value, INT)

All values are 64-bit integers, most of them addresses.  (Numba would need 5 ms a line: a second for a
model of 24 layers; this needs 0.1 ms.)  A kernel has Numba's calling convention: (result slot,
exception slot, arguments...) -> status; so has the host.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

import llvmlite.binding as binding
from llvmlite import ir as llvm

I32, I64 = llvm.IntType(32), llvm.IntType(64)
POINTER = llvm.IntType(8).as_pointer()
BODY = llvm.FunctionType(llvm.VoidType(), [POINTER])

# Functions of the OpenMP runtime that PyTorch uses, defined as symbols by runtime.threads.
REGION = "minicompile_region"  # GOMP_parallel(body, data, threads, flags)
THREAD = "minicompile_thread"  # omp_get_thread_num()
TEAM = "minicompile_team"  # omp_get_num_threads()


def compile_host(text: str, symbols: Mapping[str, str], machine: binding.TargetMachine) -> bytes:
    """An object file with one function, named as the host. `symbols`: kernel name -> its symbol."""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    compiler = _HostCompiler(symbols)
    compiler.host(function)
    module = binding.parse_assembly(str(compiler.module))
    module.verify()
    data: bytes = machine.emit_object(module)
    return data


@dataclass
class _HostCompiler:
    symbols: Mapping[str, str]
    module: llvm.Module = field(default_factory=llvm.Module)
    names: dict[str, llvm.Value] = field(default_factory=dict)
    bodies: dict[str, llvm.Function] = field(default_factory=dict)  # of parallel regions

    def host(self, f: ast.FunctionDef) -> None:
        params = [a.arg for a in f.args.args]
        signature = llvm.FunctionType(I32, [POINTER, POINTER, *[I64] * len(params)])
        function = llvm.Function(self.module, signature, f.name)
        self.names = dict(zip(params, function.args[2:]))
        self.builder = b = llvm.IRBuilder(function.append_basic_block())
        self.slots = (b.alloca(POINTER), b.alloca(POINTER))
        for statement in f.body:
            self.statement(statement, function.args[0])
        b.ret(I32(0))

    def statement(self, s: ast.stmt, result: llvm.Value) -> None:
        match s:
            case ast.Assign([ast.Name(name)], value):
                self.names[name] = self.value(value)
            case ast.Expr(ast.Call(ast.Name("parallel"), args)):
                self.parallel(args)
            case ast.Expr(ast.Call(ast.Name(kernel), args)):
                self.kernel(self.builder, self.slots, kernel, [self.value(a) for a in args])
            case ast.Return(ast.expr() as value):
                self.builder.store(self.value(value), self.cell(result))
            case _:
                raise TypeError(f"not a statement of a host: {ast.unparse(s)}")

    def value(self, e: ast.expr) -> llvm.Value:
        b = self.builder
        match e:
            case ast.Constant(int(n)):
                return I64(n)
            case ast.Name(name):
                return self.names[name]
            case ast.BinOp(x, ast.Add(), y):
                return b.add(self.value(x), self.value(y))
            case ast.Call(ast.Name("address"), [table, ast.Constant(int(n))]):
                start = b.inttoptr(self.value(table), I64.as_pointer())
                return b.load(b.gep(start, [I64(n)]))
            case ast.Call(ast.Name("error_cell"), [at]):
                place = self.value(at)
                b.store(I64(0), b.inttoptr(place, I64.as_pointer()))
                return place
            case ast.Call(ast.Name("failed"), [cell]):
                return b.load(b.inttoptr(self.value(cell), I64.as_pointer()))
        raise TypeError(f"not a value of a host: {ast.unparse(e)}")

    def cell(self, pointer: llvm.Value) -> llvm.Value:
        return self.builder.bitcast(pointer, I64.as_pointer())

    # ------------------------------------------------------------------ calls

    def external(self, name: str, signature: llvm.FunctionType) -> llvm.Function:
        found = self.module.globals.get(name)
        return found or llvm.Function(self.module, signature, name)

    def kernel(
        self,
        b: llvm.IRBuilder,
        slots: tuple[llvm.Value, llvm.Value],
        name: str,
        args: list[llvm.Value],
    ) -> None:
        signature = llvm.FunctionType(I32, [slots[0].type, slots[1].type, *[I64] * len(args)])
        b.call(self.external(self.symbols[name], signature), [*slots, *args])

    def parallel(self, args: list[ast.expr]) -> None:
        """One thread: a plain call. Several: a region, each thread with its share of the iterations."""
        threads, extent, kernel, *rest = args
        assert isinstance(extent, ast.Constant) and isinstance(kernel, ast.Name)
        values, strides = zip(*(self.argument(a) for a in rest))
        b, count = self.builder, self.value(threads)
        several = b.icmp_signed(">", count, I64(1))
        with b.if_else(several) as (then, otherwise):
            with then:
                data = self.packed(values)
                body = self.body(kernel.id, int(extent.value), strides)  # type: ignore[arg-type]
                signature = llvm.FunctionType(
                    llvm.VoidType(), [BODY.as_pointer(), POINTER, I32, I32]
                )
                team = b.trunc(count, I32)
                b.call(self.external(REGION, signature), [body, data, team, I32(0)])
            with otherwise:
                whole = [*values, I64(0), I64(extent.value)]
                self.kernel(b, self.slots, kernel.id, whole)

    def argument(self, e: ast.expr) -> tuple[llvm.Value, int]:
        """A value, and how much further it is for each thread."""
        match e:
            case ast.Call(ast.Name("each"), [value, ast.Constant(int(stride))]):
                return self.value(value), stride
        return self.value(e), 0

    def packed(self, values: tuple[llvm.Value, ...]) -> llvm.Value:
        """The arguments in memory, for the threads of a region."""
        b = self.builder
        with b.goto_entry_block():
            data = b.alloca(I64, size=len(values))
        for n, value in enumerate(values):
            b.store(value, b.gep(data, [I64(n)]))
        return b.bitcast(data, POINTER)

    def body(self, kernel: str, extent: int, strides: tuple[int, ...]) -> llvm.Function:
        """What each thread of a region runs: iterations extent*t//n ... extent*(t+1)//n - 1."""
        name = f"{kernel}_{extent}_{'_'.join(map(str, strides))}"
        if name in self.bodies:
            return self.bodies[name]
        self.bodies[name] = function = llvm.Function(self.module, BODY, name)
        function.linkage = "internal"
        b = llvm.IRBuilder(function.append_basic_block())
        slots = (b.alloca(POINTER), b.alloca(POINTER))
        thread, team = (
            b.zext(b.call(self.external(f, llvm.FunctionType(I32, [])), []), I64)
            for f in (THREAD, TEAM)
        )
        data = b.bitcast(function.args[0], I64.as_pointer())
        args = [b.load(b.gep(data, [I64(n)])) for n in range(len(strides))]
        args = [b.add(a, b.mul(thread, I64(s))) if s else a for a, s in zip(args, strides)]
        lo, hi = (b.udiv(b.mul(t, I64(extent)), team) for t in (thread, b.add(thread, I64(1))))
        self.kernel(b, slots, kernel, [*args, lo, hi])
        b.ret_void()
        return function
