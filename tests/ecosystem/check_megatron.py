"""Exports to Megatron-LM against megatron-core: layout strings and rank groups."""
import argparse
import collections
import logging
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
from megatron.core.parallel_state import RankGenerator  # noqa: E402
from megatron.core.transformer.enums import LayerType  # noqa: E402
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

import common  # noqa: E402


def parsed(path):
    """--name value pairs; a flag without a value is True."""
    out, words = {}, common.words(path)
    for i, w in enumerate(words):
        if w.startswith("--"):
            value = words[i + 1] if i + 1 < len(words) and not words[i + 1].startswith("--") else True
            out[w[2:].replace("-", "_")] = value
    return argparse.Namespace(**out)


def groups(rows, *same):
    """Ranks that agree in all the given columns."""
    found = collections.defaultdict(list)
    for r in rows:
        found[tuple(r[k] for k in same)].append(int(r["rank"]))
    return sorted(sorted(g) for g in found.values())


def check_layout(c, args, facts):
    pp = int(args.pipeline_model_parallel_size)
    if pp * facts["chunks"] == 1:
        return None
    text = args.pipeline_model_parallel_layout
    layout = PipelineParallelLayerLayout.from_str(text, pp)
    got = [layout.layout[i % pp][i // pp].count(LayerType.decoder) for i in range(pp * facts["chunks"])]
    c.equal(f"layers of {text}", got, facts["layers"])
    c.check("layout is valid", layout.validate_layer_layout(facts["total_layers"], None) is False)
    return text


def check_config(c, args, facts, layout):
    config = TransformerConfig(
        num_layers=int(args.num_layers), hidden_size=int(args.hidden_size),
        num_attention_heads=int(args.num_attention_heads), num_query_groups=int(args.num_query_groups),
        ffn_hidden_size=int(args.ffn_hidden_size), kv_channels=int(args.kv_channels),
        tensor_model_parallel_size=int(args.tensor_model_parallel_size),
        pipeline_model_parallel_size=int(args.pipeline_model_parallel_size),
        context_parallel_size=int(args.context_parallel_size),
        virtual_pipeline_model_parallel_size=facts["chunks"] if facts["chunks"] > 1 else None,
        pipeline_model_parallel_layout=layout, pipeline_dtype=torch.bfloat16,
        sequence_parallel=getattr(args, "sequence_parallel", False),
        recompute_granularity=getattr(args, "recompute_granularity", None),
        recompute_method=getattr(args, "recompute_method", None),
        recompute_num_layers=int(args.recompute_num_layers) if hasattr(args, "recompute_num_layers") else None,
        cp_comm_type=getattr(args, "cp_comm_type", None), bf16=True,
        overlap_p2p_comm=facts["chunks"] > 1, batch_p2p_comm=facts["chunks"] == 1)
    c.equal("sizes", (config.tensor_model_parallel_size, config.context_parallel_size, config.num_layers),
            (facts["tp"], facts["cp"], facts["total_layers"]))


def check_ranks(c, rows, facts):
    gen = RankGenerator(tp=facts["tp"], ep=1, dp=facts["dp"], pp=facts["pp"], cp=facts["cp"],
                        order="tp-cp-ep-dp-pp")
    own = {"tp": ("stage", "data_rank", "cp"), "cp": ("stage", "data_rank", "tp"),
           "dp": ("stage", "cp", "tp"), "pp": ("data_rank", "cp", "tp"),
           "dp-cp": ("stage", "tp")}
    for name, same in own.items():
        c.equal(f"groups {name}", groups(rows, *same), sorted(sorted(g) for g in gen.get_ranks(name)))


def main():
    c = common.Counts()
    for i, plan, facts, folder in common.cases(
            common.count(200), 24, cp=(None, None, ("ring", "zigzag"), ("ulysses", "contiguous"))):
        code, err = common.export(plan, "megatron", folder)
        c.equal("exports" + err, code, 0)
        if code != 0:
            continue
        before = c.failed
        args = parsed(f"{folder}/megatron.args")
        layout = check_layout(c, args, facts)
        check_config(c, args, facts, layout)
        check_ranks(c, common.ranks(folder), facts)
        common.check_places(c, folder, facts)
        c.equal("batch", (int(args.micro_batch_size), int(args.global_batch_size)),
                (facts["micro_batch"], facts["global_batch"]))
        c.equal("ZeRO", getattr(args, "use_distributed_optimizer", False), facts["zero"] == 1)
        c.equal("recompute", getattr(args, "recompute_granularity", "none"), facts["recompute"])
        if c.failed == before:
            common.record("megatron", i, folder, ["megatron.args", "ranks.csv"])
    # mutants: the real parser refuses what is wrong
    for text, pp in (("Et*3|t*5|t*4L", 4), ("Et*3|x|tL", 3)):
        try:
            PipelineParallelLayerLayout.from_str(text, pp)
            c.check(f"refuses {text}", False)
        except AssertionError:
            c.check(f"refuses {text}", True)
    c.finish()


main()
