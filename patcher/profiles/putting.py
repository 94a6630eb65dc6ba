"""Put rendered files onto a host, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.profiles.model import Put, Rendered
from patcher.remote.connection import Connection


def put(connection: Connection, files: Sequence[Rendered], *, dry: bool = False) -> tuple[Put, ...]:
    """Write what is new or as we rendered it; leave what was edited or made there. With `dry` only look.

    The folder must have been opened (`hosts.opening.begin`). Raises RefusedError where the host cannot write.
    """
    contents = [file.text.encode("utf-8", "surrogateescape") for file in files]
    told = [
        {"path": file.path, "size": len(content), "mode": file.mode}
        for file, content in zip(files, contents, strict=True)
    ]
    answer = connection.channel.ask("put", body=b"".join(contents), files=told, dry=dry)
    return tuple(
        Put(entry["path"], entry["how"], entry["there"], file)
        for entry, file in zip(answer["files"], files, strict=True)
    )
