/* A libnvidia-ml.so.1 for tests: eight H100 that behave as the environment says.
 *
 * FAKE_NVML              ok (default), mismatch, notloaded, lost (GPU FAKE_NVML_GPU has no handle),
 *                        dying (that GPU is lost from its memory on), hang, crash
 * FAKE_NVML_AT           the function that hangs or crashes (default nvmlDeviceGetMemoryInfo_v2)
 * FAKE_NVML_GPU          the GPU that does so (default 3)
 * FAKE_NVML_GPUS         how many GPUs (default 8, at most 8)
 * FAKE_NVML_UNSUPPORTED  names of functions that answer "Not Supported", with commas
 * FAKE_NVML_MIG          the GPU that has MIG on, with two instances (default none)
 * FAKE_NVML_RELEASE      release of the driver (default 580.95.05)
 * FAKE_NVML_FABRIC       state of the fabric (default 3, completed)
 * FAKE_NVML_HEALTH       health mask of the fabric (default 0x51aa, nothing wrong)
 *
 * Compiled with -DFAKE_OLD it is the library of an R450 driver: newer functions are not exported.
 * GPU 5 has ECC errors, a remapped row and a remap that waits; GPU 1 a process.
 */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

enum { OK, UNINITIALIZED, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       NOT_LOADED = 9, LOST = 15, MISMATCH = 18, BAD_VERSION = 25 };

typedef unsigned int uint;
typedef unsigned long long ull;
typedef struct device { int index; int instance; } device;
typedef struct { ull total, free, used; } memory_v1;
typedef struct { uint version; ull total, reserved, free, used; } memory_v2;
typedef struct { uint pid; ull used; uint gpu_instance, compute_instance; } process;
typedef struct { char legacy[16]; uint domain, bus, device, id, subsystem; char bus_id[32]; } pci;
typedef struct { uint gpu, memory; } utilization;
typedef struct { unsigned char cluster[16]; int status; uint clique; unsigned char state; } fabric_v1;
typedef struct { uint version; unsigned char cluster[16]; int status; uint clique;
                 unsigned char state; uint health; } fabric_v2;
typedef struct { uint enabled; } c2c_v1;
typedef struct { uint version; int sensor; int temperature; } temperature_v1;

static device gpus[8], instances[2];
static const uint buses[8] = {0x19, 0x3b, 0x4c, 0x5d, 0x9b, 0xbb, 0xcb, 0xdb};

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int mode(const char *name) { return strcmp(setting("FAKE_NVML", "ok"), name) == 0; }
static int number(const char *name, const char *otherwise) { return atoi(setting(name, otherwise)); }
static int chosen(void) { return number("FAKE_NVML_GPU", "3"); }
static int has_mig(const device *d) { return d->index == number("FAKE_NVML_MIG", "-1"); }

static int listed(const char *name)
{
    const char *list = setting("FAKE_NVML_UNSUPPORTED", "");
    size_t length = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return 1;
    return 0;
}

/* What every function does first: hang, crash, or refuse. */
static int refuse(const char *name, const device *d)
{
    int here = !d || d->index == chosen();
    if (here && strcmp(name, setting("FAKE_NVML_AT", "nvmlDeviceGetMemoryInfo_v2")) == 0) {
        if (mode("hang"))
            for (;;)
                sleep(1000);
        if (mode("crash"))
            *(volatile int *)8 = 1;
    }
    if (d && here && mode("dying") && strstr(name, "Memory"))
        return LOST;
    return listed(name) ? NOT_SUPPORTED : OK;
}

#define ASK(d) do { int code = refuse(__func__, d); if (code) return code; } while (0)
#define NUMBER(name, type, value) \
    int name(device *d, type *into) { ASK(d); *into = (type)(value); return OK; }

static int put(char *into, uint size, const char *words)
{
    if (strlen(words) >= size)
        return TOO_SMALL;
    strcpy(into, words);
    return OK;
}

int nvmlInitWithFlags(uint flags)
{
    (void)flags;
    ASK(NULL);
    for (int at = 0; at < 8; at++)
        gpus[at].index = at, gpus[at].instance = -1;
    for (int at = 0; at < 2; at++)
        instances[at].index = number("FAKE_NVML_MIG", "-1"), instances[at].instance = at;
    return mode("mismatch") ? MISMATCH : mode("notloaded") ? NOT_LOADED : OK;
}

const char *nvmlErrorString(int code)
{
    return code == MISMATCH ? "Driver/library version mismatch"
         : code == NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *into, uint size)
{
    ASK(NULL);
#ifdef FAKE_OLD
    return put(into, size, "450.248.02");
#else
    return put(into, size, setting("FAKE_NVML_RELEASE", "580.95.05"));
#endif
}

int nvmlSystemGetCudaDriverVersion_v2(int *into)
{
    ASK(NULL);
#ifdef FAKE_OLD
    *into = 11000;
#else
    *into = 13000;
#endif
    return OK;
}

int nvmlSystemGetProcessName(uint pid, char *into, uint size)
{
    ASK(NULL);
    return pid == 4242 ? put(into, size, "/home/ann/venv/bin/python3.11 train.py --token hidden")
                       : NOT_FOUND;
}

int nvmlDeviceGetCount_v2(uint *into) { ASK(NULL); *into = (uint)number("FAKE_NVML_GPUS", "8"); return OK; }

int nvmlDeviceGetHandleByIndex_v2(uint at, device **into)
{
    if (at >= 8)
        return INVALID;
    ASK(&gpus[at]);
    if (mode("lost") && (int)at == chosen())
        return LOST;
    *into = &gpus[at];
    return OK;
}

int nvmlDeviceGetName(device *d, char *into, uint size)
{
    ASK(d);
    return put(into, size, d->instance < 0 ? "NVIDIA H100 80GB HBM3"
                                           : "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
}

int nvmlDeviceGetVbiosVersion(device *d, char *into, uint size)
{
    ASK(d);
    return put(into, size, "96.00.74.00.01");
}

int nvmlDeviceGetInforomImageVersion(device *d, char *into, uint size)
{
    ASK(d);
    return put(into, size, "G520.0200.00.05");
}

int nvmlDeviceGetUUID(device *d, char *into, uint size)
{
    char words[64];
    ASK(d);
    snprintf(words, sizeof words, "%s-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a%02x",
             d->instance < 0 ? "GPU" : "MIG", d->instance < 0 ? d->index : 16 + d->instance);
    return put(into, size, words);
}

int nvmlDeviceGetPciInfo_v3(device *d, pci *into)
{
    ASK(d);
    memset(into, 0, sizeof *into);
    into->bus = buses[d->index];
    into->id = 0x233010de;
    snprintf(into->bus_id, sizeof into->bus_id, "00000000:%02X:00.0", into->bus);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(device *d, int *major, int *minor)
{
    ASK(d);
    *major = 9, *minor = 0;
    return OK;
}

static ull total(const device *d) { return d->instance < 0 ? 85520809984ull : 42144366592ull; }
static ull used(const device *d) { return d->index == 1 ? 1610612736ull : 557842432ull; }

int nvmlDeviceGetMemoryInfo(device *d, memory_v1 *into)
{
    ASK(d);
    into->total = total(d), into->used = used(d), into->free = total(d) - used(d);
    return OK;
}

static int processes(const device *d, uint *count, process *into)
{
    uint there = d->index == 1;
    if (there && (!into || *count < there)) {
        *count = there;
        return TOO_SMALL;
    }
    if (there)
        *into = (process){4242, 1073741824ull, 0xffffffffu, 0xffffffffu};
    *count = there;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v2(device *d, uint *count, process *into)
{
    ASK(d);
    return processes(d, count, into);
}

int nvmlDeviceGetGraphicsRunningProcesses_v2(device *d, uint *count, process *into)
{
    ASK(d);
    (void)into;
    *count = 0;
    return OK;
}

int nvmlDeviceGetEccMode(device *d, uint *now, uint *next) { ASK(d); *now = *next = 1; return OK; }

int nvmlDeviceGetTotalEccErrors(device *d, int kind, int since, ull *into)
{
    ASK(d);
    *into = d->index != 5 ? 0 : kind == 0 ? 12 : since == 0 ? 3 : 7;
    return OK;
}

int nvmlDeviceGetRetiredPagesPendingStatus(device *d, uint *into)
{
    (void)d, (void)into;
    return NOT_SUPPORTED; /* since Ampere rows are remapped instead */
}

int nvmlDeviceGetMigMode(device *d, uint *now, uint *next)
{
    ASK(d);
    *now = *next = (uint)has_mig(d);
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(device *d, uint *into) { ASK(d); *into = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(device *d, uint at, device **into)
{
    ASK(d);
    if (!has_mig(d) || at >= 2)
        return NOT_FOUND;
    *into = &instances[at];
    return OK;
}

NUMBER(nvmlDeviceGetComputeMode, uint, 0)
NUMBER(nvmlDeviceGetPersistenceMode, uint, 1)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, ull, 1)
NUMBER(nvmlDeviceGetPowerUsage, uint, 71123)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, uint, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, uint, 700000)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, uint, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, uint, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, uint, d->index == 2 ? 8 : 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, uint, 16)

int nvmlDeviceGetClockInfo(device *d, int kind, uint *into) { ASK(d); *into = kind == 1 ? 345 : 0; return OK; }
int nvmlDeviceGetMaxClockInfo(device *d, int kind, uint *into) { ASK(d); *into = kind == 1 ? 1980 : 0; return OK; }
int nvmlDeviceGetApplicationsClock(device *d, int kind, uint *into) { ASK(d); *into = kind == 1 ? 1980 : 2619; return OK; }
int nvmlDeviceGetDefaultApplicationsClock(device *d, int kind, uint *into) { ASK(d); *into = kind == 1 ? 1980 : 2619; return OK; }
int nvmlDeviceGetTemperature(device *d, int sensor, uint *into) { ASK(d); *into = sensor ? 0 : 31; return OK; }
int nvmlDeviceGetTemperatureThreshold(device *d, int kind, uint *into) { ASK(d); *into = kind == 1 ? 87 : 92; return OK; }

int nvmlDeviceGetUtilizationRates(device *d, utilization *into)
{
    ASK(d);
    into->gpu = 4, into->memory = 1;
    return OK;
}

int nvmlDeviceGetNvLinkState(device *d, uint link, uint *into)
{
    ASK(d);
    if (has_mig(d))
        return NOT_SUPPORTED;
    if (link >= 18)
        return INVALID;
    *into = !(d->index == 6 && link == 17);
    return OK;
}

#ifndef FAKE_OLD

int nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *into)
{
    ASK(d);
    if (into->version != 0x02000028)
        return BAD_VERSION;
    into->total = total(d), into->used = used(d), into->reserved = 650969088ull;
    into->free = total(d) - used(d) - into->reserved;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device *d, uint *count, process *into)
{
    ASK(d);
    return processes(d, count, into);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, uint *count, process *into)
{
    return nvmlDeviceGetGraphicsRunningProcesses_v2(d, count, into);
}

int nvmlDeviceGetRemappedRows(device *d, uint *corrected, uint *uncorrected, uint *waits, uint *failed)
{
    ASK(d);
    *corrected = 0, *uncorrected = d->index == 5, *waits = d->index == 5, *failed = 0;
    return OK;
}

NUMBER(nvmlDeviceGetCurrentClocksEventReasons, ull, d->index == 4 ? 0x48 : 1)

int nvmlDeviceGetTemperatureV(device *d, temperature_v1 *into)
{
    ASK(d);
    into->temperature = 31;
    return OK;
}

int nvmlDeviceGetGpuFabricInfo(device *d, fabric_v1 *into)
{
    ASK(d);
    into->status = OK, into->state = (unsigned char)number("FAKE_NVML_FABRIC", "3");
    return OK;
}

int nvmlDeviceGetGpuFabricInfoV(device *d, fabric_v2 *into)
{
    ASK(d);
    if (into->version != 0x02000024)
        return BAD_VERSION;
    into->status = OK, into->state = (unsigned char)number("FAKE_NVML_FABRIC", "3");
    memset(into->cluster, 0xc1, sizeof into->cluster), into->clique = 32766;
    into->health = (uint)strtoul(setting("FAKE_NVML_HEALTH", "0x51aa"), NULL, 16);
    return OK;
}

int nvmlDeviceGetC2cModeInfoV(device *d, c2c_v1 *into)
{
    ASK(d);
    into->enabled = 1;
    return OK;
}

#endif
