"""How a log line looks, and what never stands in one."""

import logging
import re
import time
import traceback
from types import TracebackType

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

# Whoever reads a patient's link in a log could answer in their place.
_LINK = re.compile(r"(/(?:cita|preferencias)/)[^/\s?]+")


class LineFormatter(logging.Formatter):
    """One line per record; of an exception the place and the kind, never its message.

    A database error repeats the row that it refused, and a parser the text that
    it could not read: both would put what a patient is called into the log.
    """

    converter = staticmethod(time.gmtime)  # in UTC

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """The line without the tokens of patients' links, which Django names with the address of a fault."""
        return _LINK.sub(r"\1…", super().formatMessage(record))

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802
        """The frames of the exception and of its causes, with their kinds."""
        lines: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None:
            kind = f"{type(error).__module__}.{type(error).__qualname__}"
            lines += traceback.format_tb(error.__traceback__)
            lines.append(f"{kind} (message withheld)")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(line.rstrip() for line in lines)
