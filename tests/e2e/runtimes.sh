#!/bin/sh
# Runtimes: the job's key and the option of plan and compare say the same; verdicts name the runtime
# and the version of the judge, and an older verdict in a plan is not believed.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

expect 'help lists the runtimes' 0 help runtimes
names=$(awk '/^[a-z]+ / { print $1 }' out)
holds 'there are five' [ "$(echo "$names" | wc -w)" -eq 5 ]
for r in $names; do
    expect "help runtimes $r" 0 help runtimes "$r"
    says "$r: what it does when it sends" out '^ *- a stage '
    says "$r: where that is known from" out '^ *Sources: '
    expect "completion: $r" 0 completion runtimes
    says "completion offers $r" out "^$r\$"
done
expect 'help of one that does not exist' 2 help runtimes fancy
says 'the error names the command that lists them' err 'help runtimes'

inputs='-c two-generations -m gpt3-1.3b'
# shellcheck disable=SC2086 # several words
{
    run plan $inputs -j small -s manual -o pp=2 -o tp=4 --out plain.json
    run plan $inputs -j small -s manual -o pp=2 -o tp=4 -o runtime=hetviz --out named.json
    expect 'plan for a runtime' 0 plan $inputs -j small -s manual -o pp=2 -o tp=4 -o runtime=deepspeed --out ds.json
    expect 'a runtime that does not exist' 2 plan $inputs -j small -s manual -o runtime=fancy
    says 'the error lists where they are' err 'help runtimes.*fancy'
}
holds 'a default plan has iteration times' [ "$(number plain.json iteration_s)" != "" ]
holds 'the default assumes nothing' [ "$(number plain.json iteration_s)" = "$(number named.json iteration_s)" ]
holds 'a runtime whose sends block is no faster' least "$(number plain.json iteration_s)" "$(number ds.json iteration_s)"
holds 'the plan keeps the runtime in its job' grep -q '"runtime": "deepspeed"' ds.json

expect 'eval reads it' 0 eval ds.json
says 'the verdict names it' out '^runtime +deepspeed: '
expect 'explain reads it' 0 explain ds.json
says 'explain names it' out '^runtime +deepspeed: '
expect 'eval as JSON' 0 eval ds.json --json
says 'the verdict has the version of the judge' out '"judge": [0-9]+'
says 'and what the allocator has handed out' out '"allocated_GiB"'
cp out judged.json

# a verdict of an older judge
sed 's/"judge": [0-9]*/"judge": 1/; s/"iteration_s": [0-9.]*/"iteration_s": 123456/' judged.json >old.json
holds 'the old verdict is another one' grep -q 123456 old.json
expect 'eval judges anew' 0 eval old.json --json
same 'and says what it said before' out judged.json

# shellcheck disable=SC2086
expect 'compare for a runtime' 0 compare $inputs -j small -s manual,uniform -o runtime=deepspeed --json
says 'its plans have it' out '"runtime": "deepspeed"'

# what a runtime can run limits every search for it; what a user gives is judged, and the note says so
for r in $names; do
    # shellcheck disable=SC2086
    expect "auto for $r" 0 plan $inputs -j small -s auto -o runtime=$r --budget 400 --out auto.json
    expect "auto for $r, judged" 0 eval auto.json
    holds "auto for $r: nothing that it does not run" [ "$(grep -c 'does not run' out)" -eq 0 ]
done
# shellcheck disable=SC2086
{
    expect 'manual for a runtime without that schedule' 0 plan $inputs -j small -s manual -o pp=2 -o tp=4 \
        -o schedule=zb-h1 -o runtime=deepspeed --out zb.json
    expect 'its plan is judged' 0 eval zb.json
    says 'and the note names runtime and schedule' out 'deepspeed does not run schedule zb-h1, judged as if it did'
    expect 'a strategy for a runtime without its schedule' 1 plan $inputs -j small -s zb -o runtime=deepspeed
    says 'the reason names the runtime' err 'zb: deepspeed does not run several chunks of layers in a stage'
    expect 'a strategy for a runtime with its schedule' 0 plan $inputs -j small -s zb -o runtime=megatron
    expect 'compare of strategies for a runtime' 0 compare $inputs -j small -s zb,uniform -o runtime=deepspeed
    says 'says why one does not apply' out 'zb .*deepspeed does not run'
}
finish
