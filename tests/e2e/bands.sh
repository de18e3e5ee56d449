# shellcheck shell=sh
# Bands of verdicts and plans under stress on the command line; `auto` with robust=true pays a price
# that it names and loses no more at worst.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
on="-c a100-v100-t4 -m gpt3-6.7b"

field() { # field NAME: its number in the last output
    sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$work/out" | head -n 1
}

# shellcheck disable=SC2086 # options, none of them with a space
{
    expect 'a plan' 0 plan $on -s uniform --out u.json
    expect 'eval' 0 eval u.json --json
    time_s=$(field iteration_s) low_s=$(field low_s) high_s=$(field high_s)
    holds 'the band is around the time' awk "BEGIN { exit !($low_s < $time_s && $time_s < $high_s) }"
    says 'and holds four cases of five' out '"cover": 0.8 '
    expect 'explain' 0 explain u.json
    says 'explain has slower exchange' out '^  exchange 2x slower '
    says 'and a slow node' out '^  a node 5% slower '
    expect 'explain as JSON' 0 explain u.json --json
    says 'the stress is in the JSON' out '"stress": \{'

    expect 'the fastest plan' 0 plan $on -s auto -o others= --out fast.json
    expect 'the robust plan' 0 plan $on -s auto -o others= -o robust=true --out robust.json
    expect 'eval of the fastest' 0 eval fast.json --json
    fast_s=$(field iteration_s)
    expect 'eval of the robust' 0 eval robust.json --json
    robust_s=$(field iteration_s)
    holds 'the price is at most 6 %' awk "BEGIN { exit !($robust_s <= 1.06 * $fast_s) }"
    says 'and is said' out '"robust: .* at worst'
    expect 'the robust plan under stress' 0 explain robust.json --json
    holds 'it fits with a tenth more memory' awk "BEGIN { exit !($(field memory_frac) <= 1) }"
    expect 'a word that is no boolean' 2 plan $on -s auto -o robust=perhaps
}
finish
