/*
 * Names of cards as schedulers and people write them. Variants of one chip (memory, form factor)
 * need no row: they are found in the catalogue. A row is for a name that is no chip's name, or that
 * is used for several chips. Sources: gres.conf and GRES lists of public Slurm sites; resource
 * names of Kubernetes device plugins.
 */
#include "solver/inventory/device_names.h"

#include <ctype.h>
#include <string.h>

static bool same_letter(char a, char b)
{
    return toupper((unsigned char)a) == toupper((unsigned char)b);
}

/* Length of the run of letters and digits at s. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n])) {
        n++;
    }
    return n;
}

bool hv__begins(const char *s, size_t n, const char *with)
{
    size_t len = strlen(with), i = 0;
    while (i < len && i < n && same_letter(s[i], with[i])) {
        i++;
    }
    return i == len;
}

bool hv__contains(const char *name, const char *with)
{
    for (; *name != '\0'; name++) {
        if (hv__begins(name, strlen(name), with)) {
            return true;
        }
    }
    return false;
}

/* True where a word of a kind's name is the form factor or the memory of the card, not its chip. */
static bool is_detail(const char *word, size_t n)
{
    static const char *const forms[] = {"SXM", "PCIe", "NVL", "HBM"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (hv__begins(word, n, forms[i])) {
            return true;
        }
    }
    return isdigit((unsigned char)word[0]) && (toupper((unsigned char)word[n - 1]) == 'B' ||
                                               toupper((unsigned char)word[n - 1]) == 'W');
}

size_t hv__chip_of(const char *kind, char out[HV__CHIP_NAME])
{
    size_t n = 0;
    while (*kind != '\0') {
        size_t len = word_length(kind);
        if (len > 0 && !is_detail(kind, len)) {
            for (size_t i = 0; i < len && n + 1 < HV__CHIP_NAME; i++) {
                out[n++] = kind[i];
            }
        }
        kind += len > 0 ? len : 1;
    }
    return n;
}

bool hv__holds_chip(const char *card, const char *chip, size_t n)
{
    for (const char *start = card; *start != '\0'; start++) {
        if (start != card && isalnum((unsigned char)start[-1])) {
            continue;
        }
        size_t i = 0;
        const char *at = start;
        while (i < n && *at != '\0' &&
               (!isalnum((unsigned char)*at) || same_letter(*at, chip[i]))) {
            i += isalnum((unsigned char)*at) != 0;
            at++;
        }
        if (i == n && n > 0 && !isalnum((unsigned char)*at)) {
            return true;
        }
    }
    return false;
}

/* clang-format off */
static const struct hv__card_name names[] = {
    /* one name for several chips */
    {"L40", "L40 L40S", 0, NULL},
    {"RTX6000", "RTX6000Ada RTXPRO6000Blackwell", 0, NULL},
    {"RTX", "RTX4090 RTX3090 RTX5090 RTX2080Ti RTX3080Ti RTXA6000 RTX6000Ada RTXA5000 RTXA4000 RTXPRO6000Blackwell TitanRTX RTX4090D", 0, NULL},
    {"GEFORCE", "RTX4090 RTX3090 RTX5090 RTX2080Ti RTX3080Ti RTX4090D", 0, NULL},
    {"MI250", "MI250X MI250", 0, NULL},
    {"MI300", "MI300X", 0, NULL},
    {"MI325", "MI325X", 0, NULL},
    {"MI350", "MI350X MI355X", 0, NULL},
    {"MI355", "MI355X", 0, NULL},
    {"GB200", "GB200", 0, NULL},
    {"GB300", "GB300", 0, NULL},
    {"GRACEHOPPER", "GH200", 0, NULL},
    /* names of architectures */
    {"KEPLER", "K80", 0, NULL},
    {"PASCAL", "P100", 0, NULL},
    {"VOLTA", "V100", 0, NULL},
    {"TURING", "T4 RTX2080Ti TitanRTX", 0, NULL},
    {"AMPERE", "A100 A40 A30 A10 RTXA6000 RTX3090", 0, NULL},
    {"LOVELACE", "L40S L40 L4 RTX6000Ada RTX4090", 0, NULL},
    {"HOPPER", "H100 H200 GH200", 0, NULL},
    {"BLACKWELL", "B200 B300 B100 GB200 RTXPRO6000Blackwell", 0, NULL},
    /* short forms of one chip */
    {"2080TI", "RTX2080Ti", 0, NULL},
    {"3080TI", "RTX3080Ti", 0, NULL},
    {"3090", "RTX3090", 0, NULL},
    {"4090", "RTX4090", 0, NULL},
    {"4090D", "RTX4090D", 0, NULL},
    {"5090", "RTX5090", 0, NULL},
    {"A4000", "RTXA4000", 0, NULL},
    {"A5000", "RTXA5000", 0, NULL},
    {"A6000", "RTXA6000", 0, NULL},
    {"6000ADA", "RTX6000Ada", 0, NULL},
    {"ADA6000", "RTX6000Ada", 0, NULL},
    {"RTXADA6000", "RTX6000Ada", 0, NULL},
    {"A6000ADA", "RTX6000Ada", 0, NULL},
    {"RTX6000PRO", "RTXPRO6000Blackwell", 0, NULL},
    {"RTXPRO6000", "RTXPRO6000Blackwell", 0, NULL},
    {"RTXTITAN", "TitanRTX", 0, NULL},
    /* a letter for a variant */
    {"A100L", "A100", 80, NULL},
    {"V100L", "V100", 32, NULL},
    {"V100S", "V100", 32, "PCIe"},
    {"A100X", "A100", 80, "PCIe"},
    {"H100N", "H100", 94, NULL},
    /* resources of Kubernetes, which name the maker */
    {"AMDCOMGPU", "MI300X MI250X MI250 MI210 MI100 MI325X MI350X MI355X", 0, NULL},
    {"HABANAAIGAUDI", "Gaudi2 Gaudi3 GaudiHL205", 0, NULL},
    {"GOOGLECOMTPU", "TPUv5e TPUv6e TPUv5p TPUv4 TPUv3 TPUv2 TPUv7Ironwood", 0, NULL},
    {"AWSAMAZONCOMNEURON", "Trainium1 Trainium2", 0, NULL},
    {"HUAWEICOMASCEND910", "Ascend910B Ascend910C Ascend910A", 0, NULL},
};
/* clang-format on */

const struct hv__card_name *hv__card_name_in(const char *card)
{
    const struct hv__card_name *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].written);
        if (n > most && hv__holds_chip(card, names[i].written, n)) {
            best = &names[i];
            most = n;
        }
    }
    return best;
}
