/** Private to the files of the cluster screen: its state, rows, panels and form. */
#ifndef HV_UI_SCREENS_CLUSTER_CLUSTER_INT_H
#define HV_UI_SCREENS_CLUSTER_CLUSTER_INT_H

#include "solver/base/vec.h"
#include "ui/screens/form/doc_form.h"
#include "ui/session/session.h"
#include "ui/view/app/app.h"
#include "ui/view/widget/widgets.h"

/** Panels in the order of Tab. */
enum hv_cluster_panel { HV_CLUSTER_NODES, HV_CLUSTER_LINKS, HV_CLUSTER_SIDE, HV_CLUSTER_PANEL_N };

/** What the form edits. */
enum hv_cluster_edit { HV_EDIT_GROUPS, HV_EDIT_NETWORK };

/* clang-format off */
/**
 * Columns of the table of groups: constant, word for sorting, heading, align, width, share of the
 * rest, least inner width at which the column is shown (the table drops none by itself then).
 */
#define HV_CLUSTER_COLUMN_MAP(X)                                \
    X(NAME,   "name",    "GROUP",  HV_LEFT,   7, 2,   0)        \
    X(DEVICE, "device",  "DEVICE", HV_LEFT,  14, 2,   0)        \
    X(SHAPE,  "devices", "N x DEV", HV_RIGHT,  7, 0,   0)       \
    X(MEMORY, "memory",  "MEM",    HV_RIGHT,  8, 0,  56)        \
    X(FLOPS,  "flops",   "PEAK",   HV_RIGHT,  8, 0,  66)        \
    X(INTRA,  "intra",   "INTRA",  HV_LEFT,  15, 1,  95)        \
    X(NIC,    "nic",     "NIC",    HV_RIGHT,  9, 0,  74)        \
    X(ZONE,   "zone",    "ZONE",   HV_LEFT,   6, 1, 103)        \
    X(PRICE,  "price",   "$/H",    HV_RIGHT,  6, 0,  50)        \
    X(SPOT,   "spot",    "SPOT",   HV_RIGHT,  6, 0,  96)        \
    X(STATE,  "state",   "STATE",  HV_LEFT,   5, 0,   0)
/* clang-format on */
enum hv_cluster_column {
#define X(c, word, title, align, width, flex, need) HV_COLUMN_##c,
    HV_CLUSTER_COLUMN_MAP(X)
#undef X
        HV_CLUSTER_COLUMN_N
};

/** The screen. Owner: the view. */
struct hv_cluster_screen {
    const struct hv_session *session; /**< borrowed; set by hv_cluster_sync */
    uint64_t cluster_generation, job_generation;
    bool synced;
    struct hv_table table;
    int sort; /**< hv_cluster_column, or −1: order of the file */
    bool descending;
    char filter[64];
    HV_VEC(uint64_t) marks; /**< identities of groups */
    HV_VEC(size_t) order;   /**< shown row → group */
    uint64_t order_version; /**< increases when `order` is rebuilt */
    struct hv_str totals;   /**< line below the table */
    enum hv_cluster_panel panel;
    size_t link_row, link_column; /**< cell of the links panel, groups of the cluster */
    int side_top;                 /**< first line of the details */
    struct hv_doc_form form;
    enum hv_cluster_edit editing;
    HV_VEC(uint64_t) edited;      /**< identities of the groups in the form */
    json_t *clip;                 /**< copied group, or NULL */
    HV_VEC(const char *) devices; /**< names to choose from; borrowed */
};

/** Where panels are; w = 0: not shown. */
struct hv_cluster_rects {
    struct hv_rect nodes, links, side, form;
};

/* ---- rows (table.c) */

/** Identity of a group: a hash of its name. */
uint64_t hv_cluster_group_id(const struct hv_node_group *g);
/** Hash of the documents shown, for a part of the screen (hv_grid_part). */
uint64_t hv_cluster_version(const struct hv_cluster_screen *v, const char *part);
/** The cluster shown. */
const struct hv_cluster *hv_cluster_shown(const struct hv_cluster_screen *v);
/** The group under the cursor and its number, or NULL when no row is shown. */
const struct hv_node_group *hv_cluster_selected(const struct hv_cluster_screen *v, size_t *index);
/** True when the group is marked. */
bool hv_cluster_is_marked(const struct hv_cluster_screen *v, const struct hv_node_group *g);
/** Filters and sorts the rows anew and keeps the cursor on its group. O(groups log groups). */
void hv_cluster_reorder(struct hv_cluster_screen *v);
/** Rows for the table widget; columns are all of hv_cluster_column. */
struct hv_table_source hv_cluster_source(const struct hv_cluster_screen *v);
/** Draws the table, the line of totals and the warnings of the selected group. */
void hv_cluster_draw_nodes(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r);
/** Rows of the table inside the panel. */
int hv_cluster_table_height(struct hv_rect nodes);
/** Rectangle of the table inside the panel. */
struct hv_rect hv_cluster_table_rect(struct hv_rect nodes);
/** "no bf16", "drained", …: appends the problems of a group; nothing where there are none. */
void hv_cluster_problem(const struct hv_cluster_screen *v, const struct hv_node_group *g,
                        struct hv_str *out);
/** "a: 2 x 8 A100-SXM-80GB, 1.25 TiB, intra nvlink, zone east". */
void hv_cluster_group_line(const struct hv_node_group *g, struct hv_str *out);
/** "40 nodes, 320 GPUs, 25.0 TiB, 99.8 PFLOP/s bf16, $1,312/h". */
void hv_cluster_totals(const struct hv_cluster_screen *v, struct hv_str *out);
/** Number with a plain dash for unknown ones. */
void hv_cluster_number(struct hv_str *out, double x, const char *unit);

/* ---- links and details (links.c, details.c) */

/** Appends a description of the cell at the matrix cursor. */
void hv_cluster_link_line(const struct hv_cluster_screen *v, struct hv_str *out);
/** Draws the matrix of paths between groups. */
void hv_cluster_draw_links(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r);
/** Moves the cursor of the matrix; false where the action is not a move. */
bool hv_cluster_links_action(struct hv_cluster_screen *v, enum hv_action a);
/** Selects the cell at a click; false where there is none. */
bool hv_cluster_links_click(struct hv_cluster_screen *v, struct hv_rect r, int x, int y);
/** Path between the two groups of the cell; the own nodes of one group where they are the same. */
struct hv_path hv_cluster_group_path(const struct hv_cluster *c, size_t a, size_t b);
/** Draws the details of the selected group. */
void hv_cluster_draw_side(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r);
/** Line of the details at which a section begins ("topology", "prices"); 0 when there is none. */
int hv_cluster_side_line(const struct hv_cluster_screen *v, const char *section);

/* ---- editing (form.c, edit.c) */

/** Fills the form for the groups in `edited`, or for the network. Closes it where they were
 * deleted. */
void hv_cluster_form_fill(struct hv_cluster_screen *v);
/** Opens the form for the marked groups, else the selected one. */
void hv_cluster_form_groups(struct hv_cluster_screen *v);
/** Opens the form of the network, at the link between the groups of the cell when there is one. */
void hv_cluster_form_network(struct hv_cluster_screen *v);
/** The link that overrides the network between two groups by their names or zones, or n_links. */
size_t hv_cluster_link_between(const struct hv_cluster *c, size_t a, size_t b);
/** Actions that change the cluster (add, delete, copy, paste, drain, import, export): flags of
 * hv_app, 0 when it is none. */
unsigned hv_cluster_change(struct hv_cluster_screen *v, struct hv_app *app, enum hv_action a);
/** Updates the view from the present documents. O(1) where nothing changed. */
void hv_cluster_sync(struct hv_cluster_screen *v, const struct hv_session *s);

#endif
