/*
 * model.safetensors.index.json (and pytorch_model.bin.index.json): names of the tensors and their
 * total size. The number of layers follows from the numbers in the names, whatever the words before
 * them are; the shapes do not: without a config.json the shape is guessed so that the total size of
 * the weights matches. Source: safetensors README;
 * transformers, sharded checkpoints.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/decode.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

#define MAX_LAYER 10000

bool hv__is_safetensors_index(const struct hv__in *in)
{
    return json_is_object(json_object_get(in->tree, "weight_map"));
}

/* Tensors whose names begin alike up to a number: the layers of one stack. */
struct stack {
    const char *prefix;
    size_t n_prefix, tensors;
    int layers;
    bool tower; /* images, sound, drafts: beside the model */
};

/* Figures derived from the names. */
struct names {
    HV_VEC(struct stack) stacks;
    int layers, experts;
    bool gated, head, towers;
    double bytes_each; /* of a parameter */
    size_t n;
};

/* True where a text contains one of the words. */
static bool has_word(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strstr(name, words[i])) {
            return true;
        }
    }
    return false;
}

/* The number between dots from `at` on; *end: behind it. -1: none. */
static int number_between_dots(const char *at, const char **end)
{
    while (*at != '\0') {
        size_t digits = strspn(at, "0123456789");
        if (digits > 0 && digits < 6 && at[digits] == '.') {
            *end = at + digits;
            return (int)strtol(at, NULL, 10);
        }
        at += strcspn(at, ".");
        at += *at == '.';
    }
    return -1;
}

static struct stack *stack_of(struct names *x, const char *prefix, size_t n)
{
    enum { MOST = 256 };
    static const char *const towers[] = {"vision", "visual", "audio", "image", "speech",
                                         "mtp",    "draft",  "patch", "codec", "eagle"};
    for (size_t i = x->stacks.n; i > 0; i--) {
        struct stack *s = &x->stacks.items[i - 1];
        if (s->n_prefix == n && memcmp(s->prefix, prefix, n) == 0) {
            return s;
        }
    }
    if (x->stacks.n >= MOST) {
        return NULL;
    }
    struct stack s = {.prefix = prefix, .n_prefix = n};
    char text[160];
    size_t len = n < sizeof text - 1 ? n : sizeof text - 1;
    memcpy(text, prefix, len);
    text[len] = '\0';
    s.tower = has_word(text, towers, HV_COUNT(towers));
    hv_vec_push(&x->stacks, s);
    return &x->stacks.items[x->stacks.n - 1];
}

/* Bytes of a parameter by the tensors that a quantised checkpoint has beside its weights. Sources:
 * GPTQ, AWQ, bitsandbytes, compressed-tensors, MXFP4 and fp8 checkpoints. */
static double bytes_of(const char *name)
{
    static const struct {
        const char *word;
        double bytes;
    } rows[] = {{".qweight", 0.55},   {".qzeros", 0.55},   {"weight_packed", 0.55},
                {".absmax", 0.55},    {"quant_map", 0.55}, {"_blocks", 0.55},
                {".weight.SCB", 1},   {".SCB", 1},         {"weight_scale_inv", 1},
                {".weight_scale", 1}, {".input_scale", 1}, {".scales", 0.6}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        size_t n = strlen(rows[i].word), len = strlen(name);
        if (len > n && strcmp(name + len - n, rows[i].word) == 0) {
            return rows[i].bytes;
        }
    }
    return 2;
}

static void look_at(struct names *x, const char *name)
{
    static const char *const gates[] = {"gate_proj",   "gate_up_proj", ".w1.",           ".w3.",
                                        "gate_and_up", "wi_1",         "linear_fc1_gate"};
    const char *end, *experts = strstr(name, "experts.");
    int layer = number_between_dots(name, &end);
    int expert = experts ? number_between_dots(experts, &end) : -1;
    x->n++;
    x->bytes_each = fmin(x->bytes_each, bytes_of(name));
    struct stack *s = NULL;
    if (layer >= 0) {
        (void)number_between_dots(name, &end);
        size_t n = (size_t)(end - name);
        while (n > 0 && isdigit((unsigned char)name[n - 1])) {
            n--;
        }
        s = stack_of(x, name, n);
    }
    if (s) {
        s->tensors++;
        s->layers = layer >= s->layers && layer < MAX_LAYER ? layer + 1 : s->layers;
    }
    if (s && s->tower) {
        return;
    }
    x->experts = expert >= x->experts && expert < MAX_LAYER ? expert + 1 : x->experts;
    x->head = x->head || strstr(name, "lm_head") || strncmp(name, "output.", 7) == 0 ||
              strstr(name, "embed_out") || strstr(name, "output_layer");
    x->gated = x->gated || has_word(name, gates, HV_COUNT(gates));
}

/* Layers of the model: those of its largest stack, and of others that are not much smaller, as an
 * encoder beside a decoder. Towers count where there is nothing else. */
static void count_layers(struct names *x)
{
    size_t most = 0;
    bool only_towers = true;
    for (size_t i = 0; i < x->stacks.n; i++) {
        only_towers = only_towers && x->stacks.items[i].tower;
    }
    for (size_t i = 0; i < x->stacks.n; i++) {
        const struct stack *s = &x->stacks.items[i];
        bool counts = !s->tower || only_towers;
        most = counts && s->tensors > most ? s->tensors : most;
        x->towers = x->towers || s->tower;
    }
    for (size_t i = 0; i < x->stacks.n; i++) {
        const struct stack *s = &x->stacks.items[i];
        if ((!s->tower || only_towers) && 4 * s->tensors >= most) {
            x->layers += s->layers;
        }
    }
    x->layers = x->layers < MAX_LAYER ? x->layers : MAX_LAYER;
}

/* A number, or a text that is one as a whole. */
static double total_of(json_t *v)
{
    return json_is_number(v)   ? json_number_value(v)
           : json_is_string(v) ? hv__plain_number(hv__piece_of(json_string_value(v)))
                               : HV_UNKNOWN;
}

/* Number of files that hold the tensors: "model-00002-of-00081.safetensors" tells it. */
static double count_files(json_t *map)
{
    json_t *seen = json_object();
    double of = 0;
    for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
        const char *file = json_string_value(json_object_iter_value(it));
        const char *at = file ? strstr(file, "-of-") : NULL;
        struct hv__piece rest = hv__piece_of(at ? at + 4 : "");
        double n;
        of = hv__number(rest, &n, NULL) && n < 1e5 ? fmax(of, n) : of;
        if (file) {
            json_object_set_new(seen, file, json_true());
        }
    }
    of = fmax(of, (double)json_object_size(seen));
    json_decref(seen);
    return of;
}

/* Bytes where the index has no total: files of at most 5 GB, the default of transformers. */
static double guess_bytes(struct hv__in *in, json_t *map)
{
    double files = fmax(count_files(map), 1), bytes = (files - 0.5) * 5e9;
    hv__guessed(in, 0,
                "metadata.total_size is missing: %.0f files of up to 5 GB, the usual limit, are "
                "about %.4g GB; import the config.json with it for the true size",
                files, bytes / 1e9);
    return bytes;
}

/* The width at which a plain transformer of these layers has this number of parameters: attention 4
 * h², a gated feed-forward of 8/3 h or a plain one of 4 h is 8 h² more, and two tables of the
 * vocabulary. */
static json_t *guess_model(struct hv__in *in, const struct names *x, double parameters)
{
    int vocab = 32000, hidden = 128;
    double tables = x->head ? 2 : 1;
    while (hidden < 65536 &&
           (double)x->layers * 12 * hidden * hidden + tables * vocab * hidden < parameters) {
        hidden += 128;
    }
    double left = (parameters - tables * vocab * hidden) / x->layers - 4.0 * hidden * hidden;
    double ffn = fmax(round(left / ((x->gated ? 3 : 2) * (double)hidden)), 1);
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s}", "format", "hetviz.model/1", "name", "weights", "kind",
        "transformer", "x-source",
        "guessed from an index of weights: layers and size are right, shapes are not known");
    json_object_set_new(o, "layers", json_integer(x->layers));
    json_object_set_new(o, "hidden", json_integer(hidden));
    json_object_set_new(o, "heads", json_integer(hidden / 128));
    json_object_set_new(o, "ffn", json_integer((json_int_t)fmin(ffn, 1e8)));
    json_object_set_new(o, "ffn_kind", json_string(x->gated ? "swiglu" : "gelu"));
    json_object_set_new(o, "vocab", json_integer(vocab));
    json_object_set_new(o, "tied_embeddings", json_boolean(!x->head));
    hv__guessed(in, 0,
                "names do not give shapes: hidden %d, feed-forward %.0f and a vocabulary of %d "
                "give %.4g parameters; import the config.json with it for the true ones",
                hidden, ffn, vocab, parameters);
    if (x->experts > 1) {
        hv__guessed(in, 0, "%d experts are counted as one wide feed-forward", x->experts);
    }
    return o;
}

/* The number of parameters by the index, and what is guessed of it. */
static double count_parameters(struct hv__in *in, const struct names *x, double bytes, double count)
{
    if (hv_known(count) && count >= 1 && x->bytes_each >= 1) { /* packed ones are not counted */
        return count;
    }
    if (x->bytes_each < 2) {
        hv__guessed(in, 0, "the weights are quantised: %.3g bytes per parameter", x->bytes_each);
    } else {
        hv__guessed(in, 0, "two bytes per parameter");
    }
    return bytes / x->bytes_each;
}

static enum hv_status read_index(struct hv__in *in, struct names *x, struct hv_err *err)
{
    json_t *map = hv__get_whole(in, in->tree, "weight_map");
    json_t *meta = hv__get(in, in->tree, "metadata");
    json_t *total = hv__get(in, meta, "total_size");
    for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
        look_at(x, json_object_iter_key(it));
    }
    count_layers(x);
    double bytes = total_of(total), count = total_of(hv__get(in, meta, "total_parameters"));
    if (x->layers == 0 || x->n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "no tensor is of a numbered layer: so there is no model to build; import "
                         "the config.json of the model instead");
    }
    hv__understood(in, 0, "%zu tensors of %d layers%s%s", x->n, x->layers,
                   x->gated ? ", gated feed-forward" : "", x->head ? ", a separate head" : "");
    if (bytes >= 1) {
        hv__understood(in, hv__line_of(in, total), "%.5g GB of weights", bytes / 1e9);
        in->im->weights_bytes = bytes;
        in->im->weight_bytes_each = x->bytes_each;
    } else {
        bytes = count >= 1 ? count * x->bytes_each : guess_bytes(in, map);
    }
    hv__ignored(in, 0, "which file holds which tensor");
    if (x->towers) {
        hv__guessed(in, 0, "tensors of another tower are in the size, not in the layers");
    }
    if (!in->im->model && !in->im->guessed_model) {
        in->im->guessed_model = guess_model(in, x, count_parameters(in, x, bytes, count));
    }
    return HV_OK;
}

enum hv_status hv__read_safetensors_index(struct hv__in *in, struct hv_err *err)
{
    struct names x = {.bytes_each = 2};
    enum hv_status st = read_index(in, &x, err);
    hv_vec_free(&x.stacks);
    return st;
}

/* ---- ONNX -------------------------------------------------------------------------------------
 */

/* A ModelProto begins with its IR version (field 1), and lists its opsets near the start. */
bool hv__is_onnx(const struct hv__in *in)
{
    return !in->tree && hv__is_binary(in->text, in->n);
}

enum hv_status hv__read_onnx(struct hv__in *in, struct hv_err *err)
{
    return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                     "ONNX models are not read: their operators are one forward pass for "
                     "inference, without the cost of training. Import the model's config.json, or "
                     "describe it as hetviz.model/1 of kind graph or layers");
}
