/**
 * Programs of tensors on their way to a graph in long form: readers name the operators, this keeps
 * dimensions, tensors and what is known of them. Dimensions are named by their size ("d64", "d64_1"
 * for the second one of a tensor); operands are renamed where an operator relates them otherwise.
 */
#ifndef HV_SOLVER_IO_IMPORT_GRAPH_PROGRAM_H
#define HV_SOLVER_IO_IMPORT_GRAPH_PROGRAM_H

#include "solver/io/import/draft/draft.h"

#define HV__PROGRAM_DIMS 8      /**< dimensions of a tensor */
#define HV__PROGRAM_OPS  200000 /**< operators, with those of functions that are called */

/** A tensor. */
struct hv__tensor {
    const char *name;  /**< in the graph */
    const char *dtype; /**< as hetviz writes it */
    uint8_t n;
    int64_t size[HV__PROGRAM_DIMS];
    int given; /**< number of the argument that it is, perhaps turned or reshaped; -1: none */
};

/** A program. Owner: hv__program_free. */
struct hv__program {
    struct hv__in *in;
    json_t *dims, *tensors, *ops, *unknown; /**< unknown: name of an operation → how often */
    json_t *roles;                          /**< of arguments by number: true for inputs */
    size_t n_opaque;
};

/** An empty program of a text. */
struct hv__program hv__program_new(struct hv__in *in);
/** Lets go of what the program holds; the model that came of it stays. */
void hv__program_free(struct hv__program *p);
/** Name of the nth dimension of that size of a tensor (from 0). */
const char *hv__dim_name(struct hv__program *p, int64_t size, size_t nth);
/** Names of all dimensions of a tensor, in order; names[HV__PROGRAM_DIMS]. */
void hv__dim_names(struct hv__program *p, const struct hv__tensor *t, const char **names);
/** A list of names. Owner: the caller. */
json_t *hv__names_json(const char *const *names, size_t n);
/** An operand by other names of its dimensions. Owner: the caller. */
json_t *hv__operand_as(const struct hv__tensor *t, const char *const *names);
/** Adds an operator: kind, operands (taken over) and result, whose name it sets. Returns the
 * object, for other members; NULL where there are too many. */
json_t *hv__add_op(struct hv__program *p, const char *kind, json_t *operands,
                   struct hv__tensor *out);
/** Adds an operator of which only the shapes are known; `what` is named in the report where it is
 * not NULL. False where there are too many. */
bool hv__add_opaque(struct hv__program *p, const char *what, const struct hv__tensor *const *in,
                    size_t n, struct hv__tensor *out);
/** Marks the argument behind a tensor as an input (operand of a product that is no weight, row
 * numbers). */
void hv__is_input(struct hv__program *p, const struct hv__tensor *t);
/** The model with notes about it, checked by our own reader. Errors: HV_EINPUT for programs that
 * contradict themselves. */
enum hv_status hv__program_finish(struct hv__program *p, const char *name,
                                  struct hv_err *err) HV_NODISCARD;

#endif
