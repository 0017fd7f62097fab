"""Python values as JSON and arrays, and back. Nothing else than what is listed here can be in a model file.

    null true false 12 "text"        themselves; a path is its text
    0.5                              a finite float; {"float": "nan" | "inf" | "-inf"} the others
    {"list": […]} {"tuple": […]}     and {"dict": [[key, value], …]}, whose keys are scalars
    {"scalar": ["<f8", 0.5]}         a NumPy scalar
    {"array": 3}                     array number 3 of the file
    {"split": [3, 4]}                a list of vectors: array 3, cut before the places in array 4
    {"strings": [3, 4]}              a vector of Python strings: UTF-8 bytes, and where each one ends
    {"objects": […]}                 a vector of other scalars
    {"slice": [0, 5, null]}          start, stop, step
    {"csr": {…}}                     a sparse matrix: shape, and numbers of its arrays
    {"record": "Kernel", "fields": {…}}   one of the classes in records.py

Equal means identical: an array that occurs twice is stored once and comes back as one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.container import ModelFileError
from maxmargin.models.records import RECORDS, name_of

_NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_SCALARS = "biufU"


class Encoder:
    """Turns values into JSON and gathers their arrays."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._number: dict[int, int] = {}

    def __call__(self, value: Any, where: str) -> Any:
        """JSON for `value`; `where` names it in errors."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if np.isfinite(value) else {"float": repr(value)}
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sp.issparse(value):
            return self._csr(value, where)
        if isinstance(value, slice):
            return {"slice": [self(end, where) for end in (value.start, value.stop, value.step)]}
        if isinstance(value, list) and len(value) > 1 and all(_is_vector(item, value[0]) for item in value):
            ends = np.cumsum([len(item) for item in value])
            return {"split": [self._add(np.concatenate(value)), self._add(ends[:-1])]}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self._key(key, where), self(item, f"{where}[{key!r}]")] for key, item in value.items()]}
        name = name_of(value)
        if name is None:
            raise _refused(value, where)
        fields = {field: self(part, f"{where}.{field}") for field, part in RECORDS[name].parts(value).items()}
        return {"record": name, "fields": fields}

    def _add(self, array: NDArray[Any]) -> int:
        if id(array) not in self._number:
            self._number[id(array)] = len(self.arrays)
            self.arrays.append(array)  # which also keeps its id from being used again
        return self._number[id(array)]

    def _scalar(self, value: np.generic, where: str) -> Any:
        if value.dtype.kind not in _SCALARS or (value.dtype.itemsize > 8 and value.dtype.kind != "U"):
            raise _refused(value, where)
        return {"scalar": [value.dtype.newbyteorder("<").str, self(value.item(), where)]}

    def _key(self, key: Any, where: str) -> Any:
        if not isinstance(key, (str, int, float, bool, np.generic, type(None))):
            raise _refused(key, f"a key of {where}")
        return self(key, where)

    def _array(self, array: NDArray[Any], where: str) -> Any:
        if array.dtype.kind != "O":
            return {"array": self._add(array)}
        if array.ndim != 1:
            raise _refused(array, where)
        if not all(isinstance(item, str) for item in array):
            return {"objects": [self._key(item, where) for item in array]}
        pieces = [item.encode("utf-8", "surrogatepass") for item in array]
        ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        return {"strings": [self._add(np.frombuffer(b"".join(pieces), np.uint8)), self._add(ends)]}

    def _csr(self, matrix: Any, where: str) -> Any:
        if matrix.format != "csr":
            raise _refused(matrix, where)
        parts = {part: self._add(getattr(matrix, part)) for part in ("data", "indices", "indptr")}
        return {"csr": {**parts, "shape": list(matrix.shape), "kind": type(matrix).__name__}}


def _is_vector(item: Any, first: Any) -> bool:
    return isinstance(item, np.ndarray) and item.ndim == 1 and item.dtype == first.dtype and item.dtype.kind in "biuf"


def _refused(value: Any, where: str) -> ValueError:
    what = f"{where} is {value!r:.60}, of type {type(value).__name__}"
    if where in ("kernel", "_fitted_kernel.function"):
        remedy = (
            "a function is code, which a model file must not hold: use a kernel by name or kernel='precomputed', "
            "or pickle the model where its function can be imported"
        )
    elif where == "callback":
        remedy = "a function is code, which a model file must not hold: set_params(callback=None) first"
    elif where == "random_state":
        remedy = "set_params(random_state=an integer or None) first"
    else:
        remedy = "a model file holds numbers, strings, arrays and lists or dicts of them: change it, or pickle the model"
    return ValueError(f"{what}: {remedy}")


class Decoder:
    """Turns JSON back into values, of the arrays given. Every node is judged before anything is made of it."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self._arrays = arrays
        self._make: dict[str, Callable[[Any], Any]] = {
            "float": self._float, "list": self._list, "tuple": lambda items: tuple(self._list(items)),
            "dict": self._dict, "scalar": self._scalar, "array": self._array, "split": self._split,
            "strings": self._strings, "objects": self._objects, "csr": self._csr, "slice": self._slice,
        }  # fmt: skip

    def __call__(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, str, int)):
            return node
        if isinstance(node, float):
            _require(np.isfinite(node), node, "a number too large is written as {'float': 'inf'}")
            return node
        if isinstance(node, dict) and set(node) == {"record", "fields"}:
            return self._record(node["record"], node["fields"])
        if isinstance(node, dict) and len(node) == 1:
            (tag, content), = node.items()
            if tag in self._make:
                return self._make[tag](content)
        raise ModelFileError(f"{node!r:.60} stands for no value")

    def _float(self, word: Any) -> float:
        _require(isinstance(word, str) and word in _NOT_FINITE, word, "not a float")
        return _NOT_FINITE[word]

    def _list(self, items: Any) -> list[Any]:
        return [self(item) for item in _a_list(items)]

    def _dict(self, items: Any) -> dict[Any, Any]:
        out = {}
        for item in _a_list(items):
            key, value = _a_list(item, 2)
            out[self._key(key)] = self(value)
        return out

    def _key(self, node: Any) -> Any:
        key = self(node)
        _require(isinstance(key, (str, int, float, bool, np.generic, type(None))), node, "not a scalar")
        return key

    def _scalar(self, content: Any) -> Any:
        spelled, node = _a_list(content, 2)
        value = self(node)
        _require(isinstance(value, (str, int, float)), node, "not a scalar")
        try:
            dtype = np.dtype(spelled)
            _require(dtype.kind in _SCALARS and dtype.names is None and dtype.itemsize <= 4096, spelled, "no scalar's type")
            return np.array(value, dtype)[()]
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{content!r:.60} is no NumPy scalar: {error}") from None

    def _array(self, number: Any) -> NDArray[Any]:
        _require(type(number) is int and 0 <= number < len(self._arrays), number, "not the number of an array")
        return self._arrays[int(number)]

    def _vector(self, number: Any, kind: str) -> NDArray[Any]:
        array = self._array(number)
        _require(array.ndim == 1 and array.dtype.kind in kind, number, "not the number of such a vector")
        return array

    def _ends(self, number: Any, last: int) -> NDArray[Any]:
        """Places that ascend from 0 to `last` at most."""
        ends = self._vector(number, "i")
        steps = np.diff(ends, prepend=0, append=last)
        _require(bool((steps >= 0).all()) and bool((ends >= 0).all()), number, "places that do not ascend")
        return ends

    def _split(self, content: Any) -> list[NDArray[Any]]:
        whole, places = _a_list(content, 2)
        array = self._vector(whole, "biuf")
        return [part.copy() for part in np.split(array, self._ends(places, len(array)))]

    def _strings(self, content: Any) -> NDArray[Any]:
        text, places = _a_list(content, 2)
        raw = self._vector(text, "u").astype(np.uint8).tobytes()
        ends = self._ends(places, len(raw)).tolist()
        out = np.empty(len(ends), object)
        try:
            out[:] = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *ends], ends)]
        except UnicodeDecodeError as error:
            raise ModelFileError(f"strings that are not UTF-8: {error}") from None
        return out

    def _objects(self, items: Any) -> NDArray[Any]:
        out = np.empty(len(_a_list(items)), object)
        for i, item in enumerate(items):
            out[i] = self._key(item)
        return out

    def _slice(self, content: Any) -> slice:
        ends = _a_list(content, 3)
        _require(all(end is None or type(end) is int for end in ends), content, "not a slice")
        return slice(*ends)

    def _csr(self, content: Any) -> Any:
        _require(isinstance(content, dict), content, "not a sparse matrix")
        _require(set(content) == {"data", "indices", "indptr", "shape", "kind"}, content, "not a sparse matrix")
        data, indices = self._vector(content["data"], "f"), self._vector(content["indices"], "i")
        indptr = self._ends(content["indptr"], len(data))
        rows, columns = _a_list(content["shape"], 2)
        _require(type(rows) is int and type(columns) is int and 0 <= columns < 2**62, content, "no shape of a matrix")
        whole = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(data) == len(indices)
        _require(whole and min(indices.itemsize, indptr.itemsize) >= 4, content, "CSR arrays that disagree")
        rising = np.diff(indices) > 0
        rising[(indptr[1:-1] - 1)[(indptr[1:-1] > 0) & (indptr[1:-1] < len(data))]] = True  # between two rows
        inside = not len(indices) or bool(indices.min() >= 0 and indices.max() < columns)
        _require(inside and bool(rising.all()), content, "a sparse matrix with columns out of range or out of order")
        _require(content["kind"] in ("csr_matrix", "csr_array"), content["kind"], "not a kind of sparse matrix")
        matrix = (sp.csr_matrix if content["kind"] == "csr_matrix" else sp.csr_array)((rows, columns), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr  # SciPy's own way would copy some of them
        matrix.has_canonical_format = True
        return matrix

    def _record(self, name: Any, fields: Any) -> Any:
        _require(isinstance(name, str) and name in RECORDS and isinstance(fields, dict), name, "not a known record")
        return RECORDS[name].made({field: self(value) for field, value in fields.items()})


def _require(condition: Any, value: Any, trouble: str) -> None:
    if not condition:
        raise ModelFileError(f"{value!r:.60}: {trouble}")


def _a_list(node: Any, length: int | None = None) -> list[Any]:
    _require(isinstance(node, list) and (length is None or len(node) == length), node, "not a list of the right length")
    return node  # type: ignore[no-any-return]
