"""A web server in this process that can be told to misbehave."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class Server(ThreadingHTTPServer):
    """Serves the files of a folder.

    Attributes:
        asked: the path of each file that was sent so far.
        cut: bytes of a body after which the connection ends.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.asked: list[str] = []
        self.cut: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        file = self.server.folder / self.path[1:]
        if not file.is_file():
            self.send_error(404)
            return
        if self.headers["Method"] != "HEAD":  # torchvision asks for redirections first
            self.server.asked.append(self.path[1:])
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.server.cut])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A running server."""
    server = Server(folder)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
