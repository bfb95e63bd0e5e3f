# An origin whose requests h11 reads, the strict parser of uvicorn and httpx. Prints its port, then each request line.
import os
import socket
import threading

import h11

BODY = b'{"id":"c1","choices":[]}'
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]


def tell(line):
    # In one call, since many threads tell.
    os.write(1, f"{line}\n".encode())


def next_event(connection, stream):
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        try:
            connection.receive_data(stream.recv(1 << 16))
        except OSError:
            return h11.ConnectionClosed()


def serve(stream):
    # The gateway adds some to what a client may send.
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    try:
        while True:
            event = next_event(connection, stream)
            if isinstance(event, h11.ConnectionClosed):
                return
            if isinstance(event, h11.Request):
                tell(f"{event.method.decode()} {event.target.decode()} HTTP/{event.http_version.decode()}")
            if isinstance(event, h11.EndOfMessage):
                answer = connection.send(h11.Response(status_code=200, headers=HEADERS))
                answer += connection.send(h11.Data(data=BODY)) + connection.send(h11.EndOfMessage())
                stream.sendall(answer)
                if connection.our_state is h11.MUST_CLOSE:
                    return
                connection.start_next_cycle()
    except h11.RemoteProtocolError as error:
        tell(f"malformed: {error}")
    finally:
        stream.close()


listener = socket.create_server(("127.0.0.1", 0), backlog=512)
tell(listener.getsockname()[1])
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
