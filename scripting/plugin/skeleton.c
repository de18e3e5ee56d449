/* The plugin that `hetviz new-plugin` writes: small, commented, and it runs. */
#include "scripting/plugin/plugin.h"
#include "solver/base/str.h"
#include <string.h>

static const char skeleton[] =
    "-- A strategy for hetviz: `hetviz plan -s @ID@ …` runs it, `hetviz help api` lists what it "
    "can "
    "call.\n"
    "-- Keep this file in a folder named by $HETVIZ_PLUGINS or in ~/.local/share/hetviz/plugins.\n"
    "return {\n"
    "  api = 1, id = \"@ID@\", title = \"@ID@\", kind = \"planner\",\n"
    "  system = \"My own\", reference = \"none\",\n"
    "  summary = \"One pipeline over all devices, layers in proportion to their speed.\",\n"
    "  needs = { model = \"layers\" },\n"
    "  options = {\n"
    "    { key = \"micro_batch\", type = \"integer\", default = 1, min = 1, max = 1024,\n"
    "      help = \"sequences that enter the pipeline at once\" },\n"
    "  },\n"
    "  plan = function(ctx)\n"
    "    local mb, batch = ctx.options.micro_batch, ctx.job.global_batch\n"
    "    if batch % mb ~= 0 then return nil, \"micro_batch does not divide the batch of \" .. "
    "batch end\n"
    "    -- One stage per group of equal nodes: tensor parallelism inside a node, data "
    "parallelism\n"
    "    -- across its nodes.\n"
    "    local table_of, stages, load = hv.cost.layers{ micro_batch = mb }, {}, {}\n"
    "    local n = ctx.model.n_layers\n"
    "    for _, group in ipairs(ctx.cluster:groups()) do\n"
    "      if group.flops_per_s and group.class ~= \"cpu\" then -- it computes in this precision\n"
    "        local ids = {}\n"
    "        for i = 1, group.devices do ids[i] = group.first + i - 1 end\n"
    "        stages[#stages + 1] = { devices = ctx.cluster:address(ids), tp = #ids }\n"
    "        load[#load + 1] = table_of:times(group.kind)\n"
    "        for l = 1, n do load[#load][l] = load[#load][l] / #ids end\n"
    "      end\n"
    "    end\n"
    "    -- The exact optimum of sum + (micro-batches - 1) * max over all cuts.\n"
    "    local cut, why = hv.opt.partition{ n = n, parts = #stages, load = load, sum = 1, max = "
    "batch // mb }\n"
    "    if not cut then return nil, why end\n"
    "    for s, range in ipairs(cut.stages) do stages[s].layers = { range[1] - 1, range[2] } end\n"
    "    return hv.plan.new{ micro_batch = mb, schedule = { name = \"1f1b\" },\n"
    "      replicas = { { micro_batches = batch // mb, stages = stages } } }\n"
    "  end,\n"
    "  selftest = function(t)\n"
    "    local r = hv.opt.partition{ n = 4, parts = 2, load = { 1, 2, 3, 4 } }\n"
    "    t.near(\"longest of 1 2 3 | 4\", r.value, 6, 0, \"by hand\")\n"
    "  end,\n"
    "}\n";

enum hv_status hv_plugin_skeleton(struct hv_str *out, const char *id, struct hv_err *err)
{
    size_t n = strlen(id);

    if (n == 0 || n > 40 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n) {
        return hv_err_set(err, HV_EUSAGE, "expected a name of a-z, 0-9, - and _, found '%s'", id);
    }
    for (const char *s = skeleton, *at; *s != '\0'; s = at + strlen("@ID@")) {
        at = strstr(s, "@ID@");
        if (at == NULL) {
            hv_str_adds(out, s);
            break;
        }
        hv_str_add(out, s, (size_t)(at - s));
        hv_str_adds(out, id);
    }
    return HV_OK;
}
