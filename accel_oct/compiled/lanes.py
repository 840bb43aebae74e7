"""Vector registers for compiled kernels: 64 bytes of 16-bit, 32-bit, 64-bit or floating-point numbers as one value.

Kernels that keep a dozen running maxima need them in registers; a loop over arrays that a compiler vectorises by itself
loads and stores every one of them in each step. So this module gives numba a value type for a full vector, and the few
operations the kernels use. LLVM lowers it to what the machine has (one 512-bit register, two of 256 bits, ...).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model

VECTOR_BYTES = 64


class Lanes(types.Type):  # type: ignore[misc]
    """Numba type of a vector of `count` numbers of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.count = VECTOR_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Lanes({dtype}, {self.count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, _vector_type(lanes))


def _vector_type(lanes: Lanes) -> Any:
    scalar = ir.DoubleType() if isinstance(lanes.dtype, types.Float) else ir.IntType(lanes.dtype.bitwidth)
    return ir.VectorType(scalar, lanes.count)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to the vector that starts at a flat index of a contiguous array."""
    data = context.make_array(array_type)(context, builder, array).data
    pointer = builder.gep(data, [index])
    return builder.bitcast(pointer, ir.PointerType(_vector_type(Lanes(array_type.dtype))))


@intrinsic  # type: ignore[untyped-decorator]
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Vector at flat position `index` of a C-contiguous array."""
    lanes = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=array.dtype.bitwidth // 8, typ=_vector_type(lanes))

    return lanes(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typingctx: Any, array: Any, index: Any, vector: Any) -> Any:
    """Write a vector to flat position `index` of a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def spread(typingctx: Any, array: Any, index: Any) -> Any:
    """Vector with the number at flat position `index` in every lane."""
    lanes = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return _broadcast(builder, builder.load(builder.gep(data, [arguments[1]])), lanes)

    return lanes(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def fill(typingctx: Any, array: Any, number: Any) -> Any:
    """Vector of the array's dtype with `number` in every lane."""
    lanes = Lanes(array.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _broadcast(builder, context.cast(builder, arguments[1], signature.args[1], array.dtype), lanes)

    return lanes(array, number), generate


def _broadcast(builder: Any, scalar: Any, lanes: Lanes) -> Any:
    vector = _vector_type(lanes)
    zero = ir.Constant(ir.IntType(32), 0)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, zero)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), mask)


def _is_float(lanes: Lanes) -> bool:
    return isinstance(lanes.dtype, types.Float)


def _pick(order: str) -> Callable[[Any, Lanes, Any, Any], Any]:
    def generate(builder: Any, lanes: Lanes, left: Any, right: Any) -> Any:
        if _is_float(lanes):
            better = builder.fcmp_ordered(order, left, right)
        else:
            better = builder.icmp_signed(order, left, right)
        return builder.select(better, left, right)

    return generate


def most(left: Any, right: Any) -> Any:
    """Larger number, lane by lane (inside kernels only)."""
    raise NotImplementedError


def least(left: Any, right: Any) -> Any:
    """Smaller number, lane by lane (inside kernels only)."""
    raise NotImplementedError


@intrinsic  # type: ignore[untyped-decorator]
def where_enough(typingctx: Any, amount: Any, need: Any, vector: Any, other: Any) -> Any:
    """Lanes of `vector` where ``amount >= need``, else of `other`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        compare = builder.fcmp_ordered if _is_float(amount) else builder.icmp_signed
        return builder.select(compare(">=", arguments[0], arguments[1]), arguments[2], arguments[3])

    return vector(amount, need, vector, other), generate


@intrinsic  # type: ignore[untyped-decorator]
def popcount(typingctx: Any, vector: Any) -> Any:
    """Number of bits set, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        operand = _vector_type(vector)
        name = f"llvm.ctpop.v{vector.count}i{vector.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(operand, [operand]), name)
        return builder.call(function, [arguments[0]])

    return vector(vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def total_of(typingctx: Any, vector: Any) -> Any:
    """Sum of all lanes of whole numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scalar, operand = ir.IntType(vector.dtype.bitwidth), _vector_type(vector)
        name = f"llvm.vector.reduce.add.v{vector.count}i{vector.dtype.bitwidth}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(scalar, [operand]), name)
        return builder.call(function, [arguments[0]])

    return vector.dtype(vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def shifted(typingctx: Any, vector: Any, places: Any) -> Any:
    """Every lane times two to the power of `places`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        amount = context.cast(builder, arguments[1], signature.args[1], vector.dtype)
        return builder.shl(arguments[0], _broadcast(builder, amount, vector))

    return vector(vector, places), generate


@intrinsic  # type: ignore[untyped-decorator]
def as_dtype(typingctx: Any, vector: Any, array: Any) -> Any:
    """The same bits read as the array's dtype of equal width (unsigned words as signed counters)."""
    return Lanes(array.dtype)(vector, array), lambda context, builder, signature, arguments: arguments[0]


def _register(function: Any, generate_op: Callable[[Any, Lanes, Any, Any], Any]) -> None:
    """Teach numba a binary operation on two equal vector types."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, arguments: Any, keywords: Any) -> Any:
            if len(arguments) == 2 and isinstance(arguments[0], Lanes) and arguments[0] == arguments[1]:
                return signature(arguments[0], *arguments)
            return None

    infer_global(function, types.Function(infer(type("Template", (Template,), {"key": function}))))

    def generate(context: Any, builder: Any, typed: Any, arguments: Any) -> Any:
        return generate_op(builder, typed.return_type, arguments[0], arguments[1])

    lower_builtin(function, Lanes, Lanes)(generate)


_register(most, _pick(">"))
_register(least, _pick("<"))
_register(operator.add, lambda builder, lanes, a, b: (builder.fadd if _is_float(lanes) else builder.add)(a, b))
_register(operator.sub, lambda builder, lanes, a, b: (builder.fsub if _is_float(lanes) else builder.sub)(a, b))
_register(operator.and_, lambda builder, lanes, a, b: builder.and_(a, b))
_register(operator.or_, lambda builder, lanes, a, b: builder.or_(a, b))
_register(operator.xor, lambda builder, lanes, a, b: builder.xor(a, b))
