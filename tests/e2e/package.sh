#!/bin/sh
# The package: what --version says, pages without warnings, debian/ beside the facts that it repeats,
# and, where the tools of Debian are, a package of the program under test with its contents.
# tests/package builds and installs it on machines that have nothing.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

expect 'version of the build' 0 --version --json
holds '--version --json is JSON' is_json out
for key in version date commit judge mode compiler flags libraries features data; do
    says "--version --json has $key" out "\"$key\":"
done
version=$("$HETVIZ" --version | cut -d ' ' -f 2)
date=$(sed -n 's/.*"date": "\([0-9-]*\)".*/\1/p' out)
says 'both say the same version' out "\"version\": \"$version\""
for library in expat gmp jansson libyaml lp_solve lua sqlite terminal utf8proc zlib; do
    says "--version --json: $library" out "\"$library\": \"[a-z ]*[0-9]+\\.[0-9]"
done
says '--version --json: the data folder' out "\"data\": \"$root/share\""
expect '--version takes nothing else' 2 --version plan
says '--version: what it takes' err '--json and nothing else'

for page in hetviz.1 hetviz-plugin.7; do
    holds "$page: date and version" grep -q "^\\.TH [A-Z\\-]* [17] $date \"hetviz $version\"\$" "$root/share/man/$page"
    if have_program mandoc "lint of $page"; then
        mandoc -T lint "$root/share/man/$page" >lint 2>&1
        holds "$page: mandoc -T lint" [ ! -s lint ]
    fi
done

# facts that debian/ repeats
holds 'debian/changelog has this version' grep -q "^hetviz ($version) " "$root/debian/changelog"
holds 'debian/changelog has this date' [ "$(LC_ALL=C TZ=UTC0 date -d "$(sed -n 's/^ -- .*>  //p' "$root/debian/changelog" | head -n 1)" +%F 2>/dev/null || echo "$date")" = "$date" ]
for package in $(sed -n "s/^build='\\(.*\\)'/\\1/p" "$root/.ci/deps"); do
    case $package in
    gcc | make) ;; # build-essential
    *) holds "debian/control builds with $package" grep -q "[ ,]$package\\(,\\|\$\\)" "$root/debian/control" ;;
    esac
done

case $HETVIZ in
"$root"/build/hetviz) built=1 ;;
*) built= ;;
esac
if ! have_program dpkg-buildpackage 'the package' || ! have_program dh 'the package'; then
    finish
fi
if [ -z "$built" ]; then
    skip 'the package' 'the program under test is not the one of the release build'
    finish
fi
# the program as it is, not built again (BUILT=1 of debian/rules)
mkdir -p tree/build
(cd "$root" && tar --exclude=./build --exclude=./.git -cf - .) | tar -C tree -xf -
cp "$HETVIZ" tree/build/
(cd tree && BUILT=1 DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -d -b -us -uc) >log 2>&1
holds 'dpkg-buildpackage' [ $? -eq 0 ]
set -- hetviz_"${version}"_*.deb
holds 'one package' [ -s "$1" ]
dpkg-deb -c "$1" >list 2>&1
for file in bin/hetviz share/man/man1/hetviz.1.gz share/man/man7/hetviz-plugin.7.gz \
    share/bash-completion/completions/hetviz share/zsh/vendor-completions/_hetviz \
    share/fish/vendor_completions.d/hetviz.fish share/hetviz/schema/plan.schema.json \
    share/hetviz/plugins/auto/plugin.lua share/hetviz/samples/workspaces share/doc/hetviz/copyright; do
    holds "the package has $file" grep -q " ./usr/$file" list
done
dpkg-deb -x "$1" x
unset HETVIZ_ROOT
mkdir elsewhere && cd elsewhere || exit 1
"$work/x/usr/bin/hetviz" eval uniform >"$work/out" 2>"$work/err"
holds 'unpacked: a shipped plan' [ $? -eq 0 ]
cd "$work" || exit 1
if have_program lintian 'lintian'; then
    # the program under test links archives, that of the package does not
    lintian --fail-on error --allow-root --suppress-tags embedded-library hetviz_"${version}"_*.changes >lint 2>&1
    holds 'lintian finds no error' [ $? -eq 0 ]
fi
finish
