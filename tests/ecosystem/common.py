"""Random plans, and their exports by hetviz, for the checks by the real programs."""
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HETVIZ = os.environ.get("HETVIZ", str(ROOT / "build" / "hetviz"))
MODEL = {
    "format": "hetviz.model/1", "name": "small", "kind": "transformer", "layers": 24, "hidden": 1024,
    "heads": 16, "kv_heads": 8, "head_dim": 64, "ffn": 4096, "ffn_kind": "swiglu", "vocab": 32000,
    "tied_embeddings": False, "norm": "rmsnorm", "causal": True, "position": "rope",
    "max_sequence": 4096,
}


class Counts:
    """Passed and failed checks; the first failures are printed."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, good, detail=""):
        if good:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 5:
            print(f"FAILED {name}: {detail}")

    def equal(self, name, got, want):
        self.check(name, got == want, f"got {got!r}, want {want!r}")

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)


def split(rng, total, parts, even=False):
    """Whole numbers >= 1 that add up to total."""
    if even:
        return [total // parts] * parts
    cuts = sorted(rng.sample(range(1, total), parts - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [total])]


def cluster(nodes):
    return {"format": "hetviz.cluster/1", "name": "test", "nodes": [
        {"name": "n", "count": nodes, "device": "H100-SXM-80GB", "devices": 8,
         "x-nodes": ",".join(f"host{i}" for i in range(nodes))}]}


def random_plan(rng, *, pp=(1, 2, 4), chunks=(1, 2, 3), tp=(1, 2, 4, 8), cp=(None,), zero=(0, 1),
                zero_alone=None, recompute=("none", "selective", "full"), even=False, schedules=("1f1b",),
                precision=("bf16",), sequence_parallel=(False, True)):
    """A plan with one set of degrees, as the format of hetviz has it."""
    pp, tp, scheme = rng.choice(pp), rng.choice(tp), rng.choice(cp)
    cp = 2 if scheme else 1
    chunks = rng.choice(chunks) if pp > 1 else 1
    dp, count = rng.choice((1, 2)), rng.choice((1, 2))
    layers = rng.choice((24, 25, 31)) if pp * chunks > 1 and not even else 24
    model = dict(MODEL, layers=layers)
    parts = split(rng, layers, pp * chunks, even)
    per_rank = rng.choice((1, 2))
    micro_batches = pp * rng.choice((1, 2, 3)) if chunks > 1 else rng.choice((2 * pp, 2 * pp + 1, 3 * pp))
    ranks = tp * cp * dp * count
    nodes = -(-ranks * pp // 8)
    places = [f"n[{i // 8}].{i % 8}" for i in range(ranks * pp)]
    if rng.random() < 0.3 and ranks % 8 == 0:  # whole nodes in another order
        blocks = [places[i:i + 8] for i in range(0, len(places), 8)]
        rng.shuffle(blocks)
        places = [p for b in blocks for p in b]
    starts = [sum(parts[:i]) for i in range(len(parts))]
    choice = rng.choice(zero_alone if pp == 1 and zero_alone is not None else zero)
    again, sp = rng.choice(recompute), tp > 1 and rng.choice(sequence_parallel)
    stages = []
    for k in range(pp):
        ranges = [[starts[c * pp + k], starts[c * pp + k] + parts[c * pp + k]] for c in range(chunks)]
        stage = {"devices": places[k * ranks:(k + 1) * ranks],
                 "layers": ranges if chunks > 1 else ranges[0], "tp": tp, "dp": dp}
        if sp:
            stage["sequence_parallel"] = True
        if scheme:
            name, layout = scheme
            stage["cp"] = {"scheme": name, "degree": cp, "layout": layout}
        if choice:
            stage["zero"] = choice
        stage["recompute"] = again
        stages.append(stage)
    schedule = "interleaved" if chunks > 1 else rng.choice(schedules) if pp > 1 else "1f1b"
    plan = {"format": "hetviz.plan/1", "name": "random", "cluster": cluster(nodes), "model": model,
            "job": {"global_batch": count * dp * per_rank * micro_batches, "sequence": 2048,
                    "precision": rng.choice(precision)},
            "micro_batch": dp * per_rank,
            "replicas": [{"count": count, "micro_batches": micro_batches, "stages": stages}],
            "schedule": {"name": schedule}}
    facts = {"tp": tp, "cp": cp, "pp": pp, "dp": dp * count, "chunks": chunks, "layers": parts,
             "total_layers": layers, "micro_batch": per_rank, "micro_batches": micro_batches,
             "global_batch": plan["job"]["global_batch"], "zero": choice if dp * count * cp > 1 else 0,
             "recompute": again, "sequence_parallel": sp, "places": places, "scheme": scheme,
             "schedule": schedule, "precision": plan["job"]["precision"]}
    return plan, facts


def export(plan, target, folder):
    """Exports a plan; (exit code, error text)."""
    path = pathlib.Path(folder) / "plan.json"
    path.write_text(json.dumps(plan))
    done = subprocess.run([HETVIZ, "export", str(path), "--to", target, "--out", str(folder), "-q"],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def words(path):
    """Arguments of a file of arguments: split at blanks, as launch.sh does."""
    return pathlib.Path(path).read_text().split()


def ranks(folder):
    with open(pathlib.Path(folder) / "ranks.csv", newline="") as f:
        return list(csv.DictReader(f))


def check_places(counts, folder, facts):
    """ranks.csv has the plan's devices in the plan's order, each on its host."""
    rows = ranks(folder)
    counts.equal("addresses in rank order", [r["address"] for r in rows], facts["places"])
    counts.equal("hosts", [(r["host"], r["gpu"]) for r in rows],
                 [("host" + p[2:].split("]")[0], p.split(".")[1]) for p in facts["places"]])


def cases(n, seed, **kinds):
    """Yields (number, plan, facts, folder) of n random plans."""
    rng = random.Random(seed)
    for i in range(n):
        plan, facts = random_plan(rng, **kinds)
        with tempfile.TemporaryDirectory() as folder:
            yield i, plan, facts, folder


def record(target, i, folder, names, keep=6):
    """With RECORD=1: keeps the first exports that the real program accepted, for make test."""
    if os.environ.get("RECORD") != "1" or i >= keep:
        return
    to = pathlib.Path(__file__).parent / "recorded" / target / str(i)
    to.mkdir(parents=True, exist_ok=True)
    for name in ["plan.json", *names]:
        source = pathlib.Path(folder) / name
        if source.exists():
            (to / name).write_bytes(source.read_bytes())


def count(default):
    return int(os.environ.get("PLANS", default))
