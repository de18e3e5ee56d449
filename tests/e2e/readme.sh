#!/bin/sh
# README and guide pages: every command they print runs as printed, in order, in an empty folder; every
# link leads to a file.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$work/bin" "$work/here"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$HETVIZ" >"$work/bin/hetviz"
chmod +x "$work/bin/hetviz"
PATH=$work/bin:$PATH
cd "$work/here" || exit 1
for page in README.md share/guide/commands.md; do
    awk '/^```sh$/ { s = 1; next } /^```$/ { s = 0 } s && /^hetviz /' "$root/$page" >"$work/commands"
    holds "$page has commands" test "$(grep -c . "$work/commands")" -ge 5
    while read -r line; do
        # the limit is for hangs
        timeout -k 5 "$HANG" sh -c "${line%%#*}" >"$work/out" 2>"$work/err" </dev/null
        rc=$?
        if [ $rc -eq 0 ]; then ok; else no "$page: $line" "exit $rc: $(head -3 "$work/err")"; fi
    done <"$work/commands"
done
for page in $(cd "$root" && echo README.md CONTRIBUTING.md share/guide/*.md); do
    folder=$root/$(dirname "$page")
    grep -o '](\([^)#]*\))' "$root/$page" | sed 's/^](//; s/)$//' | grep -v '^https*:' >"$work/links"
    while read -r link; do
        holds "$page: link $link" test -e "$folder/$link"
    done <"$work/links"
done
finish
