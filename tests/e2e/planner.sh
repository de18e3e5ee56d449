#!/bin/sh
# auto by its own search alone, without the plans of the others as candidates, beside every other
# exact strategy on a fast share of the table of `make bench`: never slower, always valid.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

table() { # table NAME ARG…: no cell is lost
    name=$1
    shift
    timeout -k 5 "$HANG" "$root/tests/bench/table" "$@" >"$work/out" 2>"$work/err"
    lost=$?
    holds "$name: $(tail -n 1 "$work/out")" test "$lost" -eq 0
}
for cell in 'desktop bert-large' 'a100-v100-t4 gpt3-1.3b' 'two-generations bert-large' \
    'spot-mix llama-2-13b'; do
    # shellcheck disable=SC2086 # a cell is two words
    table "auto on $cell" -o auto.others= $cell
    says "another strategy has a plan on $cell" out 'best other'
done
# the script must be able to fail: without auto every cell is lost
timeout -k 5 "$HANG" "$root/tests/bench/table" -s uniform desktop bert-large >"$work/out" 2>"$work/err"
holds 'a table without auto is lost' test $? -eq 1
says 'and says so' out 'LOST'

# ---- the rivals' own inputs -----------------------------------------------------------------------
timeout -k 5 "$HANG" "$root/tests/bench/rivals" amp metis oobleck varuna hexgen >"$work/out" 2>"$work/err"
holds "auto on inputs of rivals: $(tail -n 1 "$work/out")" test $? -eq 0
for input in amp metis oobleck varuna; do
    says "auto's plan for the input of $input is faster" out "^  $input .* s +[0-9.]+ s +([2-9]|1\.[0-9]*[1-9])[0-9.]* times"
done
says 'replicas of HexGen that do not fit are named' out 'its plan [0-9]+ \(does not fit\), its replicas that fit [1-9]'
HETVIZ=/bin/false timeout -k 5 "$HANG" "$root/tests/bench/rivals" amp >"$work/out" 2>"$work/err"
holds 'without auto the input is lost' test $? -eq 1
finish
