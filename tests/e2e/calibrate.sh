#!/bin/sh
# calibrate: three logs of runs that were slower than predicted move the predictions, of the plans
# that ran and of one that did not; removing the file undoes it; what does not fit is named.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

simulated_s() { # simulated_s PLAN: the iteration time
    "$HETVIZ" eval "$1" --json 2>/dev/null | sed -n 's/^ *"iteration_s": \([0-9.e+-]*\),\{0,1\}$/\1/p' | head -n 1
}
# write_log FILE SECONDS BATCH: a log as Megatron-LM prints it, with a slow first iteration
write_log() {
    awk -v s="$2" -v b="$3" 'BEGIN { for (i = 1; i <= 8; i++)
        printf " iteration %8d/    5000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | global batch size: %5d | lm loss: 1.0E+01 |\n",
            i, i * b, 1000 * s * (i == 1 ? 3 : 1 + 0.001 * (i % 3 - 1)), b }' >"$1"
}
product() { awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'; }
# within NAME A B FRAC: |A / B - 1| <= FRAC
within() { holds "$1: $2 and $3" awk -v a="$2" -v b="$3" -v f="$4" 'BEGIN { d = a / b - 1; exit !(d <= f && d >= -f) }'; }

for tp in 1 2 4 8; do
    run plan -c homogeneous -m gpt3-1.3b -s manual -o tp="$tp" --out "p$tp.json"
    before=$(simulated_s "p$tp.json")
    write_log "$tp.log" "$(product "$before" 1.25)" 256
    eval "before$tp=$before"
done

# ---- three runs, a quarter slower than predicted ---------------------------------------------------
expect 'a calibration' 0 calibrate 1.log 2.log 8.log --plan p1.json --plan p2.json --plan p8.json
says 'a run' out '^1\.log +Megatron-LM +7 .* \(-20\.0%\) '
says 'a number' out '^  A100 +gemm_16bit +0\.[0-9]+ -> 0\.[0-9]+ +± [0-9]+%'
says 'where it is' out '^Written: .*/hetviz/calibrations/A100-SXM-80GB\.json$'
within 'a run is predicted' "$(simulated_s p2.json)" "$(product "$before2" 1.25)" 0.03
within 'a run that was not given is predicted' "$(simulated_s p4.json)" "$(product "$before4" 1.25)" 0.05
expect 'explanations' 0 explain p4.json --stage 0
says 'explanations name the runs' out 'calibrated on 3 runs of yours: 1\.log, 2\.log, 8\.log'
expect 'the file is a calibration' 0 check "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json"

# ---- again: the fit starts from the shipped numbers, so that nothing is counted twice -----------------
cp "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json" first.json
expect 'again, plans among the files, as JSON' 0 calibrate 1.log 2.log 8.log --plan p1.json p2.json p8.json --json
holds 'JSON' is_json out
says 'reports' out '"reports": 7'
same 'the same numbers' "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json" first.json
expect 'into a file' 0 calibrate 1.log --plan p1.json --out own.json
same 'the own ones stay' "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json" first.json
expect 'validate does not use them' 0 validate --shipped
says 'shipped rows' out '^kor22-22B-full +1\.42 s '
cp out with.out
rm "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json"
expect 'validate without them' 0 validate --shipped
same 'the same validation' out with.out
within 'without the file: as shipped' "$(simulated_s p2.json)" "$before2" 1e-9

# ---- what a run was launched with, in place of its plan ------------------------------------------------
echo '{"format": "hetviz.job/1", "global_batch": 256, "sequence": 2048, "precision": "fp16", "optimizer": "adam"}' >job.json
for tp in 2 8; do
    cat >"l$tp.sh" <<LAUNCH
torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py --tensor-model-parallel-size $tp --num-layers 24 \\
  --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \\
  --micro-batch-size 1 --global-batch-size 256 --vocab-size 51200 --make-vocab-size-divisible-by 1 --fp16
LAUNCH
    run plan -c homogeneous -m gpt3-1.3b -j job.json -s manual -o tp="$tp" --out "q$tp.json"
done
expect 'from plans, into a file' 0 calibrate 2.log 8.log --plan q2.json --plan q8.json --out by_plan.json
expect 'from launches, into a file' 0 calibrate 2.log 8.log --plan l2.sh --plan l8.sh -c homogeneous \
    -m gpt3-1.3b --out by_launch.json
same 'the same numbers' by_launch.json by_plan.json
expect 'with the model of the launch' 0 calibrate 2.log 8.log --plan l2.sh --plan l8.sh -c homogeneous --out own_model.json
expect 'a launch without a cluster' 3 calibrate 2.log --plan l2.sh
says 'a launch without a cluster' err 'l2.sh: a launch without its cluster; name the one it ran with \(-c\)'
expect 'what is neither' 3 calibrate 2.log --plan 2.log -c homogeneous
says 'what is neither' err '2.log: '

# ---- what is refused --------------------------------------------------------------------------------
expect 'counts' 2 calibrate 1.log 2.log 4.log --plan p1.json --plan p2.json
says 'counts' err 'found 3 log\(s\) and 2 plan\(s\)'
expect 'only plans' 2 calibrate p1.json --plan p2.json
expect 'no log' 3 calibrate "$root/README.md" --plan p1.json
says 'no log' err 'README.md: found no time of an iteration'
write_log wrong.log 1 128
head -n 1 1.log >cut.log
expect 'another batch' 3 calibrate wrong.log --plan p1.json
says 'another batch' err 'global batch of 128, the job of p1\.json has 256'
expect 'only the first iteration' 3 calibrate cut.log --plan p1.json
says 'only the first iteration' err 'found one time of an iteration'
write_log slow.log 100 256
expect 'another run' 3 calibrate slow.log --plan p1.json
says 'another run' err 'an iteration took 100 s, the plan p1\.json is predicted to take'
holds 'nothing is written' test ! -e "$XDG_DATA_HOME/hetviz/calibrations/A100-SXM-80GB.json"
expect 'a missing file' 3 calibrate missing.log --plan p1.json
finish
