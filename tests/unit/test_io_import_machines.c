/* Imports of several machines and of cards whose name does not tell the kind: which files belong
 * together, what a short name may mean, and what decides it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/units.h"
#include "tests/unit/import_bench.h"

/* ---- kinds of cards -------------------------------------------------------------------------- */

/* The candidates of a name, as one text. */
static struct hv_str candidates(const char *card, const struct hv_device_hints *hints)
{
    const struct hv_device_kind *kinds[HV_DEVICE_CANDIDATES];
    struct hv_str s = {0};
    size_t n = hv_device_candidates(&import_devices, card, hints, kinds);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(&s, "%s%s", i > 0 ? " " : "", kinds[i]->name);
    }
    return s;
}

/* What names and features leave, the likely one first. Sources: GRES lists of Slurm sites. */
static void names_leave_candidates(void **state)
{
    (void)state;
    static const struct {
        const char *card, *features;
        double gib, host_gib;
        const char *want;
    } rows[] = {
        {"a100", NULL, 0, 0, "A100-SXM-40GB A100-PCIe-40GB A100-PCIe-80GB A100-SXM-80GB"},
        {"a100", NULL, 0, 252, "A100-SXM-80GB A100-SXM-40GB A100-PCIe-40GB A100-PCIe-80GB"},
        {"a100", NULL, 0, 126, "A100-SXM-40GB A100-PCIe-40GB A100-PCIe-80GB A100-SXM-80GB"},
        {"nvidia_a100_80gb", NULL, 0, 0, "A100-SXM-80GB A100-PCIe-80GB"},
        {"a100-40", NULL, 0, 0, "A100-SXM-40GB A100-PCIe-40GB"},
        {"NVlink_A100_40GB", NULL, 0, 0, "A100-SXM-40GB"},
        {"a100", "ib,a100_80gb,pcie", 0, 0, "A100-PCIe-80GB"},
        {"a100", "gpumem80,sxm4", 0, 0, "A100-SXM-80GB"},
        {"a100", "pcie4,v100_32gb", 0, 0,
         "A100-SXM-40GB A100-PCIe-40GB A100-PCIe-80GB A100-SXM-80GB"},
        {"a100l", NULL, 0, 0, "A100-SXM-80GB A100-PCIe-80GB"},
        {"v100", NULL, 0, 0,
         "V100-SXM2-16GB V100-PCIe-16GB V100-PCIe-32GB V100-SXM2-32GB V100-SXM3-32GB"},
        {"tesla_v100-sxm3-32gb", NULL, 0, 0, "V100-SXM3-32GB"},
        {"v100", "volta,32g", 0, 0, "V100-SXM2-32GB V100-PCIe-32GB V100-SXM3-32GB"},
        {"v100s", NULL, 0, 0, "V100-PCIe-32GB"},
        {"h100", NULL, 0, 256,
         "H100-SXM-80GB H100-PCIe-80GB H100-SXM-96GB-HBM2e-500W H100-NVL-94GB"},
        {"nvidia_h100_80gb_hbm3", NULL, 0, 0, "H100-SXM-80GB"},
        {"h100_nvl", NULL, 0, 0, "H100-NVL-94GB"},
        {"h100", NULL, 94, 0, "H100-NVL-94GB"},
        {"h200", NULL, 0, 0, "H200-SXM-141GB H200-NVL-141GB"},
        {"l40", NULL, 0, 0, "L40-48GB L40S-48GB"},
        {"l40", "l40s", 0, 0, "L40S-48GB"},
        {"l40s", NULL, 0, 0, "L40S-48GB"},
        {"2080ti", NULL, 0, 0, "RTX2080Ti-11GB"},
        {"rtx_a6000", NULL, 0, 0, "RTX-A6000-48GB"},
        {"a6000", NULL, 0, 0, "RTX-A6000-48GB"},
        {"rtx_6000", NULL, 0, 0, "RTX6000-Ada-48GB RTX-PRO-6000-Blackwell-96GB"},
        {"mi250", NULL, 0, 0, "MI250X-128GB MI250-128GB"},
        {"mi300x", NULL, 0, 0, "MI300X-192GB"},
        {"gtx_1080", NULL, 0, 0, ""},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const struct hv_device_hints hints = {
            rows[i].gib > 0 ? rows[i].gib * HV_GIB : HV_UNKNOWN,
            rows[i].host_gib > 0 ? rows[i].host_gib * HV_GIB : HV_UNKNOWN, rows[i].features};
        struct hv_str got = candidates(rows[i].card, &hints);
        if (strcmp(hv_str_cstr(&got), rows[i].want) != 0) {
            fail_msg("row %zu, %s: %s", i, rows[i].card, hv_str_cstr(&got));
        }
        hv_str_free(&got);
    }
}

/* "a100" is a guess in every format of Slurm, and is never said to be understood. */
static void a_short_name_is_a_guess(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "NodeName=n1 Gres=gpu:a100:4 State=IDLE\n", "NODELIST GRES\nn1 gpu:a100:4\n",
        "#SBATCH -N 1\n#SBATCH --gpus-per-node=a100:4\n", "#SBATCH -N 1\n#SBATCH -G a100:4\n",
        "{\"meta\":{},\"nodes\":[{\"name\":\"n1\",\"gres\":\"gpu:a100:4\",\"real_memory\":1}]}"};
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        const char *const one[] = {texts[i], NULL};
        struct import x = import_texts(one);
        assert_int_equal(x.st, HV_OK);
        import_word(&x, "nodes[0].device", "A100-SXM-40GB");
        import_says(&x, HV_IMPORT_GUESSED, 0,
                    "\"a100\" may be A100-SXM-40GB, A100-PCIe-40GB, A100-PCIe-80GB or "
                    "A100-SXM-80GB: A100-SXM-40GB is taken");
        size_t n;
        const struct hv_import_choice *all = hv_import_choices(x.im, &n);
        assert_int_equal(n, 1);
        assert_string_equal(all[0].written, "a100");
        assert_int_equal(all[0].n, 4);
        assert_int_equal(all[0].taken, 0);
        size_t notes;
        const struct hv_import_note *list = hv_import_notes(x.im, &notes);
        for (size_t k = 0; k < notes; k++) {
            assert_false(list[k].level == HV_IMPORT_UNDERSTOOD && strstr(list[k].text, "\"a100\""));
        }
        import_free(&x);
    }
}

static void memory_and_features_decide(void **state)
{
    (void)state;
    struct import x = import_one(
        "slurm", "NodeName=a1 RealMemory=2063000 Gres=gpu:a100:8 State=IDLE\n"
                 "NodeName=a2 RealMemory=1031000 Gres=gpu:a100:8 Features=a100_80gb,pcie\n"
                 "NodeName=a3 RealMemory=515000 Gres=gpu:2 Features=ib,v100_32gb,sxm2\n");
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_says(&x, HV_IMPORT_GUESSED, 0, "as the memory of its host suggests");
    import_word(&x, "nodes[1].device", "A100-PCIe-80GB");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "\"a100\" is A100-PCIe-80GB");
    import_word(&x, "nodes[2].device", "V100-SXM2-32GB");
    import_says(&x, HV_IMPORT_GUESSED, 0, "by the feature \"v100_32gb\"");
    import_free(&x);
}

/* The user's word decides; one that no card needs is refused. */
static void the_user_decides(void **state)
{
    (void)state;
    static const char nodes[] = "NodeName=a1 Gres=gpu:nvidia_a100:8\nNodeName=b1 Gres=gpu:4\n";
    struct import x = {.im = hv_import_new(&import_devices)};
    assert_int_equal(hv_import_device(x.im, "a100=A100-PCIe-80GB", &x.err), HV_OK);
    assert_int_equal(hv_import_device(x.im, "gpu=L40S-48GB", &x.err), HV_OK);
    assert_int_equal(hv_import_text(x.im, NULL, "f", nodes, strlen(nodes), &x.err), HV_OK);
    assert_int_equal(hv_import_finish(x.im, &x.err), HV_OK);
    x.doc = hv_import_document(x.im);
    import_word(&x, "nodes[0].device", "A100-PCIe-80GB");
    import_word(&x, "nodes[1].device", "L40S-48GB");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "as --device says");
    size_t n;
    const struct hv_import_choice *all = hv_import_choices(x.im, &n);
    assert_int_equal(n, 1);
    assert_string_equal(all[0].candidates[all[0].taken]->name, "A100-PCIe-80GB");
    import_free(&x);
    x.im = hv_import_new(&import_devices);
    assert_int_equal(hv_import_device(x.im, "a100=A100-SXM-80G", &x.err), HV_EUSAGE);
    assert_non_null(strstr(x.err.text, "did you mean \"A100-SXM-80GB\""));
    assert_int_equal(hv_import_device(x.im, "a100", &x.err), HV_EUSAGE);
    assert_int_equal(hv_import_device(x.im, "t4=T4-16GB", &x.err), HV_OK);
    assert_int_equal(hv_import_text(x.im, NULL, "f", nodes, strlen(nodes), &x.err), HV_OK);
    assert_int_equal(hv_import_finish(x.im, &x.err), HV_EUSAGE);
    assert_non_null(strstr(x.err.text, "no card is named \"t4\"; the files have \"nvidia_a100\""));
    import_free(&x);
}

/* ---- machines -------------------------------------------------------------------------------- */

#define XML(driver, name, uuid, mib)                                                               \
    "<nvidia_smi_log><driver_version>" driver "</driver_version><gpu id=\"0\"><product_name>" name \
    "</product_name><uuid>" uuid "</uuid><fb_memory_usage><total>" mib                             \
    " MiB</total></fb_memory_usage></gpu></nvidia_smi_log>"

static void other_cards_are_another_machine(void **state)
{
    (void)state;
    const char *const two[] = {XML("550", "NVIDIA A100-SXM4-80GB", "GPU-aaaa", "81920"),
                               "GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-bbbb)\n", NULL};
    struct import x = import_texts(two);
    assert_int_equal(x.st, HV_OK);
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_word(&x, "nodes[1].device", "V100-SXM2-32GB");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "another machine than that of file1: other cards");
    import_free(&x);
    /* the same without UUIDs */
    const char *const bare[] = {"name, memory.total [MiB]\nNVIDIA L4, 23034 MiB\n",
                                "name, memory.total [MiB]\nTesla T4, 15360 MiB\n", NULL};
    x = import_texts(bare);
    import_word(&x, "nodes[0].device", "L4-24GB");
    import_word(&x, "nodes[1].device", "T4-16GB");
    import_free(&x);
}

static void uuids_and_drivers_tell_equal_machines_apart(void **state)
{
    (void)state;
    const char *const two[] = {XML("550", "NVIDIA H200", "GPU-aaaa", "143771"),
                               XML("550", "NVIDIA H200", "GPU-bbbb", "143771"), NULL};
    struct import x = import_texts(two);
    import_number(&x, "nodes[0].count", 2); /* alike: one group of two nodes */
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "other UUIDs");
    import_free(&x);
    const char *const drivers[] = {
        "name, driver_version, memory.total [MiB]\nNVIDIA H200, 550.1, 143771 MiB\n",
        "name, driver_version, memory.total [MiB]\nNVIDIA H200, 590.2, 143771 MiB\n", NULL};
    x = import_texts(drivers);
    import_number(&x, "nodes[0].count", 2);
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "another driver");
    import_free(&x);
}

/* Lists of one machine in any order: the one with more figures stays, links complete them. */
static void files_of_one_machine_are_joined(void **state)
{
    (void)state;
    static const char list[] = "GPU 0: NVIDIA H200 (UUID: GPU-aaaa)\n";
    static const char xml[] = XML("550", "NVIDIA H200", "GPU-aaaa", "100000");
    for (int k = 0; k < 2; k++) {
        const char *const two[] = {k ? list : xml, k ? xml : list, NULL};
        struct import x = import_texts(two);
        import_number(&x, "nodes[0].count", 1);
        import_absent(&x, "nodes[1]");
        import_word(&x, "nodes[0].device", "H200-SXM-141GB-97-7GiB");
        import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "the machine of file1: UUIDs are the same");
        import_free(&x);
    }
    const char *const bare[] = {"name, memory.total [MiB]\nNVIDIA L4, 23034 MiB\n",
                                "GPU 0: NVIDIA L4 (UUID: GPU-aaaa)\n", NULL};
    struct import x = import_texts(bare);
    import_absent(&x, "nodes[1]");
    import_says(&x, HV_IMPORT_GUESSED, 0, "taken for the machine of file1");
    import_free(&x);
}

/* Each matrix of links goes to the machine before it. */
static void links_go_to_their_machine(void **state)
{
    (void)state;
    const char *const files[] = {
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-b)\n",
        "     GPU0 GPU1 CPU\nGPU0  X   NV12 0\nGPU1 NV12  X   0\n",
        "GPU 0: NVIDIA L40S (UUID: GPU-c)\nGPU 1: NVIDIA L40S (UUID: GPU-d)\n",
        "     GPU0 GPU1 CPU\nGPU0  X   PHB 0\nGPU1 PHB  X   0\n", NULL};
    struct import x = import_texts(files);
    import_word(&x, "nodes[0].intra.kind", "nvlink");
    import_word(&x, "nodes[1].device", "L40S-48GB");
    import_word(&x, "nodes[1].intra.kind", "pcie");
    import_says(&x, HV_IMPORT_GUESSED, 0,
                "the links of file4 are taken for those of the machine of file3");
    import_free(&x);
}

/* A machine without a host name is a named node only if its cards may be the same. */
static void named_nodes_need_the_same_cards(void **state)
{
    (void)state;
    const char *const files[] = {"NodeName=n[1-2] Gres=gpu:a100:1\nNodeName=v1 Gres=gpu:v100:1\n",
                                 XML("550", "NVIDIA A100-SXM4-80GB", "GPU-aaaa", "81920"), NULL};
    struct import x = import_texts(files);
    import_word(&x, "nodes[0].device", "A100-SXM-80GB");
    import_number(&x, "nodes[0].count", 2);
    import_word(&x, "nodes[1].device", "V100-SXM2-16GB");
    import_absent(&x, "nodes[2]");
    import_free(&x);
    /* two machines are the two nodes, a third one is not among them */
    const char *const three[] = {"NodeName=n[1-2] Gres=gpu:h200:1\n",
                                 XML("550", "NVIDIA H200", "GPU-aaaa", "143771"),
                                 XML("550", "NVIDIA H200", "GPU-bbbb", "143771"),
                                 XML("550", "NVIDIA H200", "GPU-cccc", "143771"), NULL};
    x = import_texts(three);
    import_number(&x, "nodes[0].count", 3);
    import_free(&x);
    const char *const two[] = {three[0], three[1], three[2], NULL};
    x = import_texts(two);
    import_number(&x, "nodes[0].count", 2);
    import_free(&x);
}

/* A loop of nvidia-smi gives each card again and again. */
static void a_loop_lists_each_card_once(void **state)
{
    (void)state;
    struct import x = import_one("nvidia_smi_csv", "index, name\n0, NVIDIA L4\n1, NVIDIA L4\n"
                                                   "0, NVIDIA L4\n1, NVIDIA L4\n");
    import_number(&x, "nodes[0].devices", 2);
    import_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_leave_candidates),
        cmocka_unit_test(a_short_name_is_a_guess),
        cmocka_unit_test(memory_and_features_decide),
        cmocka_unit_test(the_user_decides),
        cmocka_unit_test(other_cards_are_another_machine),
        cmocka_unit_test(uuids_and_drivers_tell_equal_machines_apart),
        cmocka_unit_test(files_of_one_machine_are_joined),
        cmocka_unit_test(links_go_to_their_machine),
        cmocka_unit_test(named_nodes_need_the_same_cards),
        cmocka_unit_test(a_loop_lists_each_card_once),
    };
    return cmocka_run_group_tests(tests, import_setup, import_teardown);
}
