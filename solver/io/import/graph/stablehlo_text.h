/** Statements of StableHLO in its text form. For stablehlo.c. */
#ifndef HV_SOLVER_IO_IMPORT_GRAPH_STABLEHLO_TEXT_H
#define HV_SOLVER_IO_IMPORT_GRAPH_STABLEHLO_TEXT_H

#include "solver/io/import/graph/program.h"

#define HV__HLO_VALUES 64 /**< operands or results of a statement */

/** Part of the text. */
struct hv__span {
    const char *at, *end;
};
/** A statement: `%a:2 = stablehlo.op(%b, …) … : types -> types`, with the regions in it. */
struct hv__statement {
    struct hv__span result; /**< name without number: "%a"; empty where there is none */
    struct hv__span op;     /**< "stablehlo.add", "call" */
    struct hv__span body;   /**< between the name of the operation and the types */
    struct hv__span types;  /**< types of results, behind "->" where there is one */
};
/** The next statement from *at on (to the end of its line, brackets closed), or false. */
bool hv__next_statement(struct hv__span *rest, struct hv__statement *out);
/** True where the span is this text. */
bool hv__span_is(struct hv__span s, const char *text);
/** Names "%x" or "%x#1" in a span, outside of regions; returns how many (at most HV__HLO_VALUES).
 */
size_t hv__value_names(struct hv__span s, struct hv__span *out);
/** Whole numbers behind a key ("dims = [" …) up to the closing bracket of the list; −1: no such
 * key. Nested brackets are flattened. */
int hv__numbers_after(struct hv__span s, const char *key, int64_t *out, int most);
/** The next "tensor<8x16xf32>" of a span into *t; false where there is none, or it is not one of
 * known sizes. Moves the span behind it. */
bool hv__next_type(struct hv__span *s, struct hv__tensor *t);
/** Where a text begins in a span; NULL: nowhere. */
const char *hv__find_in(struct hv__span s, const char *text);

#endif
