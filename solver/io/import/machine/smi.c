/*
 * Values of nvidia-smi's outputs, whatever their form: sizes, numbers, words for missing values and
 * for a lost card. The output forms are read in smi_xml.c, smi_text.c, smi_csv.c and smi_topo.c.
 */
#include "solver/io/import/machine/smi.h"
#include "solver/base/units.h"
#include "solver/io/import/text/words.h"

double hv__smi_bytes(const char *text)
{
    return hv__bytes(hv__piece_of(text), HV_MIB);
}

double hv__smi_number(const char *text)
{
    double x;
    return hv__number(hv__piece_of(text), &x, NULL) ? x : HV_UNKNOWN;
}

bool hv__smi_says(const char *text)
{
    static const char *const nothing[] = {"",
                                          "N/A",
                                          "[N/A]",
                                          "[Not Supported]",
                                          "Not Supported",
                                          "Unknown Error",
                                          "[Unknown Error]",
                                          "[Insufficient Permissions]",
                                          "Insufficient Permissions",
                                          "Requested functionality has been deprecated",
                                          "[Requested functionality has been deprecated]",
                                          "[GPU is lost]",
                                          "[GPU requires reset]",
                                          "None"};
    for (size_t i = 0; i < HV_COUNT(nothing); i++) {
        if (hv__like(hv__piece_of(text), nothing[i])) {
            return false;
        }
    }
    return true;
}

bool hv__smi_lost(const char *text)
{
    struct hv__piece s = hv__piece_of(text);
    return hv__find_like(s, "GPU is lost") || hv__find_like(s, "requires reset") ||
           hv__find_like(s, "Unknown Error");
}

void hv__smi_mig(struct hv__in *in, unsigned line, const char *card, size_t slices)
{
    if (slices > 0) {
        hv__ignored(in, line, "%zu MIG slices of %s: the whole card is listed", slices, card);
    }
}
