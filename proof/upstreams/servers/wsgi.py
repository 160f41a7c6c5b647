"""
The application of the tests, for gunicorn and, run as a script, for CGI. By the last segment of the path:

answer    waits for `ms` milliseconds and names `id`
text      responds with `code` and `text` as its body, in a segment after the head; `framing` is `length` or `chunked`
upload    size and hash of the body that came
refuse    413 without a look at the body
download  `size` bytes
pieces    `count` lines, `ms` milliseconds apart; of a file `seen` the length says how many have arrived: no more are
          sent before these have
hints     103 before the response, where the server can
"""

import hashlib
import os
import sys
import time
from urllib.parse import parse_qs


def text(query, start_response):
    body = query["text"].encode("latin-1")
    headers = [("Content-Type", "text/plain")]
    if query["code"] == "302":
        headers.append(("Location", "/elsewhere"))
    if query["framing"] == "length":
        headers.append(("Content-Length", str(len(body))))
    start_response(query["code"] + " Status", headers)
    # Servers send the head with the first piece, even if it is empty.
    yield b""
    time.sleep(int(query["ms"]) / 1000)
    yield body


def upload(environ, start_response):
    digest, size = hashlib.sha256(), 0
    while piece := environ["wsgi.input"].read(65536):
        digest.update(piece)
        size += len(piece)
    return plain(f"{size} {digest.hexdigest()}", start_response)


def download(size, start_response):
    start_response("200 OK", [("Content-Length", str(size))])
    block = bytes(i % 251 for i in range(65536))
    for at in range(0, size, len(block)):
        yield block[: size - at]


def arrived(query, count):
    return "seen" not in query or os.path.getsize(query["seen"]) >= count


# The client may have left: then it is waited for no longer than 10 s.
LOOKS, LOOK_SECONDS = 2000, 0.005


def pieces(query, seconds, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    for i in range(int(query["count"])):
        time.sleep(seconds)
        for _ in range(LOOKS):
            if arrived(query, i):
                break
            time.sleep(LOOK_SECONDS)
        yield f"piece {i}\n".encode()


def plain(body, start_response, status="200 OK"):
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body.encode()]


def application(environ, start_response):
    query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
    seconds = int(query.get("ms", "0")) / 1000
    action = environ["PATH_INFO"].rsplit("/", 1)[-1]
    if action == "answer":
        # A CGI script that leaves some of its input loses its response.
        environ["wsgi.input"].read()
        time.sleep(seconds)
        return plain("response of " + query["id"], start_response)
    if action == "text":
        return text(query, start_response)
    if action == "upload":
        return upload(environ, start_response)
    if action == "refuse":
        return plain("too large", start_response, "413 Payload Too Large")
    if action == "download":
        return download(int(query["size"]), start_response)
    if action == "pieces":
        return pieces(query, seconds, start_response)
    if action == "hints":
        environ["wsgi.early_hints"]([("Link", "</style.css>; rel=preload")])
        return plain("after hints", start_response)
    return plain("no such action", start_response, "404 Not Found")


if __name__ == "__main__":
    from wsgiref.handlers import CGIHandler

    CGIHandler().run(application)
