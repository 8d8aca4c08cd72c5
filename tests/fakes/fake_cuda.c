/* A libcuda.so.1 for tests.
 *
 * FAKE_CUDA          ok (default), hang, crash
 * FAKE_CUDA_AT       the function that hangs or crashes (default cuInit)
 * FAKE_CUDA_INIT     what cuInit returns (default 0); 34 makes every function a stub's
 * FAKE_CUDA_VERSION  what cuDriverGetVersion tells (default 13000)
 * FAKE_CUDA_COUNT    how many devices (default 2)
 * FAKE_CUDA_NAME     their name
 *
 * It has no device where CUDA_VISIBLE_DEVICES begins with anything but the number or the UUID of one.
 *
 * Compiled with -DFAKE_OLD it lacks cuDeviceGetUuid_v2, as before CUDA 11.4.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OK, INVALID_VALUE = 1, NOT_INITIALIZED = 3, STUB = 34, NO_DEVICE = 100, INVALID_DEVICE = 101 };

static int initialized;

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int number(const char *name, const char *otherwise) { return atoi(setting(name, otherwise)); }

static void misbehave(const char *name)
{
    const char *how = setting("FAKE_CUDA", "ok");
    if (strcmp(name, setting("FAKE_CUDA_AT", "cuInit")) != 0)
        return;
    if (strcmp(how, "hang") == 0)
        for (;;)
            sleep(1000);
    if (strcmp(how, "crash") == 0)
        *(volatile int *)8 = 1;
}

static int hidden(void)
{
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    if (!shown || strncmp(shown, "GPU-8a2f3c61", 12) == 0)
        return 0;
    return *shown < '0' || *shown > '9' || atoi(shown) >= number("FAKE_CUDA_COUNT", "2");
}

int cuInit(unsigned int flags)
{
    int code = hidden() ? NO_DEVICE : number("FAKE_CUDA_INIT", "0");
    (void)flags;
    misbehave(__func__);
    initialized = code == OK;
    return code;
}

int cuDriverGetVersion(int *into)
{
    misbehave(__func__);
    if (number("FAKE_CUDA_INIT", "0") == STUB)
        return STUB;
    *into = number("FAKE_CUDA_VERSION", "13000");
    return OK;
}

int cuDeviceGetCount(int *into)
{
    misbehave(__func__);
    if (!initialized)
        return NOT_INITIALIZED;
    *into = number("FAKE_CUDA_COUNT", "2");
    return OK;
}

int cuDeviceGet(int *into, int at)
{
    misbehave(__func__);
    if (at >= number("FAKE_CUDA_COUNT", "2"))
        return INVALID_DEVICE;
    *into = at;
    return OK;
}

int cuDeviceGetName(char *into, int size, int device)
{
    (void)device;
    misbehave(__func__);
    snprintf(into, (size_t)size, "%s", setting("FAKE_CUDA_NAME", "NVIDIA H100 80GB HBM3"));
    return OK;
}

int cuDeviceGetAttribute(int *into, int attribute, int device)
{
    (void)device;
    misbehave(__func__);
    if (attribute != 75 && attribute != 76)
        return INVALID_VALUE;
    *into = attribute == 75 ? 9 : 0;
    return OK;
}

static int fill(unsigned char *into, int device)
{
    static const unsigned char bytes[16] = {0x8a, 0x2f, 0x3c, 0x61, 0x0b, 0x8d, 0x4c, 0x39,
                                            0x9d, 0x2b, 0x7f, 0x3f, 0x4c, 0x1e, 0x5a, 0x00};
    memcpy(into, bytes, sizeof bytes);
    into[15] = (unsigned char)device;
    return OK;
}

int cuDeviceGetUuid(unsigned char *into, int device) { misbehave(__func__); return fill(into, device); }

#ifndef FAKE_OLD
int cuDeviceGetUuid_v2(unsigned char *into, int device) { misbehave(__func__); return fill(into, device); }
#endif
