"""Kerf's exceptions, one base for all; raised from C++ (bindings/errors.cpp) and from here.

While compiling, Dynamo wraps what a
backend raises in BackendCompilerFailed with ours as `.inner_exception`; at run time they come as they are.
"""

import builtins


class KerfError(Exception):
    """Base of all errors of Kerf."""


class UserError(KerfError):
    """A bad option or input; the message says what to do."""


class RuntimeError(KerfError, builtins.RuntimeError):
    """The machine or a library said no: the message has the call and its text."""


class IndexError(KerfError, builtins.IndexError, builtins.RuntimeError):
    """An index out of range; eager raises one of the two classes, by the operator."""


class InternalError(KerfError, builtins.RuntimeError):
    """A bug of Kerf; the message names the file to send and the command that replays it."""
