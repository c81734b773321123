"""moto with atomic conditional writes, as those of S3 are. Run as a program, with the arguments of moto's server.

moto answers in threads, and looks for an object in one step and writes it in another. Two writers that both want to
create it may then both succeed.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

_writing = threading.Lock()
_put_object = S3Response.put_object


def _put_alone(response: S3Response) -> Any:
    with _writing:
        return _put_object(response)


if __name__ == "__main__":
    S3Response.put_object = _put_alone
    main()
