/**
 * The import under construction: the texts, the data read from them, and the notes. Readers fill
 * it; import.c makes the document from it. For the files of solver/io/import only.
 */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_DRAFT_H
#define HV_SOLVER_IO_IMPORT_DRAFT_DRAFT_H

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/inventory/cluster.h"
#include "solver/io/import/draft/choice.h"
#include "solver/io/import/draft/members.h"
#include "solver/io/import/draft/note.h"
#include "solver/io/import/text/trees.h"
#include "solver/io/import/text/xml.h"
#include "solver/workload/model.h"

#define HV__MAX_NOTES 400   /**< distinct notes; further notes are only counted */
#define HV__MAX_NODES 50000 /**< nodes of one import */

/** A text being read. */
struct hv__in {
    struct hv_import *im;
    const char *name; /**< of the file, for messages */
    const char *text; /**< UTF-8, NUL-terminated, without byte order mark */
    size_t n;
    json_t *tree; /**< when the text is JSON or YAML; owned by the import */
    struct hv__line_list lines;
    struct hv_json json; /**< the JSON tree again, for positions; text NULL otherwise */
    struct hv__xml *xml; /**< when the text is XML */
    bool is_json, is_yaml;
    struct hv__members members;
    struct hv_err broken; /**< error of a text that looks like JSON, YAML or XML but is not valid */
};

/** Cards of one sort in a node. */
struct hv__card {
    const char *card;     /**< name in the source; NULL: none */
    const char *arch;     /**< "Ampere", or NULL */
    const char *slice;    /**< MIG profile "3g.20gb", or NULL */
    const char *uuid;     /**< of the first card, or NULL */
    const char *features; /**< words that the scheduler has for the node, commas between; or NULL */
    bool by_hand;         /**< people wrote the name: it may name the chip only */
    double memory_bytes;  /**< of the whole card, of the slice when `slice` */
    double pcie_bytes_per_s, tdp_w;
    double compute;    /**< compute capability × 10 (86 = 8.6) */
    double host_bytes; /**< memory of the node by its number of cards, found at the end */
    uint32_t count;
    unsigned line;
    const struct hv_device_kind *kind; /**< the catalogue's, found at the end */
    const char *name;                  /**< in the document, found at the end */
};

/** Links of a node. Bandwidths are one direction; unknown is HV_UNKNOWN. */
struct hv__links {
    uint32_t n;                /**< devices of the matrix */
    uint8_t *nv;               /**< n × n NVLinks between two devices, 0: none; or NULL */
    int nvlinks;               /**< links of one device, 0: not known */
    double nvlink_bytes_per_s; /**< of one of them */
    double device_bytes_per_s; /**< measured: send rate of one device */
    double device_latency_s;   /**< measured */
    uint32_t n_nics;           /**< 0: not known */
    double nic_bytes_per_s;    /**< of one of them, or of all when `nic_is_sum` */
    bool nic_is_sum, nic_is_ib;
    double nic_latency_s;
    double host_bytes_per_s; /**< measured: host to one device */
};

/** What tells one machine without a host name from another. */
struct hv__identity {
    const char *file;          /**< the first that describes it */
    const char *uuids, *buses; /**< of its cards, blanks between; NULL: not given */
    const char *driver;        /**< version, or NULL */
};

/** A node, or `count` equal ones. */
struct hv__node {
    struct hv__identity id;
    size_t read_in;   /**< number of the file that last gave cards, from 1 */
    const char *name; /**< NULL: a machine of files without a host name */
    const char *zone, *type;
    const char *partitions; /**< of the scheduler, commas between; NULL: none */
    double memory_bytes;    /**< of the host */
    uint32_t count;
    bool drained;
    HV_VEC(struct hv__card) cards;
    struct hv__links links;
    double usd_per_h, spot_usd_per_h;
    double cpus;
};

/** What the user says that a name of a card means. */
struct hv__wish {
    const char *written;
    const struct hv_device_kind *kind;
    bool used;
};

/** A price of a kind of machine. */
struct hv__price {
    const char *cloud, *instance, *card, *zone;
    double card_bytes, cards, usd_per_h, spot_usd_per_h;
    bool sure; /**< the card is the kind that this machine has */
    unsigned line;
};

struct hv_import_format;

/** Everything read so far. */
struct hv_import {
    struct hv_arena arena;
    const struct hv_device_catalogue *devices;
    HV_VEC(struct hv_import_note) notes;
    size_t more_notes;
    HV_VEC(struct hv__node) nodes;
    size_t here; /**< index + 1 of the machine that the present file describes, 0: none yet */
    uint32_t *node_index; /**< open hash of named nodes: index + 1 */
    size_t n_index;
    HV_VEC(struct hv__price) prices;
    HV_VEC(struct hv__wish) wishes;
    HV_VEC(struct hv_import_choice) choices;
    HV_VEC(const char *) files;
    HV_VEC(const struct hv_import_format *) formats;
    json_t *raw; /**< values without a place in hetviz's formats */
    json_t *own; /**< device kinds of the cluster document */
    json_t *model, *job, *layout, *cluster, *plan, *trace, *document;
    json_t *guessed_model;    /**< from an index of weights, used without a better source */
    double parameters;        /**< of the model, once the import is finished; or HV_UNKNOWN */
    double weights_bytes;     /**< of an index of weights, or HV_UNKNOWN */
    double weight_bytes_each; /**< of a parameter in that index */
    bool guessed_cluster;
    int world; /**< ranks that the layout needs, 0: not known */
};

/* ---- tree.c ---- */
/** Fills tree, xml or neither, depending on the text. */
void hv__parse(struct hv__in *in);
/** Frees the trees made by hv__parse. */
void hv__parse_free(struct hv__in *in);
/* ---- notes.c ---- */
/** Adds a note to the report; line 0: none. Equal notes are counted. */
void hv__understood(struct hv__in *in, unsigned line, const char *fmt, ...) HV_PRINTF(3, 4);
void hv__guessed(struct hv__in *in, unsigned line, const char *fmt, ...) HV_PRINTF(3, 4);
void hv__ignored(struct hv__in *in, unsigned line, const char *fmt, ...) HV_PRINTF(3, 4);
/** The same without a file. */
void hv__note(struct hv_import *im, enum hv_import_level level, const char *fmt, ...)
    HV_PRINTF(3, 4);
/** Keeps a value that has no place in the document; text is copied. */
void hv__raw(struct hv__in *in, const char *key, const char *value);
/** Orders the notes by level. */
void hv__notes_sort(struct hv_import *im);
/** Line of a value of the tree, or 0. */
unsigned hv__line_of(const struct hv__in *in, const json_t *v);

/* ---- draft.c: the cluster under construction ---- */
/** The machine that the present file describes without a host name. Valid until the next node is
 * added. */
struct hv__node *hv__node_here(struct hv_import *im);
/** The node of that name, made when it is new; NULL when there are too many. */
struct hv__node *hv__node_named(struct hv_import *im, const char *name, size_t n);
/** The node of that name, or NULL. */
struct hv__node *hv__node_find(struct hv_import *im, const char *name, size_t n);
/** A node of its own. NULL when there are too many. */
struct hv__node *hv__node_add(struct hv_import *im);
/** Adds one card; joined with the last one when they are equal. */
void hv__card_add(struct hv__node *n, const struct hv__card *c);
/** True where both are cards of one kind. */
bool hv__card_same(const struct hv__card *a, const struct hv__card *b);
/** A card with all figures unknown. */
struct hv__card hv__card_unknown(void);
/** Cards of a node. */
uint32_t hv__cards(const struct hv__node *n);

/* ---- machines.c: which files describe one machine ---- */
/** Keeps an identity of a card ("GPU-1b2c…", a bus address); texts without a value are ignored. */
void hv__identity_add(struct hv__in *in, const char **list, const char *id);
/** At the end of a file: its machine is joined with an earlier one when both are the same. */
void hv__machine_settle(struct hv__in *in);
/** At the end of an import: machines without a host name are joined with named nodes, links without
 * cards with the machines they fit. */
void hv__machines_unite(struct hv_import *im);

/* ---- kinds.c ---- */
/** Finds kind and name of every card; fills `own` with kinds that the catalogue lacks. */
void hv__kinds_find(struct hv_import *im);
/** The chip of a PCI device number of NVIDIA, or NULL. Source: the PCI ID repository. */
const char *hv__pci_card(unsigned device);
/** Bytes per second of PCIe by generation and lanes, one direction; HV_UNKNOWN when not known. */
double hv__pcie_bytes_per_s(double generation, double lanes);
/** Memory in a name such as "a100_80gb", in bytes; HV_UNKNOWN: none. */
double hv__memory_in_name(const char *name);
/** Fraction of the chip and of its memory of a MIG profile ("3g.20gb"). */
bool hv__slice_of(const char *text, double *compute_frac, double *memory_bytes);

/* ---- choices.c ---- */
/** The kind of a card by the user's wish, else by its name, features and memory; NULL: none. Notes
 * whether that is understood or guessed, and keeps the candidates of a guess. `memory_bytes`: of
 * the whole card, or HV_UNKNOWN. */
const struct hv_device_kind *hv__card_choose(struct hv_import *im, const struct hv__card *c,
                                             double memory_bytes);
/** The same without notes, before all files are read; NULL: none. */
const struct hv_device_kind *hv__card_kind(struct hv_import *im, const struct hv__card *c);
/** Errors: HV_EUSAGE for a wish about a name that no file has. */
enum hv_status hv__wishes_check(const struct hv_import *im, struct hv_err *err) HV_NODISCARD;

/* ---- links.c ---- */
/** The node's `intra` and `nic` objects, or NULL where the catalogue's figures are used. */
json_t *hv__intra_json(struct hv_import *im, const struct hv__node *n);
json_t *hv__nic_json(struct hv_import *im, const struct hv__node *n);

/* ---- cluster.c ---- */
/** Makes the cluster document of the nodes and prices. */
enum hv_status hv__cluster_make(struct hv_import *im, struct hv_err *err) HV_NODISCARD;
/** An assumed cluster of `ranks` devices for workspaces without a cluster. */
void hv__cluster_guess(struct hv_import *im);

#endif
