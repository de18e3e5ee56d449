#!/bin/sh
# A save that was interrupted: every command that opens the workspace, or a file of it, finishes or
# undoes it first; what a killed front end leaves is whole, and no temporary file stays.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

mkdir ws
sed 's/"name": "two-generations"/"name": "before"/' "$root/samples/clusters/two-generations.json" >ws/cluster.json
sed 's/"name": "llama-3-8b"/"name": "before"/' "$root/share/models/llama-3-8b.json" >ws/model.json
echo '{ "format": "hetviz.workspace/1", "name": "lab", "cluster": "cluster.json", "model": "model.json" }' \
    >ws/workspace.json
run plan -c ws/cluster.json -m ws/model.json -s uniform --out ws/p.json --quiet
holds 'a workspace of several files' grep -q '"before"' ws/cluster.json ws/model.json
cp -R ws old
files() { find "$1" -mindepth 1 | sed "s|^$1||" | sort; }

# half FOLDER STAGE: the files as a program leaves them that is killed after the first rename
half() {
    rm -rf "$1"
    cp -R old "$1"
    sed 's/"before"/"after"/' old/model.json >"$1/.hetviz-new-0123456789abcdef-1"
    cp old/cluster.json "$1/.hetviz-old-0123456789abcdef-0"
    cp old/model.json "$1/.hetviz-old-0123456789abcdef-1"
    [ "$2" = clean ] || sed 's/"before"/"after"/' old/cluster.json >"$1/cluster.json"
    printf 'hetviz-save/1 %-7s\n%s\n' "$2" '{ "token": "0123456789abcdef", "files": [
      { "name": "cluster.json", "made": false }, { "name": "model.json", "made": false } ],
      "remove": [], "folders": [] }' >"$1/.hetviz-save"
}
sed 's/"before"/"after"/' old/cluster.json >cluster.after
sed 's/"before"/"after"/' old/model.json >model.after
for stage in clean commit undo; do
    for command in "check ws" "check ws/cluster.json" "eval ws/p.json" "bound -c ws/cluster.json -m llama-3-8b" \
        "ws --dump cluster"; do
        half ws $stage
        # shellcheck disable=SC2086
        run $command
        holds "$command after a save in stage $stage" test "$rc" -le 1
        if [ $stage = commit ]; then
            same "$command finishes the save: cluster" ws/cluster.json cluster.after
            same "$command finishes the save: model" ws/model.json model.after
        else
            same "$command undoes the save: cluster" ws/cluster.json old/cluster.json
            same "$command undoes the save: model" ws/model.json old/model.json
        fi
        holds "$command leaves nothing behind" test "$(files ws)" = "$(files old)"
    done
done

# a folder that may not be written: the old state can be read, a mixed one is refused
half ws commit
chmod 555 ws
if touch ws/x 2>/dev/null; then
    rm -f ws/x
    skip 'a mixed workspace that may not be written' 'this user may write everywhere'
else
    chmod 444 ws/.hetviz-save
    expect 'a mixed workspace is refused' 3 check ws
    says 'and the reason is told' err 'was interrupted'
fi
chmod 755 ws

# the front end, killed while it saves again and again
rm -rf ws
cp -R old ws
i=0
while [ $i -lt 300 ]; do
    i=$((i + 1))
    printf ':set cluster.name v%d\n:set model.name v%d\n:write\n' $i $i
done >save.script
name_in() { sed -n 's/.*"name": "\(v[0-9]*\|before\)".*/\1/p' "$1" | head -n 1; }
for wait_s in 0.05 0.1 0.15 0.2 0.3 0.4 0.5 0.7; do
    "$HETVIZ" ws --script save.script >/dev/null 2>&1 &
    pid=$!
    sleep $wait_s
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    expect 'the workspace opens after a kill' 0 check ws
    holds 'its files belong together' test "$(name_in ws/cluster.json)" = "$(name_in ws/model.json)"
    holds 'no temporary file is left' test "$(files ws)" = "$(files old)"
done
finish
