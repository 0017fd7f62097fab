"""Kernel values between samples: the one protocol that solvers ask, and its kinds."""

from maxmargin.kernel_values.data import KernelData
from maxmargin.kernel_values.dealt import DealtValues
from maxmargin.kernel_values.given import GivenValues
from maxmargin.kernel_values.native import Frame, NativeValues, Samples
from maxmargin.kernel_values.shared import SharedValues, shared_samples
from maxmargin.kernel_values.source import Source, pieces

Values = NativeValues | GivenValues

__all__ = [
    "DealtValues", "Frame", "GivenValues", "KernelData", "NativeValues", "Samples", "SharedValues", "Source", "Values",
    "pieces", "shared_samples",
]  # fmt: skip
