/**
 * A small tree of an XML text, made with expat: elements, attributes, text and lines. No external
 * entity is ever read.
 */
#ifndef HV_SOLVER_IO_IMPORT_TEXT_XML_H
#define HV_SOLVER_IO_IMPORT_TEXT_XML_H

#include "solver/base/arena.h"
#include "solver/base/status.h"

/** One element; children are a chain. */
struct hv__xml {
    const char *name;
    const char *text;        /**< its own text without blanks at the ends */
    const char **attributes; /**< name, value, …, NULL */
    unsigned line;
    struct hv__xml *first, *next, *up;
};

/** Parses into the arena. Errors: HV_EINPUT with position, HV_ELIMIT. */
enum hv_status hv__xml_parse(struct hv_arena *arena, const char *name, const char *text, size_t n,
                             struct hv__xml **out, struct hv_err *err) HV_NODISCARD;
/** The first child of that name, or NULL; a NULL element has none. */
const struct hv__xml *hv__xml_child(const struct hv__xml *e, const char *name);
/** The next sibling of that name, or NULL. */
const struct hv__xml *hv__xml_next(const struct hv__xml *e, const char *name);
/** Down a path of direct children: "pci/pci_gpu_link_info"; NULL when it ends early. */
const struct hv__xml *hv__xml_at(const struct hv__xml *e, const char *path);
/** Its text, or "" for NULL. */
const char *hv__xml_text(const struct hv__xml *e);
/** An attribute, or NULL. */
const char *hv__xml_attribute(const struct hv__xml *e, const char *name);

#endif
