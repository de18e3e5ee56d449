"""Exports to torchtitan against ConfigManager().parse_args: parsed values, since a wrong list of
modules is accepted as garbage."""
import logging
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from torchtitan.config import ConfigManager  # noqa: E402

import common  # noqa: E402

NAMES = {"1f1b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
MODEL = ["--module", "llama3", "--config", "llama3_debugmodel"]


def modules(facts):
    out, at = [], 0
    for i, n in enumerate(facts["layers"]):
        part = (["tok_embeddings"] if i == 0 else []) + [f"layers.{at + k}" for k in range(n)]
        out.append(part + (["norm", "lm_head"] if i == len(facts["layers"]) - 1 else []))
        at += n
    return out


def check_values(c, config, facts):
    p, t = config.parallelism, config.training
    sharded = facts["zero"] == 3
    c.equal("degrees", (p.tensor_parallel_degree, p.context_parallel_degree, p.pipeline_parallel_degree),
            (facts["tp"], facts["cp"], facts["pp"]))
    c.equal("data degrees", (p.data_parallel_replicate_degree, p.data_parallel_shard_degree),
            (1, facts["dp"]) if sharded else (facts["dp"], 1))
    c.equal("batch", (t.global_batch_size, t.seq_len), (facts["global_batch"], 2048))
    per_step = facts["micro_batch"] * (facts["micro_batches"] if facts["pp"] > 1 else 1)
    c.equal("local batch", t.local_batch_size, per_step)
    c.equal("dtype", t.mixed_precision_param, "bfloat16" if facts["precision"] == "bf16" else "float32")
    c.equal("sequence parallel", p.enable_sequence_parallel or facts["tp"] == 1,
            facts["sequence_parallel"] or facts["tp"] == 1)
    mode = type(config.activation_checkpoint).__qualname__.split(".")[0] if config.activation_checkpoint else "none"
    c.equal("recompute", mode, {"none": "none", "full": "FullAC"}[facts["recompute"]])
    if facts["pp"] > 1:
        c.equal("modules", p.module_fqns_per_model_part, modules(facts))
        c.equal("micro-batch", p.pipeline_parallel_microbatch_size, facts["micro_batch"])
        named = NAMES.get(facts["schedule"])
        c.equal("schedule", p.pipeline_parallel_schedule, named or "PipelineScheduleMulti")
        c.equal("CSV", p.pipeline_parallel_schedule_csv, "" if named else "schedule.csv")


def main():
    c = common.Counts()
    for i, plan, facts, folder in common.cases(
            common.count(60), 25, zero=(0, 3), recompute=("none", "full"), precision=("bf16", "fp32"),
            cp=(None, None, ("all_gather", "zigzag")), schedules=("1f1b", "gpipe", "zb-h1")):
        code, err = common.export(plan, "torchtitan", folder)
        c.equal("exports" + err, code, 0)
        if code != 0:
            continue
        before = c.failed
        check_values(c, ConfigManager().parse_args(MODEL + common.words(f"{folder}/torchtitan.args")), facts)
        common.check_places(c, folder, facts)
        if c.failed == before:
            common.record("torchtitan", i, folder, ["torchtitan.args", "schedule.csv", "ranks.csv"])
    try:
        ConfigManager().parse_args(MODEL + ["--parallelism.tensor_paralel_degree", "2"])
        c.check("refuses a misspelt flag", False)
    except (SystemExit, ValueError):
        c.check("refuses a misspelt flag", True)
    c.finish()


main()
