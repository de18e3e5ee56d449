#!/bin/sh
# Inputs and outputs that are no plain files: standard input under its names, closed and full
# outputs, a file that may not grow, a cache that cannot be read or written, no home.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
cluster=$HETVIZ_ROOT/samples/clusters/two-generations.json
set -- -m llama-3-8b -s uniform

for name in - /dev/stdin; do
    timeout "$HANG" "$HETVIZ" plan -c "$name" "$@" --out p.json <"$cluster" >out 2>err
    holds "plan from $name" test $? -eq 0
    expect "its plan stands alone ($name)" 0 eval p.json
done
timeout "$HANG" "$HETVIZ" plan -c two-generations "$@" --out - 2>err | timeout "$HANG" "$HETVIZ" eval - \
    >out 2>err
holds 'a plan through a pipe' grep -q '^iteration' out

if [ -w /dev/full ]; then
    for command in "plan -c two-generations $*" strategies help --version; do
        # shellcheck disable=SC2086
        timeout "$HANG" "$HETVIZ" $command >/dev/full 2>err
        holds "full output: $command" test $? -eq 3
        says "full output: $command" err 'cannot write'
    done
fi
timeout "$HANG" "$HETVIZ" strategies >&- 2>err
holds 'closed output' test $? -eq 3
# the pipes to processes for Lua get the numbers of closed standard descriptors
timeout "$HANG" "$HETVIZ" plan -c two-generations "$@" --out closed.json <&- >&- 2>err
holds 'closed input and output' test $? -eq 3
says 'closed input and output' err 'cannot write'
expect 'its plan is whole' 0 check closed.json
timeout "$HANG" "$HETVIZ" plan -c two-generations "$@" --out silent.json <&- 2>&- >out
holds 'closed input and errors' test $? -eq 0
expect 'its plan is whole, too' 0 check silent.json

echo old >old.json
(
    ulimit -f 0
    timeout "$HANG" "$HETVIZ" plan -c two-generations "$@" --out old.json >/dev/null 2>&1
)
holds 'a file that may not grow is an error' test $? -eq 3
holds 'the old file is whole' test "$(cat old.json)" = old
holds 'nothing lies beside it' test "$(find . -name 'old.json*' | wc -l)" -eq 1

# too few file descriptors: that is what is said, or the command does with few
few() { # few N ARGUMENT…: as `run`, with at most N descriptors
    _most=$1
    shift
    (
        ulimit -n "$_most"
        exec timeout "$HANG" "$HETVIZ" "$@"
    ) >out 2>err </dev/null
    rc=$?
}
for most in 6 7 8 9 10 12 16; do
    few $most compare -c two-generations -m llama-3-8b -s uniform,amp --budget 50
    if [ $rc -ne 0 ]; then
        holds "compare with $most descriptors ends with 3" test $rc -eq 3
        says "compare with $most descriptors" err 'too few file descriptors.*ulimit -n|Too many open files'
    else
        says "compare with $most descriptors ranks both" out '^ 2 '
    fi
    few $most plan -c two-generations "$@"
    if [ $rc -ne 0 ]; then
        holds "plan with $most descriptors ends with 3" test $rc -eq 3
        says "plan with $most descriptors" err 'too few file descriptors.*ulimit -n|Too many open files'
    fi
done
few 8 compare -c two-generations -m llama-3-8b -s uniform,amp
says 'the number is named' err 'this process may have 8; raise the limit'
few 20 compare -c two-generations -m llama-3-8b -s uniform,amp,metis,whale --budget 50 --jobs 8
says 'workers that do not fit wait' out '^ 4 '

run strategies
cp out all.txt
mkdir -p odd/hetviz/plugins.json broken/hetviz
head -c 1000 /dev/zero >broken/hetviz/plugins.json
for cache in "$work/odd" "$work/broken" /dev/null/x; do
    XDG_CACHE_HOME=$cache timeout "$HANG" "$HETVIZ" strategies >out 2>err
    same "cache $cache" out all.txt
done
env -i "$HETVIZ" strategies >out 2>err
same 'an empty environment' out all.txt
ln -s "$HETVIZ" link
(unset HETVIZ_ROOT && ./link strategies) >out 2>err
same 'through a link' out all.txt
(unset HETVIZ_ROOT && PATH=$(dirname "$HETVIZ"):$PATH && hetviz strategies) >out 2>err
same 'found in PATH' out all.txt
# ---- links that are far --------------------------------------------------------------------------
printf 'keys 1<Down>\nwait 1.25 GB/s, 30 ms, between zones\n' >"$work/link.script"
expect "the latency between regions is in milliseconds" 0 "$root/samples/workspaces/two-regions" \
    --script "$work/link.script" --size 160x48

# ---- themes of the front end ---------------------------------------------------------------------
expect "a theme that is not there" 3 --theme no-such --dump cluster
says "it is named, with those there are" err "no theme 'no-such': default, light"
expect "a light theme by its name" 0 --theme light --dump cluster --out "$work/light.svg"
export COLORFGBG="0;15"
expect "a light background that the terminal tells of" 0 --dump cluster --out "$work/told.svg"
same "it is light too" "$work/light.svg" "$work/told.svg"
expect "the theme asked for wins" 0 --theme default --dump cluster --out "$work/dark.svg"
unset COLORFGBG
expect "no theme asked for" 0 --dump cluster --out "$work/plain.svg"
same "that is the default" "$work/dark.svg" "$work/plain.svg"
holds "light and dark differ" test "$(cksum <"$work/light.svg")" != "$(cksum <"$work/dark.svg")"
finish
