/* Runs of plugins: plans are judged, calls priced, wrong arguments explained. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plugin_fixture.h"

static void test_runs(void **state)
{
    (void)state;
    expect_run("return nil, 'too small'", HV_ENO, "too small");
    expect_run("error('oops')", HV_EPLUGIN, "oops");
    expect_run("return 3", HV_EPLUGIN, "plan() returned a number, expected a plan");
    expect_run("return {1, {}}", HV_EPLUGIN, "plan() returned a number, expected a plan");
    expect_run("return {micro_batch = 1, replicas = 'x'}", HV_EPLUGIN, "replicas");
    expect_run("return {nonsense = function() end}", HV_EPLUGIN, "nonsense");
    expect_run("ctx.cluster.name = 'x'", HV_EPLUGIN, "read-only");
    expect_run("ctx.cluster:link(0, 1)", HV_EPLUGIN, "no device has this number");
    expect_run("ctx.cluster.devices()", HV_EPLUGIN, "hv.cluster");
    expect_run("setmetatable(getmetatable(ctx.cluster) or {}, {}) return nil, "
               "tostring(getmetatable(ctx.cluster))",
               HV_ENO, "false");
    expect_run("hv.cost.layers{tp = 0}", HV_EPLUGIN, "whole number from 1");
    expect_run("hv.cost.layers{tq = 1}", HV_EPLUGIN, "did you mean 'tp'");
    expect_run("hv.cost.layers{micro_batch = 0/0}", HV_EPLUGIN, "micro_batch");
    expect_run("hv.cost.layers{}:time(1, 99, 'A100-SXM-80GB')", HV_EPLUGIN, "from 1 to 32");
    expect_run("hv.cost.collective{op = 'all_redcue', bytes = 1, devices = {1, 2}}", HV_EPLUGIN,
               "all_reduce");
    expect_run("hv.opt.partition{n = 4, parts = 2, load = {1, 2, 0/0, 4}}", HV_EPLUGIN,
               "list of numbers");
    expect_run("hv.opt.partition{n = 4, parts = 2, load = {1, 2, -3, 4}}", HV_EPLUGIN, "");
    expect_run("hv.opt.distribute{total = 3, time = {1, 1}, sizes = {0, 1}}", HV_EPLUGIN, "");
    expect_run("hv.opt.lp{}:row({[7] = 1}, '<=', 1)", HV_EPLUGIN, "variable");
    expect_run("hv.strategy('mine')", HV_EPLUGIN, "deep");
    expect_run("hv.strategy('mien')", HV_EPLUGIN, "did you mean 'mine'");
    expect_run("hv.progress(2)", HV_EPLUGIN, "from 0 to 1");
    expect_run("ctx.cluster:ids(3)", HV_EPLUGIN, "list of addresses");
    expect_run("ctx.cluster:ids{'a[0].*', 'nosuch'}", HV_EPLUGIN, "nosuch");
    expect_run("return nil, table.concat(ctx.cluster:ids(ctx.cluster:address{3, 1, 2, 9}), ' ')",
               HV_ENO, "3 1 2 9");
    expect_run("while true do pcall(hv.cost.layers, {}) end", HV_ESTOPPED, "time limit");
}

/** A plan of one stage on the first node with this micro-batch. */
#define ONE_NODE(mb, batches)                                                                      \
    "return {micro_batch = " #mb ", replicas = {{micro_batches = " #batches                        \
    ", stages = {{devices = ctx.cluster:address{1,2,3,4,5,6,7,8}, layers = {0, 32}, tp = 8, "      \
    "recompute = 'full'}}}}}"

/** A share of no time is used up at once, which ends no search before its time. */
static void test_a_share_of_nothing_cuts_nothing_short(void **state)
{
    struct hv_run_result result;
    struct hv_err err;
    (void)state;
    assert_int_equal(run_text("assert(hv.stopping(0)) " ONE_NODE(1, 256), &result, &err), HV_OK);
    assert_false(result.stopped);
    hv_run_result_free(&result);
}

static void test_plans_are_judged(void **state)
{
    struct hv_run_result a, b;
    struct hv_str ta = {0}, tb = {0};
    struct hv_err err;
    (void)state;
    assert_int_equal(run_text(ONE_NODE(1, 256), &a, &err), HV_OK);
    assert_int_equal(run_text(ONE_NODE(1, 256), &b, &err), HV_OK);
    hv_json_write(&ta, a.plan, true);
    hv_json_write(&tb, b.plan, true);
    assert_string_equal(hv_str_cstr(&ta), hv_str_cstr(&tb));
    const json_t *simulated = json_object_get(a.plan, "simulated");
    assert_true(json_number_value(json_object_get(simulated, "iteration_s")) > 0);
    assert_string_equal(json_string_value(json_object_get(a.plan, "format")), "hetviz.plan/1");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(a.plan, "strategy"), "name")), "mine");
    hv_run_result_free(&a);
    hv_run_result_free(&b);
    hv_str_free(&ta);
    hv_str_free(&tb);
    expect_run(ONE_NODE(1, 255), HV_ENO, "255"); /* rule A */
    /* of a list the best plan is kept; evaluations are counted */
    assert_int_equal(
        run_text("local f = function() " ONE_NODE(
                     1, 256) " end\n"
                             "local h = hv.plan.new(f())\nassert(#h:check() == 0 and "
                             "h:eval().iteration_s > 0)\n"
                             "assert(h:table().micro_batch == 1)\nhv.incumbent(h)\nreturn {f(), h}",
                 &a, &err),
        HV_OK);
    assert_int_equal(a.evaluations, 4);
    assert_non_null(json_object_get(a.plan, "strategy")); /* not the unsigned incumbent */
    hv_run_result_free(&a);
}

/** Runs `strategy` where plugins "mine" and "other" are given as members of their tables. */
static enum hv_status run_two(const char *mine, const char *other,
                              const struct hv_run_request *base, struct hv_run_result *out,
                              struct hv_err *err)
{
    struct hv_plugins a, b, both;
    struct hv_inputs in = {0};
    struct hv_str text = {0};

    *err = (struct hv_err){0};
    hv_str_addf(
        &text, "return { api = 1, id = 'mine', title = 'm', kind = 'k', summary = 's', %s }", mine);
    load(&a, hv_str_cstr(&text));
    hv_str_clear(&text);
    hv_str_addf(&text,
                "return { api = 1, id = 'other', title = 'o', kind = 'k', summary = 's', %s }",
                other);
    struct hv_err bad_err = {0};
    assert_int_equal(
        hv_plugins_read_file(&b, write_plugin("bad.lua", hv_str_cstr(&text)), &bad_err), HV_OK);
    struct hv_plugin items[] = {a.items[0], b.items[0]};
    both = (struct hv_plugins){.items = items, .n = 2};
    assert_int_equal(hv_inputs_read(&in, "homogeneous", "llama-3-8b", NULL, err), HV_OK);
    struct hv_run_request r = *base;
    r.inputs = &in;
    r.plugins = &both;
    r.seed = 1;
    enum hv_status s = hv_run_strategy(&r, out, err);
    hv_inputs_free(&in);
    hv_plugins_free(&a);
    hv_plugins_free(&b);
    hv_str_free(&text);
    return s;
}

#define TWO_STAGES                                                                                 \
    "plan = function(ctx) local p = {micro_batch = 4, replicas = {{micro_batches = 64, stages = {" \
    "{devices = 'a[0].*', layers = {0, 16}, tp = 8, recompute = 'full'},"                          \
    "{devices = 'a[1].*', layers = {16, 32}, tp = 8, recompute = 'full'}}}}} hv.incumbent(p) "     \
    "return p end"

static void test_compositions(void **state)
{
    struct hv_run_request r = {.strategy = "mine+other"};
    struct hv_run_result out;
    struct hv_err err;
    (void)state;

    /* what the first shows on its way is changed as well, or it would win unchanged */
    assert_int_equal(run_two(TWO_STAGES,
                             "apply = function(plan, ctx) local p = hv.plan.new(plan):table() "
                             "p.schedule = {name = 'dapple'} return p end",
                             &r, &out, &err),
                     HV_OK);
    const json_t *schedule = json_object_get(out.plan, "schedule");
    assert_string_equal(json_string_value(json_object_get(schedule, "name")), "dapple");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(out.plan, "strategy"), "name")),
        "mine+other");
    hv_run_result_free(&out);
    assert_int_equal(
        run_two(TWO_STAGES, "apply = function() return nil, 'not here' end", &r, &out, &err),
        HV_ENO);
    assert_non_null(strstr(err.text, "not here"));
    hv_run_result_free(&out);
    assert_int_equal(run_two(TWO_STAGES,
                             "apply = function(plan, ctx) return nil, #ctx.before .. ' before: ' "
                             ".. ctx.before[1].id end",
                             &r, &out, &err),
                     HV_ENO);
    assert_non_null(strstr(err.text, "1 before: mine"));
    hv_run_result_free(&out);
    /* a schedule: all forwards, then all backwards; its order travels in the plan, which then
     * does not fit */
    assert_int_equal(
        run_two(TWO_STAGES,
                "order = function(p) assert(p.times.f > 0 and p.per_stage[2].memory_bytes > 0) "
                "local o = {} for r = 0, p.ranks - 1 do o[r + 1] = {} for _, k in "
                "ipairs{'F', 'BW'} do for m = 0, p.micro_batches - 1 do o[r + 1][#o[r + "
                "1] + 1] = k .. r .. '.' .. m end end end return o end",
                &r, &out, &err),
        HV_ENO);
    assert_non_null(strstr(err.text, "GiB"));
    schedule = json_object_get(out.plan, "schedule");
    assert_string_equal(json_string_value(json_object_get(schedule, "name")), "explicit");
    const json_t *first = json_array_get(json_object_get(schedule, "order"), 0);
    assert_int_equal(json_array_size(first), 128);
    assert_string_equal(json_string_value(json_array_get(first, 64)), "BW0.0");
    hv_run_result_free(&out);
    /* an order that blocks is told, not run */
    assert_int_equal(
        run_two(TWO_STAGES, "order = function(p) return {{'F0.0'}} end", &r, &out, &err),
        HV_EPLUGIN);
    assert_non_null(strstr(err.text, "2 lists"));
    hv_run_result_free(&out);
}

/** Every function with arguments that make no sense, or only nearly: errors, never a crash. */
static void test_argument_soup(void **state)
{
    struct hv_run_result out;
    struct hv_err err;
    (void)state;
    enum hv_status s = run_text(
        "local lp, p = hv.opt.lp{}, hv.plan.new{micro_batch = 1, replicas = {{"
        "micro_batches = 1, stages = {{devices = 'a[0].*', layers = {0, 32}, tp = 8}}}}}\n"
        "local r = hv.routing{sources = 2, experts = 2}\n"
        "local junk = {true, 0, 1, 2, 3, -1, 7, 1/0, 0/0, 1e300, 2^53, math.mininteger, 'x', '', "
        "'min', "
        "'1f1b', 'all_reduce', 'a[0].*', 'A100-SXM-80GB', 'full', {}, {{}}, {1, 2}, {1, 2, 3, 4}, "
        "{{1, 2}, {3, 4}}, {{1, 2, 3}}, {0/0}, {-1}, {'F0.0'}, {{'F0.0', 'BW0.0'}}, {a = 1}, "
        "{{resource = 1, time_s = 1, after = {1}}}, ctx.cluster, ctx.model, lp, p, r, "
        "hv.cost.layers{}, "
        "print, function() return 1 end, function() error('no') end, coroutine.create(print), "
        "setmetatable({}, {__index = function() return 1 end})}\n"
        "local keys = {'n', 'parts', 'load', 'ranks', 'micro_batches', 'tasks', 'resources', "
        "'devices', "
        "'op', 'bytes', 'layers', 'tp', 'dp', 'ranges', 'sources', 'experts', 'owners', 'copies', "
        "'total', 'time', 'items', 'slots', 'cost', 'nodes', 'edges', 'weights', 'cap', 'kind', "
        "'need', "
        "'policy', 'used', 'options', 'times', 'chunks', 'matrix', 'dist', 'tile', 'tokens', "
        "'memory', "
        "'capacity', 'source', 'sink', 'order', 'micro_batch', 'recompute', 'kinds', 'device', "
        "'layer', "
        "'in_flight', 'replicas', 'stages', 'objective', 'lower', 'upper', 'caps', 'cut', "
        "'sizes'}\n"
        "local calls = {}\n"
        "local function gather(t) for _, v in pairs(t) do if type(v) == 'table' then gather(v) "
        "elseif "
        "type(v) == 'function' then calls[#calls + 1] = v end end end gather(hv)\n"
        "for _, o in ipairs{{ctx.cluster, 'devices groups link address ids pick'}, {ctx.model, "
        "'layers tokens'}, {lp, 'var row objective solve'}, {p, 'check eval table'}, {r, 'apply'}, "
        "{hv.cost.layers{}, 'time times bytes sizes'}} do for name in o[2]:gmatch('%a+') do\n"
        "local f = o[1][name] calls[#calls + 1] = f calls[#calls + 1] = function(...) return "
        "f(o[1], "
        "...) end end end\n"
        "local function some() local v = junk[hv.random(#junk)] if hv.random(3) > 1 then return v "
        "end "
        "local t = {} for _ = 1, hv.random(6) do t[keys[hv.random(#keys)]] = "
        "junk[hv.random(#junk)] end "
        "return t end\n"
        "local fine, n = 0, 0\n"
        "for _ = 1, 120 do for _, f in ipairs(calls) do if hv.stopping() then break end n = n + 1\n"
        "local a, b, c = some(), some(), some() if pcall(f, a, b, c) then fine = fine + 1 end end "
        "end\n"
        "assert(#calls > 60 and n > #calls) return nil, 'it lives'",
        &out, &err);
    if (s ==
        HV_EPLUGIN) { /* HV_OK: a plan among the arguments was taken; HV_ESTOPPED: slow machine */
        print_error("%s:%u: %s\n", err.file, err.line, err.text);
    }
    assert_true(s == HV_ENO || s == HV_OK || s == HV_ESTOPPED);
    hv_run_result_free(&out);
}

/** Bulk calls give the figures of the single ones; arguments are checked. */
static void test_bulk_prices(void **state)
{
    (void)state;
    expect_run(
        "local q = {devices = ctx.cluster:address{1, 2}, tp = 2, micro_batch = 2, recompute = "
        "'full', in_flight = {1, 3, 2}, ranges = {1, 1, 3, 7, 30, 32}}\n"
        "local f = hv.cost.stages(q)\n"
        "for i = 1, 3 do local a, b = q.ranges[2 * i - 1], q.ranges[2 * i]\n"
        "local s = hv.cost.stage{devices = q.devices, tp = 2, micro_batch = 2, recompute = "
        "'full', in_flight = q.in_flight[i], layers = {a - 1, b}}\n"
        "assert(s.forward_s == f.forward_s[i] and s.backward_s == f.backward_s[i])\n"
        "assert(s.memory.peak_bytes == f.peak_bytes[i] and s.hop_bytes == f.hop_bytes[i])\n"
        "assert(s.memory.limit_bytes == f.limit_bytes) end\n"
        "local t = hv.cost.layers{tp = 2}\nlocal k = ctx.cluster:groups()[1].kind\n"
        "local x, y = t:times(k, 'forward'), t:sizes('parameters')\n"
        "for l = 1, 32 do assert(x[l] == t:time(l, l, k, 'forward') and y[l] == t:bytes(l, l, "
        "'parameters')) end\n"
        "local o = hv.cost.op{op = 'attention', device = k}\n"
        "assert(o.time_s > 0 and #o.why > 2)\nreturn nil, 'all equal'",
        HV_ENO, "all equal");
    /* the optimizer's step grows with the layers, and is shared out where its states are */
    expect_run("local function step(to, dp, zero) return hv.cost.stage{devices = ctx.cluster:"
               "address(dp == 2 and {1, 2} or {1}), layers = {2, to}, dp = dp, zero = zero, "
               "micro_batch = 2}.optimizer_s end\n"
               "local each = step(10) - step(6)\nassert(step(6) > 0 and each > 0)\n"
               "assert(math.abs(step(14) - step(10) - each) < 1e-9 * each)\n"
               "assert(step(6, 2) == step(6) and step(6, 2, 1) < 0.6 * step(6))\n"
               "return nil, 'steps'",
               HV_ENO, "steps");
    /* whole chunks are gathered by the schedule, layers inside the passes */
    expect_run("local function at(unit) return hv.cost.stage{devices = ctx.cluster:address{1, 2}, "
               "layers = {2, 6}, dp = 2, zero = {stage = 3, unit = unit}, micro_batch = 2} end\n"
               "local chunk, layer = at('chunk'), at('layer')\n"
               "assert(chunk.gather_s > 0 and chunk.scatter_s > 0 and chunk.exposed.zero == 0)\n"
               "assert(layer.gather_s == 0 and layer.scatter_s == 0)\nreturn nil, 'units'",
               HV_ENO, "units");
    /* chunks of a stage add up */
    expect_run("local function at(layers) return hv.cost.stage{devices = ctx.cluster:address{1}, "
               "layers = layers} end\n"
               "local both, a, b = at{{0, 2}, {4, 7}}, at{0, 2}, at{4, 7}\n"
               "assert(math.abs(both.backward_s - a.backward_s - b.backward_s) < 1e-12)\n"
               "assert(both.memory.activation_bytes == a.memory.activation_bytes + "
               "b.memory.activation_bytes)\nreturn nil, 'chunks'",
               HV_ENO, "chunks");
    /* GPipe of two unequal stages by hand: 1 + 2·3 + 2·1 forwards and backwards behind each other
     */
    expect_run(
        "local r = hv.sim.schedule('gpipe', {ranks = 2, micro_batches = 2, times = {f = {1, 3}, "
        "b = {1, 3}, w = 0}})\nreturn nil, r.makespan .. ' ' .. hv.sim.schedule('gpipe', {ranks "
        "= 2, micro_batches = 2, times = {f = 1, b = 1, w = 0}}).makespan",
        HV_ENO, "14 6");
    /* gpipe, 3 stages, one micro-batch: 3 forwards and 3 backwards of 1, hops of 1 and 4 both ways
     */
    expect_run(
        "return nil, hv.sim.schedule('gpipe', {ranks = 3, micro_batches = 1, times = {w = 0, "
        "hop = {1, 4}}}).makespan",
        HV_ENO, "16");
    expect_run("hv.sim.schedule('gpipe', {ranks = 3, micro_batches = 1, times = {hop = {1}}})",
               HV_EPLUGIN, "expected 2 numbers, one per pair of neighbours, found 1");
    expect_run("hv.sim.schedule('chimera', {ranks = 2, micro_batches = 2, times = {hop = {1}}})",
               HV_EPLUGIN, "a list needs a schedule of one way");
    expect_run("hv.sim.schedule('gpipe', {ranks = 2, micro_batches = 2, times = {f = {1, 2, 3}}})",
               HV_EPLUGIN, "lists of 2 numbers");
    expect_run("hv.cost.stages{devices = 'a[0].0', ranges = {0, 3}}", HV_EPLUGIN, "from 1 to 32");
    expect_run("hv.cost.stages{devices = 'a[0].0', ranges = {1}}", HV_EPLUGIN, "first, last");
    expect_run("hv.cost.op{op = 'attention', device = 'nothing'}", HV_EPLUGIN, "nothing");
    expect_run("ctx.cluster:pick{need = 4, used = {99}}", HV_EPLUGIN, "99");
    expect_run(
        "local p = function(how, used) return table.concat(ctx.cluster:pick{need = 3, policy = "
        "how, used = used}, ' ') end return nil, p('fresh', {1}) .. '/' .. p('append', {1}) .. "
        "'/' .. p('scatter') .. '/' .. select(2, ctx.cluster:pick{need = 64, used = {1}})",
        HV_ENO, "9 10 11/2 3 4/1 9 17/63 devices are free, 64 are needed");
}

static void test_lost_devices(void **state)
{
    const char *const lost[] = {"a[1].3", "a[4].*"};
    json_t *running = json_pack("{s:s}", "name", "was running");
    struct hv_run_request r = {.strategy = "mine", .lost = lost, .n_lost = 2};
    struct hv_run_result out;
    struct hv_err err;
    (void)state;

    /* plan() sees neither the devices nor nodes that lost some, and may not use them */
    assert_int_equal(run_two("plan = function(ctx) local n, t = #ctx.cluster:devices(), {} "
                             "for i, g in ipairs(ctx.cluster:groups()) do "
                             "t[i] = g.count .. '@' .. g.from .. ':' .. g.first end "
                             "return nil, n .. ' ' .. table.concat(t, ' ') end",
                             "order = function() end", &r, &out, &err),
                     HV_ENO);
    assert_non_null(strstr(err.text, "55 1@1:1 2@3:17 3@6:41"));
    hv_run_result_free(&out);
    assert_int_equal(run_two(TWO_STAGES, "order = function() end", &r, &out, &err), HV_ENO);
    assert_non_null(strstr(err.text, "stages[1] uses a device that is lost"));
    hv_run_result_free(&out);
    /* replan() is told what ran and what is lost */
    r.replan = running;
    assert_int_equal(
        run_two("plan = function() error('not this one') end, replan = function(ctx, p, l) "
                "return nil, p.name .. ' ' .. table.concat(l, ' ') end",
                "order = function() end", &r, &out, &err),
        HV_ENO);
    assert_non_null(strstr(err.text, "was running 12 33 34 35 36 37 38 39 40"));
    hv_run_result_free(&out);
    json_decref(running);
}

/** Every shipped planner has a plan without violations on a shipped sample. */
static void test_shipped_plugins(void **state)
{
    static const char *const ids[] = {"uniform", "whale", "hetpipe", "oobleck"};
    struct hv_plugins list;
    struct hv_inputs in = {0};
    struct hv_err err = {0};
    (void)state;
    assert_int_equal(hv_plugins_read(&list, &err), HV_OK);
    assert_int_equal(hv_inputs_read(&in, "two-generations", "llama-3-8b", NULL, &err), HV_OK);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const struct hv_run_request r = {
            .inputs = &in, .plugins = &list, .strategy = ids[i], .seed = 1};
        struct hv_run_result out;
        assert_int_equal(hv_run_strategy(&r, &out, &err), HV_OK);
        assert_null(json_object_get(out.plan, "violations"));
        assert_non_null(json_object_get(out.plan, "claimed"));
        const json_t *s = json_object_get(out.plan, "simulated");
        assert_true(json_number_value(json_object_get(s, "bound_s")) <=
                    json_number_value(json_object_get(s, "iteration_s")) * (1 + 1e-9));
        hv_run_result_free(&out);
    }
    /* 8 sequences at once on every device do not fit: refused, or judged when asked for */
    json_t *options = json_pack("{s:i, s:i}", "tp", 1, "micro_batch", 8);
    struct hv_run_request manual = {
        .inputs = &in, .plugins = &list, .strategy = "manual", .options = options};
    struct hv_run_result judged;
    assert_int_equal(hv_run_strategy(&manual, &judged, &err), HV_ENO);
    assert_non_null(strstr(err.text, "GiB"));
    hv_run_result_free(&judged);
    json_object_set_new(options, "allow_oom", json_true());
    assert_int_equal(hv_run_strategy(&manual, &judged, &err), HV_OK);
    assert_int_equal(json_array_size(json_object_get(judged.plan, "violations")), 1);
    hv_run_result_free(&judged);
    json_decref(options);
    const struct hv_run_request wrong = {
        .inputs = &in, .plugins = &list, .strategy = "uniform+whale"};
    struct hv_run_result out;
    assert_int_equal(hv_run_strategy(&wrong, &out, &err), HV_EUSAGE);
    hv_run_result_free(&out);
    hv_inputs_free(&in);
    hv_plugins_free(&list);
}

/** Mistakes of a first hour: the message names the line, what was expected and what was probably
 * meant. */
static void test_mistakes(void **state)
{
    static const struct {
        const char *body, *part;
    } rows[] = {
        {"return hv.cost.layer{}", "did you mean 'layers' (hv.cost.layers"},
        {"local d = ctx.cluster:devices() return d[1].kindd.x", "did you mean 'kind'"},
        {"return ctx.cluster:device()", "did you mean 'devices' (cluster:devices)"},
        {"return ctx.cluster.groups()", "called with a colon"},
        {"return oracle.cuts(3, 2)", "local oracle = require \"testing.oracle\""},
        {"return io.open('x')", "no files"},
        {"return cluster:devices()", "'ctx.cluster'"},
        {"return {micro_batch = 1, replica = {}}", "did you mean \"replicas\""},
        {"return {micro_batch = 'one', replicas = {}}", "expected a whole number"},
        {"return {micro_batch = 1, replicas = {{micro_batches = 1, stages = {{devices = {1, 2}, "
         "layers = {0, 32}}}}}}",
         "ctx.cluster:address(ids)"},
        {"return hv.cost.layers{}:time(0, 4, 'A100-SXM-80GB')", "from 1 to 32"},
        {"return hv.cost.layers{}:time(1, 4, 'A100')", "A100-SXM-80GB, found 'A100'"},
        {"return hv.opt.partition{n = 4, parts = 2, loads = {}}", "did you mean 'load'"},
        {"return hv.cost.collective{op = 'all_reduce', bytes = 1e18, devices = {1, 2}}",
         "expected a number from 0"},
        {"return hv.cost.stage{devices = 'a[99].*', layers = {0, 32}}", "no node 99"},
        {"return hv.cost.stage{devices = 'a[0].*', layers = {0, 32}, microbatch = 2}",
         "did you mean \"micro_batch\""},
        {"return hv.strategy('unifrom')", "unifrom"},
        {"return hv.strategy('mine').iteration_s", "deep"},
        {"return hv.plan.new{micro_batch = 1, replicas = {{micro_batches = 1, stages = {{devices = "
         "'a[0].*', layers = {0, 32}, tp = 8}}}}}.iteration_s",
         "plan:eval().iteration_s"},
        {"return require 'layout'", "module 'layout' has a new name: its functions are in numbers"},
        {"return require 'wires'", "module 'wires' has a new name: links"},
        {"return require 'serch'", "neither in the plugin's folder nor in share/lua"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hv_run_result result;
        struct hv_err err;
        enum hv_status s = run_text(rows[i].body, &result, &err);
        if (s != HV_EPLUGIN || strstr(err.text, rows[i].part) == NULL || err.line == 0 ||
            strstr(err.file, "good.lua") == NULL) {
            fail_msg("%s: %s:%u: %s", rows[i].body, err.file, err.line, err.text);
        }
        assert_null(strstr(hv_str_cstr(&result.traceback), "[C]: in ?"));
        hv_run_result_free(&result);
    }
    expect_run("", HV_ENO, "return a plan, or nil and why");
    expect_run("return {micro_batch = 1, replicas = {{micro_batches = 256, stages = {{devices = "
               "'a[0].*', layers = {0, 20}, tp = 8}, {devices = 'a[1].*', layers = {10, 32}, tp = "
               "8}}}}}",
               HV_ENO, "2 stages hold blocks [10, 20)");
}

/** The plan behind a stage query is kept: prices must not depend on what was asked before. */
static void test_prices_do_not_remember(void **state)
{
    (void)state;
    expect_run(
        "local asked, first = {}, {}\n"
        "for _, tp in ipairs{1, 8} do for mb = 1, 3 do for _, zero in ipairs{0, 1} do\n"
        "for _, r in ipairs{{0, 4}, {0, 32}, {5, 9.5}, {31, 32}} do for _, count in ipairs{1, 2} "
        "do\n"
        "asked[#asked + 1] = {devices = count == 1 and 'a[0].0-7' or 'a[0-1].*', tp = tp, dp = 8 "
        "// "
        "tp, micro_batch = 8 * mb, zero = zero > 0 and zero or nil, layers = r, count = count, "
        "in_flight = mb}\n"
        "end end end end end\n"
        "local function figures(q) local s = hv.cost.stage(q) return table.concat({s.forward_s, "
        "s.backward_s, s.hop_bytes, s.memory.peak_bytes, s.memory.weights, s.exposed.tp or 0}, ' "
        "') "
        "end\n"
        "for i, q in ipairs(asked) do first[i] = figures(q) end\n"
        "for i = #asked, 1, -1 do assert(figures(asked[i]) == first[i], i) end\n"
        /* a key with a table in it, and one that is too long to be kept, are built each time */
        "for i, q in ipairs(asked) do local c = {} for k, v in pairs(q) do c[k] = v end\n"
        "c.devices = {q.devices} assert(figures(c) == first[i], i)\n"
        "c['x-note'] = ('n'):rep(2000) assert(figures(c) == first[i], i) end\n"
        "return nil, 'all equal'",
        HV_ENO, "all equal");
}

/** Graphs of every kind of model; a heuristic beside all states; a matrix of sends. */
static void test_graphs_and_oracles(void **state)
{
    (void)state;
    expect_run("local g = ctx.model:graph()\n"
               "local f = ctx.model:graph{stage = {2, 3}, fine = true}\n"
               "local sum, fine = 0, 0 for _, o in ipairs(g.ops) do sum = sum + o.parameters end\n"
               "for _, o in ipairs(f.ops) do fine = fine + o.flops end\n"
               "assert(sum == ctx.model.parameters, 'parameters')\n"
               "assert(fine == g.ops[3].flops + g.ops[4].flops, 'flops')\n"
               "return nil, #g.ops .. ' ' .. #g.edges .. ' ' .. #f.ops .. ' ' .. f.ops[1].id",
               HV_ENO, "34 33 4 layer2.attention");
    expect_run("ctx.model:graph{stage = {0, 3}}", HV_EPLUGIN, "from 1 to 32");
    expect_run("ctx.model:graph{coarse = true}", HV_EPLUGIN, "coarse");
    expect_run(
        "local function plan(mb) return {micro_batch = mb, replicas = {{micro_batches = 256 // "
        "mb, stages = {{devices = 'a[0].*', layers = {0, 32}, tp = 8, recompute = 'full'}}}}} "
        "end\n"
        "local r = hv.plan.oracle{cases = {1}, solve = function() return plan(1) end, states = "
        "function() return {plan(1), plan(2), plan(4)} end}\n"
        "return nil, (r.worst > 0 and r.optimal == 0 and #r.wrong == 0) and 'worse' or 'best'",
        HV_ENO, "worse");
    expect_run(
        "local m = {{0, 1e9, 1e9, 1e9}, {1e9, 0, 1e9, 1e9}, {1e9, 1e9, 0, 1e9}, {1e9, 1e9, 1e9, "
        "0}}\n"
        "local function t(q) q.op, q.devices = 'all_to_all', {1, 2, 3, 4} return "
        "hv.cost.collective(q).time_s end\n"
        "local even = t{bytes = 4e9}\n"
        "assert(math.abs(t{matrix = m} / even - 1) < 1e-12, 'even')\nm[2][3] = 5e9\n"
        "assert(t{matrix = m} > t{bytes = 4e9}, 'busier')\nreturn nil, 'as it should'",
        HV_ENO, "as it should");
    expect_run("hv.cost.collective{op = 'all_reduce', devices = {1, 2}, matrix = {{0, 1}, {1, 0}}}",
               HV_EPLUGIN, "only for all_to_all");
    expect_run("hv.cost.collective{op = 'all_to_all', devices = {1, 2}, matrix = {{0, 1}, {1}}}",
               HV_EPLUGIN, "row 2");
    expect_run("return nil, #ctx.jobs .. ctx.jobs[1].model.name", HV_ENO, "1llama-3-8b");
}

/* a search may ask for a share of its time; a plan that breaks a rule is no answer when it is over
 */
static void test_runs_out_of_time(void **state)
{
    static const char wait[] = "while not hv.stopping(0.02) do end ";
    struct hv_run_result out;
    struct hv_err err;
    struct hv_str text = {0};

    (void)state;
    hv_str_addf(&text, "assert(not hv.stopping()) %s assert(not hv.stopping()) %s", wait,
                ONE_NODE(1, 256));
    assert_int_equal(run_text(hv_str_cstr(&text), &out, &err), HV_ESTOPPED);
    assert_non_null(out.plan);
    hv_run_result_free(&out);
    hv_str_clear(&text);
    hv_str_addf(&text,
                "hv.incumbent {micro_batch = 1, replicas = {{micro_batches = 256, stages = "
                "{{devices = ctx.cluster:address{1}, layers = {0, 32}}}}}} %s return nil, 'no'",
                wait);
    assert_int_equal(run_text(hv_str_cstr(&text), &out, &err), HV_ESTOPPED);
    assert_null(out.plan);
    assert_non_null(strstr(err.text, "the best plan so far does not fit: stage 0 needs"));
    hv_run_result_free(&out);
    hv_str_free(&text);
    expect_run("hv.stopping(2)", HV_EPLUGIN, "expected a share from 0 to 1");
}

/** One table named many times is much larger as a copy than in Lua: refused before memory is taken.
 */
static void test_repeated_tables(void **state)
{
    (void)state;
    expect_run("local c, rows = {}, {}\n"
               "for i = 1, 20000 do c[i] = 1 end\n"
               "for i = 1, 20000 do rows[i] = c end\n"
               "return hv.opt.graph_dp{nodes = {c, c}, edges = {{1, 2, rows}}}",
               HV_EPLUGIN, "the arguments need more than 1024 MiB");
    expect_run("local load = {}\n"
               "for i = 1, 100000 do load[i] = {1} end\n"
               "return hv.opt.partition{n = 1, parts = 'any', load = load}",
               HV_EPLUGIN, "load: expected at most 4096 lists");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_a_share_of_nothing_cuts_nothing_short),
        cmocka_unit_test(test_plans_are_judged),
        cmocka_unit_test(test_compositions),
        cmocka_unit_test(test_lost_devices),
        cmocka_unit_test(test_bulk_prices),
        cmocka_unit_test(test_argument_soup),
        cmocka_unit_test(test_shipped_plugins),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_prices_do_not_remember),
        cmocka_unit_test(test_graphs_and_oracles),
        cmocka_unit_test(test_runs_out_of_time),
        cmocka_unit_test(test_repeated_tables),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
