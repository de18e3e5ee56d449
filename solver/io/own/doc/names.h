/** The documents of a workspace and their names. */
#ifndef HV_SOLVER_IO_OWN_DOC_NAMES_H
#define HV_SOLVER_IO_OWN_DOC_NAMES_H

/* clang-format off */
/** Documents of a workspace: constant, first word of key paths and member of workspace.json. */
#define HV_DOC_MAP(X)                       \
    X(HV_DOC_CLUSTER,    "cluster")         \
    X(HV_DOC_MODEL,      "model")           \
    X(HV_DOC_JOB,        "job")             \
    X(HV_DOC_STRATEGIES, "strategies")
/* clang-format on */
/** STRATEGIES is the list [{"id": …, "options": {…}}] of options that differ from the defaults. */
enum hv_doc {
#define X(c, name) c,
    HV_DOC_MAP(X)
#undef X
        HV_DOC_N
};
/** Documents that are inputs of plans: the first ones of enum hv_doc. */
#define HV_DOC_INPUTS 3

/** First word of key paths: "cluster". */
const char *hv_doc_name(enum hv_doc d);

#endif
