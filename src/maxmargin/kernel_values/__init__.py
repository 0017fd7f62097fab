"""Kernel values between samples: the one protocol that solvers ask, and its kinds."""

from maxmargin.kernel_values.given import GivenValues
from maxmargin.kernel_values.native import Frame, NativeValues, Samples
from maxmargin.kernel_values.source import Source, pieces

Values = NativeValues | GivenValues

__all__ = ["Frame", "GivenValues", "NativeValues", "Samples", "Source", "Values", "pieces"]
