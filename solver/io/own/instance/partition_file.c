/*
 * Reads instances of optimisers: the members common to all kinds, and the choice of the reader for
 * the rest (chain_file.c, dag_file.c, replicas_file.c, joint_file.c, distribute_file.c). The
 * solvers are in solver/optim.
 */
#include "solver/io/own/instance/partition_file.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/instance/partition_int.h"
#include <string.h>

enum hv_status hv_instance_read(struct hv_instance *out, const struct hv_json *json,
                                struct hv_err *err)
{
    static const char *const kinds[] = {"chain", "dag", "replicas", "joint"};
    struct hv_jp root = hv_jp_root(json), at;
    int kind = 0;
    *out = (struct hv_instance){.name = ""};
    const char *name = NULL, *format = NULL;
    enum hv_status st = hv_jp_opt_string(&root, "name", &name, err);
    if (st != HV_OK) {
        return st;
    }
    out->name = name ? hv_arena_strdup(&out->arena, name) : "";
    if ((st = hv_jp_opt_string(&root, "format", &format, err)) != HV_OK) {
        return st;
    }
    if (format && strcmp(format, "hetviz.distribute/1") == 0) {
        out->kind = HV_INSTANCE_DISTRIBUTE;
        return hv__instance_read_distribute(out, &root, err);
    }
    if ((st = hv_jp_format(&root, "hetviz.partition/1", err)) != HV_OK ||
        (st = hv_jp_need(&root, "kind", "\"chain\", \"dag\", \"replicas\" or \"joint\"", &at,
                         err)) != HV_OK ||
        (st = hv_jp_word(&at, kinds, HV_COUNT(kinds), &kind, err)) != HV_OK) {
        return st;
    }
    out->kind = (enum hv_instance_kind)kind;
    switch (out->kind) {
    case HV_INSTANCE_CHAIN:
        return hv__instance_read_chain(out, &root, err);
    case HV_INSTANCE_DAG:
        return hv__instance_read_dag(out, &root, err);
    case HV_INSTANCE_REPLICAS:
        return hv__instance_read_replicas(out, &root, err);
    case HV_INSTANCE_JOINT:
        return hv__instance_read_joint(out, &root, err);
    case HV_INSTANCE_DISTRIBUTE:
        break;
    }
    return HV_EINTERNAL;
}

enum hv_status hv_instance_load(struct hv_instance *out, const char *path_or_name,
                                struct hv_err *err)
{
    struct hv_json json = {0};
    *out = (struct hv_instance){.name = ""};
    enum hv_status st = hv__doc_load(&json, path_or_name, "samples/instances", err);
    if (st == HV_OK) {
        st = hv_instance_read(out, &json, err);
    }
    hv_json_free(&json);
    return st;
}

void hv_instance_free(struct hv_instance *in)
{
    hv_arena_free(&in->arena);
    *in = (struct hv_instance){.name = ""};
}
