/*
 * Cards of the clouds' machines by the names of these. Price lists often give the name only.
 * Sources: the machine types of AWS (EC2 accelerated computing), Azure (N series) and Google Cloud
 * (accelerator-optimised machines); Lambda's names contain the cards.
 */
#include "solver/io/import/machine/prices.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* clang-format off */
/* A name that ends in * stands for all that begin so; the first row that fits counts. */
static const struct {
    const char *name, *card;
    double cards;
} rows[] = {
    {"p2.xlarge", "K80", 1}, {"p2.8xlarge", "K80", 8}, {"p2.16xlarge", "K80", 16},
    {"p3.2xlarge", "V100-SXM2-16GB", 1}, {"p3.8xlarge", "V100-SXM2-16GB", 4}, {"p3.16xlarge", "V100-SXM2-16GB", 8},
    {"p3dn.24xlarge", "V100-SXM2-32GB", 8},
    {"p4d.24xlarge", "A100-SXM-40GB", 8}, {"p4de.24xlarge", "A100-SXM-80GB", 8},
    {"p5.4xlarge", "H100-SXM-80GB", 1}, {"p5.48xlarge", "H100-SXM-80GB", 8},
    {"p5e.48xlarge", "H200-SXM-141GB", 8}, {"p5en.48xlarge", "H200-SXM-141GB", 8},
    {"p6-b200.48xlarge", "B200-SXM-180GB", 8}, {"p6-b300.48xlarge", "B300-SXM-288GB", 8},
    {"g4dn.12xlarge", "T4-16GB", 4}, {"g4dn.metal", "T4-16GB", 8}, {"g4dn.*", "T4-16GB", 1},
    {"g5.12xlarge", "A10G-24GB", 4}, {"g5.24xlarge", "A10G-24GB", 4}, {"g5.48xlarge", "A10G-24GB", 8}, {"g5.*", "A10G-24GB", 1},
    {"g6.12xlarge", "L4-24GB", 4}, {"g6.24xlarge", "L4-24GB", 4}, {"g6.48xlarge", "L4-24GB", 8}, {"g6.*", "L4-24GB", 1},
    {"g6e.12xlarge", "L40S-48GB", 4}, {"g6e.24xlarge", "L40S-48GB", 4}, {"g6e.48xlarge", "L40S-48GB", 8}, {"g6e.*", "L40S-48GB", 1},
    {"trn1.2xlarge", "Trainium1", 1}, {"trn1.32xlarge", "Trainium1", 16}, {"trn1n.32xlarge", "Trainium1", 16}, {"trn2.48xlarge", "Trainium2", 16},
    {"dl1.24xlarge", "Gaudi-HL205-32GB", 8},
    {"Standard_NC6s_v3", "V100-PCIe-16GB", 1}, {"Standard_NC12s_v3", "V100-PCIe-16GB", 2},
    {"Standard_NC24s_v3", "V100-PCIe-16GB", 4}, {"Standard_NC24rs_v3", "V100-PCIe-16GB", 4},
    {"Standard_ND40rs_v2", "V100-SXM2-32GB", 8}, {"Standard_ND40s_v2", "V100-SXM2-32GB", 8},
    {"Standard_ND96asr_*", "A100-SXM-40GB", 8}, {"Standard_ND96amsr_*", "A100-SXM-80GB", 8}, {"Standard_ND96ams_A100_*", "A100-SXM-80GB", 8},
    {"Standard_NC24ads_A100_*", "A100-PCIe-80GB", 1}, {"Standard_NC48ads_A100_*", "A100-PCIe-80GB", 2}, {"Standard_NC96ads_A100_*", "A100-PCIe-80GB", 4},
    {"Standard_NC40ads_H100_*", "H100-NVL-94GB", 1}, {"Standard_NC80adis_H100_*", "H100-NVL-94GB", 2},
    {"Standard_ND96is_H100_*", "H100-SXM-80GB", 8}, {"Standard_ND96isr_H100_*", "H100-SXM-80GB", 8}, {"Standard_ND96isr_H200_*", "H200-SXM-141GB", 8},
    {"Standard_ND96isr_MI300X_*", "MI300X-192GB", 8}, {"Standard_ND96is_MI300X_*", "MI300X-192GB", 8},
    {"Standard_NC64as_T4_*", "T4-16GB", 4}, {"Standard_NC*as_T4_*", "T4-16GB", 1},
    {"Standard_NV36ads_A10_*", "A10-24GB", 1}, {"Standard_NV36adms_A10_*", "A10-24GB", 1}, {"Standard_NV72ads_A10_*", "A10-24GB", 2},
    {"a2-highgpu-1g", "A100-SXM-40GB", 1}, {"a2-highgpu-2g", "A100-SXM-40GB", 2}, {"a2-highgpu-4g", "A100-SXM-40GB", 4},
    {"a2-highgpu-8g", "A100-SXM-40GB", 8}, {"a2-megagpu-16g", "A100-SXM-40GB", 16},
    {"a2-ultragpu-1g", "A100-SXM-80GB", 1}, {"a2-ultragpu-2g", "A100-SXM-80GB", 2}, {"a2-ultragpu-4g", "A100-SXM-80GB", 4}, {"a2-ultragpu-8g", "A100-SXM-80GB", 8},
    {"a3-highgpu-1g", "H100-SXM-80GB", 1}, {"a3-highgpu-2g", "H100-SXM-80GB", 2}, {"a3-highgpu-4g", "H100-SXM-80GB", 4},
    {"a3-highgpu-8g", "H100-SXM-80GB", 8}, {"a3-megagpu-8g", "H100-SXM-80GB", 8}, {"a3-edgegpu-8g", "H100-SXM-80GB", 8},
    {"a3-ultragpu-8g", "H200-SXM-141GB", 8}, {"a4-highgpu-8g", "B200-SXM-180GB", 8},
    {"g2-standard-24", "L4-24GB", 2}, {"g2-standard-48", "L4-24GB", 4}, {"g2-standard-96", "L4-24GB", 8}, {"g2-standard-*", "L4-24GB", 1},
};
/* clang-format on */

/* True where a name fits a pattern in which each * stands for any text. */
static bool fits(const char *name, const char *pattern)
{
    while (*pattern != '*') {
        if (strncasecmp(name, pattern, 1) != 0) {
            return false;
        }
        if (*name == '\0') {
            return true;
        }
        name++;
        pattern++;
    }
    for (pattern++;; name++) {
        if (*pattern == '\0' || fits(name, pattern)) {
            return true;
        }
        if (*name == '\0') {
            return false;
        }
    }
}

/* "gpu_8x_a100_80gb_sxm4", "1x_H100_SECURE": the number, and the rest as the card's name. */
static bool read_name(struct hv_arena *arena, const char *name, const char **card, double *cards)
{
    const char *at = strncasecmp(name, "gpu_", 4) == 0 ? name + 4 : name;
    char *end;
    long n = strtol(at, &end, 10);
    if (end == at || n < 1 || n > 64 || (*end != 'x' && *end != 'X') ||
        (end[1] != '_' && end[1] != '-')) {
        return false;
    }
    *card = hv_arena_strdup(arena, end + 2);
    *cards = (double)n;
    return true;
}

bool hv__instance_cards(struct hv_arena *arena, const char *instance, const char **card,
                        double *cards)
{
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (fits(instance, rows[i].name)) {
            *card = rows[i].card;
            *cards = rows[i].cards;
            return true;
        }
    }
    return read_name(arena, instance, card, cards);
}
