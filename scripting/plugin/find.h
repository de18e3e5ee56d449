/**
 * Finding plugins on disk: a folder with plugin.lua is one plugin, whose other files are its
 * modules; everywhere else each *.lua is a plugin of one file. Nothing is run here, and only
 * regular files are read, so a pipe or a device never blocks.
 */
#ifndef HV_SCRIPTING_PLUGIN_FIND_H
#define HV_SCRIPTING_PLUGIN_FIND_H

#include "solver/base/status.h"
#include "solver/base/vec.h"
#include <stdbool.h>
#include <stdint.h>

/** The file that makes a folder a plugin. */
#define HV__PLUGIN_FILE "plugin.lua"
/** The self-tests of a plugin that is a folder. */
#define HV__SELFTEST_FILE "selftest.lua"

/** A plugin that was found. All texts on the heap. */
struct hv__found {
    char *path;      /**< the file to run */
    char *name;      /**< the same in messages: "plugins/oobleck/plugin.lua" */
    bool in_folder;  /**< the folder of the file is the plugin */
    bool below_root; /**< a plugin of one file in a folder below a root */
    char *error;     /**< why it cannot be read, or NULL */
};
/** Plugins in the order in which they were found: sorted by name within each folder. */
struct hv__found_list {
    HV_VEC(struct hv__found) files;
    size_t n_folders; /**< searched below the root of the last call */
    bool full;        /**< that root has more than is read; a row says so */
};

/**
 * Adds the plugins below a root folder. A `plugin.lua` in the root itself is a plugin of one file.
 * A root that does not exist has no plugins; an unreadable plugin, a root that is no folder, and
 * something named *.lua that is no regular file become rows with `error`. At most 65,536 plugins
 * and as many folders are read; a row says where there are more.
 * @param label  the root's name in messages
 */
void hv__plugins_find(struct hv__found_list *out, const char *root, const char *label);
/** Frees the list's texts and the list. */
void hv__found_free(struct hv__found_list *list);
/** True where the path names a file plugin.lua. */
bool hv__is_plugin_file(const char *path);
/** True where the folder of this plugin.lua has a selftest.lua. */
bool hv__has_selftest_file(const char *path);

/**
 * Hash of the contents of a plugin: the bytes of its file, or names and bytes of all *.lua files of
 * its folder and the folders below, of its selftest.lua the name only. *alone: no file whose bytes
 * count contains the word `require`. Errors: HV_EIO when the plugin's file cannot be read.
 */
enum hv_status hv__plugin_hash(const char *path, bool in_folder, uint64_t *hash, bool *alone,
                               struct hv_err *err) HV_NODISCARD;

#endif
