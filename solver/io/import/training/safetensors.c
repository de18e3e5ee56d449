/*
 * model.safetensors.index.json (and pytorch_model.bin.index.json): names of the tensors and their
 * total size. The number of layers follows from the names, the shapes do not: without a config.json
 * the shape is guessed so that the total size of the weights matches. Source: safetensors README;
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

/* Figures derived from the names. */
struct names {
    int layers, experts;
    bool gated, head, towers;
    size_t n;
};

/* The number between dots behind one of the usual words for a layer or an expert. */
static int number_behind(const char *name, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = strstr(name, words[i]);
        if (at) {
            at += strlen(words[i]);
            size_t digits = strspn(at, "0123456789");
            if (digits > 0 && digits < 6 && at[digits] == '.') {
                return (int)strtol(at, NULL, 10);
            }
        }
    }
    return -1;
}

static void look_at(struct names *x, const char *name)
{
    static const char *const layers[] = {"layers.", ".h.", "blocks.", "layer.", "block."};
    static const char *const experts[] = {"experts."};
    static const char *const gates[] = {"gate_proj", "gate_up_proj", ".w1.", ".w3.", "gate_and_up"};
    bool tower = strstr(name, "vision") || strstr(name, "visual") || strstr(name, "encoder");
    int layer = number_behind(name, layers, HV_COUNT(layers));
    int expert = number_behind(name, experts, HV_COUNT(experts));
    x->n++;
    x->towers = x->towers || tower;
    if (tower) {
        return;
    }
    x->layers = layer >= x->layers && layer < MAX_LAYER ? layer + 1 : x->layers;
    x->experts = expert >= x->experts && expert < MAX_LAYER ? expert + 1 : x->experts;
    x->head = x->head || strstr(name, "lm_head") || strncmp(name, "output.", 7) == 0;
    for (size_t i = 0; i < HV_COUNT(gates); i++) {
        x->gated = x->gated || strstr(name, gates[i]);
    }
}

/* A number, or a text that is one as a whole. */
static double total_of(json_t *v)
{
    return json_is_number(v)   ? json_number_value(v)
           : json_is_string(v) ? hv__plain_number(hv__piece_of(json_string_value(v)))
                               : HV_UNKNOWN;
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

enum hv_status hv__read_safetensors_index(struct hv__in *in, struct hv_err *err)
{
    json_t *map = hv__get_whole(in, in->tree, "weight_map");
    json_t *meta = hv__get(in, in->tree, "metadata");
    json_t *total = hv__get(in, meta, "total_size");
    struct names x = {0};
    for (void *it = json_object_iter(map); it; it = json_object_iter_next(map, it)) {
        look_at(&x, json_object_iter_key(it));
    }
    double bytes = total_of(total), count = total_of(hv__get(in, meta, "total_parameters"));
    if (x.layers == 0 || x.n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "no tensor is of a numbered layer: so there is no model to build; import "
                         "the config.json of the model instead");
    }
    hv__understood(in, 0, "%zu tensors of %d layers%s%s", x.n, x.layers,
                   x.gated ? ", gated feed-forward" : "", x.head ? ", a separate head" : "");
    if (!hv_known(bytes) || bytes < 1) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "metadata.total_size is missing: the size of the model is not known; "
                         "import its config.json instead");
    }
    hv__understood(in, hv__line_of(in, total), "%.5g GB of weights", bytes / 1e9);
    hv__ignored(in, 0, "which file holds which tensor");
    if (x.towers) {
        hv__guessed(in, 0, "tensors of another tower are in the size, not in the layers");
    }
    in->im->weights_bytes = bytes;
    if (!in->im->model && !in->im->guessed_model) {
        if (!hv_known(count)) {
            hv__guessed(in, 0, "two bytes per parameter");
        }
        in->im->guessed_model = guess_model(in, &x, hv_or(count, bytes / 2));
    }
    return HV_OK;
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
