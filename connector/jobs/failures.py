"""Errors of Spark jobs, as errors of the library.

Spark reports the error of a task as the text of its traceback. The last line of a traceback names the class and the
message. Those of plans and commits by the driver are a line of their own.
"""

from __future__ import annotations

import re

import lance_format
from lance_format import LanceError

_OF_LIBRARY = re.compile(r"^lance_format\.errors\.(\w+): (.*)$", re.MULTILINE)
_OF_DRIVER = re.compile(r" Python data source lance: (\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_OF_PYTHON = re.compile(r"^([\w.]*(?:Error|Exception|Interrupt|Exit)\b.*)$", re.MULTILINE)
_OF_JAVA = re.compile(r"^: [\w.$]+: (.*)$", re.MULTILINE)


class JobFailedError(LanceError, RuntimeError):
    """A Spark job that failed for another reason than an error of the library. Its change was not committed."""


def find_library_error(error: Exception) -> LanceError | None:
    """Return the error of the library that an error of Spark reports, or None.

    Parameters
    ----------
    error : Exception
        The error that Spark raised.
    """
    text = str(error)
    known = _OF_LIBRARY.findall(text) or _OF_DRIVER.findall(text)[:1]  # A failed cleanup comes after a failed commit.
    if known:
        name, message = known[-1]
        made = getattr(lance_format, name, None)
        if isinstance(made, type) and issubclass(made, LanceError):
            return made(message.strip())
    return None


def explain(error: Exception, description: str) -> LanceError:
    """Return the error of the library that made a job fail, or a `JobFailedError`.

    Parameters
    ----------
    error : Exception
        The error that Spark raised.
    description : str
        The description of the job.
    """
    found = find_library_error(error)
    if found is not None:
        return found
    text = str(error)
    reasons = _OF_PYTHON.findall(text)
    reasons = reasons or _OF_JAVA.findall(text)[:1]  # As of a worker that died, after a line about the call.
    reason = reasons[-1] if reasons else text.strip().partition("\n")[0]
    return JobFailedError(f"the job {description!r} failed, and its change was not committed: {reason.strip()}")
