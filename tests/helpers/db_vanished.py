"""Run in a network of its own: the network of a database ends without a word in the middle of an episode."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from cluster import cluster

from cascade_memory import CascadeMemory
from cascade_memory.errors import StoreError


def main() -> None:
    """Print how long a reward waits, and whether it is taken afterwards."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with cluster(tcp=True) as server, CascadeMemory(server.tcp_url, embedder="hashing") as memory:
        episode = memory.recall("heat a cup").episode_id
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        began, said = time.monotonic(), ""
        try:
            memory.reward(episode, 1.0, solution="use the microwave")
        except StoreError as error:
            said = str(error)
        waited = time.monotonic() - began
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        memory.reward(episode, 1.0, solution="use the microwave")
        found = [case.solution for case in memory.recall("heat a cup").cases]
    sys.stdout.write(json.dumps({"waited": waited, "said": said, "found": found}))


if __name__ == "__main__":
    main()
