"""Exports to Accelerate against ClusterConfig.from_yaml_file."""
import pathlib

from accelerate.commands.config.config_args import ClusterConfig

import common


def main():
    c = common.Counts()
    for i, plan, facts, folder in common.cases(
            common.count(60), 27, pp=(1,), zero_alone=(0, 2, 3), recompute=("none", "full"),
            cp=(None, None, ("ring", "zigzag")), precision=("bf16", "fp16", "fp32")):
        code, err = common.export(plan, "accelerate", folder)
        if facts["recompute"] == "full" and facts["zero"] == 0:  # a setting of FSDP
            c.equal("refuses recomputation without FSDP", code, 1)
            continue
        c.equal("exports" + err, code, 0)
        if code != 0:
            continue
        before = c.failed
        config = ClusterConfig.from_yaml_file(f"{folder}/accelerate.yaml")
        p, sharded = config.parallelism_config, facts["zero"] > 0
        kind = getattr(config.distributed_type, "value", config.distributed_type)
        c.equal("kind", str(kind), "FSDP" if sharded else "MULTI_GPU")
        c.equal("ranks", config.num_processes, len(facts["places"]))
        c.equal("degrees", (p["parallelism_config_tp_size"], p["parallelism_config_cp_size"],
                            p["parallelism_config_dp_replicate_size"], p["parallelism_config_dp_shard_size"]),
                (facts["tp"], facts["cp"], *((1, facts["dp"]) if sharded else (facts["dp"], 1))))
        mixed = getattr(config.mixed_precision, "value", config.mixed_precision)
        c.equal("precision", str(mixed), {"fp32": "no"}.get(facts["precision"], facts["precision"]))
        if sharded:
            f = config.fsdp_config
            c.equal("FSDP", (f["fsdp_reshard_after_forward"], f["fsdp_activation_checkpointing"]),
                    (facts["zero"] == 3, facts["recompute"] == "full"))
        common.check_places(c, folder, facts)
        if c.failed == before:
            common.record("accelerate", i, folder, ["accelerate.yaml", "hostfile", "ranks.csv"])
        mutant = pathlib.Path(folder) / "mutant.yaml"
        mutant.write_text(pathlib.Path(f"{folder}/accelerate.yaml").read_text() + "num_procesess: 2\n")
        try:
            ClusterConfig.from_yaml_file(str(mutant))
            c.check("refuses a misspelt key", False)
        except ValueError:
            c.check("refuses a misspelt key", True)
    c.finish()


main()
