"""The driver protocol: requests on standard input, answers on standard output, one JSON document a line."""

import json
import os
import sys
import threading
import traceback
from typing import Any

Document = dict[str, Any]


class DriverError(Exception):
    """An error document for an answer."""

    def __init__(self, code: str, message: str, **more: Any):
        super().__init__(message)
        self.document = {"code": code, "message": message, **more}


class _Answers:
    """Several requests are answered at once; their lines must not mix."""

    def __init__(self) -> None:
        # Nobody else may write to standard output: what a library prints there would be no answer.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def send(self, number: int, **answer: Any) -> None:
        with self._lock:
            self._out.write(json.dumps({"id": number, **answer}) + "\n")
            self._out.flush()


def serve(driver: Any) -> int:
    """`driver` has a method for each operation, called with the fields of the request, and close().

    A dash in the name of an operation is an underscore in that of the method.
    """
    answers = _Answers()
    try:
        for line in sys.stdin:
            request = json.loads(line)
            number, op = request.pop("id"), request.pop("op")
            if op == "shutdown":
                driver.close()
                answers.send(number, ok={})
                return 0
            work = threading.Thread(target=_carry_out, args=(driver, answers, number, op, request))
            work.daemon = True
            work.start()
        return 0
    finally:
        driver.close()


def _carry_out(driver: Any, answers: _Answers, number: int, op: str, fields: Document) -> None:
    try:
        answers.send(number, ok=_method(driver, op)(**fields))
    except DriverError as error:
        answers.send(number, error=error.document)
    except Exception:  # A fault of the driver itself must not leave the runner without an answer.
        traceback.print_exc()
        answers.send(number, error={"code": "UNKNOWN", "message": f"the driver failed in {op}"})


def _method(driver: Any, op: str) -> Any:
    method = getattr(driver, op.replace("-", "_"), None)
    if method is None:
        raise DriverError("UNSUPPORTED", f"this driver has no {op}")
    return method
