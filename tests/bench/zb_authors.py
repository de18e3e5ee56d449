"""CPU seconds that the zero-bubble authors' scheduler takes beside ours, for tests/bench/run.

    zb_authors.py CHECKOUT RANKS MICRO_BATCHES

CHECKOUT is a copy of github.com/sail-sg/zero-bubble-pipeline-parallelism (Qi et al., ICLR 2024).
Its ZB-2p heuristic runs unmodified, without what it needs only for training: f = b = w = 1, no
hop cost, memory for twice as many micro-batches as ranks. Prints the best of three and the time of
the longest rank.
"""
import sys
import time
import types
from pathlib import Path
from types import SimpleNamespace

WHERE = "megatron/core/pipeline_parallel/zerobubble/scheduler"


def load(checkout):
    """The functions of the authors' zb.py, with empty modules in place of what it only names."""
    names = WHERE.split("/")
    parts = [".".join(names[: i + 1]) for i in range(len(names))]
    for name in ["torch", "pulp", *parts, parts[-1] + ".graph"]:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torch"].Tensor = object
    for word in ("GraphConfig", "ScheduledNode", "FuncType"):
        setattr(sys.modules[parts[-1] + ".graph"], word, object)
    module = types.ModuleType("zb")
    sys.modules["zb"] = module
    path = Path(checkout) / WHERE / "zb.py"
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def main():
    checkout, p, m = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    zb = load(checkout)
    each = {"cost_f": 1, "cost_b": 1, "cost_w": 1, "mem_f": 2, "mem_b": -1, "mem_w": -1}
    config = SimpleNamespace(cost_comm=0, max_mem=[4 * p] * p, print_scaling=1)
    for key, value in each.items():
        setattr(config, key, [value] * p)
    best = None
    for _ in range(3):
        begin = time.process_time()
        graph = zb.Graph.build_graph(p, m, config)
        cost = zb.initial_solution(graph, print_result=False)[0]
        spent = time.process_time() - begin
        best = spent if best is None else min(best, spent)
    print(f"{1e3 * best:.1f} ms of CPU, longest rank {cost}")


if __name__ == "__main__":
    main()
