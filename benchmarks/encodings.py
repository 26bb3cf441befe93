"""
Compare the cost of responses in JSON, protobuf and CBOR.

  get       GET of one object, 8 connections
  list500   LIST with limit=500, 2 connections

One server runs, and requests for each media type are sent to it alternately, --rounds times. The results are medians of
the server's CPU time per request in microseconds, and their ratios to JSON.
"""

from __future__ import annotations

import os
import statistics

from load import Target, arguments, send
from twoservers import MAPS, fill, processor_time

from kubetwist.testing import SubprocessServer

MEDIA_TYPES = {
    "json": "application/json",
    "protobuf": "application/vnd.kubernetes.protobuf",
    "cbor": "application/cbor",
}
KINDS = {"get": (f"{MAPS}/cm-0007", 8), "list500": (f"{MAPS}?limit=500", 2)}


def main() -> None:
    """Measure, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with SubprocessServer("--controllers=", "--feature-gates=CBORServingAndStorage=true", *options.flag) as server:
        target = Target(server.url, server.token, server.pid)
        assert target.pid is not None
        fill(target)
        print(f"load average before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
        print(f"{'':10}" + "".join(f"{name:>10}" for name in MEDIA_TYPES) + "   ratios")
        for kind, (path, connections) in KINDS.items():
            costs: dict[str, list[float]] = {name: [] for name in MEDIA_TYPES}
            failed = 0
            for round_ in range(options.rounds + 1):
                for name, accept in MEDIA_TYPES.items():
                    before = processor_time(target.pid)
                    load = send(target.url, [target.request("GET", path, Accept=accept)], connections, options.seconds)
                    cost = (processor_time(target.pid) - before) / max(load.rate * options.seconds, 1)
                    failed += load.failed
                    # The first round makes caches warm.
                    if round_:
                        costs[name].append(cost * 1e6)
            medians = [statistics.median(found) for found in costs.values()]
            ratios = " ".join(f"{one / medians[0]:.2f}" for one in medians)
            note = f"  {failed} failed" if failed else ""
            print(f"{kind:10}" + "".join(f"{one:10.1f}" for one in medians) + f"   {ratios}{note}")


if __name__ == "__main__":
    main()
