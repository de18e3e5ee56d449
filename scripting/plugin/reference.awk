# From the comments above API functions (`/*** … */` in scripting/api/api_*.c, `--- …` in share/lua) to
# the rows that scripting/plugin/reference.c compiles in. Tags: @function NAME, @tparam TYPE NAME TEXT
# ([opt] behind tparam: may be left out), @treturn TYPE TEXT, @units TEXT, @raise TEXT, @usage LUA.
# A text goes on until the next tag. Comments without @function are not the reference's business.
function quoted(s) {
    gsub(/\\/, "\\\\", s)
    gsub(/"/, "\\\"", s)
    gsub(/\n/, "\\n\"\n     \"", s)
    return "\"" s "\""
}
function joined(a, b, by) { return a == "" ? b : a by b }
function begin_block() {
    open = 1
    tag = "text"
    name = text = params = returns = units = raise = usage = ""
    line = FNR
}
function end_block() {
    open = 0
    if (name == "")
        return
    printf "    {%s, %s,\n     %s,\n     %s,\n     %s,\n     %s,\n     %s,\n     %s},\n", quoted(name), \
        quoted(FILENAME ":" line), quoted(text), quoted(params), quoted(returns), quoted(units), \
        quoted(raise), quoted(usage)
}
function take(s,    w, kind, opt) {
    if (match(s, /^@[a-z]+/)) {
        tag = substr(s, 2, RLENGTH - 1)
        s = substr(s, RLENGTH + 1)
        opt = sub(/^\[opt\]/, "", s)
        sub(/^ +/, "", s)
        if (tag == "function") {
            name = s
            return
        }
        if (tag == "tparam") {
            kind = s
            sub(/ .*/, "", kind)
            sub(/^[^ ]+ */, "", s)
            w = s
            sub(/ .*/, "", w)
            sub(/^[^ ]+ */, "", s)
            params = joined(params, w " (" kind (opt ? ", optional" : "") ")" (s != "" ? ": " s : ""), "\n")
            return
        }
        if (tag == "param")
            s = "(any): " substr(s, 1)
        if (tag == "treturn") {
            kind = s
            sub(/ .*/, "", kind)
            if (!sub(/^[^ ]+ +/, "", s))
                s = ""
            returns = joined(returns, kind (s != "" ? ": " s : ""), "\n")
            return
        }
    }
    if (tag == "text") text = joined(text, s, " ")
    else if (tag == "tparam" || tag == "param") params = joined(params, s, tag == "param" ? "\n" : " ")
    else if (tag == "treturn") returns = joined(returns, s, " ")
    else if (tag == "units") units = joined(units, s, " ")
    else if (tag == "raise") raise = joined(raise, s, " ")
    else if (tag == "usage") usage = joined(usage, s, "\n")
}
FNR == 1 && open { end_block() }
FILENAME ~ /\.lua$/ {
    if (!open && /^---/) {
        begin_block()
        sub(/^--- ?/, "")
        if ($0 != "") take($0)
    } else if (open && /^--/) {
        sub(/^-- ?/, "")
        take($0)
    } else if (open) {
        end_block()
    }
    next
}
/^\/\*\*\*$/ { begin_block(); next }
open && /^ *\*\/$/ { end_block(); next }
open { take($0) }
