"""Connects to a URL, has messages echoed, and says what it saw."""

import json
import os
import ssl
import sys

from websockets.sync.client import connect

context = None
if sys.argv[1].startswith("wss:"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

messages = ["", "text", "é" * 70_000, b"\0", os.urandom(900_000)]
with connect(sys.argv[1], ssl=context, max_size=None) as client:
    echoed = []
    for message in messages:
        client.send(message)
        echoed.append(client.recv() == message)
    pong = client.ping().wait(10)
# It closes with 1000, and the server responds with the same.
print(json.dumps({"echoed": echoed, "pong": pong, "code": client.close_code}))
