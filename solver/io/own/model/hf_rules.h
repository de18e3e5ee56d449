/**
 * Families of Hugging Face models as rules: each row of the table in hf_families.c names model
 * types and, where they differ from the usual Llama-like decoder, formulas for their figures, and
 * for the weights beside the matrices that every transformer block has.
 *
 * Names in the formulas: the members of the config; h (hidden), V (vocab), L (layers), S (longest
 * sequence); of the layer at hand: i (its number from 0), heads, kv, dim, f (width of its
 * feed-forward), E (experts), ef (their width), sf (width of all shared experts).
 */
#ifndef HV_SOLVER_IO_OWN_MODEL_HF_RULES_H
#define HV_SOLVER_IO_OWN_MODEL_HF_RULES_H

#include "solver/base/arena.h"
#include "solver/io/own/model/hf_formula.h"
#include <stdint.h>

/** One row of the table. */
struct hv__hf_family {
    const char *types; /**< model_type, several separated by blanks */
    const char *like;  /**< the type of another row whose rules count where this one has none, or
                            NULL */
    const char *rules; /**< "name = formula; name = formula"; extra weights are "+place name =
                            formula" */
    const char *note;  /**< an approximation that the model's source states, or NULL */
};

/** The table and its length. */
const struct hv__hf_family *hv__hf_families(size_t *n);
/** The row of a model_type. *exact is false where only the beginning of the type is in the table.
 * NULL: no row fits. */
const struct hv__hf_family *hv__hf_family_of(const char *type, bool *exact);

/** Parts of a model to which a family adds weights. */
enum hv__hf_place {
    HV__HF_AT_ATTENTION, /**< layers with softmax attention */
    HV__HF_AT_LINEAR,    /**< layers with another kind of token mixing: all weights of it */
    HV__HF_AT_LAYER,     /**< every layer */
    HV__HF_AT_DENSE,     /**< dense feed-forwards */
    HV__HF_AT_MIXTURE,   /**< mixtures of experts */
    HV__HF_AT_EMBEDDING, /**< once, at the embedding */
    HV__HF_AT_HEAD,      /**< once, at the head */
    HV__HF_PLACE_N
};

/** One rule. */
struct hv__hf_rule {
    const char *name, *from, *to; /**< name: without the place; the formula is [from, to) */
    int place;                    /**< enum hv__hf_place, or -1: a figure */
    bool fixed;                   /**< the formula has this value for every layer */
    bool busy;                    /**< being evaluated: its own name stands for the member */
    struct hv__value value;
    double total; /**< weights that it added up to now */
    bool lacking; /**< the config lacked a member of the formula */
};

/** Rules of a family, its own first. */
struct hv__hf_rules {
    struct hv__hf_rule *items;
    size_t n;
};

/** Splits the rules of a family and of those that it is like. NULL family: none. Where none of them
 * counts linear layers, the rules of `element` follow (NULL: none). */
struct hv__hf_rules hv__hf_rules_of(const struct hv__hf_family *f,
                                    const struct hv__hf_family *element, struct hv_arena *arena);
/** The first rule of a figure, or NULL. */
struct hv__hf_rule *hv__hf_rule_find(const struct hv__hf_rules *rules, const char *name);

#endif
