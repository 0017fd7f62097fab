"""A fitted machine as a file: maxmargin's own format, LIBSVM's and LIBLINEAR's, ONNX; types for skops."""

from __future__ import annotations

import os
from typing import Any

from maxmargin.data.container import MAGIC, ModelFileError
from maxmargin.estimators._base import check_choice
from maxmargin.models import liblinear, libsvm, native

__all__ = ["ModelFileError", "load", "save"]

_SAVE = {"maxmargin": native.save, "libsvm": libsvm.save, "liblinear": liblinear.save}


def save(model: Any, path: str | os.PathLike[str], *, format: str = "maxmargin") -> None:
    """Save a fitted machine to a file that holds numbers and names, never code.

    The file has all parameters and fitted attributes, a checksum and a version; it appears complete or not at all.
    docs/models.md specifies it.

    Parameters
    ----------
    model : a fitted machine of maxmargin
        Functions (a kernel or callback given as one) cannot be saved. Of one that has searched (SVCCV) the machine that it
        chose is saved, without the table of the search.
    path : file name
    format : {"maxmargin", "libsvm", "liblinear"}, default="maxmargin"
        "libsvm" is for SVC, NuSVC, SVR, NuSVR and OneClassSVM, "liblinear" for LinearSVC and LinearSVR: their
        programs read the file. It has what predicts and nothing else.

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = maxmargin.SVC(C=10).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.mxm")
    >>> maxmargin.save(model, path)
    >>> bool((maxmargin.load(path).decision_function(X) == model.decision_function(X)).all())
    True
    """
    check_choice("format", format, _SAVE)
    chosen = getattr(model, "chosen", None)  # of a machine with a search inside, whose room takes a second to import
    _SAVE[format](model if chosen is None else chosen(), path)


def load(path: str | os.PathLike[str], *, mmap: bool = False, n_features: int | None = None) -> Any:
    """Load a machine from a file of maxmargin, LIBSVM or LIBLINEAR, whichever it is.

    A file that is damaged, cut short or forged is refused with a ModelFileError (a ValueError). No file can run code,
    or take memory out of proportion to its size.

    Parameters
    ----------
    path : file name
    mmap : bool, default=False
        Leave arrays in the file, mapped read-only: several processes then share one copy. maxmargin's own format only.
    n_features : int, optional
        LIBSVM's and LIBLINEAR's files do not say how many features the data have beyond those they name. Give it if X
        has more.

    Returns
    -------
    model : the fitted machine
        From a file of maxmargin's own, it predicts what the machine saved did to the last bit, and goes on from there
        (`warm_start`, `partial_fit`). From another's, it predicts what theirs does; `status_` is "unknown".

    Examples
    --------
    >>> import os, tempfile
    >>> import maxmargin
    >>> path = os.path.join(tempfile.mkdtemp(), "model")
    >>> with open(path, "w") as file:
    ...     _ = file.write("solver_type L2R_L2LOSS_SVC\\nnr_class 2\\nlabel 1 -1\\nnr_feature 2\\nbias -1\\nw\\n0.5\\n-1\\n")
    >>> maxmargin.load(path).predict([[4.0, 1.0], [1.0, 4.0]])
    array([ 1, -1])
    """
    with open(path, "rb") as file:
        begin = file.read(16)
    if begin.startswith(MAGIC):
        if n_features is not None:
            raise ValueError(f"n_features={n_features!r}: {path} says itself how many features it has, leave it out")
        return native.load(path, mmap)
    for word, reader in ((b"svm_type ", libsvm), (b"solver_type ", liblinear)):
        if begin.startswith(word):
            if mmap:
                raise ValueError(f"mmap=True: {path} is text, which cannot be mapped; save it by maxmargin.save first")
            return reader.load(path, n_features)
    raise ModelFileError(f"{path} is not a model of maxmargin, LIBSVM or LIBLINEAR")
