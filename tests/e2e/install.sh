#!/bin/sh
# What is shipped equals what the program prints, and an installed copy works from any folder.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run help man
same 'the manual page is up to date (make pages)' out "$root/share/man/hetviz.1"
for pair in bash:hetviz.bash zsh:_hetviz fish:hetviz.fish; do
    run completion "${pair%%:*}"
    same "the completion for ${pair%%:*} is up to date (make pages)" out \
        "$root/share/completions/${pair#*:}"
done
if have_program man 'the manual page' && have_program groff 'the manual page'; then
    groff -man -Tutf8 -ww "$root/share/man/hetviz.1" >out 2>err
    holds 'the manual page is good roff' [ ! -s err ]
fi

# the program under test is installed as it is (-o all: nothing is built again)
case $HETVIZ in
"$root"/build/hetviz) mode=release ;;
"$root"/build/asan/hetviz) mode=asan ;;
"$root"/build/debug/hetviz) mode=debug ;;
*) mode= ;;
esac
if [ -n "$mode" ]; then
    make -s -C "$root" MODE=$mode DESTDIR="$work/x" PREFIX=/usr -o all install >out 2>err
    holds 'make install' [ $? -eq 0 ]
    for file in man/man1/hetviz.1 bash-completion/completions/hetviz zsh/site-functions/_hetviz \
        fish/vendor_completions.d/hetviz.fish hetviz/schema/plan.schema.json; do
        holds "make install: $file" [ -s "x/usr/share/$file" ]
    done
else
    # built somewhere else: the same layout by hand
    mkdir -p x/usr/bin x/usr/share/hetviz
    cp "$HETVIZ" x/usr/bin/hetviz
    cp -R "$root"/share/* "$root/plugins" "$root/samples" x/usr/share/hetviz/
fi
unset HETVIZ_ROOT
installed=$work/x/usr/bin/hetviz
mkdir -p elsewhere && cd elsewhere || exit 1
timeout "$HANG" "$installed" eval uniform --json >"$work/out" 2>"$work/err"
holds 'installed: a shipped plan by name' [ $? -eq 0 ]
cp "$work/out" "$work/installed.out"
"$HETVIZ" eval uniform --json >"$work/out" 2>"$work/err"
same 'installed: the same figures' "$work/out" "$work/installed.out"
timeout "$HANG" "$installed" plan -c two-generations -m llama-3-8b -j small -s uniform --json \
    >"$work/out" 2>"$work/err"
holds 'installed: a strategy' [ $? -eq 0 ]
timeout "$HANG" "$installed" strategies >"$work/out" 2>"$work/err"
holds 'installed: strategies' grep -q '^uniform ' "$work/out"
timeout "$HANG" "$installed" --dump cluster --size 80x24 >"$work/out" 2>"$work/err"
holds 'installed: the first screen' grep -q Nodes "$work/out"
timeout "$HANG" "$installed" --dump cluster --out "$work/c.png" >"$work/out" 2>"$work/err"
holds 'installed: a screen as PNG' [ "$(head -c 4 "$work/c.png" | tail -c 3)" = PNG ]
timeout "$HANG" "$installed" --dump cluster --out "$work/c.svg" >"$work/out" 2>"$work/err"
holds 'installed: a screen as SVG' grep -q Nodes "$work/c.svg"
ln -s "$installed" "$work/link"
timeout "$HANG" "$work/link" bound -c thousand -m gpt3-175b >"$work/out" 2>"$work/err"
holds 'installed: through a link' [ $? -eq 0 ]
# without its files it says what is missing
cp "$installed" "$work/alone"
timeout "$HANG" "$work/alone" bound -c thousand -m gpt3-175b >"$work/out" 2>"$work/err"
holds 'without its files: exit 3' [ $? -eq 3 ]
says 'without its files: says where it looked' err 'HETVIZ_ROOT'
cd "$work" || exit 1
finish
