"""Samples in files, and samples as the core sees them."""

from maxmargin.data.description import Description
from maxmargin.data.errors import FormatError
from maxmargin.data.files import Chunks, chunks, describe, format_of, load, save

__all__ = ["Chunks", "Description", "FormatError", "chunks", "describe", "format_of", "load", "save"]
