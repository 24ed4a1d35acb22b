"""Bridge that carries connections out of a sandbox without network, started before a command.

``python <this file> PORT SOCKET COMMAND...``: clients inside connect to PORT of the loopback
device, and their bytes go to SOCKET, where `egress.EgressProxy` listens. It ends with the sandbox.
The socket listens before the command starts, so there is no moment at which a client could be too
early. It is run as a file, and imports late, because the command waits for it.
"""

from __future__ import annotations

import os
import socket
import sys


def main() -> None:
    """Start the bridge in a process of its own, and become the command."""
    port, place, *command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    if os.fork():
        os.execv(command[0], command)
    _serve(listener, place)


def _serve(listener: socket.socket, place: str) -> None:
    import asyncio

    # The command may have an environment that does not lead to this package.
    sys.path.append(os.path.abspath(f"{__file__}/../../../../.."))  # noqa: PTH100 - imports nothing
    from taskweaver.utils.system.network import Stream, carry

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Stream(reader, writer)
        try:
            proxy = Stream(*await asyncio.open_unix_connection(place))
        except OSError as error:
            sys.stderr.write(f"the proxy cannot be reached: {error}\n")
            client.abort()
        else:
            await carry(client, proxy)

    async def serve() -> None:
        server = await asyncio.start_server(meet, sock=listener)
        await server.serve_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
