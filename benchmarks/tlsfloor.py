"""
Measure the least that a watch event can cost: the encryption of a record and one system call for each connection.

    python benchmarks/tlsfloor.py [--connections 100,1000] [--size 1500]

A process has TLS connections to this one, and sends a record to each of them in turn, without a reactor. Its CPU time
(user and system) is printed per record: with the methods of pyOpenSSL, and with the encryptor that the server uses.
F{fanout.py} prints it beside the cost of an event.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import sys
import time

from OpenSSL import SSL

from kubetwist.http.connection._records import MethodEncryptor, RecordEncryptor
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory

#: The ways to encrypt that are compared.
ENCRYPTORS = {"pyOpenSSL": MethodEncryptor, "encryptor": RecordEncryptor}
#: Records that are sent to all connections together, for each way and turn.
RECORDS = 20_000
#: Turns of the ways, of which the least is the result.
TURNS = 3


def _handshake(context: SSL.Context, plain: socket.socket) -> SSL.Connection:
    """Accept a TLS connection."""
    connection = SSL.Connection(context, None)
    connection.set_accept_state()
    done = False
    while not done:
        try:
            connection.do_handshake()
            done = True
        except SSL.WantReadError:
            pass
        with contextlib.suppress(SSL.WantReadError):
            plain.sendall(connection.bio_read(1 << 16))
        if not done:
            connection.bio_write(plain.recv(1 << 16))
    return connection


def _send(listener: socket.socket, count: int, size: int) -> None:
    """Send records to C{count} connections, and print the CPU time of one for each way, in microseconds."""
    pair = CertificateAuthority.make("floor").issue(CertConfig("127.0.0.1", server=True))
    context = ServingContextFactory(pair, "VersionTLS12").getContext()
    connections = []
    for _ in range(count):
        plain, _ = listener.accept()
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections.append((plain, _handshake(context, plain)))
    data = b"x" * size
    least = dict.fromkeys(ENCRYPTORS, float("inf"))
    for _ in range(TURNS):
        for name, make in ENCRYPTORS.items():
            encryptor = make()
            prepared = [(encryptor.prepare(connection), plain.send) for plain, connection in connections]
            encrypt, used, rounds = encryptor.encrypt, 0.0, max(RECORDS // count, 1)
            for _ in range(rounds):
                before = time.process_time()
                for one, send in prepared:
                    send(encrypt(one, data)[1])
                used += time.process_time() - before
                # The receiver reads.
                time.sleep(0.005 + count * 2e-5)
            least[name] = min(least[name], 1e6 * used / rounds / count)
    print(" ".join(f"{least[name]:.2f}" for name in ENCRYPTORS), flush=True)


def measure(count: int, size: int) -> dict[str, float]:
    """
    Measure in a new process.

    @param count: The number of connections.
    @param size: The bytes of a record.
    @return: The CPU time of a record in microseconds, by the way to encrypt it.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=count)
    results, output = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(output, 1)
        try:
            _send(listener, count, size)
        finally:
            os._exit(0)
    os.close(output)
    context = SSL.Context(SSL.TLS_METHOD)
    poll, by_number = select.epoll(), {}
    for _ in range(count):
        plain = socket.create_connection(listener.getsockname()[:2])
        connection = SSL.Connection(context, plain)
        connection.set_connect_state()
        connection.do_handshake()
        plain.setblocking(False)
        by_number[plain.fileno()] = plain
        poll.register(plain.fileno(), select.EPOLLIN)
    poll.register(results, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == results:
                found = os.read(results, 1000).decode().split()
                os.waitpid(pid, 0)
                for plain in by_number.values():
                    plain.close()
                return dict(zip(ENCRYPTORS, map(float, found), strict=True))
            with contextlib.suppress(OSError):
                by_number[number].recv(1 << 20)


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", default="100,1000", help="numbers of connections, comma-separated")
    parser.add_argument("--size", type=int, default=1500, help="bytes of a record")
    options = parser.parse_args()
    print("{:>12} {:>14} {:>14}".format("connections", *(f"{name}, us" for name in ENCRYPTORS)))
    for count in map(int, options.connections.split(",")):
        found = measure(count, options.size)
        print(f"{count:12} " + " ".join(f"{one:14.2f}" for one in found.values()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
