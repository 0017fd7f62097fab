"""One page about a fitted machine: what it was given, what it found, what is proven, how to repeat it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from maxmargin.data.atomic import replacing

__all__ = ["Report", "report"]


@dataclass(frozen=True)
class Report:
    """A page; `save` writes it, a notebook shows it."""

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; the file appears complete or not at all."""
        with replacing(path) as out:
            out.write(self.html.encode("utf-8"))

    def _repr_html_(self) -> str:
        style = "width:100%;height:640px;border:1px solid #8888;border-radius:6px"
        return f'<iframe title="{escape(self.title)}" style="{style}" srcdoc="{escape(self.html, quote=True)}"></iframe>'


def report(
    model: Any, X: Any, y: Any = None, *, path: str | os.PathLike[str] | None = None, title: str | None = None,
    certify: bool = False, command: str | None = None,
) -> Report:
    """Tell of a fitted machine on one self-contained HTML page: no scripts, nothing from the network, dark and light.

    Data summary, the certificate in words, curves of convergence, timings, confusion matrix or residuals, parameters, and
    how to repeat the fit.

    Parameters
    ----------
    model : fitted machine of maxmargin, or a pipeline or search that ends in one
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The samples to judge it on: those of the fit, or others.
    y : array-like of shape (n_samples,), optional
        Their labels; without them there is no score.
    path : file name, optional
        Where to write the page.
    title : str, optional
    certify : bool, default=False
        X and y are those of the fit: judge it once more by `maxmargin.certify_fit`. Slow: all kernel values, in NumPy.
    command : str, optional
        The command that made the model, to be shown instead of Python's lines.

    Returns
    -------
    Report
        With `html`, `save(path)`, and as a result in a notebook the page itself.

    Examples
    --------
    >>> import maxmargin
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> page = maxmargin.report(maxmargin.SVC(C=10).fit(X, y), X, y)
    >>> "converged" in page.html and "<script" not in page.html
    True
    """
    from maxmargin.plots.curves import machine_of  # here, as importing maxmargin need not wait for pages
    from maxmargin.reports.page import document
    from maxmargin.reports.sections import sections

    machine = machine_of(model, "status_")
    X = X if hasattr(X, "shape") else np.asarray(X)
    name = title or f"{type(machine).__name__} on {X.shape[0]:,} samples × {X.shape[1]:,} features"
    page = Report(name, document(name, sections(model, machine, X, y, certify, command)))
    if path is not None:
        page.save(path)
    return page
