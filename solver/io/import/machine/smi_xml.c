/*
 * nvidia-smi -q -x: the cards of one machine. Only direct children of a card are read, so that the
 * memory of a MIG slice is never taken for the card's. Source: nvidia-smi(1); the element names are
 * those of DTD versions 10 to 13, and of outputs without one.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/machine/smi.h"
#include "solver/io/import/text/words.h"
#include <string.h>

/* Elements that are read, for the report. */
static const char *const used[] = {"attached_gpus",
                                   "driver_version",
                                   "gpu.uuid",
                                   "gpu.pci.pci_bus_id",
                                   "gpu.product_name",
                                   "gpu.product_architecture",
                                   "gpu.pci.pci_device_id",
                                   "gpu.pci.pci_gpu_link_info.pcie_gen.max_link_gen",
                                   "gpu.pci.pci_gpu_link_info.link_widths.max_link_width",
                                   "gpu.fb_memory_usage.total",
                                   "gpu.*power_readings.default_power_limit",
                                   "gpu.gpu_power_readings.max_power_limit",
                                   "gpu.power_readings.power_limit",
                                   NULL};

bool hv__is_nvidia_smi_xml(const struct hv__in *in)
{
    return in->xml && strcmp(in->xml->name, "nvidia_smi_log") == 0;
}

/* MIG slices and their memory are reported but not used: a plan runs on whole cards. */
static void note_mig(struct hv__in *in, const struct hv__xml *gpu, const char *card)
{
    size_t n = 0;
    const struct hv__xml *list = hv__xml_child(gpu, "mig_devices");
    for (const struct hv__xml *m = hv__xml_child(list, "mig_device"); m;
         m = hv__xml_next(m, "mig_device")) {
        n++;
    }
    hv__smi_mig(in, list ? list->line : 0, card, n);
}

static double pcie_of(const struct hv__xml *gpu)
{
    const struct hv__xml *info = hv__xml_at(gpu, "pci/pci_gpu_link_info");
    return hv__pcie_bytes_per_s(
        hv__smi_number(hv__xml_text(hv__xml_at(info, "pcie_gen/max_link_gen"))),
        hv__smi_number(hv__xml_text(hv__xml_at(info, "link_widths/max_link_width"))));
}

static double power_of(const struct hv__xml *gpu)
{
    static const char *const paths[] = {
        "gpu_power_readings/default_power_limit", "gpu_power_readings/max_power_limit",
        "power_readings/default_power_limit", "power_readings/power_limit"};
    double w = HV_UNKNOWN;
    for (size_t i = 0; i < HV_COUNT(paths) && !(w > 0); i++) {
        w = hv__smi_number(hv__xml_text(hv__xml_at(gpu, paths[i])));
    }
    return w > 0 ? w : HV_UNKNOWN;
}

static void keep_rest(struct hv__in *in, const struct hv__xml *gpu, size_t i)
{
    static const char *const paths[] = {"uuid",
                                        "serial",
                                        "vbios_version",
                                        "pci/pci_bus_id",
                                        "max_clocks/sm_clock",
                                        "max_clocks/mem_clock",
                                        "fabric/state",
                                        "fabric/cliqueId",
                                        "ecc_mode/current_ecc"};
    for (size_t k = 0; k < HV_COUNT(paths); k++) {
        const struct hv__xml *e = hv__xml_at(gpu, paths[k]);
        if (e && hv__smi_says(e->text)) {
            hv__raw(in, hv_arena_printf(&in->im->arena, "gpu%zu/%s", i, paths[k]), e->text);
        }
    }
}

static void read_gpu(struct hv__in *in, const struct hv__xml *gpu, size_t i)
{
    struct hv__card c = hv__card_unknown();
    const char *name = hv__xml_text(hv__xml_child(gpu, "product_name"));
    const char *arch = hv__xml_text(hv__xml_child(gpu, "product_architecture"));
    c.line = gpu->line;
    /* drivers older than a card name it "Graphics Device": its PCI device number identifies it */
    if (!hv__smi_says(name) || strcmp(name, "Graphics Device") == 0 ||
        strcmp(name, "NVIDIA Graphics Device") == 0) {
        const char *id = hv__xml_text(hv__xml_at(gpu, "pci/pci_device_id"));
        unsigned device =
            (unsigned)(strtoul(id + (strncmp(id, "0x", 2) == 0 ? 2 : 0), NULL, 16) >> 16);
        const char *known = hv__pci_card(device);
        hv__guessed(in, gpu->line, "the driver has no name for card %zu: %s", i,
                    known ? known : "its memory decides what it counts as");
        name = known ? known : name;
    }
    if (hv__smi_lost(name)) {
        hv__ignored(in, gpu->line, "card %zu does not answer (%s)", i, name);
        return;
    }
    c.card = *name ? name : NULL;
    c.arch = hv__smi_says(arch) ? arch : NULL;
    c.memory_bytes = hv__smi_bytes(hv__xml_text(hv__xml_at(gpu, "fb_memory_usage/total")));
    c.memory_bytes = c.memory_bytes > 0 ? c.memory_bytes : HV_UNKNOWN;
    c.pcie_bytes_per_s = pcie_of(gpu);
    c.tdp_w = power_of(gpu);
    hv__understood(in, gpu->line, "card %s, %.4g GiB", name, c.memory_bytes / HV_GIB);
    note_mig(in, gpu, name);
    keep_rest(in, gpu, i);
    struct hv__node *here = hv__node_here(in->im);
    hv__identity_add(in, &here->id.uuids, hv__xml_text(hv__xml_child(gpu, "uuid")));
    hv__identity_add(in, &here->id.buses, hv__xml_text(hv__xml_at(gpu, "pci/pci_bus_id")));
    hv__card_add(here, &c);
}

enum hv_status hv__read_nvidia_smi_xml(struct hv__in *in, struct hv_err *err)
{
    const struct hv__xml *root = in->xml;
    static const char *const heads[] = {"driver_version", "cuda_version", "timestamp"};
    size_t n = 0;
    if (!root || strcmp(root->name, "nvidia_smi_log") != 0) {
        return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                         "no <nvidia_smi_log>: is this the output of nvidia-smi -q -x?");
    }
    for (size_t i = 0; i < HV_COUNT(heads); i++) {
        const struct hv__xml *e = hv__xml_child(root, heads[i]);
        if (e && hv__smi_says(e->text)) {
            hv__raw(in, heads[i], e->text);
        }
    }
    const char *driver = hv__xml_text(hv__xml_child(root, "driver_version"));
    hv__node_here(in->im)->id.driver = hv__smi_says(driver) ? driver : NULL;
    for (const struct hv__xml *g = hv__xml_child(root, "gpu"); g; g = hv__xml_next(g, "gpu")) {
        read_gpu(in, g, n++);
    }
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, root->line, 0,
                         "there is no card in it; run nvidia-smi where the GPUs are");
    }
    double said = hv__smi_number(hv__xml_text(hv__xml_child(root, "attached_gpus")));
    if (hv_known(said) && fabs(said - (double)n) > 0.5) {
        hv__guessed(in, root->line, "%.0f cards are attached, %zu are listed: the listed count",
                    said, n);
    }
    hv__uses(in, used);
    return HV_OK;
}
