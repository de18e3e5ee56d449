-- Plugins and libraries run in the sandbox: no io, os, debug or load; `hv` and `require` are there.
std = {
  read_globals = {
    "_G", "_VERSION", "assert", "coroutine", "error", "getmetatable", "hv", "ipairs", "math", "next",
    "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset", "require", "select",
    "setmetatable", "string", "table", "tonumber", "tostring", "type", "utf8", "xpcall",
  },
}
max_line_length = 100
