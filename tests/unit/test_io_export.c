/** Files made from verdicts: pictures are well-formed, the trace has every span, JSON says what the
 * verdict says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "solver/base/units.h"
#include "solver/io/export/gantt.h"
#include "solver/io/own/verdict_file.h"
#include "tests/eval_fixture.h"

static const struct hv_gantt_text text = {.title = "a <title> & more", .subtitle = "subtitle"};

static size_t count(const char *haystack, const char *needle)
{
    size_t n = 0;
    for (const char *at = haystack; (at = strstr(at, needle)) != NULL; at++) {
        n++;
    }
    return n;
}

static void svg_is_well_formed_and_clamped(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    hv_gantt_svg(v.timeline, &text, 10, &out);
    const char *svg = hv_str_cstr(&out);
    assert_non_null(strstr(svg, "width=\"320\""));
    assert_non_null(strstr(svg, "a &lt;title&gt; &amp; more"));
    assert_int_equal(count(svg, "<text"), count(svg, "</text>"));
    assert_int_equal(count(svg, "<title>"), count(svg, "</title>"));
    assert_int_equal(count(svg, "<svg"), 1);
    assert_string_equal(svg + out.n - 7, "</svg>\n");
    hv_str_clear(&out);
    hv_gantt_svg(v.timeline, &text, 4000, &out);
    /* every operation has its own rectangle with a tooltip: 4 ranks × 128, 4 optimizer steps */
    assert_true(count(hv_str_cstr(&out), "<title>") >= 4 * 129);
    hv_str_free(&out);
    hv_arena_free(&a);
}

/* A legend's box of a colour, of so many. */
static size_t boxes(const struct hv_str *svg, const char *fill)
{
    char needle[64];
    (void)snprintf(needle, sizeof needle, "width=\"12.00\" height=\"12.00\" fill=\"%s\"", fill);
    return count(hv_str_cstr(svg), needle);
}

/* Host work and memory have colours that nothing else in the legend has. */
static void host_work_and_memory_have_own_colours(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    hv_gantt_svg(v.timeline, &text, 1000, &out);
    const char *svg = hv_str_cstr(&out);
    assert_non_null(strstr(svg, "host work"));
    assert_non_null(strstr(svg, "memory of the worst device"));
    assert_int_equal(boxes(&out, "#7b5b45"), 1);
    assert_int_equal(boxes(&out, "#b7a3d0"), 1);
    hv_str_free(&out);
    hv_arena_free(&a);
}

/* A quarter of the step has about a quarter of the operations, none outside the picture. */
static void a_window_shows_what_lies_in_it(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str all = {0}, part = {0};
    struct hv_gantt_text window = text;
    window.from_s = v.timeline->end_s * 0.25;
    window.to_s = v.timeline->end_s * 0.5;
    hv_gantt_svg(v.timeline, &text, 4000, &all);
    hv_gantt_svg(v.timeline, &window, 4000, &part);
    double share =
        (double)count(hv_str_cstr(&part), "<title>") / (double)count(hv_str_cstr(&all), "<title>");
    assert_true(share > 0.2 && share < 0.35);
    for (const char *at = hv_str_cstr(&part); (at = strstr(at, "<rect x=\"")) != NULL; at++) {
        double x = strtod(at + 9, NULL), w = strtod(strstr(at, "width=\"") + 7, NULL);
        assert_true(x >= 0 && x + w <= 4000.01);
    }
    hv_str_free(&all);
    hv_str_free(&part);
    hv_arena_free(&a);
}

static void png_is_a_png(void **state)
{
    struct hv_arena a = {0};
    struct hv_err err = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    assert_int_equal(hv_gantt_png(v.timeline, &text, 800, &out, &err), HV_OK);
    assert_true(out.n > 1000);
    assert_memory_equal(out.p, "\x89PNG\r\n\x1a\n", 8);
    hv_str_free(&out);
    hv_arena_free(&a);
}

static void trace_has_every_span(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    hv_gantt_trace(v.timeline, &text, &out);
    json_error_t e;
    json_t *root = json_loads(hv_str_cstr(&out), 0, &e);
    if (root == NULL) {
        fail_msg("line %d: %s", e.line, e.text);
    }
    size_t spans = 0, complete = 0;
    for (size_t i = 0; i < v.timeline->lanes.n; i++) {
        spans += v.timeline->lanes.items[i].n_spans;
    }
    double end_us = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(root, "traceEvents"), i, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0) {
            complete++;
            end_us = fmax(end_us, json_number_value(json_object_get(event, "ts")) +
                                      json_number_value(json_object_get(event, "dur")));
        }
    }
    assert_int_equal(complete, spans);
    assert_true(fabs(end_us / 1e6 - v.timeline->end_s) < 1e-9 * v.timeline->end_s);
    json_decref(root);
    hv_str_free(&out);
    hv_arena_free(&a);
}

/* Nanoseconds of an event's time, which have to be whole. */
static long long whole_ns(json_t *event, const char *key)
{
    double ns = json_number_value(json_object_get(event, key)) * 1000;
    assert_true(fabs(ns - round(ns)) < 1e-3);
    return llround(ns);
}

static bool is_phase(json_t *event, const char *ph)
{
    return strcmp(json_string_value(json_object_get(event, "ph")), ph) == 0;
}

static long long thread_of(json_t *event)
{
    return json_integer_value(json_object_get(event, "pid")) * 100000 +
           json_integer_value(json_object_get(event, "tid"));
}

/* The span of the event's thread in which a time lies; NULL: none. */
static json_t *enclosing(json_t *events, json_t *point)
{
    long long at = whole_ns(point, "ts");
    size_t i;
    json_t *e;
    json_array_foreach(events, i, e)
    {
        long long start = is_phase(e, "X") ? whole_ns(e, "ts") : 0;
        if (is_phase(e, "X") && thread_of(e) == thread_of(point) && start <= at &&
            at < start + whole_ns(e, "dur")) {
            return e;
        }
    }
    return NULL;
}

/* On every thread spans follow each other in whole nanoseconds: a reader that nests them by these
 * numbers loses none. Rounded durations instead of rounded ends overlapped by a nanosecond. */
static void trace_spans_do_not_overlap(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    hv_gantt_trace(v.timeline, &text, &out);
    json_t *root = json_loads(hv_str_cstr(&out), 0, NULL);
    json_t *events = json_object_get(root, "traceEvents"), *e;
    json_t *ends = json_object();
    size_t i;
    json_array_foreach(events, i, e)
    {
        char thread[32];
        if (!is_phase(e, "X")) {
            continue;
        }
        (void)snprintf(thread, sizeof thread, "%lld", thread_of(e));
        long long start = whole_ns(e, "ts"), dur = whole_ns(e, "dur");
        assert_true(start >= json_integer_value(json_object_get(ends, thread)));
        assert_true(dur >= 0);
        json_object_set_new(ends, thread, json_integer(start + dur));
    }
    assert_true(json_object_size(ends) >= 4);
    json_decref(ends);
    json_decref(root);
    hv_str_free(&out);
    hv_arena_free(&a);
}

/* The number of a micro-batch in the name of a span, "f12". */
static long micro_batch_of(json_t *span)
{
    return strtol(json_string_value(json_object_get(span, "name")) + 1, NULL, 10);
}

/* Each transfer has one arrow: out of a span of its micro-batch, through the link, into a span of
 * it that begins no sooner than the transfer ends. */
static void trace_arrows_join_the_ends_of_transfers(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, true, four_stages);
    struct hv_str out = {0};
    hv_gantt_trace(v.timeline, &text, &out);
    json_t *root = json_loads(hv_str_cstr(&out), 0, NULL);
    json_t *events = json_object_get(root, "traceEvents"), *e, *sender = NULL, *hop = NULL;
    size_t i, hops = 0, arrows = 0;
    for (size_t k = 0; k < v.timeline->n_links; k++) {
        hops += v.timeline->lanes.items[v.timeline->links[k].lane].n_spans;
    }
    json_array_foreach(events, i, e)
    {
        if (is_phase(e, "s")) {
            sender = enclosing(events, e);
            assert_non_null(sender);
        } else if (is_phase(e, "t")) {
            hop = enclosing(events, e);
            assert_non_null(hop);
            assert_int_equal(micro_batch_of(hop), micro_batch_of(sender));
            assert_true(whole_ns(sender, "ts") + whole_ns(sender, "dur") <= whole_ns(hop, "ts"));
        } else if (is_phase(e, "f")) {
            json_t *waiter = enclosing(events, e);
            assert_non_null(waiter);
            assert_int_equal(micro_batch_of(waiter), micro_batch_of(sender));
            assert_string_equal(json_string_value(json_object_get(waiter, "cat")),
                                json_string_value(json_object_get(sender, "cat")));
            assert_true(whole_ns(waiter, "ts") >= whole_ns(hop, "ts") + whole_ns(hop, "dur"));
            assert_string_equal(json_string_value(json_object_get(e, "bp")), "e");
            arrows++;
        }
    }
    assert_true(hops > 0);
    assert_int_equal(arrows, hops);
    json_decref(root);
    hv_str_free(&out);
    hv_arena_free(&a);
}

static void json_says_what_the_verdict_says(void **state)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(*state, &a, false, four_stages);
    json_t *s = hv_verdict_simulated(&v);
    assert_true(json_number_value(json_object_get(s, "iteration_s")) == v.metrics.iteration_s);
    assert_int_equal(json_array_size(json_object_get(s, "peak_memory_GiB")), 4);
    double sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(s, "breakdown_s"), key, value)
    {
        sum += json_number_value(value);
    }
    assert_true(fabs(sum - v.metrics.iteration_s) < 1e-9 * v.metrics.iteration_s);
    assert_null(json_object_get(s, "staleness"));
    json_decref(s);
    v.metrics.iteration_s = HV_UNKNOWN;
    s = hv_verdict_simulated(&v);
    assert_true(json_is_null(json_object_get(s, "iteration_s")));
    json_decref(s);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(svg_is_well_formed_and_clamped),
        cmocka_unit_test(host_work_and_memory_have_own_colours),
        cmocka_unit_test(a_window_shows_what_lies_in_it),
        cmocka_unit_test(png_is_a_png),
        cmocka_unit_test(trace_has_every_span),
        cmocka_unit_test(trace_spans_do_not_overlap),
        cmocka_unit_test(trace_arrows_join_the_ends_of_transfers),
        cmocka_unit_test(json_says_what_the_verdict_says),
    };
    return cmocka_run_group_tests_name("io/export", tests, setup, teardown);
}
