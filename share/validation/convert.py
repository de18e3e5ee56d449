#!/usr/bin/env python3
"""Makes the files of this folder from a collection of published measurements.

    convert.py COLLECTION [CALCULON.json] [OUTPUT]

COLLECTION is a folder of files {"meta": ..., "rows": [...]}; CALCULON.json a list of what Calculon
(github.com/calculon-ai/calculon, Apache-2.0) predicts for some of them. Kept are figures and where
they were printed, no prose. A row is kept when hetviz can be held against it: read at its source,
not printed before, with model, devices, degrees and batch known, and a time, a peak of memory, or
the fact that it did not fit. One file per source; equal models, systems and citations stand once.
"""
import json
import os
import sys

# Where Calculon was run several ways, the way that knows most about the system; None: none counts.
VARIANTS = {
    "bigscience-a100": "same, inter-node 6.25 GB/s per GPU (Omni-Path)",
    "dgxc-gpt3-175b-bf16-h100": "selective, tp ring overlap, dp overlap",
    "megatron2020-a100": "default",
    "sc21-t1": "default",
    "megatron-h100-readme": None,
    "extrapolated-gqa-h100-bf16": "equal-FLOP MLP",
}
# Published comparisons that Calculon was not run on, by the start of a row's name.
TABLES = {"zb-": "zero-bubble", "megascale-": "megascale-megatron", "mtnlg-": "mt-nlg"}
MODEL_KEYS = (
    "name layers hidden heads kv_heads head_dim ffn gated vocab seq attn experts topk moe_ffn "
    "shared_ffn dense_layers tied_embeddings sliding_window sliding_window_every q_lora kv_lora "
    "qk_nope qk_rope v_head"
).split()
SYSTEM_KEYS = "device per_node intra intra_gbps_uni inter_gbit_per_gpu".split()
PAR_DEFAULTS = {"tp": 1, "pp": 1, "vpp": 1, "dp": 1, "cp": 1, "ep": 1, "zero": 0, "fsdp": 0, "sp": False}


def measured(row):
    """Iteration time as printed or computed from tokens or samples per second."""
    return (row.get("meas") or {}).get("iter_s") or (row.get("derived") or {}).get("iter_s")


def memory(row):
    """Peak memory members: exact bytes of an allocator, or GiB, and who measured them."""
    if row.get("mem_max_bytes"):
        return {"mem_max_bytes": row["mem_max_bytes"], "mem_meter": "allocated"}
    measured_memory = row.get("meas") or {}
    gib = measured_memory.get("alloc_gib") or measured_memory.get("mem_gib")
    if not gib:
        return {}
    # BigScience's tables without a word on it agree with nvidia-smi, too
    device = "nvidia-smi" in (row.get("notes") or "") or row["id"].startswith("bs-")
    return {"mem_gib": gib, "mem_meter": "device" if device else "allocated"}


def usable(row):
    """Can hetviz be held against this row?"""
    if not row.get("verified") or row.get("incomplete") or row.get("overhead_bound"):
        return False
    if row.get("dup_of") or row.get("duplicate_of_config") or row["system"].get("mixed"):
        return False
    model, par, system = row["model"], row["par"], row["system"]
    hybrid = model.get("attn") == "hybrid" or "nemotron3" in (model.get("name") or "")  # Mamba
    if row.get("kind") not in ("pretrain", "sft", "ci") or hybrid:
        return False
    if not (model.get("layers") and model.get("hidden") and row.get("mbs") and row.get("gbs")):
        return False
    if not all(par.get(k) for k in ("tp", "pp", "dp")):
        return False
    stage = par["tp"] * par["dp"] * (par.get("cp") or 1)
    if stage * par["pp"] > system["n"] or stage % (par.get("ep") or 1):
        return False
    fails = row.get("oom") or row.get("failed")
    return bool(measured(row) or row.get("iter_s_from_flops") or memory(row) or fails)


def calculon_of(path):
    """Row name -> (comparison, seconds)."""
    found = {}
    if path:
        with open(path, encoding="utf-8") as f:
            for r in json.load(f):
                want = VARIANTS.get(r["group"], r["variant"])
                if want == r["variant"]:
                    found[r["id"]] = (r["group"], r["calculon_s"])
    return found


class Table:
    """Values that stand once, under a short name."""

    def __init__(self):
        self.names = {}

    def name(self, value, stem):
        key = json.dumps(value, sort_keys=True)
        if key not in self.names:
            taken = {n for n, _ in self.names.values()}
            name, i = stem, 2
            while name in taken:
                name, i = "%s-%d" % (stem, i), i + 1
            self.names[key] = (name, value)
        return self.names[key][0]

    def tree(self):
        return dict(self.names.values())


# Files whose rows no fit may use: they are there to hold the calibration against.
HELD_OUT = ("simumax_b200",)

# Runs of a file under another runtime than the file's `meta` names: those of the section "Megatron"
# of BigScience's experiments/gpt2.md, by line, were made before DeepSpeed was joined to it.
OTHER_RUNTIMES = {"bs-v100-%d" % line: "megatron" for line in range(73, 123)}


def convert(row, tables, calculon):
    """One row in the format of hetviz."""
    models, systems, sources = tables
    model = {k: row["model"][k] for k in MODEL_KEYS if row["model"].get(k) not in (None, 0, False)}
    seq = model.pop("seq")
    system = {k: row["system"][k] for k in SYSTEM_KEYS if row["system"].get(k) is not None}
    where = {"where": row["source"].split(", read via")[0], "licence": row["licence"], "date": row["date"]}
    out = {
        "id": row["id"],
        "source": sources.name(where, "s%d" % (len(sources.names) + 1)),
        "model": models.name(model, model["name"]),
        "seq": seq,
        "system": systems.name(system, system["device"]),
        "n": row["system"]["n"],
        "precision": row.get("precision"),
        "par": {k: v for k, v in ((k, row["par"].get(k)) for k in PAR_DEFAULTS)
                if v is not None and (v != PAR_DEFAULTS[k] or k in ("tp", "pp", "dp"))},
        "mbs": row["mbs"],
        "gbs": row["gbs"],
    }
    if row["id"] in OTHER_RUNTIMES:
        out["runtime"] = OTHER_RUNTIMES[row["id"]]
    if row.get("recompute") in ("none", "selective", "full"):
        out["recompute"] = row["recompute"]
    for key in ("schedule", "stage_partition"):
        if row.get(key):
            out[key] = row[key]
    if row.get("kind") != "pretrain":
        out["kind"] = row["kind"]
    if row.get("oom") or row.get("failed"):
        out["oom"] = True
    elif measured(row):
        out["iter_s"] = measured(row)
    elif row.get("iter_s_from_flops"):
        out["iter_s_from_flops"] = row["iter_s_from_flops"]
    out.update(memory(row))
    for start, table in TABLES.items():
        if row["id"].startswith(start):
            out["table"] = table
    if row["id"] in calculon and "oom" not in out:
        out["table"], out["calculon_s"] = calculon[row["id"]]
    return out


def dump(tree):
    """One row or table entry per line."""
    lines = []
    for key, value in tree.items():
        if isinstance(value, dict):
            items = ["    %s: %s" % (json.dumps(k), json.dumps(v)) for k, v in value.items()]
            lines.append('  %s: {\n%s\n  }' % (json.dumps(key), ",\n".join(items)))
        elif isinstance(value, list):
            items = ["    " + json.dumps(v, ensure_ascii=False) for v in value]
            lines.append('  %s: [\n%s\n  ]' % (json.dumps(key), ",\n".join(items)))
        else:
            lines.append("  %s: %s" % (json.dumps(key), json.dumps(value)))
    return "{\n%s\n}\n" % ",\n".join(lines)


def main(collection, calculon_path=None, output=os.path.dirname(os.path.abspath(__file__))):
    calculon = calculon_of(calculon_path)
    for file in sorted(os.listdir(collection)):
        if not file.endswith(".json"):
            continue
        with open(os.path.join(collection, file), encoding="utf-8") as f:
            document = json.load(f)
        rows = [r for r in document["rows"] if usable(r)]
        tables = (Table(), Table(), Table())
        made = [convert(r, tables, calculon) for r in rows]
        if not made:
            continue
        models, systems, sources = (t.tree() for t in tables)
        tree = {"format": "hetviz.validation/1", "name": file[:-5]}
        if document.get("meta", {}).get("runtime"):
            tree["runtime"] = document["meta"]["runtime"]
        if tree["name"] in HELD_OUT:
            tree["held_out"] = True
        tree.update({"sources": sources, "models": models, "systems": systems, "rows": made})
        with open(os.path.join(output, file), "w", encoding="utf-8") as f:
            f.write(dump(tree))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
