"""Support vector machines for large data, with a certificate for every answer."""

__version__ = "0.1.0"
