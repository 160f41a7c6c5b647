"""The application of the tests on uvicorn, with WebSockets that echo; wsgi.py describes its responses."""

import asyncio
import hashlib
import os
from urllib.parse import parse_qs


class Response:
    def __init__(self, send):
        self.send = send

    async def head(self, status, headers=()):
        fields = [(name.encode(), value.encode()) for name, value in headers]
        await self.send({"type": "http.response.start", "status": status, "headers": fields})

    async def piece(self, body, more=True):
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def whole(self, text, status=200):
        await self.head(status, [("content-length", str(len(text)))])
        await self.piece(text.encode(), False)


async def text(query, response):
    body = query["text"].encode("latin-1")
    headers = [("location", "/elsewhere")] if query["code"] == "302" else []
    if query["framing"] == "length":
        headers.append(("content-length", str(len(body))))
    await response.head(int(query["code"]), headers)
    await asyncio.sleep(int(query["ms"]) / 1000)
    await response.piece(body, False)


async def upload(receive, response):
    digest, size, more = hashlib.sha256(), 0, True
    while more:
        message = await receive()
        piece = message.get("body", b"")
        digest.update(piece)
        size += len(piece)
        more = message.get("more_body", False)
    await response.whole(f"{size} {digest.hexdigest()}")


async def download(size, response):
    await response.head(200, [("content-length", str(size))])
    block = bytes(i % 251 for i in range(65536))
    for at in range(0, size, len(block)):
        await response.piece(block[: size - at])
    await response.piece(b"", False)


def arrived(query, count):
    return "seen" not in query or os.path.getsize(query["seen"]) >= count


# As in wsgi.py.
LOOKS, LOOK_SECONDS = 2000, 0.005


async def pieces(query, seconds, response):
    await response.head(200)
    for i in range(int(query["count"])):
        await asyncio.sleep(seconds)
        for _ in range(LOOKS):
            if arrived(query, i):
                break
            await asyncio.sleep(LOOK_SECONDS)
        await response.piece(f"piece {i}\n".encode())
    await response.piece(b"", False)


async def echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message.get("text"), "bytes": message.get("bytes")})


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        return await echo(receive, send)
    query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
    seconds = int(query.get("ms", "0")) / 1000
    action = scope["path"].rsplit("/", 1)[-1]
    response = Response(send)
    if action == "answer":
        await asyncio.sleep(seconds)
        await response.whole("response of " + query["id"])
    elif action == "text":
        await text(query, response)
    elif action == "upload":
        await upload(receive, response)
    elif action == "refuse":
        await response.whole("too large", 413)
    elif action == "download":
        await download(int(query["size"]), response)
    elif action == "pieces":
        await pieces(query, seconds, response)
    else:
        await response.whole("no such action", 404)
