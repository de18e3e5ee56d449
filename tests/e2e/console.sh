#!/bin/sh
# `hetviz lua`: lines run in a worker on a copy of the inputs, changes are told as commands, a line that
# kills its worker costs an exit code; and the same by hand over `hetviz worker`.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

lua() { # lua CODE: runs the lines on standard input
    timeout -k 2 "$HANG" "$HETVIZ" lua >"$work/out" 2>"$work/err"
    rc=$?
    if [ "$rc" -eq "$1" ]; then ok; else no "lua" "exit $rc, expected $1"; fi
}
lua 0 <<'LINES'
x = 20
return x + 1
for i = 1, 2 do
  print("line", i)
end
workspace.cluster.nodes[1].count = 4
return ctx.cluster.n_devices
LINES
says 'variables stay' out '^21$'
says 'chunks of several lines' out '^line 2$'
says 'a change is a command' out '^-- set cluster.nodes\[0\].count 4$'
says 'and seen by the next line' out '^48$'
lua 5 <<'LINES'
return ctx.cluster.device()
workspace.job.precision = "fp12"
return "still here"
LINES
says 'an error says where' err 'console:1: .*did you mean'
says 'a wrong value says what is right' err 'workspace.job: .*precision'
says 'the console goes on' out '^still here$'
lua 5 <<'LINES'
for i = 1, 2 do
LINES
says 'half a chunk' err 'incomplete'

cat >"$work/job" <<'JOB'
{"kind":"lua","cluster":"two-generations","model":"llama-3-8b"}
{"eval":"workspace.job.global_batch = 8"}
{"eval":"return ctx.job.global_batch"}
{"eval":"while true"}
JOB
"$HETVIZ" worker <"$work/job" >"$work/out" 2>"$work/err"
says 'commands' out '"state":"done","text":"","commands":\[{"do":"set","path":"job.global_batch","value":8}\]'
says 'answers' out '"state":"done","text":"8\\n"'
says 'more' out '"state":"more"'
says 'the end' out '"event":"result"'
echo '{"kind":"lua","cluster":"two-generations","model":"llama-3-8b"}
{"evil":"x"}' | "$HETVIZ" worker >"$work/out" 2>"$work/err"
says 'wrong lines are errors' out '"event":"error".*evil'
finish
