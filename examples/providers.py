"""Stands in for a SearXNG, an images API and an HTTP API, so that antiphon's tools can be tried without any of them.

    python3 examples/providers.py          # on http://127.0.0.1:8899
    antiphon serve --config examples/tools.toml

It needs nothing but Python. What it answers is made up.
"""

import base64
import json
import struct
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ADDRESS = ("127.0.0.1", 8899)
HERE = "http://{}:{}".format(*ADDRESS)

PAGE = """<!doctype html><title>Tides of Bergen</title><article><h1>Tides of Bergen</h1>
<p>High water comes to Bergen about every twelve hours and twenty-five minutes.</p>
<p>The range is small: about ninety centimetres at spring tide, half of that at neap tide.</p></article>"""

PETS = {"1": {"id": 1, "name": "Rex", "kind": "dog"}, "2": {"id": 2, "name": "Tom", "kind": "cat"}}


def png(red, green, blue, side=64):
    """A picture of one colour."""
    row = b"\0" + bytes((red, green, blue)) * side
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b"")


class Providers(BaseHTTPRequestHandler):
    def do_GET(self):
        path = urlsplit(self.path).path
        if path == "/tides":
            self.answer(PAGE.encode(), "text/html; charset=utf-8")
        elif path == "/pets":
            self.json(list(PETS.values()))
        elif (pet := PETS.get(path.removeprefix("/pets/"))) is not None:
            self.json(pet)
        else:
            self.json({"error": "There is nothing here."}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        if path == "/search":  # as SearXNG does
            query = parse_qs(body.decode()).get("q", [""])[0]
            found = {"url": f"{HERE}/tides", "title": "Tides of Bergen", "content": f"High water in Bergen. (Asked: {query})"}
            self.json({"query": query, "results": [found]})
        elif path in ("/v1/images/generations", "/v1/images/edits"):  # as OpenAI does
            self.json({"data": [{"b64_json": base64.b64encode(png(200, 60, 40)).decode()}], "size": "64x64", "output_format": "png"})
        elif path == "/pets":
            pet = json.loads(body)
            PETS[str(len(PETS) + 1)] = pet = {"id": len(PETS) + 1} | pet
            self.json(pet, 201)
        else:
            self.json({"error": "There is nothing here."}, 404)

    def json(self, value, status=200):
        self.answer(json.dumps(value).encode(), "application/json", status)

    def answer(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print(f"{HERE} stands in for a SearXNG, an images API and the API of a pet shop")
    ThreadingHTTPServer(ADDRESS, Providers).serve_forever()
