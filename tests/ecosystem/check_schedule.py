"""Exports to pipelining-csv against torch's own loader, on a fake process group."""
import csv
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.distributed.pipelining import PipelineStage  # noqa: E402
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

import common  # noqa: E402


def load(path, pp, chunks, micro_batches):
    group = torch.distributed.group.WORLD
    stages = [PipelineStage(torch.nn.Linear(2, 2), i * pp, pp * chunks, torch.device("cpu"), group=group)
              for i in range(chunks)]
    schedule = _PipelineScheduleRuntime(stages, micro_batches, loss_fn=lambda a, b: a)
    schedule._load_csv(path)
    return schedule


def main():
    c = common.Counts()
    rng_kinds = {"pp": (2, 4), "tp": (1,), "sequence_parallel": (False,),
                 "schedules": ("1f1b", "gpipe", "zb-h1", "zb-h2", "dapple")}
    for i, plan, facts, folder in common.cases(common.count(60), 28, **rng_kinds):
        code, err = common.export(plan, "pipelining-csv", folder)
        c.equal("exports" + err, code, 0)
        if code != 0:
            continue
        before = c.failed
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=facts["pp"])
        path = f"{folder}/schedule.csv"
        try:
            order = load(path, facts["pp"], facts["chunks"], facts["micro_batches"]).pipeline_order
            forward = sum(str(a).count("F") for rank in order.values() for a in rank if a is not None)
            c.equal("forward passes", forward, facts["pp"] * facts["chunks"] * facts["micro_batches"])
        except Exception as e:  # noqa: BLE001
            c.check("torch reads it", False, repr(e))
        if c.failed == before:
            common.record("pipelining-csv", i, folder, ["schedule.csv"])
        with open(path, newline="") as f:
            rows = list(csv.reader(f))
        rows[-1].pop()  # an operation is missing
        with open(path, "w", newline="") as f:
            csv.writer(f).writerows(rows)
        try:
            load(path, facts["pp"], facts["chunks"], facts["micro_batches"])
            c.check("refuses a missing operation", False)
        except Exception:  # noqa: BLE001
            c.check("refuses a missing operation", True)
        torch.distributed.destroy_process_group()
    c.finish()


main()
