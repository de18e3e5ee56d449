/**
 * The members of a text: which of them a reader used. Every member ends up in the report by its
 * path, as understood when it was used and as ignored when it was not, so that nothing is lost
 * silently.
 *
 * Trees (JSON, YAML, XML): the reader looks members up with hv__get, or states their paths once
 * with hv__uses; hv__members_tell walks the tree afterwards. A tree that is read piece by piece
 * gives each piece to hv__members_of_part. Other texts: the reader calls
 * hv__member for each key, column or option. Members of the elements of a list share one path
 * ("nodes[].gres") and are counted.
 */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_MEMBERS_H
#define HV_SOLVER_IO_IMPORT_DRAFT_MEMBERS_H

#include "solver/base/vec.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HV__MAX_MEMBERS 5000 /**< distinct paths of a text; further ones are only counted */

/** A member by its path. */
struct hv__member_name {
    const char *path, *value; /**< value: of the first member of this path, NULL: none to show */
    unsigned line, times;
    bool used;
};

/** Members of one text, and the look-ups that its reader made. Owner: struct hv__in. */
struct hv__members {
    HV_VEC(struct hv__member_name) names;
    uint32_t *index; /**< open hash of paths: number + 1 */
    size_t n_index;
    uint64_t *marks; /**< open hash of the (object, key) pairs that were looked up */
    size_t n_marks, cap_marks;
    HV_VEC(const char *) uses; /**< paths that the reader uses */
    size_t beyond;             /**< members of paths past HV__MAX_MEMBERS */
};

struct hv__in;

/** The member of an object, or NULL; it counts as used. `o` NULL is fine. */
json_t *hv__get(struct hv__in *in, json_t *o, const char *key);
/** As hv__get for a member that is used as a whole, with all that lies in it: a map of data, not of
 * settings. */
json_t *hv__get_whole(struct hv__in *in, json_t *o, const char *key);
/** States paths that the reader uses wherever they occur; NULL-terminated, borrowed until the text
 * is read. '*' stands for any text: "items[].metadata.*". Elements of XML are joined with '.',
 * attributes follow '@': "cpu.pci@class". */
void hv__uses(struct hv__in *in, const char *const *paths);
/** Names a member of a text without a tree; path and value are copied. line 0, value NULL: none. A
 * path is used when one of its members is. */
void hv__member(struct hv__in *in, bool used, unsigned line, const char *path, const char *value);
/** Names the members of a part of a text that is read piece by piece and has no tree. `path` is
 * where the part lies: "traceEvents[]", or "" for the top. Used are those that hv__uses states.
 * O(size of the part). */
void hv__members_of_part(struct hv__in *in, json_t *part, const char *path);
/** Names the members of the text's tree, if its reader looked any up, and adds all to the
 * report. O(size of the tree). */
void hv__members_tell(struct hv__in *in);
/** Frees them. */
void hv__members_free(struct hv__members *m);

#endif
