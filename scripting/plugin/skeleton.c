/* The plugin that `hetviz new-plugin` writes: a small, commented plugin that runs, as one file or
 * as a folder with a module and self-tests. */
#include "scripting/plugin/find.h"
#include "scripting/plugin/plugin.h"
#include "solver/base/file.h"
#include "solver/base/save/save.h"
#include "solver/base/str.h"
#include "solver/base/target.h"

#include <string.h>
#include <sys/stat.h>

static const char one_file[] =
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

/* The same plugin as a folder. */
static const char plugin_file[] =
    "-- A strategy for hetviz: `hetviz plan -s @ID@ …` runs it, `hetviz help api` lists what it "
    "can call.\n"
    "-- Keep this folder in one named by $HETVIZ_PLUGINS or in ~/.local/share/hetviz/plugins. Its\n"
    "-- other files are modules: `require \"stages\"` is stages.lua beside this file, `require\n"
    "-- \"data.x\"` would be data/x.lua. `hetviz selftest @ID@` runs selftest.lua.\n"
    "local stages = require \"stages\"\n"
    "\n"
    "--- The plan for the inputs in ctx, or nil and the reason why there is none.\n"
    "local function plan(ctx)\n"
    "  local micro_batch, batch = ctx.options.micro_batch, ctx.job.global_batch\n"
    "  if batch % micro_batch ~= 0 then\n"
    "    return nil, \"micro_batch does not divide the batch of \" .. batch\n"
    "  end\n"
    "  local rows, load = stages.of_groups(ctx, micro_batch)\n"
    "  local micro_batches = batch // micro_batch\n"
    "  local why = stages.cut(rows, load, ctx.model.n_layers, micro_batches)\n"
    "  if why then\n"
    "    return nil, why\n"
    "  end\n"
    "  return hv.plan.new {\n"
    "    micro_batch = micro_batch,\n"
    "    schedule = { name = \"1f1b\" },\n"
    "    replicas = { { micro_batches = micro_batches, stages = rows } },\n"
    "  }\n"
    "end\n"
    "\n"
    "return {\n"
    "  api = 1, id = \"@ID@\", title = \"@ID@\", kind = \"planner\",\n"
    "  system = \"My own\", reference = \"none\",\n"
    "  summary = \"One pipeline over all devices, layers in proportion to their speed.\",\n"
    "  needs = { model = \"layers\" },\n"
    "  options = {\n"
    "    { key = \"micro_batch\", type = \"integer\", default = 1, min = 1, max = 1024,\n"
    "      help = \"sequences that enter the pipeline at once\" },\n"
    "  },\n"
    "  plan = plan,\n"
    "}\n";

static const char module_file[] =
    "-- The stages of the pipeline: one per group of equal nodes, tensor parallelism inside a\n"
    "-- node, data parallelism across its nodes.\n"
    "local stages = {}\n"
    "\n"
    "--- Stages without layers, and for each the seconds of every layer.\n"
    "function stages.of_groups(ctx, micro_batch)\n"
    "  local rows, load = {}, {}\n"
    "  local prices = hv.cost.layers { micro_batch = micro_batch }\n"
    "  for _, group in ipairs(ctx.cluster:groups()) do\n"
    "    if group.flops_per_s and group.class ~= \"cpu\" then -- it computes in this precision\n"
    "      local ids = {}\n"
    "      for i = 1, group.devices do\n"
    "        ids[i] = group.first + i - 1\n"
    "      end\n"
    "      local times = prices:times(group.kind)\n"
    "      for l = 1, #times do\n"
    "        times[l] = times[l] / #ids\n"
    "      end\n"
    "      rows[#rows + 1] = { devices = ctx.cluster:address(ids), tp = #ids }\n"
    "      load[#load + 1] = times\n"
    "    end\n"
    "  end\n"
    "  return rows, load\n"
    "end\n"
    "\n"
    "--- Gives the stages their layers: the exact optimum of sum + (micro-batches - 1) * max over\n"
    "-- all cuts. Returns nil, or why there is none.\n"
    "function stages.cut(rows, load, n_layers, micro_batches)\n"
    "  local cut, why = hv.opt.partition {\n"
    "    n = n_layers, parts = #rows, load = load, sum = 1, max = micro_batches - 1,\n"
    "  }\n"
    "  if not cut then\n"
    "    return why\n"
    "  end\n"
    "  for s, range in ipairs(cut.stages) do\n"
    "    rows[s].layers = { range[1] - 1, range[2] } -- plans count layers from 0, half open\n"
    "  end\n"
    "end\n"
    "\n"
    "return stages\n";

/* The same engine as a family: the rows fix the schedule. */
static const char family_file[] =
    "-- A family of strategies: one engine, a row for each system. What the rows share (kind, "
    "needs,\n"
    "-- options, plan) stands here once; a row may have members of its own, which count for it\n"
    "-- instead. The row that runs is ctx.system.\n"
    "local stages = require \"stages\"\n"
    "\n"
    "-- A plan as a table with the keys of a plan file; or nil and why there is none.\n"
    "local function plan(ctx)\n"
    "  local micro_batch, batch = ctx.options.micro_batch, ctx.job.global_batch\n"
    "  if batch % micro_batch ~= 0 then\n"
    "    return nil, \"micro_batch does not divide the batch of \" .. batch\n"
    "  end\n"
    "  local rows, load = stages.of_groups(ctx, micro_batch)\n"
    "  local micro_batches = batch // micro_batch\n"
    "  local why = stages.cut(rows, load, ctx.model.n_layers, micro_batches)\n"
    "  if why then\n"
    "    return nil, why\n"
    "  end\n"
    "  return hv.plan.new {\n"
    "    micro_batch = micro_batch,\n"
    "    schedule = { name = ctx.system.sets[\"schedule.name\"] },\n"
    "    replicas = { { micro_batches = micro_batches, stages = rows } },\n"
    "  }\n"
    "end\n"
    "\n"
    "return {\n"
    "  api = 1, kind = { \"pipeline\", \"yours\" },\n"
    "  needs = { model = \"layers\" },\n"
    "  options = {\n"
    "    { key = \"micro_batch\", type = \"integer\", default = 1, min = 1, max = 1024,\n"
    "      help = \"sequences that enter the pipeline at once\" },\n"
    "  },\n"
    "  plan = plan,\n"
    "  systems = {\n"
    "    {\n"
    "      id = \"@ID@-1f1b\", title = \"@ID@, one forward, one backward\",\n"
    "      system = \"My own\", -- the publication: \"Title\", with venue, year and reference\n"
    "      summary = \"Backward passes start as early as they can: few activations.\",\n"
    "      sets = { [\"schedule.name\"] = \"1f1b\" }, -- knobs that the system fixes\n"
    "      searches = { \"cut\" },                     -- what it decides\n"
    "    },\n"
    "    {\n"
    "      id = \"@ID@-gpipe\", title = \"@ID@, all forward, then all backward\",\n"
    "      system = \"My own\",\n"
    "      summary = \"All forward passes first: the activations of all micro-batches.\",\n"
    "      sets = { [\"schedule.name\"] = \"gpipe\" },\n"
    "      searches = { \"cut\" },\n"
    "    },\n"
    "  },\n"
    "}\n";

static const char selftest_file[] =
    "-- Self-tests of @ID@: `hetviz selftest @ID@`. The last argument says where the expected "
    "value is from.\n"
    "local stages = require \"stages\"\n"
    "\n"
    "return function(t)\n"
    "  local rows = { {}, {} }\n"
    "  local why = stages.cut(rows, { { 1, 2, 3, 4 }, { 1, 2, 3, 4 } }, 4, 100)\n"
    "  t.equal(\"two equal stages: no reason against it\", why, nil, \"by hand\")\n"
    "  t.equal(\"two equal stages: layers 1 2 3 | 4\", rows[1].layers[2], 3, \"by hand\")\n"
    "end\n";

/** Appends a text with the id in its places. */
static void add_with_id(struct hv_str *out, const char *text, const char *id)
{
    for (const char *at; *text != '\0'; text = at + strlen("@ID@")) {
        at = strstr(text, "@ID@");
        if (at == NULL) {
            hv_str_adds(out, text);
            break;
        }
        hv_str_add(out, text, (size_t)(at - text));
        hv_str_adds(out, id);
    }
}

static enum hv_status check_id(const char *id, struct hv_err *err)
{
    size_t n = strlen(id);

    if (n == 0 || n > 40 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n) {
        return hv_err_set(err, HV_EUSAGE, "expected a name of a-z, 0-9, - and _, found '%s'", id);
    }
    return HV_OK;
}

enum hv_status hv_plugin_skeleton(struct hv_str *out, const char *id, struct hv_err *err)
{
    enum hv_status s = check_id(id, err);

    if (s == HV_OK) {
        add_with_id(out, one_file, id);
    }
    return s;
}

/** The files of a folder; the one that makes it a plugin is the last. */
struct skeleton_file {
    const char *name, *text;
};
#define N_FILES 3
static const struct skeleton_file folder_files[N_FILES] = {{"stages.lua", module_file},
                                                           {HV__SELFTEST_FILE, selftest_file},
                                                           {HV__PLUGIN_FILE, plugin_file}};
static const struct skeleton_file family_files[N_FILES] = {{"stages.lua", module_file},
                                                           {HV__SELFTEST_FILE, selftest_file},
                                                           {HV__PLUGIN_FILE, family_file}};

/** Adds the files below `name` to a save and commits it. */
static enum hv_status write_files(struct hv_save *save, const char *name,
                                  const struct skeleton_file *files, const char *id,
                                  struct hv_err *err)
{
    struct hv_str texts[N_FILES] = {0};
    hv_save_folder(save, name);
    for (size_t i = 0; i < N_FILES; i++) {
        struct hv_str path = {0};
        hv_str_addf(&path, "%s/%s", name, files[i].name);
        add_with_id(&texts[i], files[i].text, id);
        hv_save_add(save, hv_str_cstr(&path), hv_str_cstr(&texts[i]), texts[i].n);
        hv_str_free(&path);
    }
    enum hv_status s = hv_save_commit(save, err);
    for (size_t i = 0; i < N_FILES; i++) {
        hv_str_free(&texts[i]);
    }
    return s;
}

/** Writes the folder `name` inside `outer`; all files or none. */
static enum hv_status write_folder(const char *outer, const char *name,
                                   const struct skeleton_file *files, const char *id,
                                   struct hv_err *err)
{
    struct hv_save *save = NULL;
    struct hv_str folder = {0};
    struct stat st;

    hv_str_addf(&folder, "%s/%s", outer, name);
    enum hv_status s = hv_file_mkdirs(outer, err);
    if (s == HV_OK) {
        s = hv_save_begin(&save, outer, err);
    }
    if (s == HV_OK && lstat(hv_str_cstr(&folder), &st) == 0) {
        s = hv_err_set(err, HV_EUSAGE, "%s exists already; choose another name with --out",
                       strcmp(outer, ".") == 0 ? name : hv_str_cstr(&folder));
    }
    if (s == HV_OK) {
        s = write_files(save, name, files, id, err);
    }
    hv_save_free(save);
    hv_str_free(&folder);
    return s;
}

/** Writes the files into a new folder of that path. */
static enum hv_status skeleton_of(const struct skeleton_file *files, const char *folder,
                                  const char *id, struct hv_err *err)
{
    struct hv_str path = {0}, outer = {0};
    enum hv_status s = check_id(id, err);

    hv_str_adds(&path, folder);
    while (path.n > 1 && path.p[path.n - 1] == '/') {
        path.p[--path.n] = '\0';
    }
    hv_folder_of(hv_str_cstr(&path), &outer);
    const char *slash = strrchr(hv_str_cstr(&path), '/');
    if (s == HV_OK) {
        s = write_folder(hv_str_cstr(&outer), slash != NULL ? slash + 1 : hv_str_cstr(&path), files,
                         id, err);
    }
    hv_str_free(&path);
    hv_str_free(&outer);
    return s;
}

enum hv_status hv_plugin_skeleton_folder(const char *folder, const char *id, struct hv_err *err)
{
    return skeleton_of(folder_files, folder, id, err);
}

enum hv_status hv_plugin_skeleton_family(const char *folder, const char *id, struct hv_err *err)
{
    return skeleton_of(family_files, folder, id, err);
}
