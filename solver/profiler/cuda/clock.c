/* Clocks and the driver's version from NVML, where the library is installed. */
#include "solver/base/units.h"
#include "solver/profiler/cuda/cuda_int.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The few calls of NVML that are used; its header is not needed for them (NVML API reference). */
typedef void *nvml_device;
#define NVML_CLOCK_SM 1

struct nvml {
    void *library;
    nvml_device device;
    int (*shutdown)(void);
    int (*clock)(nvml_device device, int which, unsigned *mhz);
};

/* dlsym returns a data pointer; POSIX guarantees that function pointers have the same
 * representation. */
static void find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
}

void hv__clock_open(struct hv__cuda *c, char *driver, size_t cap)
{
    struct nvml *n = calloc(1, sizeof *n);
    int (*init)(void) = NULL, (*version)(char *, unsigned) = NULL;
    int (*by_bus)(const char *, nvml_device *) = NULL;
    char bus[32] = "";
    driver[0] = '\0';
    if (n == NULL || (n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW)) == NULL) {
        free(n);
        return;
    }
    find(n->library, "nvmlInit_v2", (void *)&init);
    find(n->library, "nvmlShutdown", (void *)&n->shutdown);
    find(n->library, "nvmlSystemGetDriverVersion", (void *)&version);
    find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", (void *)&by_bus);
    find(n->library, "nvmlDeviceGetClockInfo", (void *)&n->clock);
    if (init == NULL || n->shutdown == NULL || version == NULL || by_bus == NULL ||
        n->clock == NULL || init() != 0) {
        (void)dlclose(n->library);
        free(n);
        return;
    }
    c->nvml = n;
    if (version(driver, (unsigned)cap) != 0) {
        driver[0] = '\0';
    }
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, c->device) != cudaSuccess ||
        by_bus(bus, &n->device) != 0) {
        hv__clock_close(c);
    }
}

void hv__clock_close(struct hv__cuda *c)
{
    struct nvml *n = c->nvml;
    if (n != NULL) {
        (void)n->shutdown();
        (void)dlclose(n->library);
        free(n);
    }
    c->nvml = NULL;
}

double hv__clock_hz(const struct hv__cuda *c)
{
    const struct nvml *n = c->nvml;
    unsigned mhz = 0;
    return n != NULL && n->clock(n->device, NVML_CLOCK_SM, &mhz) == 0 ? 1e6 * mhz : HV_UNKNOWN;
}
