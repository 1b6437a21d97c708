"""Decompositions and solvers of linear algebra, on batches of matrices in the last two dimensions."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._promotion import complex_of, real_of
from fairlead.ir.infer._rule import Results, Rule, require
from fairlead.ir.infer._sizes import Shape, broadcast, least, like, same, with_shape


def _matrix(x: TensorType) -> tuple[Shape, Dim, Dim]:
    """The batch, the rows and the columns."""
    require(x.rank >= 2, f"the operand has {x.rank} dimensions and is no matrix")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _square(x: TensorType) -> tuple[Shape, Dim]:
    lead, rows, columns = _matrix(x)
    return lead, same(rows, columns, "rows and columns")


def _info(x: TensorType, shape: Shape) -> TensorType:
    """Pivots and error codes are int32."""
    return with_shape(x, shape, DType.i32)


def determinant(A: TensorType) -> Results:
    """A number for each matrix, and the factors that it was computed from."""
    lead, n = _square(A)
    return with_shape(A, lead), like(A), _info(A, (*lead, n))


def log_determinant(A: TensorType) -> Results:
    """Sign and logarithm for each matrix, and the factors that they were computed from."""
    lead, n = _square(A)
    return with_shape(A, lead), with_shape(A, lead, real_of(A.dtype)), like(A), _info(A, (*lead, n))


def eigh(A: TensorType, UPLO: str, compute_v: bool) -> Results:
    """Real eigenvalues, and eigenvectors where they are asked for."""
    lead, n = _square(A)
    return with_shape(A, (*lead, n), real_of(A.dtype)), like(A) if compute_v else with_shape(A, (0,))


def eig(self: TensorType) -> Results:
    """Complex eigenvalues and eigenvectors."""
    lead, n = _square(self)
    dtype = complex_of(self.dtype)
    return with_shape(self, (*lead, n), dtype), like(self, dtype)


def solve(A: TensorType, B: TensorType, left: bool, check_errors: bool) -> Results:
    """The solution, and the factors that it was computed from."""
    lead, n = _square(A)
    vector = B.rank == 1 or (B.rank == A.rank - 1 and B.shape == A.shape[:-1])
    shape = (*lead, n) if vector else (*broadcast(lead, B.shape[:-2]), *B.shape[-2:])
    return with_shape(B, shape), like(A), _info(A, (*lead, n)), _info(A, lead)


def svd(A: TensorType, full_matrices: bool, compute_uv: bool, driver: str | None) -> Results:
    """Left vectors, real singular values, right vectors."""
    lead, rows, columns = _matrix(A)
    count = least(rows, columns)
    values = with_shape(A, (*lead, count), real_of(A.dtype))
    if not compute_uv:
        return with_shape(A, (0,)), values, with_shape(A, (0,))
    left, right = (rows, columns) if full_matrices else (count, count)
    return with_shape(A, (*lead, rows, left)), values, with_shape(A, (*lead, right, columns))


def cholesky(self: TensorType, upper: bool) -> Results:
    """A triangle of the same shape."""
    _square(self)
    return like(self)


def cholesky_with_info(self: TensorType, upper: bool, check_errors: bool) -> Results:
    """A triangle of the same shape, and whether there is one."""
    lead, _ = _square(self)
    return like(self), _info(self, lead)


def cholesky_solve(self: TensorType, input2: TensorType, upper: bool) -> Results:
    """The solution for each column."""
    return _solved(self, input2)


def _solved(b: TensorType, a: TensorType) -> TensorType:
    """A solution has the shape of the right-hand side, over both batches."""
    lead, _ = _square(a)
    require(b.rank >= 2, f"the right-hand side has {b.rank} dimensions")
    return with_shape(b, (*broadcast(lead, b.shape[:-2]), *b.shape[-2:]))


def inverse_with_info(A: TensorType, check_errors: bool) -> Results:
    """The inverse, and whether there is one."""
    lead, _ = _square(A)
    return like(A), _info(A, lead)


def matrix_function(self: TensorType) -> Results:
    """A matrix of the same shape."""
    _square(self)
    return like(self)


def geqrf(self: TensorType) -> Results:
    """A factor of the same shape, and the scales of reflections."""
    lead, rows, columns = _matrix(self)
    return like(self), with_shape(self, (*lead, least(rows, columns)))


def householder(input: TensorType, tau: TensorType) -> Results:  # noqa: A002 - ATen's name
    """The product of reflections, in the shape of their vectors."""
    return like(input)


def ormqr(self: TensorType, input2: TensorType, input3: TensorType, left: bool, transpose: bool) -> Results:
    """A matrix by a product of reflections."""
    return like(input3)


def least_squares(self: TensorType, b: TensorType, rcond: float | None, driver: str | None) -> Results:
    """The solution; what is known besides depends on the driver and on the data."""
    lead, rows, columns = _matrix(self)
    vector = b.rank == self.rank - 1
    require(b.rank > 0 and (vector or b.rank > 1), f"the right-hand side has {b.rank} dimensions")
    same(rows, b.shape[-1] if vector else b.shape[-2], "the rows of both operands")
    over = broadcast(lead, b.shape[:-1] if vector else b.shape[:-2])
    return with_shape(self, (*over, columns) if vector else (*over, columns, b.shape[-1])), None, None, None


def qr(A: TensorType, mode: str) -> Results:
    """An orthogonal matrix and a triangle."""
    lead, rows, columns = _matrix(A)
    count = least(rows, columns)
    require(mode in ("reduced", "complete", "r"), f"there is no mode {mode!r}")
    q = with_shape(A, (0,)) if mode == "r" else with_shape(A, (*lead, rows, rows if mode == "complete" else count))
    return q, with_shape(A, (*lead, rows if mode == "complete" else count, columns))


def lu(A: TensorType, pivot: bool) -> Results:
    """A permutation, a lower and an upper triangle."""
    lead, rows, columns = _matrix(A)
    count = least(rows, columns)
    order = with_shape(A, (*lead, rows, rows) if pivot else (0,))
    return order, with_shape(A, (*lead, rows, count)), with_shape(A, (*lead, count, columns))


def lu_factor(A: TensorType, pivot: bool, check_errors: bool) -> Results:
    """Both triangles in one matrix, the pivots, and whether it worked."""
    lead, rows, columns = _matrix(A)
    return like(A), _info(A, (*lead, least(rows, columns))), _info(A, lead)


def lu_unpack(LU_data: TensorType, LU_pivots: TensorType, unpack_data: bool, unpack_pivots: bool) -> Results:
    """What `lu` has, of factors that are packed."""
    order, lower, upper = lu(LU_data, True)  # type: ignore[misc]  # three types
    none = with_shape(LU_data, (0,))
    return order if unpack_pivots else none, lower if unpack_data else none, upper if unpack_data else none


def lu_solve(LU: TensorType, pivots: TensorType, B: TensorType, left: bool, adjoint: bool) -> Results:
    """The solution for each column."""
    return _solved(B, LU)


def ldl_factor(self: TensorType, hermitian: bool, check_errors: bool) -> Results:
    """The factors in one matrix, the pivots, and whether it worked."""
    lead, n = _square(self)
    return like(self), _info(self, (*lead, n)), _info(self, lead)


def ldl_solve(LD: TensorType, pivots: TensorType, B: TensorType, hermitian: bool) -> Results:
    """The solution for each column."""
    return _solved(B, LD)


def solve_triangular(self: TensorType, B: TensorType, upper: bool, left: bool, unitriangular: bool) -> Results:
    """The solution for each column, or row."""
    return _solved(B, self)


def triangular_solve(self: TensorType, A: TensorType, upper: bool, transpose: bool, unitriangular: bool) -> Results:
    """The solution for each column, and the matrix."""
    found = _solved(self, A)
    return found, with_shape(A, (*found.shape[:-2], *A.shape[-2:]))


def pseudoinverse(self: TensorType, atol: TensorType | None, rtol: TensorType | None, hermitian: bool) -> Results:
    """The shape of the transpose."""
    lead, rows, columns = _matrix(self)
    return with_shape(self, (*lead, columns, rows))


def check(info: TensorType, api_name: str, is_matrix: bool) -> Results:
    """Nothing."""
    return ()


RULES: dict[str, Rule] = {
    "aten._linalg_check_errors.default": check,
    "aten._linalg_det.default": determinant,
    "aten._linalg_slogdet.default": log_determinant,
    "aten._linalg_eigh.default": eigh,
    "aten.linalg_eig.default": eig,
    "aten._linalg_solve_ex.default": solve,
    "aten._linalg_svd.default": svd,
    "aten.cholesky.default": cholesky,
    "aten.cholesky_inverse.default": cholesky,
    "aten.cholesky_solve.default": cholesky_solve,
    "aten.linalg_cholesky_ex.default": cholesky_with_info,
    "aten.linalg_inv_ex.default": inverse_with_info,
    "aten.linalg_matrix_exp.default": matrix_function,
    "aten.geqrf.default": geqrf,
    "aten.linalg_householder_product.default": householder,
    "aten.ormqr.default": ormqr,
    "aten.linalg_qr.default": qr,
    "aten.linalg_lstsq.default": least_squares,
    "aten.linalg_lu.default": lu,
    "aten.linalg_lu_factor_ex.default": lu_factor,
    "aten.lu_unpack.default": lu_unpack,
    "aten.linalg_lu_solve.default": lu_solve,
    "aten.linalg_ldl_factor_ex.default": ldl_factor,
    "aten.linalg_ldl_solve.default": ldl_solve,
    "aten.linalg_solve_triangular.default": solve_triangular,
    "aten.triangular_solve.default": triangular_solve,
    "aten.linalg_pinv.atol_rtol_tensor": pseudoinverse,
}
