"""Exports to DeepSpeed against DeepSpeedConfig, in a world as large as the plan's."""
import json
import logging
import os
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from deepspeed import comm  # noqa: E402
from deepspeed.runtime.config import DeepSpeedConfig  # noqa: E402

import common  # noqa: E402


class Units:
    """What DeepSpeedConfig asks of a model-parallel unit: the number of data-parallel ranks."""

    def __init__(self, dp):
        self.dp = dp

    def get_data_parallel_world_size(self):
        return self.dp


def main():
    c = common.Counts()
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29641")
    comm.init_distributed(dist_backend="gloo")
    for i, plan, facts, folder in common.cases(
            common.count(60), 26, zero=(0, 1), zero_alone=(0, 1, 2, 3), recompute=("none", "full"),
            chunks=(1,), even=True, precision=("bf16", "fp16", "fp32")):
        code, err = common.export(plan, "deepspeed", folder)
        c.equal("exports" + err, code, 0)
        if code != 0:
            continue
        before = c.failed
        with open(f"{folder}/ds_config.json") as f:
            written = json.load(f)
        config = DeepSpeedConfig(dict(written), mpu=Units(facts["dp"]))
        c.equal("batch", (config.train_batch_size, config.train_micro_batch_size_per_gpu,
                          config.gradient_accumulation_steps),
                (facts["global_batch"], facts["micro_batch"], facts["micro_batches"]))
        c.equal("ZeRO", config.zero_optimization_stage,
                plan["replicas"][0]["stages"][0].get("zero", 0))
        c.equal("precision", (config.bfloat16_config.enabled, config.float16_config.enabled),
                (facts["precision"] == "bf16", facts["precision"] == "fp16"))
        c.equal("stages", written.get("pipeline", {}).get("stages", 1), facts["pp"])
        common.check_places(c, folder, facts)
        if c.failed == before:
            common.record("deepspeed", i, folder, ["ds_config.json", "hostfile", "ranks.csv"])
        for mutant, key in (({**written, "train_batch_size": written["train_batch_size"] + 1}, "batch"),
                            ({**written, "zero_optimization": {"stge": 1}}, "key")):
            try:
                DeepSpeedConfig(mutant, mpu=Units(facts["dp"]))
                c.check(f"refuses a wrong {key}", False)
            except Exception:  # noqa: BLE001 asserts and pydantic's errors
                c.check(f"refuses a wrong {key}", True)
    c.finish()


main()
