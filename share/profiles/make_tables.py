#!/usr/bin/env python3
"""Fits the shipped operator tables (hetviz.profile/1) from timings of kernels.

    make_tables.py A100 gemm.csv elementwise.csv A100.json
    make_tables.py B200 kernels.json B200.json

gemm.csv: columns device, M, N, K, time_ms_median (one product per line); elementwise.csv: columns
device, op, tokens, hidden, ffn, tp, n_head, n_kv_head, time_ms_median. Either may be gzipped. Both
are the mlp.csv files of Vidur in one table each (see SOURCE), N and K worked out from the model.

Products: log2 of achieved FLOP/s on a regular grid in log2 of M, N and K, tri-linear between its
points. The grid is fitted with least absolute errors plus a penalty on the bend of its *difference*
to a fitted roofline, so that cells without timings follow the roofline. The time of a product never
falls when M, N or K grows: the mean of the running maximum and the running minimum of the fitted
times has that property, and rounding keeps it.

Streams: bytes per second of the residual addition (two reads, one write), the one kernel of the set
that is nothing but a stream, by log2 of bytes, not above the bandwidth of the memory.

kernels.json: shares of the peak that single kernels reached, as SimuMax's configs/system list them:
products, and fused causal attention whose shares count the pairs above the diagonal too, so that
half of them is what the kernel computed. Attention is the median over shapes with at least 32 heads
at each length; between measured lengths log2 of the rate is a straight line.

The script prints mean absolute percentage errors of roofline and table, on timings and on whole
(N, K) shapes that the fit did not see; the latter is the `error_frac` that is written. The tables
written are fitted on everything. Needs numpy.
"""
import collections
import csv
import gzip
import itertools
import json
import math
import sys

import numpy as np

SOURCE = "microsoft/vidur@7d47513 data/profiling/compute/%s/*/mlp.csv"
AXES = {"m": (0.0, 0.5, 29), "n": (9.0, 1.0, 8), "k": (9.0, 1.0, 7)}  # log2: from, step, count
GRID = [axis[2] for axis in AXES.values()]
BEND = 0.5  # weight of the penalty
STREAM = (12.0, 1.0, 19)
DEVICES = {
    "A100": dict(device="A100-SXM-80GB", peak=312.0, bandwidth=2039.0,
                 same_chip=["A100-SXM-40GB", "A100-PCIe-80GB", "A100-PCIe-40GB", "A800-SXM-80GB"]),
    "H100": dict(device="H100-SXM-80GB", peak=989.0, bandwidth=3350.0,
                 same_chip=["H100-SXM-96GB-HBM2e-500W", "H100-PCIe-80GB", "H100-NVL-94GB",
                            "H800-SXM-80GB", "H200-SXM-141GB", "H200-NVL-141GB", "GH200-96GB",
                            "GH200-144GB"]),
    "B200": dict(device="B200-SXM-180GB", peak=2250.0, bandwidth=8000.0,
                 same_chip=["GB200-NVL72", "B300-SXM-288GB", "GB300-NVL72"]),
    "A40": dict(device="A40-48GB", peak=149.7, bandwidth=696.0, same_chip=["RTX-A6000-48GB"]),
}


def rows(path, device):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        for row in csv.DictReader(f):
            if row["device"].upper() == device:
                yield row


def read_products(path, device):
    """Shapes (n × 3) and seconds, the median where a shape was timed more than once."""
    times = collections.defaultdict(list)
    for r in rows(path, device):
        shape = tuple(int(float(r[c])) for c in ("M", "N", "K"))
        times[shape].append(float(r["time_ms_median"]) * 1e-3)
    shapes = sorted(times)
    return np.array(shapes, float), np.array([np.median(times[s]) for s in shapes])


def stream_bytes(r):
    """Bytes that a kernel must move at least (16 bit), and its name here."""
    t, h, f, tp = (float(r[c]) for c in ("tokens", "hidden", "ffn", "tp"))
    heads, kv = float(r["n_head"]), float(r["n_kv_head"])
    op = r["op"]
    if op == "add":
        return op, 3 * t * h * 2
    if op == "mlp_act":
        return "activation", 3 * t * f / tp * 2
    if op.endswith("layernorm"):
        return "norm", 2 * t * h * 2
    if op == "attn_rope":
        return "rope", 2 * t * h / heads * (heads + kv) / tp * 2
    return "embedding", 2 * t * h * 2


def corners(logs, axes):
    """The grid points around each place and their weights: two arrays, places × 2^dimensions."""
    at, frac = [], []
    for u, (start, step, count) in zip(logs.T, axes):
        x = np.clip((u - start) / step, 0, count - 1)
        i = np.minimum(x.astype(int), count - 2)
        at.append(i)
        frac.append(x - i)
    index, weight = [], []
    for corner in itertools.product((0, 1), repeat=len(axes)):
        index.append(np.ravel_multi_index([i + c for i, c in zip(at, corner)],
                                          [a[2] for a in axes]))
        weight.append(np.prod([f if c else 1 - f for f, c in zip(frac, corner)], axis=0))
    return np.array(index).T, np.array(weight).T


def bend_penalty(axes):
    """Second differences along each axis, as a matrix that is multiplied with itself."""
    shape = [a[2] for a in axes]
    size = int(np.prod(shape))
    total = np.zeros((size, size))
    for k, (_, step, count) in enumerate(axes):
        d = np.zeros((count - 2, count))
        for i in range(count - 2):
            d[i, i:i + 3] = (1, -2, 1)
        parts = [np.eye(n) for n in shape]
        parts[k] = d.T @ d * (BEND / step ** 1.5) ** 2
        m = parts[0]
        for p in parts[1:]:
            m = np.kron(m, p)
        total += m
    return total + 1e-4 * np.eye(size)


def fit_grid(logs, y, prior, axes):
    """Grid values with least absolute errors of y; cells without data follow `prior`."""
    index, weight = corners(logs, axes)
    size = len(prior)
    penalty = bend_penalty(axes)
    y = y - (weight * prior[index]).sum(1)
    w = np.ones(len(y))
    for _ in range(8):
        a = penalty.copy()
        for i, j in itertools.product(range(index.shape[1]), repeat=2):
            a += np.bincount(index[:, i] * size + index[:, j],
                             w * weight[:, i] * weight[:, j], size * size).reshape(size, size)
        b = np.zeros(size)
        for i in range(index.shape[1]):
            b += np.bincount(index[:, i], w * weight[:, i] * y, size)
        x = np.linalg.solve(a, b)
        w = 1 / np.maximum(np.abs(y - (weight * x[index]).sum(1)), 0.01)
        w /= w.mean()
    return prior + x


def never_falling(log_time):
    up, down = log_time.copy(), log_time.copy()
    for k in range(log_time.ndim):
        up = np.maximum.accumulate(up, axis=k)
        down = np.flip(np.minimum.accumulate(np.flip(down, k), axis=k), k)
    return (up + down) / 2


def log2_flops(axes):
    nodes = [start + step * np.arange(count) for start, step, count in axes]
    return 1 + sum(np.meshgrid(*nodes, indexing="ij"))


def roofline(shapes, p):
    flops = 2 * shapes.prod(1)
    m, n, k = shapes.T
    return p[2] + np.maximum(flops / p[0], 2 * (m * k + k * n + m * n) / p[1])


def mape(predicted, seconds):
    return 100 * np.mean(np.abs(predicted / seconds - 1))


def fit_roofline(shapes, seconds, kind):
    tried = itertools.product(np.arange(0.60, 0.90, 0.02), np.arange(0.6, 1.0, 0.05),
                              np.arange(0, 14, 2) * 1e-6)
    return min(((kind["peak"] * 1e12 * e, kind["bandwidth"] * 1e9 * b, t0) for e, b, t0 in tried),
               key=lambda p: mape(roofline(shapes, p), seconds))


def fit_products(shapes, seconds, kind):
    """log2 of FLOP/s on the grid; and the roofline below it."""
    axes = list(AXES.values())
    line = fit_roofline(shapes, seconds, kind)
    nodes = np.array([[2.0 ** (a[0] + a[1] * i) for a, i in zip(axes, at)]
                      for at in np.ndindex(*GRID)])
    prior = np.log2(2 * nodes.prod(1) / roofline(nodes, line))
    y = np.log2(2 * shapes.prod(1) / seconds)
    rate = fit_grid(np.log2(shapes), y, prior, axes).reshape(GRID)
    # cells without timings do not exceed the best of those with some
    index, weight = corners(np.log2(shapes), axes)
    seen = np.bincount(index.ravel(), weight.ravel(), rate.size).reshape(GRID) >= 5
    rate = np.minimum(rate, rate[seen].max())
    return log2_flops(axes) - never_falling(log2_flops(axes) - rate), line


def table_time(rate, shapes):
    index, weight = corners(np.log2(shapes), list(AXES.values()))
    return 2 * shapes.prod(1) / 2 ** (weight * rate.ravel()[index]).sum(1)


def rounded(rate, unit, axes, digits=4):
    """The values in the unit of the file, rounded down so that time still never falls."""
    out = np.zeros(rate.shape)
    for at in np.ndindex(*rate.shape):
        x = 2.0 ** rate[at] / unit
        for k, (_, step, _) in enumerate(axes):
            if at[k]:
                before = list(at)
                before[k] -= 1
                x = min(x, out[tuple(before)] * 2 ** step)
        scale = 10.0 ** (digits - 1 - math.floor(math.log10(x)))
        out[at] = round(math.floor(x * scale) / scale, 12)
    return out


def judge(shapes, seconds, kind, name):
    """Errors on what the fit did not see; the error on whole shapes is returned."""
    rng = np.random.default_rng(1)
    nk = np.array([n * 2 ** 20 + k for _, n, k in shapes.astype(int)])
    some = rng.permutation(np.unique(nk))
    halves = {"timings": rng.random(len(seconds)) < 0.5,
              "shapes": np.isin(nk, some[:len(some) // 2])}
    error = 0
    for what, first in halves.items():
        predicted, line = np.zeros(len(seconds)), np.zeros(len(seconds))
        for train in (first, ~first):
            rate, p = fit_products(shapes[train], seconds[train], kind)
            predicted[~train] = table_time(rate, shapes[~train])
            line[~train] = roofline(shapes[~train], p)
        for low, high in ((1, 64), (64, 256), (256, 1024), (1024, 1e9), (1, 1e9)):
            s = (shapes[:, 0] >= low) & (shapes[:, 0] < high)
            error = mape(predicted[s], seconds[s])
            print(f"{name} unseen {what:8} M from {low:4}: n {s.sum():5}, roofline "
                  f"{mape(line[s], seconds[s]):5.2f} %, table {error:5.2f} %")
    return error


def fit_streams(path, name, kind):
    """GB/s by log2 of bytes from the additions; prints what every kernel reaches of it."""
    seen = collections.defaultdict(list)
    for r in rows(path, name):
        op, moved = stream_bytes(r)
        seen[op].append((moved, float(r["time_ms_median"]) * 1e-3))
    seen = {op: np.array(v) for op, v in seen.items()}
    top = kind["bandwidth"] * 1e9
    start, step, count = STREAM
    nodes = start + step * np.arange(count)

    def fit(a):
        prior = np.log2(2 ** nodes / (2e-6 + 2 ** nodes / (0.85 * top)))
        g = fit_grid(np.log2(a[:, :1]), np.log2(a[:, 0] / a[:, 1]), prior, [STREAM])
        return nodes - never_falling(nodes - np.minimum(g, math.log2(top)))

    def times(g, moved):
        index, weight = corners(np.log2(moved)[:, None], [STREAM])
        return moved / 2 ** (weight * g[index]).sum(1)

    half = np.random.default_rng(2).random(len(seen["add"])) < 0.5
    predicted = np.zeros(len(half))
    for train in (half, ~half):
        predicted[~train] = times(fit(seen["add"][train]), seen["add"][~train, 0])
    g, error = fit(seen["add"]), mape(predicted, seen["add"][:, 1])
    for op, a in sorted(seen.items()):
        big = a[:, 0] >= 2 ** 24
        share = np.median(times(g, a[big, 0]) / a[big, 1])
        print(f"{name} {op:10}: n {len(a):5}, constant bandwidth "
              f"{mape(5e-6 + a[:, 0] / (0.8 * top), a[:, 1]):6.1f} %, table "
              f"{error if op == 'add' else mape(times(g, a[:, 0]), a[:, 1]):6.1f} %; "
              f"from 16 MiB: constant {mape(5e-6 + a[big, 0] / (0.8 * top), a[big, 1]):6.1f} %, "
              f"table {mape(times(g, a[big, 0]), a[big, 1]):6.1f} %, "
              f"table times {share:.2f} {mape(times(g, a[big, 0]) / share, a[big, 1]):6.1f} %")
    return rounded(g, 1e9, [STREAM]), error, float(np.median(seen["add"][seen["add"][:, 0] < 2e5, 1]))


# ---- SimuMax's tables: shares of the peak by shape ---------------------------------------------

SHARES = "MooreThreads/SimuMax@4dcaae5 configs/system"
SHARE_AXES = [(8.0, 1.0, 10), (8.0, 1.0, 10), (8.0, 1.0, 10)]
MANY_HEADS = 32


def share_products(tables, kind):
    """Shapes (n x 3) and seconds: the median over operand layouts and output formats."""
    shares = collections.defaultdict(list)
    for r in tables["matmul"]:
        shares[r["m"], r["n"], r["k"]].append(r["share_of_peak"])
    shapes = np.array(sorted(shares), float)
    reached = np.array([np.median(shares[s]) for s in sorted(shares)])
    return shapes, 2 * shapes.prod(1) / (reached * kind["peak"] * 1e12)


def fit_shares(shapes, seconds, kind):
    """log2 of FLOP/s on the grid, towards the roofline of the shapes where there are none."""
    line = min(((kind["peak"] * 1e12 * e, kind["bandwidth"] * 1e9 * b, 0.0)
                for e in np.arange(0.4, 0.7, 0.02) for b in np.arange(0.1, 1.0, 0.1)),
               key=lambda p: mape(roofline(shapes, p), seconds))
    counts = [a[2] for a in SHARE_AXES]
    nodes = np.array([[2.0 ** (a[0] + a[1] * i) for a, i in zip(SHARE_AXES, at)]
                      for at in np.ndindex(*counts)])
    prior = np.log2(2 * nodes.prod(1) / roofline(nodes, line))
    y = np.log2(2 * shapes.prod(1) / seconds)
    rate = fit_grid(np.log2(shapes), y, prior, SHARE_AXES).reshape(counts)
    rate = np.minimum(rate, np.quantile(y, 0.98))
    whole = log2_flops(SHARE_AXES)
    return whole - never_falling(whole - rate), line


def share_times(rate, shapes):
    index, weight = corners(np.log2(shapes), SHARE_AXES)
    return 2 * shapes.prod(1) / 2 ** (weight * rate.ravel()[index]).sum(1)


def judge_shares(shapes, seconds, kind, name):
    """Error on shapes that the fit did not see, ten parts in turn."""
    part = np.random.default_rng(1).permutation(len(seconds)) % 10
    predicted, line = np.zeros(len(seconds)), np.zeros(len(seconds))
    for q in range(10):
        seen = part != q
        rate, p = fit_shares(shapes[seen], seconds[seen], kind)
        predicted[~seen] = share_times(rate, shapes[~seen])
        line[~seen] = roofline(shapes[~seen], p)
    error = mape(predicted, seconds)
    print(f"{name} unseen shapes: n {len(seconds)}, roofline {mape(line, seconds):.2f} %, "
          f"table {error:.2f} %")
    return error


def attention(tables, key, kind):
    """TFLOP/s of the computed half of the pairs, by the length of the sequences."""
    seen = collections.defaultdict(list)
    for r in tables[key]:
        if r["head_num"] >= MANY_HEADS or r["seq_len"] > 4096:
            seen[math.log2(r["seq_len"])].append(r["share_of_peak"] / 2 * kind["peak"])
    known = sorted(seen)
    steps = np.arange(known[0], known[-1] + 1)
    rates = np.interp(steps, known, [math.log2(np.median(seen[k])) for k in known])
    return {"precision": "bf16", "pass": "forward" if key == "sdp_fwd" else "backward",
            "log2_sequence": axis((known[0], 1.0, len(steps))),
            "TFLOPS": [round(2.0 ** r, 1) for r in rates]}


def make_shares(name, path, out):
    kind = DEVICES[name]
    with open(path, encoding="utf-8") as f:
        tables = json.load(f)["devices"][kind["device"]]["tables"]
    shapes, seconds = share_products(tables, kind)
    error = judge_shares(shapes, seconds, kind, name)
    rate, _ = fit_shares(shapes, seconds, kind)
    flops = rounded(rate, 1e12, SHARE_AXES)
    head = {
        "format": "hetviz.profile/1", "device": kind["device"], "same_chip": kind["same_chip"],
        "source": SHARES, "licence": "Apache-2.0", "date": "2026-11-25",
        "note": "fitted by make_tables.py from %d shapes of products and %d of attention; "
                "error_frac: mean absolute error on shapes that the fit did not see"
                % (len(seconds), len(tables["sdp_fwd"]) + len(tables["sdp_bwd"])),
        "bandwidth_GBps": kind["bandwidth"], "kernel_start_us": round(seconds.min() * 1e6, 2)}
    gemm = {"precision": "bf16", "peak_TFLOPS": kind["peak"], "error_frac": round(error / 100, 3)}
    gemm.update(("log2_" + k, axis(a)) for k, a in zip("mnk", SHARE_AXES))
    with open(out, "w", encoding="utf-8") as f:
        f.write(json.dumps(head, indent=1)[:-2] + ',\n "gemm": [\n')
        f.write("  " + json.dumps(gemm)[:-1] + ', "TFLOPS": [\n')
        f.write(",\n".join("   " + json.dumps(m.tolist()).replace(".0,", ",").replace(".0]", "]")
                           for m in flops))
        f.write("\n  ]}\n ],\n " + '"attention": [\n')
        f.write(",\n".join("  " + json.dumps(attention(tables, key, kind))
                           for key in ("sdp_fwd", "sdp_bwd")))
        f.write("\n ]\n}\n")
    print("%s best %.4g TFLOP/s, %.3f of the peak" % (name, flops.max(), flops.max() / kind["peak"]))


def axis(a):
    return {"from": a[0], "step": a[1], "count": a[2]}


def main():
    if len(sys.argv) == 4:
        make_shares(*sys.argv[1:])
        return
    name, products, streams, out = sys.argv[1:5]
    kind = DEVICES[name]
    shapes, seconds = read_products(products, name)
    error = judge(shapes, seconds, kind, name)
    rate, _ = fit_products(shapes, seconds, kind)
    flops = rounded(rate, 1e12, list(AXES.values()))
    gbps, stream_error, start = fit_streams(streams, name, kind)
    source = SOURCE % name.lower()
    head = {
        "format": "hetviz.profile/1", "device": kind["device"], "same_chip": kind["same_chip"],
        "source": source, "licence": "MIT", "date": "2026-11-21",
        "note": "fitted by make_tables.py from %d shapes; error_frac: mean absolute error on (N, K) "
                "shapes that the fit did not see" % len(seconds),
        "bandwidth_GBps": kind["bandwidth"], "kernel_start_us": round(start * 1e6, 2)}
    gemm = {"precision": "fp16", "peak_TFLOPS": kind["peak"], "error_frac": round(error / 100, 3)}
    gemm.update(("log2_" + k, axis(a)) for k, a in AXES.items())
    stream = {"kernel": "add", "error_frac": round(stream_error / 100, 3),
              "log2_bytes": axis(STREAM)}
    with open(out, "w", encoding="utf-8") as f:
        f.write(json.dumps(head, indent=1)[:-2] + ',\n "gemm": [\n')
        f.write("  " + json.dumps(gemm)[:-1] + ', "TFLOPS": [\n')
        f.write(",\n".join("   " + json.dumps(m.tolist()).replace(".0,", ",").replace(".0]", "]")
                           for m in flops))
        f.write("\n  ]}\n ],\n " + '"stream": ' + json.dumps(stream)[:-1] + ', "GBps": ')
        f.write(json.dumps(gbps.tolist()) + "}\n}\n")
    print("%s best %.4g TFLOP/s, %.3f of the peak" % (name, flops.max(), flops.max() / kind["peak"]))


if __name__ == "__main__":
    main()
