# An origin whose requests Python's http.server reads. Prints its port, then each request line.
import http.client
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# The gateway adds some to the hundred that a client may send.
http.client._MAXHEADERS = 1000


def tell(line):
    # In one call, since many threads tell.
    os.write(1, f"{line}\n".encode())


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        tell(self.requestline)
        body = b'{"id":"c1","choices":[]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def send_error(self, code, message=None, explain=None):
        tell(f"malformed: {getattr(self, 'requestline', '')!r}")
        super().send_error(code, message, explain)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 512


server = Server(("127.0.0.1", 0), Origin)
tell(server.server_port)
server.serve_forever()
